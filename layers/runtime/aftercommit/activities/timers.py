"""The waits for a time; some also start workflows. Durable: no function runs meanwhile, and never early."""

from aftercommit import clock
from aftercommit.activities.activity import Activity, Property, Visit
from aftercommit.errors import ExpressionError
from aftercommit.jsons import Json
from aftercommit.limits import DELAY_SECONDS_MAX
from aftercommit.schedules import find_cron_fault, find_time_zone_fault, next_of


class Delay(Activity):
    """Waits for `seconds`."""

    properties = {"seconds": Property("value", required=True)}
    seconds: Json

    def __init__(self, seconds: Json) -> None:
        super().__init__(seconds=seconds)

    def takes_time(self) -> bool:
        """Say so: it does."""
        return True

    def enter(self, visit: Visit) -> None:
        """Set the timer."""
        visit.wait_until(visit.at + _seconds(self.seconds, visit))

    def resumed(self, visit: Visit, outcome: str, value: Json) -> None:
        """Go on."""
        del outcome, value
        visit.complete()


class _Scheduled(Activity):
    """Waits for the next time of its schedule; with `starts`, each of its times starts the workflow here.

    The time it was due goes into `result`, as `{"at": text}`.
    """

    starts: bool | None

    def takes_time(self) -> bool:
        """Say so: it does."""
        return True

    def enter(self, visit: Visit) -> None:
        """Go on at once where the time has started the instance; else set the timer."""
        if visit.take_trigger():
            visit.complete(result=(visit.trigger or {}).get("value"))
            return
        at = self.next_at(visit)
        visit.memory["at"] = clock.to_text(at)
        if at <= visit.at:
            visit.complete(result={"at": visit.memory["at"]})
        else:
            visit.wait_until(at)

    def next_at(self, visit: Visit) -> float:
        """Return the instant to wait for."""
        raise NotImplementedError

    def resumed(self, visit: Visit, outcome: str, value: Json) -> None:
        """Go on."""
        del value
        visit.complete(outcome, {"at": visit.memory.get("at")})


class Timer(_Scheduled):
    """Waits for `seconds`; with `starts`, starts the workflow at that interval from its publication on."""

    properties = {
        "seconds": Property("value", required=True),
        "starts": Property("flag"),
        "result": Property("variable"),
    }
    seconds: Json

    def __init__(self, seconds: Json, *, starts: bool = False, result: str | None = None) -> None:
        super().__init__(seconds=seconds, starts=starts or None, result=result)

    def schedule(self) -> dict[str, Json] | None:
        """Start at an interval, if it is told to."""
        return {"every_seconds": self.seconds} if self.starts else None

    def find_faults(self) -> list[tuple[str, str]]:
        """Refuse an interval that is no whole number: a start point has nothing to reckon it from."""
        fits = type(self.seconds) is int and 1 <= self.seconds <= DELAY_SECONDS_MAX
        if not self.starts or fits:
            return []
        return [("seconds", f"must be a whole number from 1 to {DELAY_SECONDS_MAX} in a start point")]

    def next_at(self, visit: Visit) -> float:
        """Return the end of the time."""
        return visit.at + _seconds(self.seconds, visit)


class Cron(_Scheduled):
    """Waits for the next time of a cron `expression`; with `starts`, each of its times starts the workflow.

    The expression has the five fields of cron, or six that begin with seconds, and is read in `time_zone`.
    """

    properties = {
        "expression": Property("text", required=True),
        "time_zone": Property("text"),
        "starts": Property("flag"),
        "result": Property("variable"),
    }
    expression: str
    time_zone: str | None

    def __init__(
        self,
        expression: str,
        *,
        time_zone: str | None = None,
        starts: bool = False,
        result: str | None = None,
    ) -> None:
        super().__init__(expression=expression, time_zone=time_zone, starts=starts or None, result=result)

    def schedule(self) -> dict[str, Json] | None:
        """Start at each time, if it is told to."""
        return self._times() if self.starts else None

    def _times(self) -> dict[str, Json]:
        return {"cron": self.expression, "time_zone": self.time_zone or "UTC"}

    def find_faults(self) -> list[tuple[str, str]]:
        """Refuse what cron would not read, and times that never come."""
        faults = {}
        if isinstance(self.expression, str):
            faults["expression"] = find_cron_fault(self.expression)
        if isinstance(self.time_zone, str):
            faults["time_zone"] = find_time_zone_fault(self.time_zone)
        return [(name, fault) for name, fault in faults.items() if fault]

    def next_at(self, visit: Visit) -> float:
        """Return its next time."""
        at = next_of(self._times(), visit.at)
        if at is None:
            raise ExpressionError(self.expression, "there is no other time to come")
        return at


class StartAt(_Scheduled):
    """Waits until an instant, given as ISO 8601 text with its offset; one in the past goes on at once.

    With `starts`, the instant starts the workflow, once.
    """

    properties = {
        "at": Property("value", required=True),
        "starts": Property("flag"),
        "result": Property("variable"),
    }
    at: Json

    def __init__(self, at: Json, *, starts: bool = False, result: str | None = None) -> None:
        super().__init__(at=at, starts=starts or None, result=result)

    def schedule(self) -> dict[str, Json] | None:
        """Start once, if it is told to."""
        return {"at": self.at} if self.starts else None

    def find_faults(self) -> list[tuple[str, str]]:
        """Refuse a start point whose instant is not known when it is published."""
        if not self.starts:
            return []
        try:
            clock.from_any_text(self.at)
        except ValueError as error:
            return [("at", str(error))]
        return []

    def next_at(self, visit: Visit) -> float:
        """Return the instant."""
        text = visit.evaluate(self.at)
        try:
            at = clock.from_any_text(text)
        except ValueError as error:
            raise ExpressionError(str(self.at), str(error)) from None
        if at - visit.at > DELAY_SECONDS_MAX:
            raise ExpressionError(str(self.at), f"is more than {DELAY_SECONDS_MAX} seconds ahead")
        return at


def _seconds(asked: Json, visit: Visit) -> float:
    seconds = visit.evaluate(asked)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise ExpressionError(str(asked), "expected a number of seconds")
    if not 0 <= seconds <= DELAY_SECONDS_MAX:
        raise ExpressionError(str(asked), f"a delay is 0 to {DELAY_SECONDS_MAX} seconds")
    return seconds
