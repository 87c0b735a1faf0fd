"""Fork: several branches side by side."""

from aftercommit.activities.activity import Activity, Property, Visit


class Fork(Activity):
    """Runs its branches side by side; ends with the last, or with `wait="any"` when the first has ended.

    What the losing branches of `any` still run or wait for is dropped, with its bookmarks.
    """

    properties = {
        "branches": Property("children", required=True),
        "wait": Property("choice", choices=("all", "any")),
    }
    branches: list[Activity]
    wait: str | None

    def __init__(self, *branches: Activity, wait: str | None = None) -> None:
        super().__init__(branches=list(branches), wait=wait)

    def enter(self, visit: Visit) -> None:
        """Begin all branches."""
        visit.memory["left"] = len(self.branches)
        for index in range(len(self.branches)):
            visit.schedule(f"branches[{index}]")
        if not self.branches:
            visit.complete()

    def child_ended(self, visit: Visit, key: str, outcome: str) -> None:
        """End with the last branch, or with the first."""
        del key, outcome
        visit.memory["left"] -= 1
        if self.wait == "any":
            visit.cancel_children()
            visit.complete()
        elif not visit.memory["left"]:
            visit.complete()
