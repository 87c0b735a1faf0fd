"""Correlate: tie the instance to something of the outside, by which it is found and reached."""

from aftercommit.activities.activity import Activity, Property, Visit
from aftercommit.errors import ExpressionError
from aftercommit.jsons import Json


class Correlate(Activity):
    """Gives the instance the correlation id that `correlation_id` evaluates to."""

    properties = {"correlation_id": Property("value", required=True)}
    correlation_id: Json

    def __init__(self, correlation_id: Json) -> None:
        super().__init__(correlation_id=correlation_id)

    def enter(self, visit: Visit) -> None:
        """Set it and go on."""
        chosen = visit.evaluate_correlation_id(self.correlation_id)
        if chosen is None:
            raise ExpressionError(str(self.correlation_id), "gives nothing to correlate by")
        visit.correlate(chosen)
        visit.complete()
