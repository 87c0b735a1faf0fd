"""Schedules: when something happens next by the clock. Pure: the same schedule and instant give the same.

A schedule is `{"cron", "time_zone"}`, `{"every_seconds"}` or `{"at"}`. Cron expressions are read by cronsim,
which treats daylight saving as Debian's cron does: an occurrence in the hour that is skipped comes right
after it, and one at a fixed time in the hour that is repeated comes once.
"""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from aftercommit import clock
from aftercommit.jsons import Json

_ANY_INSTANT = datetime(2026, 1, 1, tzinfo=UTC)


def find_cron_fault(expression: str) -> str | None:
    """Say what is wrong with a cron expression, or None."""
    from cronsim import CronSimError  # noqa: PLC0415 - most workflows have no schedule

    try:
        following = _next(expression, _ANY_INSTANT)
    except CronSimError as error:
        return f"{expression!r} is no cron expression: {error}"
    return f"{expression!r} never comes" if following is None else None


def find_time_zone_fault(name: str) -> str | None:
    """Say what is wrong with the name of a time zone, or None."""
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # also for what is no file's name
        return f"unknown time zone {name!r}; expected a name like Europe/Berlin"
    return None


def next_of(schedule: dict[str, Json], after: float, *, last: float | None = None) -> float | None:
    """Return the first occurrence after an instant, or None if there is no other.

    `last` is the occurrence before: an interval keeps its rhythm, and a single instant does not come again.
    Those that were missed in between are passed over.
    """
    if "at" in schedule:
        return clock.from_any_text(schedule["at"]) if last is None else None
    if "every_seconds" in schedule:
        interval = schedule["every_seconds"]
        begun = after if last is None else last
        passed = max(0, after - begun) // interval
        return float(begun + (passed + 1) * interval)
    moment = datetime.fromtimestamp(max(after, last or after), ZoneInfo(schedule["time_zone"]))
    following = _next(schedule["cron"], moment)
    return following.timestamp() if following else None


def _next(expression: str, moment: datetime) -> datetime | None:
    from cronsim import CronSim  # noqa: PLC0415

    return next(CronSim(expression, moment), None)
