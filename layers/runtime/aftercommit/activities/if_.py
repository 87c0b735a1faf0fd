"""If: one of two ways, by a condition."""

from aftercommit.activities.activity import Activity, Property, Visit
from aftercommit.activities.loops import is_true
from aftercommit.jsons import Json


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
    ) -> None:
        super().__init__(condition=condition, then=then, otherwise=otherwise)

    def enter(self, visit: Visit) -> None:
        """Choose."""
        if is_true(self.condition, visit.evaluate(self.condition)):
            visit.schedule("then")
        elif self.otherwise is not None:
            visit.schedule("otherwise")
        else:
            visit.complete()
