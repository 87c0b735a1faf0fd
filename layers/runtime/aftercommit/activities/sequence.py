"""Sequence: one activity after the other."""

from aftercommit.activities.activity import Activity, Property, Visit


class Sequence(Activity):
    """Runs its activities in order; an empty one completes at once."""

    properties = {"activities": Property("children", required=True)}
    activities: list[Activity]

    def __init__(self, *activities: Activity) -> None:
        super().__init__(activities=list(activities))

    def enter(self, visit: Visit) -> None:
        """Run the first."""
        self._run(visit, 0)

    def child_ended(self, visit: Visit, key: str, outcome: str) -> None:
        """Run the next."""
        del key, outcome
        self._run(visit, visit.memory["index"] + 1)

    def _run(self, visit: Visit, index: int) -> None:
        visit.memory["index"] = index
        if index < len(self.activities):
            visit.schedule(f"activities[{index}]")
        else:
            visit.complete()
