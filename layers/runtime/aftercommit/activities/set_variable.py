"""SetVariable: give a variable of the instance a value."""

from aftercommit.activities.activity import Activity, Property, Visit
from aftercommit.jsons import Json


class SetVariable(Activity):
    """Sets `variable` to `value`."""

    properties = {"variable": Property("variable", required=True), "value": Property("value")}
    variable: str
    value: Json

    def __init__(self, variable: str, value: Json) -> None:
        super().__init__(variable=variable, value=value)

    def enter(self, visit: Visit) -> None:
        """Set it and go on."""
        visit.set_variable(self.variable, visit.evaluate(self.value))
        visit.complete()
