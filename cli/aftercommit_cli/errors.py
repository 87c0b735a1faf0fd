"""What ends a command, by exit code; how a watched instance has ended has codes of its own."""

import json
from typing import IO, Any

import click

from aftercommit_cli.text import plain

REFUSED = 1
USAGE = 2
UNREACHABLE = 3
FAULTED = 4
CANCELLED = 5
TIME_UP = 6
INTERRUPTED = 130

_BUSY = (429, 503)


class ProblemError(click.ClickException):
    """A reason to end, told in a line or two."""

    exit_code = REFUSED
    # Whether the same may succeed in a while.
    is_passing = False

    def __init__(self, message: str) -> None:
        super().__init__(plain(message))


class RefusedError(ProblemError):
    """The API answered, and did not do what it was asked; `answer` is its body."""

    def __init__(self, status: int, answer: Any, *, as_json: bool = False) -> None:
        self.status = status
        self.is_passing = status in _BUSY
        self.answer = answer
        self.as_json = as_json
        super().__init__(_say(status, answer))

    @property
    def error(self) -> dict[str, Any]:
        """The answer's `error`, with a code and a message in any case."""
        found = self.answer.get("error") if isinstance(self.answer, dict) else None
        return found if isinstance(found, dict) else {"code": str(self.status), "message": self.message}

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the error: the API's own answer where JSON is asked for."""
        if self.as_json:
            click.echo(json.dumps(self.answer, ensure_ascii=False), file=file, err=file is None)
        else:
            super().show(file)


class UsageProblemError(ProblemError):
    """The command cannot be carried out as it was given."""

    exit_code = USAGE


class UnreachableError(ProblemError):
    """Nothing answered, or what answered is not the API."""

    exit_code = UNREACHABLE
    is_passing = True


def _say(status: int, answer: Any) -> str:
    error = answer.get("error") if isinstance(answer, dict) else None
    if not isinstance(error, dict):
        told = answer.get("message") if isinstance(answer, dict) else None
        hint = "; may these credentials call the API?" if status in (401, 403) else ""
        return f"refused ({status}): {told or 'no reason given'}{hint}"
    field = f"{error['field']}: " if error.get("field") else ""
    lines = [f"{field}{error.get('message', '')} ({error.get('code', status)})"]
    faults = error.get("faults", [])
    if len(faults) > 1:
        lines = [f"{len(faults)} faults ({error.get('code', status)})"]
        lines += [f"  {fault.get('path')}: {fault.get('message')}" for fault in faults]
    return "\n".join(lines)
