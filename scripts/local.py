"""Serves the deployed stack on this machine until interrupted: `make local`.

PORT, WORKFLOWS_DIR and LOCAL_PARAMETERS ("Key=Value Key=Value") come from the environment.
"""

import json
import os
import shlex
import signal
import sys
import time
from pathlib import Path
from types import FrameType

from scripts.emulator import EmulatorError
from scripts.local_build import BuildError
from scripts.local_stack import Stack, deployed

EXAMPLE_ORDER = {
    "order_id": "order-1",
    "customer": "Grace Hopper",
    "amount": 4200,
    "address": "1 Navy Yard, Arlington",
    "items": [{"sku": "nanosecond-wire", "quantity": 1}],
}


def main() -> int:
    """Serve until a signal comes; return the exit status."""
    # SIGINT too: a shell starts what it runs in the background with that one ignored.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    try:
        port, parameters, workflows_dir = _read_environment()
        with deployed(port=port, parameters=parameters, workflows_dir=workflows_dir, say=_say) as stack:
            _say(_invitation(stack, own_workflows=workflows_dir is not None))
            while stack.emulator.is_running():
                time.sleep(0.5)
            _say("The emulator has ended by itself.")
            return 1
    except KeyboardInterrupt:
        _say("\nStopped; nothing is left running.")
        return 0
    except (EmulatorError, BuildError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1


def _read_environment() -> tuple[int, dict[str, str], Path | None]:
    text = os.environ.get("PORT") or "4566"
    if not text.isdecimal() or not 0 < int(text) < 65536:  # noqa: PLR2004 - the largest port
        raise ValueError(f"PORT must be a port number, not {text!r}")
    pairs = [word.partition("=") for word in shlex.split(os.environ.get("LOCAL_PARAMETERS", ""))]
    for name, equals, _ in pairs:
        if not name or not equals:
            raise ValueError(f"LOCAL_PARAMETERS must be like 'Key=Value Key=Value', not {name!r}")
    folder = os.environ.get("WORKFLOWS_DIR")
    return int(text), {name: value for name, _, value in pairs}, Path(folder) if folder else None


def _invitation(stack: Stack, *, own_workflows: bool) -> str:
    sign = '--aws-sigv4 "aws:amz:us-east-1:execute-api" --user test:test'
    if own_workflows:
        example = f'curl {sign} "{stack.api_url}/workflows"'
    else:
        example = (
            f"curl {sign} -H 'Content-Type: application/json' \\\n"
            f"    -d '{json.dumps({'input': EXAMPLE_ORDER})}' \\\n"
            f'    "{stack.api_url}/workflows/place-order/dispatch"\n\n'
            "and see what became of it, with the instance_id of the answer:\n\n"
            f'  curl {sign} "{stack.api_url}/instances/INSTANCE_ID"'
        )
    return f"""
API_URL={stack.api_url}

Requests are signed, as on AWS. Try:

  {example}

AWS clients find the stack's tables, queues and logs at AWS_ENDPOINT_URL={stack.endpoint_url}
Press Ctrl-C to stop."""


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
