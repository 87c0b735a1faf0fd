"""The loops: While, ForEach and ParallelForEach; and Break, which ends the nearest one."""

from aftercommit.activities.activity import Activity, Property, Visit
from aftercommit.errors import ExpressionError
from aftercommit.jsons import Json


class While(Activity):
    """Runs `body` again and again while `condition` is true, which is asked before each round."""

    properties = {
        "condition": Property("value", required=True),
        "body": Property("child", required=True),
    }
    is_loop = True
    condition: Json
    body: Activity

    def __init__(self, condition: Json, body: Activity) -> None:
        super().__init__(condition=condition, body=body)

    def enter(self, visit: Visit) -> None:
        """Begin the first round."""
        self._go_round(visit, 0)

    def child_ended(self, visit: Visit, key: str, outcome: str) -> None:
        """Begin the next round."""
        del key, outcome
        self._go_round(visit, visit.memory["round"] + 1)

    def _go_round(self, visit: Visit, number: int) -> None:
        visit.memory["round"] = number
        if is_true(self.condition, visit.evaluate(self.condition)):
            visit.schedule("body", number)
        else:
            visit.complete()


class _ForItems(Activity):
    """Base of the loops over a list, which is evaluated once."""

    properties = {
        "items": Property("value", required=True),
        "body": Property("child", required=True),
        "item": Property("variable"),
        "index": Property("variable"),
    }
    is_loop = True
    items: Json
    body: Activity
    item: str | None
    index: str | None

    def __init__(
        self,
        items: Json,
        body: Activity,
        *,
        item: str | None = None,
        index: str | None = None,
    ) -> None:
        super().__init__(items=items, body=body, item=item, index=index)

    def find_faults(self) -> list[tuple[str, str]]:
        """Refuse one name for two things."""
        same = isinstance(self.index, str) and self.index == (self.item or "item")
        return [("index", "is the name of the item, too")] if same else []

    def run_round(self, visit: Visit, number: int, item: Json) -> None:
        """Run the body for one item, which it sees as `var.item` (or the name given)."""
        given = {self.item or "item": item}
        if self.index:
            given[self.index] = number
        visit.schedule("body", number, given)


class ForEach(_ForItems):
    """Runs `body` for each of `items`, one after the other."""

    def enter(self, visit: Visit) -> None:
        """Begin with the first item."""
        visit.memory["items"] = visit.evaluate_items(self.items)
        self._go_round(visit, 0)

    def child_ended(self, visit: Visit, key: str, outcome: str) -> None:
        """Go on with the next item."""
        del key, outcome
        self._go_round(visit, visit.memory["round"] + 1)

    def _go_round(self, visit: Visit, number: int) -> None:
        visit.memory["round"] = number
        if number < len(visit.memory["items"]):
            self.run_round(visit, number, visit.memory["items"][number])
        else:
            visit.complete()


class ParallelForEach(_ForItems):
    """Runs `body` for all of `items` side by side, and ends when all have ended."""

    def enter(self, visit: Visit) -> None:
        """Begin all."""
        items = visit.evaluate_items(self.items)
        visit.memory["left"] = len(items)
        for number, item in enumerate(items):
            self.run_round(visit, number, item)
        if not items:
            visit.complete()

    def child_ended(self, visit: Visit, key: str, outcome: str) -> None:
        """End with the last."""
        del key, outcome
        visit.memory["left"] -= 1
        if not visit.memory["left"]:
            visit.complete()


class Break(Activity):
    """Ends the nearest loop around it, with everything that still runs in it."""

    properties = {}

    def __init__(self) -> None:
        super().__init__()

    def enter(self, visit: Visit) -> None:
        """Leave."""
        visit.break_loop()


def is_true(asked: Json, value: Json) -> bool:
    """Return a condition's value; anything but true and false is a fault, not a silent way."""
    if not isinstance(value, bool):
        got = "nothing" if value is None else type(value).__name__
        raise ExpressionError(str(asked), f"expected true or false, got {got}")
    return value
