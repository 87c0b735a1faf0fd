"""How the demo and the load run begin, talk and end."""

import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Self, TextIO

from scripts.emulator import EmulatorError
from scripts.local_build import BuildError


class RunError(Exception):
    """The run could not be carried to its end."""


def run_program(program: Callable[[], int]) -> int:
    """Run what deploys a stack; return its exit status, or 1 when it is stopped or cannot be carried on."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    try:
        return program()
    except KeyboardInterrupt:
        say("\nStopped; nothing is left running.")
    except (EmulatorError, BuildError, RunError) as error:
        print(error, file=sys.stderr)
    return 1


def read_number(name: str, default: int) -> int:
    """Return a positive whole number from the environment; raises RunError for anything else."""
    text = os.environ.get(name) or str(default)
    if not text.isdecimal() or int(text) == 0:
        raise RunError(f"{name} must be a positive whole number, not {text!r}")
    return int(text)


def choose_port() -> int:
    """Return the environment's PORT, or a free one."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return read_number("PORT", probe.getsockname()[1])


def say(text: str) -> None:
    """Print a line at once, also into a pipe."""
    print(text, flush=True)


class Progress:
    """Shows how far it is: a line that changes on a terminal, a line now and then elsewhere."""

    def __init__(self, stream: TextIO, *, every_seconds: float = 3) -> None:
        self._stream = stream
        self._every_seconds = every_seconds
        self._started = time.monotonic()
        self._shown = ""
        self._shown_at = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._stream.isatty():
            self._stream.write("\n")
            self._stream.flush()

    def show(self, text: str) -> None:
        """Show the state of things, if it has changed or some time has passed."""
        now = time.monotonic()
        line = f"  {now - self._started:4.0f} s  {text}"
        if self._stream.isatty():
            self._stream.write(f"\r{line}\x1b[K")
        elif text == self._shown or now - self._shown_at < self._every_seconds:
            return
        else:
            self._stream.write(line + "\n")
        self._stream.flush()
        self._shown, self._shown_at = text, now


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
