"""Call every route of a local stack with what docs/openapi.json permits and what it does not: `make fuzz`.

Schemathesis makes the calls. It fails for an answer that is a 5xx, or whose status, content type or body is
not one that the description names. EXAMPLES bounds the calls per route, SEED makes other ones, and PORT sets
the emulator's port.
"""

import os
import subprocess
import sys

from scripts.emulator import ROOT, EmulatorError
from scripts.local import EXAMPLE_ORDER
from scripts.local_build import BuildError
from scripts.local_stack import deployed

CHECKS = [
    "is_let_in",
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
]
KNOWN_INSTANCE = "fuzzed"


def main() -> int:
    """Deploy a stack, call it, and return the exit status of the run."""
    try:
        with deployed(port=int(os.environ.get("PORT", "4566")), say=print) as stack:
            # Something that is there, beside the example's workflows (see fuzz_hooks.py).
            start = {"input": EXAMPLE_ORDER, "instance_id": KNOWN_INSTANCE}
            stack.request("POST", "/workflows/place-order/dispatch", start)
            return _fuzz(stack.api_url, stack.environment)
    except (BuildError, EmulatorError) as error:
        print(error, file=sys.stderr)
        return 1


def _fuzz(api_url: str, environment: dict[str, str]) -> int:
    command = [
        ROOT / ".tools/fuzz/bin/schemathesis",
        "run",
        ROOT / "docs/openapi.json",
        f"--url={api_url}",
        f"--checks={','.join(CHECKS)}",
        "--phases=examples,coverage,fuzzing",
        f"--max-examples={os.environ.get('EXAMPLES', '20')}",
        f"--seed={os.environ.get('SEED', '1')}",
        "--request-timeout=40",
        "--continue-on-failure",
        "--warnings=off",  # most calls name what is not there: that is no fault
        "--no-color",
    ]
    # Away from the environment of the caller, which may hold credentials.
    more = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "SCHEMATHESIS_HOOKS": "scripts.fuzz_hooks"}
    return subprocess.run(command, cwd=ROOT / ".build", env=environment | more, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
