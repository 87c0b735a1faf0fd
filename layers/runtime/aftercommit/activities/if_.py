"""If: one of two ways, by a condition."""

from aftercommit.activities.activity import Activity, Property, Visit
from aftercommit.errors import ExpressionError
from aftercommit.model import Json


class If(Activity):
    """Runs `then` if the condition is true, else `otherwise` (which may be absent)."""

    properties = {
        "condition": Property("value", required=True),
        "then": Property("child", required=True),
        "otherwise": Property("child"),
    }
    condition: Json
    then: Activity
    otherwise: Activity | None

    def __init__(
        self,
        condition: Json,
        then: Activity,
        otherwise: Activity | None = None,
        *,
        result: str | None = None,
    ) -> None:
        super().__init__(condition=condition, then=then, otherwise=otherwise, result=result)

    def enter(self, visit: Visit) -> None:
        """Choose. Only true and false choose: a forgotten comparison is a fault, not a silent way."""
        chosen = visit.evaluate(self.condition)
        if not isinstance(chosen, bool):
            raise ExpressionError(str(self.condition), f"expected true or false, got {_kind_of(chosen)}")
        if chosen:
            visit.schedule("then")
        elif self.otherwise is not None:
            visit.schedule("otherwise")
        else:
            visit.complete()


def _kind_of(value: Json) -> str:
    return "nothing" if value is None else type(value).__name__
