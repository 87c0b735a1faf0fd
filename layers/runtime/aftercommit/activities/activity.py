"""What every activity is: named properties (some of them children), and moments of behaviour.

An activity never does anything itself. In each moment it gets a Visit, reads from it, and leaves moves
there; the engine carries them out. So activities are pure, and a tree of them is plain data.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from aftercommit import clock
from aftercommit.errors import ExpressionError
from aftercommit.expressions import to_json
from aftercommit.ids import derive_id
from aftercommit.jsons import Json
from aftercommit.limits import INPUT_BYTES_MAX, NAME_CHARACTERS_MAX
from aftercommit.model import Bookmark, Execution, Failure, Intention
from aftercommit.statuses import ItemCommand, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NOTHING: Any = object()  # "no result", where None would be one


# --- moves: what an activity asks the engine to do, in this order ---


@dataclass(slots=True)
class Schedule:
    """Run the child at `key` (as `activities[0]`)."""

    key: str
    iteration: int = 0
    given: dict[str, Json] | None = None  # variables that only this child and what is below it sees


@dataclass(slots=True)
class CancelChildren:
    """Drop everything that runs or waits below this execution."""


@dataclass(slots=True)
class BreakLoop:
    """End the nearest loop around this execution."""


@dataclass(slots=True)
class SetCorrelation:
    """Give the instance another correlation id."""

    correlation_id: str


@dataclass(slots=True)
class TakeTrigger:
    """The start point that the instance was started at has been reached."""


@dataclass(slots=True)
class Complete:
    """End this execution."""

    outcome: str = Outcome.DONE
    result: Json = NOTHING


@dataclass(slots=True)
class MakeReady:
    """Let a worker run this step."""


@dataclass(slots=True)
class Wait:
    """Stay at a bookmark."""

    bookmark: Bookmark


@dataclass(slots=True)
class Intend:
    """Cause an effect after the commit."""

    intention: Intention


@dataclass(slots=True)
class IntendEach:
    """Cause many effects, made one by one as commits have room for them.

    That happens from the state as it is then; what raises InstanceFaultError faults here.
    """

    intentions: Iterator[Intention]


@dataclass(slots=True)
class SetTo:
    """Set a variable of the instance."""

    variable: str
    value: Json


@dataclass(slots=True)
class Respond:
    """Answer the request that the instance was started with, unless that is done."""

    response: dict[str, Json]


@dataclass(slots=True)
class FaultWith:
    """Fault here."""

    failure: Failure


@dataclass(slots=True)
class End:
    """Complete the whole instance with this output."""

    output: Json


Move = (
    Schedule
    | Complete
    | CancelChildren
    | BreakLoop
    | SetCorrelation
    | TakeTrigger
    | MakeReady
    | Wait
    | Intend
    | IntendEach
    | SetTo
    | Respond
    | FaultWith
    | End
)


@dataclass(slots=True)
class Visit:
    """One moment of one execution: what the activity may know, and the moves it leaves."""

    execution: Execution
    # A value with its expressions replaced; more variables may be given, and the number of their set.
    evaluate: Callable[..., Json]
    instance_id: str
    correlation_id: str | None
    depth: int
    at: float
    value_bytes_max: int = INPUT_BYTES_MAX  # of an input that it gives
    trigger: dict[str, Json] | None = None  # {activity_id, value}: where a stimulus has started the instance
    moves: list[Move] = field(default_factory=list)

    @property
    def memory(self) -> dict[str, Json]:
        """What this execution keeps between its moments."""
        return self.execution.memory

    def evaluate_items(self, asked: Json) -> list[Json]:
        """Evaluate a list; nothing is an empty one, as JSONata gives nothing for no match."""
        items: Json = self.evaluate(asked)
        if items is None:
            return []
        if not isinstance(items, list):
            raise ExpressionError(str(asked), f"expected a list, got {type(items).__name__}")
        return items

    def evaluate_correlation_id(self, asked: Json, *more: Any) -> str | None:
        """Evaluate a correlation id; None is well. Raises ExpressionError for what can be none."""
        given: Json = self.evaluate(asked, *more)
        if given is not None and not (isinstance(given, str) and 1 <= len(given) <= NAME_CHARACTERS_MAX):
            told = f"a correlation id is a text of 1 to {NAME_CHARACTERS_MAX} characters"
            raise ExpressionError(str(asked), told)
        return given

    def schedule(self, key: str, iteration: int = 0, given: dict[str, Json] | None = None) -> None:
        """Run a child; its identity is this execution, the child's place and `iteration`.

        `given` are variables that only the child, and what is below it, sees.
        """
        self.moves.append(Schedule(key, iteration, given))

    def cancel_children(self) -> None:
        """Drop everything that runs or waits below this execution, with its bookmarks."""
        self.moves.append(CancelChildren())

    def break_loop(self) -> None:
        """End the nearest loop around this execution."""
        self.moves.append(BreakLoop())

    def take_trigger(self) -> bool:
        """Tell whether the instance was started right here; an activity is a start point only once."""
        if self.trigger is None or self.trigger["activity_id"] != self.execution.activity_id:
            return False
        self.moves.append(TakeTrigger())
        return True

    def correlate(self, correlation_id: str) -> None:
        """Give the instance another correlation id."""
        self.moves.append(SetCorrelation(correlation_id))

    def wait_until(self, at: float, waits_for: str = "timer") -> None:
        """Stay here until an instant has come; a resume that is due then is part of the commit."""
        bookmark_id = self.wait(waits_for, until=clock.to_text(at))
        body = {"instance_id": self.instance_id, "bookmark_id": bookmark_id, "outcome": Outcome.DONE}
        item_id = derive_id(waits_for, self.execution.execution_id)
        self.intend(Intention(ItemCommand.RESUME, item_id, body, deliver_at=at))

    def complete(self, outcome: str = Outcome.DONE, result: Json = NOTHING) -> None:
        """End this execution; `result` goes into the variable that the activity names."""
        self.moves.append(Complete(outcome, result))

    def make_ready(self) -> None:
        """Let a worker run this step."""
        self.moves.append(MakeReady())

    def wait(
        self,
        waits_for: str,
        *,
        until: str | None = None,
        stimulus: dict[str, Json] | None = None,
        multi_use: bool = False,
        turn: int = 0,
    ) -> str:
        """Stay here until the bookmark that is returned is resumed; with `multi_use` also after that.

        One that waits again counts its turns.
        """
        execution_id = self.execution.execution_id
        turns = (turn,) if turn else ()
        bookmark_id = derive_id("bookmark", execution_id, waits_for, *turns)
        bookmark = Bookmark(bookmark_id, execution_id, waits_for, until, stimulus, multi_use)
        self.moves.append(Wait(bookmark))
        return bookmark_id

    def intend(self, intention: Intention) -> None:
        """Cause an effect after the commit."""
        self.moves.append(Intend(intention))

    def intend_each(self, intentions: Iterator[Intention]) -> None:
        """Cause many effects, over as many commits as they need."""
        self.moves.append(IntendEach(intentions))

    def set_variable(self, variable: str, value: Json) -> None:
        """Set a variable of the instance."""
        self.moves.append(SetTo(variable, value))

    def respond(self, response: dict[str, Json]) -> None:
        """Answer the request that the instance was started with; the first answer counts."""
        self.moves.append(Respond(response))

    def fault(self, failure: Failure) -> None:
        """Fault here."""
        self.moves.append(FaultWith(failure))

    def end(self, output: Json) -> None:
        """Complete the whole instance."""
        self.moves.append(End(output))


# --- properties: what a node of the tree may say ---


@dataclass(frozen=True, slots=True)
class Property:
    """One property of an activity, for reading, writing and checking trees.

    `kind`: value (JSON, may hold expressions), value_map (an object of such, or one expression for it), text,
    number (whole, from 1), flag, choice (of `choices`), texts, connections (of a flowchart), variable (a
    name), options (plain JSON object), child, children, branches (children by name).
    """

    kind: str
    required: bool = False
    choices: tuple[str, ...] = ()


CHILD_KINDS = frozenset({"child", "children", "branches"})


class Activity:
    """A node of a definition. Subclasses name their properties and behave in moments."""

    properties: ClassVar[dict[str, Property]]
    is_loop: ClassVar[bool] = False  # whether a Break below ends it
    # Whether the child it waits for is cancelled when it waits no more.
    cancel_with_parent: bool | None = None
    is_exclusive: ClassVar[bool] = False  # whether nothing else may start at what it starts at
    registers_none: bool | None = None  # whether a start point without payloads is meant
    result: str | None = None  # the variable for what it gives, of those that give something

    def __init__(self, **values: Any) -> None:
        for name in self.properties:
            setattr(self, name, values.pop(name, None))
        if values:
            raise TypeError(f"{self.type} has no property {', '.join(sorted(values))}")

    @property
    def type(self) -> str:
        """The activity's type in a tree."""
        return type(self).__name__

    def children(self) -> Iterator[tuple[str, Activity]]:
        """Yield (key, child), the key being the child's place in here, as `then` or `activities[0]`."""
        for name, each in self.properties.items():
            value = getattr(self, name)
            if value is None or each.kind not in CHILD_KINDS:
                continue
            if each.kind == "child":
                yield name, value
            elif each.kind == "children":
                for index, child in enumerate(value):
                    yield f"{name}[{index}]", child
            else:
                for outcome, child in value.items():
                    yield f"{name}.{outcome}", child

    def to_json(self) -> dict[str, Json]:
        """Return the node as data, without properties that were not given."""
        written: dict[str, Json] = {"type": self.type}
        for name, each in self.properties.items():
            value = getattr(self, name)
            if value is None:
                continue
            if each.kind == "child":
                written[name] = value.to_json()
            elif each.kind == "children":
                written[name] = [child.to_json() for child in value]
            elif each.kind == "branches":
                written[name] = {outcome: child.to_json() for outcome, child in value.items()}
            else:
                written[name] = to_json(value)
        return written

    def payloads(self) -> list[tuple[str, dict[str, Json]]] | None:
        """Return the (name, payload) stimuli that start its workflow; None if it is no start point.

        A start point that gives none has to say `registers_none`.
        """
        return None

    def gives_tokens(self) -> bool:
        """Whether somebody outside may hold a token for it."""
        return False

    def schedule(self) -> dict[str, Json] | None:
        """Return the times that start its workflow, as schedules.py reads them; None if there are none."""
        return None

    def takes_time(self) -> bool:
        """Whether it is run by a worker or waits; all else is over within the decision that reaches it."""
        return False

    def find_faults(self) -> list[tuple[str, str]]:
        """Return what is wrong with its properties together, as (property's path in here, message).

        Some of them may be missing or of another kind: that is told already.
        """
        return []

    # --- the moments ---

    def enter(self, visit: Visit) -> None:
        """Begin an execution."""
        raise NotImplementedError

    def child_ended(self, visit: Visit, key: str, outcome: str) -> None:
        """Go on after a child; the default ends with the child's end."""
        del key, outcome
        visit.complete()

    def catches(self, memory: dict[str, Json]) -> bool:
        """Whether a fault below an execution that remembers `memory` is offered to `child_faulted`."""
        del memory
        return False

    def holds_break(self, memory: dict[str, Json]) -> bool:
        """Whether a Break below an execution that remembers `memory` is offered to `child_broke` first."""
        del memory
        return False

    def child_broke(self, visit: Visit) -> None:
        """Do what is left to do, then break the loop; what ran below is gone already."""
        raise NotImplementedError

    def child_faulted(self, visit: Visit, failure: Failure) -> None:
        """Go on after a fault below; what ran there is gone already."""
        raise NotImplementedError

    def resumed(self, visit: Visit, outcome: str, value: Json) -> None:
        """Go on after a wait."""
        raise NotImplementedError

    def dropped(self, instance_id: str, execution: Execution) -> list[Intention]:
        """Return what must be undone outside when an execution is dropped; its bookmarks go by themselves."""
        del instance_id, execution
        return []

    def finished(self, visit: Visit, result: Json) -> None:
        """Go on after a worker has run it; the default ends with what its function gave."""
        visit.complete(result=result)

    def raised(self, visit: Visit, failure: Failure) -> None:
        """Go on after its function has raised for the last time; the default faults."""
        visit.fault(failure)
