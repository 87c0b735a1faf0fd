"""Writes env.json, by which `sam local invoke` and `start-api` use the stack that `make local` serves.

PORT says where it listens; HOST is its name as containers see it (host.docker.internal, or 127.0.0.1 with
`--docker-network host`).
"""

import json
import os
import sys

from botocore.exceptions import BotoCoreError, ClientError
from botocore.session import get_session

from scripts.emulator import ACCESS_KEY, REGION, ROOT, SECRET_KEY
from scripts.local_stack import STACK_NAME


def main() -> int:
    """Write the file; return the exit status."""
    port = os.environ.get("PORT") or "4566"
    host = os.environ.get("HOST") or "host.docker.internal"
    try:
        variables = read_variables(f"http://127.0.0.1:{port}")
    except (BotoCoreError, ClientError) as error:
        print(f"No stack at port {port}; is `make local` running? {error}", file=sys.stderr)
        return 1
    seen = {
        name: value.replace(f"//127.0.0.1:{port}", f"//{host}:{port}").replace(
            f"//localhost:{port}", f"//{host}:{port}"
        )
        for name, value in variables.items()
    }
    target = ROOT / "env.json"
    target.write_text(json.dumps({"Parameters": seen}, indent=2) + "\n", encoding="utf-8")
    print(f"wrote {target.name} for the stack at {host}:{port}")
    return 0


def read_variables(endpoint_url: str) -> dict[str, str]:
    """Return the environment variables of the functions of a deployed stack, and its address.

    Of those that one function alone has, only that of the sweep, which does no harm elsewhere.
    """
    session = get_session()

    def client(service: str):  # noqa: ANN202 - botocore's clients have no type of their own
        return session.create_client(
            service,
            region_name=REGION,
            endpoint_url=endpoint_url,
            aws_access_key_id=ACCESS_KEY,
            aws_secret_access_key=SECRET_KEY,
        )

    [stack] = client("cloudformation").describe_stacks(StackName=STACK_NAME)["Stacks"]
    outputs = {each["OutputKey"]: each["OutputValue"] for each in stack["Outputs"]}
    found = client("lambda").get_function_configuration(FunctionName=outputs["RunFunction"])
    variables = dict(found["Environment"]["Variables"])
    variables.pop("POWERTOOLS_SERVICE_NAME", None)  # it differs from function to function
    return {
        **variables,
        # Left to sam local, it would be the function's name in the template, by which nobody can call it.
        "EVENTS_FUNCTION": outputs["EventsFunction"],
        "AWS_ENDPOINT_URL": endpoint_url,
    }


if __name__ == "__main__":
    sys.exit(main())
