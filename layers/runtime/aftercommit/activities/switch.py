"""Switch: one of many ways, by a value."""

from aftercommit.activities.activity import Activity, Property, Visit
from aftercommit.errors import ExpressionError
from aftercommit.jsons import Json


class Switch(Activity):
    """Runs the case named as `value` says (text, number, true or false), else `otherwise`, else nothing."""

    properties = {
        "value": Property("value", required=True),
        "cases": Property("branches", required=True),
        "otherwise": Property("child"),
    }
    value: Json
    cases: dict[str, Activity]
    otherwise: Activity | None

    def __init__(
        self,
        value: Json,
        cases: dict[str, Activity],
        otherwise: Activity | None = None,
    ) -> None:
        super().__init__(value=value, cases=cases, otherwise=otherwise)

    def enter(self, visit: Visit) -> None:
        """Choose."""
        chosen = _as_name(self.value, visit.evaluate(self.value))
        if chosen in self.cases:
            visit.schedule(f"cases.{chosen}")
        elif self.otherwise is not None:
            visit.schedule("otherwise")
        else:
            visit.complete()


def _as_name(asked: Json, value: Json) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(int(value)) if value == int(value) else str(value)
    raise ExpressionError(str(asked), f"a case is named by a text or number, not by {type(value).__name__}")
