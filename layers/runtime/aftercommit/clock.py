"""Time, made in one place so that tests and the simulation can drive it.

Instants are float seconds since the epoch inside functions, and ISO 8601 text in UTC with
milliseconds (`2026-11-30T21:45:23.123Z`) in rows, messages and answers: as text they sort by time.
"""

import time
from datetime import UTC, datetime

DAY_SECONDS = 86_400


class Clock:
    """The system's clock; replace it to drive time."""

    def now(self) -> float:
        """Return the seconds since the epoch."""
        return time.time()

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        time.sleep(seconds)


clock = Clock()


def now() -> float:
    """Return the seconds since the epoch, by the clock in use."""
    return clock.now()


def sleep(seconds: float) -> None:
    """Let time pass, by the clock in use."""
    clock.sleep(seconds)


def to_text(at: float) -> str:
    """Write an instant as text that sorts by time."""
    # Rounded down to the millisecond: text never lies ahead of the instant it stands for. The small
    # addition makes up for what a float loses, so that an instant read from text is written as that text.
    milliseconds = int(at * 1000 + 0.001)
    moment = datetime.fromtimestamp(milliseconds // 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{milliseconds % 1000:03d}Z"


def from_text(text: str) -> float:
    """Read an instant written by `to_text`."""
    return datetime.fromisoformat(text).timestamp()


def from_any_text(text: object) -> float:
    """Read an instant that a person wrote, ISO 8601 with an offset; raises ValueError saying why not."""
    if not isinstance(text, str):
        raise ValueError("expected an instant as ISO 8601 text")  # noqa: TRY004 - callers expect one kind
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text[:40]!r} is no ISO 8601 instant") from None
    if moment.tzinfo is None:
        raise ValueError(f"{text[:40]!r} has no offset; end it with Z, or with one like +01:00")
    return moment.timestamp()
