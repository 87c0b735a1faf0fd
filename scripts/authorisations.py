"""The emulator as a program that also notes what it allows and refuses: one JSON line per new answer.

Runs in the emulator's own environment, in place of its usual start; scripts/emulator.py names the file in
AUTHORISATIONS_FILE. Noted is the emulator's last word on each call that was made as a role.
"""

import json
import os
import threading
from collections.abc import Callable
from typing import Any

from ministack.app import main
from ministack.core import iam_evaluator

Enforce = Callable[..., Any]  # returns None if the call is allowed, else why not


def noting(enforce: Enforce, path: str) -> Enforce:
    """Return an `enforce` that answers as before, and appends each answer that was not given yet."""
    given: set[tuple[str, str, str, bool]] = set()
    lock = threading.Lock()

    def enforce_and_note(key: str, action: str, *place: str, resource_arn: str = "*", **options: Any) -> Any:
        refusal = enforce(key, action, *place, resource_arn=resource_arn, **options)
        caller = iam_evaluator.caller_arn()
        answer = (caller, action, resource_arn, refusal is None)
        with lock:
            if ":assumed-role/" in caller and answer not in given:
                given.add(answer)
                # Opened for each line: whoever reads the file finds whole lines.
                with open(path, "a", encoding="utf-8") as file:  # noqa: PTH123
                    file.write(json.dumps(answer) + "\n")
        return refusal

    return enforce_and_note


if __name__ == "__main__":
    # Every caller inside the emulator imports it at the call, so all of them get this one.
    iam_evaluator.enforce = noting(iam_evaluator.enforce, os.environ["AUTHORISATIONS_FILE"])
    main()
