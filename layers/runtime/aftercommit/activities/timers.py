"""The waits for a time: Delay and StartAt. Durable: no function runs meanwhile, and never early."""

from aftercommit import clock
from aftercommit.activities.activity import Activity, Property, Visit
from aftercommit.errors import ExpressionError
from aftercommit.model import Json

DELAY_SECONDS_MAX = 10 * 365 * 86_400


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
        seconds = visit.evaluate(self.seconds)
        if isinstance(seconds, bool) or not isinstance(seconds, int | float):
            raise ExpressionError(str(self.seconds), "expected a number of seconds")
        if not 0 <= seconds <= DELAY_SECONDS_MAX:
            raise ExpressionError(str(self.seconds), f"a delay is 0 to {DELAY_SECONDS_MAX} seconds")
        visit.wait_until(visit.at + seconds)

    def resumed(self, visit: Visit, outcome: str, value: Json) -> None:
        """Go on."""
        del outcome, value
        visit.complete()


class StartAt(Activity):
    """Waits until an instant, given as ISO 8601 text with its offset; one in the past goes on at once."""

    properties = {"at": Property("value", required=True)}
    at: Json

    def __init__(self, at: Json) -> None:
        super().__init__(at=at)

    def takes_time(self) -> bool:
        """Say so: it does."""
        return True

    def enter(self, visit: Visit) -> None:
        """Set the timer."""
        text = visit.evaluate(self.at)
        try:
            at = clock.from_any_text(text)
        except ValueError as error:
            raise ExpressionError(str(self.at), str(error)) from None
        if at - visit.at > DELAY_SECONDS_MAX:
            raise ExpressionError(str(self.at), f"is more than {DELAY_SECONDS_MAX} seconds ahead")
        if at <= visit.at:
            visit.complete()
        else:
            visit.wait_until(at)

    def resumed(self, visit: Visit, outcome: str, value: Json) -> None:
        """Go on."""
        del outcome, value
        visit.complete()
