"""Flowchart: activities joined by connections, taken by outcome; loops and joins are welcome."""

from collections import Counter

from aftercommit.activities.activity import Activity, Property, Visit
from aftercommit.jsons import Json

Connection = dict[str, str]  # {from, to, outcome?}; without an outcome it is taken on every one


def are_connections(value: Json) -> bool:
    """Whether a value is a list of {from, to, outcome?}."""
    return isinstance(value, list) and all(
        isinstance(each, dict)
        and {"from", "to"} <= each.keys() <= {"from", "to", "outcome"}
        and all(isinstance(part, str) for part in each.values())
        for each in value
    )


def takes_time(activity: Activity | None) -> bool:
    """Whether an activity, or one below it, is run by a worker or waits; a faulty one is told already."""
    if activity is None:
        return True
    return activity.takes_time() or any(takes_time(child) for _, child in activity.children())


class Flowchart(Activity):
    """Runs `start`, then along the connections that each activity's outcome takes; ends when nothing runs.

    An activity named in `joins` with "all" runs once every connection into it has been taken; any other runs
    each time one is.
    """

    properties = {
        "activities": Property("branches", required=True),
        "connections": Property("connections"),
        "start": Property("text", required=True),
        "joins": Property("options"),
    }
    activities: dict[str, Activity]
    connections: list[Connection] | None
    start: str
    joins: dict[str, str] | None

    def __init__(
        self,
        activities: dict[str, Activity],
        connections: list[Connection],
        *,
        start: str,
        joins: dict[str, str] | None = None,
    ) -> None:
        super().__init__(activities=activities, connections=connections, start=start, joins=joins)

    def find_faults(self) -> list[tuple[str, str]]:
        """Refuse names that are no activity here, and cycles that turn without a step or a wait."""
        given: Json = self.activities
        start: Json = self.start
        if not isinstance(given, dict) or not are_connections(self.connections or []):
            return []
        faults = []
        if isinstance(start, str) and start not in self.activities:
            faults.append(("start", f"no activity {start!r} here"))
        for index, each in enumerate(self.connections or []):
            faults += [
                (f"connections[{index}].{end}", f"no activity {each[end]!r} here")
                for end in ("from", "to")
                if each[end] not in self.activities
            ]
        for name, mode in self.joins.items() if isinstance(self.joins, dict) else ():
            if name not in self.activities:
                faults.append((f"joins.{name}", f"no activity {name!r} here"))
            if mode not in ("all", "any"):
                faults.append((f"joins.{name}", "must be one of all, any"))
        if not faults and (cycle := self._find_idle_cycle()):
            faults.append(("connections", f"{' -> '.join(cycle)} turns without a step or a wait"))
        return faults

    def _find_idle_cycle(self) -> list[str] | None:
        """Return a cycle of activities none of which can take time; one that does makes a cycle harmless."""
        idle = {name for name, each in self.activities.items() if not takes_time(each)}
        after: dict[str, list[str]] = {name: [] for name in idle}
        for each in self.connections or []:
            if each["from"] in idle and each["to"] in idle:
                after[each["from"]].append(each["to"])
        done: set[str] = set()
        for name in sorted(idle):
            trail = [name]
            while trail:
                ahead = next((each for each in after[trail[-1]] if each not in done), None)
                if ahead is None:
                    done.add(trail.pop())
                elif ahead in trail:
                    return [*trail[trail.index(ahead) :], ahead]
                else:
                    trail.append(ahead)
        return None

    def enter(self, visit: Visit) -> None:
        """Begin at the start."""
        visit.memory.update(running=0, rounds={})
        self._run(visit, self.start)

    def child_ended(self, visit: Visit, key: str, outcome: str) -> None:
        """Take the connections of this outcome."""
        visit.memory["running"] -= 1
        ended = key.removeprefix("activities.")
        for number, each in enumerate(self.connections or []):
            if each["from"] == ended and each.get("outcome", outcome) == outcome:
                self._arrive(visit, number, each["to"])
        if not visit.memory["running"]:
            visit.complete()

    def _arrive(self, visit: Visit, number: int, target: str) -> None:
        if (self.joins or {}).get(target) != "all":
            self._run(visit, target)
            return
        # A connection taken twice before the others were taken once counts for the next round.
        taken = Counter({int(key): count for key, count in visit.memory.get("taken", {}).items()})
        taken[number] += 1
        into = [index for index, each in enumerate(self.connections or []) if each["to"] == target]
        if all(taken[index] for index in into):
            taken.subtract(into)
            self._run(visit, target)
        visit.memory["taken"] = {str(key): count for key, count in taken.items() if count}

    def _run(self, visit: Visit, target: str) -> None:
        rounds: dict[str, Json] = visit.memory["rounds"]
        number = rounds.get(target, 0)
        visit.memory["rounds"] = {**rounds, target: number + 1}
        visit.memory["running"] += 1
        visit.schedule(f"activities.{target}", number)
