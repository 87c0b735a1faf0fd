"""Correlate: tie the instance to something of the outside, by which it is found and reached."""

from aftercommit.activities.activity import Activity, Property, Visit
from aftercommit.errors import ExpressionError
from aftercommit.limits import NAME_CHARACTERS_MAX
from aftercommit.model import Json


class Correlate(Activity):
    """Gives the instance the correlation id that `correlation_id` evaluates to."""

    properties = {"correlation_id": Property("value", required=True)}
    correlation_id: Json

    def __init__(self, correlation_id: Json, *, result: str | None = None) -> None:
        super().__init__(correlation_id=correlation_id, result=result)

    def enter(self, visit: Visit) -> None:
        """Set it and go on."""
        chosen = visit.evaluate(self.correlation_id)
        if not isinstance(chosen, str) or not 1 <= len(chosen) <= NAME_CHARACTERS_MAX:
            raise ExpressionError(
                str(self.correlation_id),
                f"a correlation id is a text of 1 to {NAME_CHARACTERS_MAX} characters",
            )
        visit.correlate(chosen)
        visit.complete()
