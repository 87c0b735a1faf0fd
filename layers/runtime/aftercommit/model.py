"""The nouns that engine, checkpoint and delivery share: statuses, state, commands and intentions.

Everything here is plain data that survives JSON, so that a snapshot plus the commands committed after
it give the same state in any worker, at any time.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from aftercommit.errors import NewerFormError
from aftercommit.jsons import Json
from aftercommit.limits import (
    LARGE_STATE_BYTES_MAX,
    STATE_BYTES_MAX,
    value_bytes_max,
)
from aftercommit.places import Join, Mark
from aftercommit.statuses import ExecutionStatus, InstanceStatus, ItemCommand, instance_status


@dataclass(slots=True)
class Failure:
    """What went wrong: `type` for programs, `message` for people."""

    type: str
    message: str

    def to_json(self) -> dict[str, Json]:
        """Return {type, message}."""
        return {"type": self.type, "message": self.message}


@dataclass(slots=True)
class Execution:
    """One live run of one activity; it leaves the state when it ends."""

    execution_id: str
    activity_id: str  # the activity's path in the tree, as `root.activities[2]`
    scheduled_by: str = ""  # execution id of its parent; empty for the root
    iteration: int = 0
    status: ExecutionStatus = ExecutionStatus.RUNNING
    attempt: int = 1
    memory: dict[str, Json] = field(default_factory=dict)  # what the activity itself keeps

    def to_json(self) -> dict[str, Json]:
        """Return it without what stands at its default, to keep snapshots small."""
        written: dict[str, Json] = {"activity_id": self.activity_id}
        if self.status != ExecutionStatus.RUNNING:
            written["status"] = self.status.value
        if self.scheduled_by:
            written["scheduled_by"] = self.scheduled_by
        if self.iteration:
            written["iteration"] = self.iteration
        if self.attempt > 1:
            written["attempt"] = self.attempt
        if self.memory:
            written["memory"] = self.memory
        return written


@dataclass(slots=True)
class Bookmark:
    """A durable wait point of an instance."""

    bookmark_id: str
    execution_id: str
    # "child" (whose id derives from the execution's), "children", "retry", "timer", "stimulus", "callback",
    # "task", or "request" (a start point that the instance did not start at)
    waits_for: str
    until: str | None = None  # when a retry or timer is due
    stimulus: dict[str, Json] | None = None  # what resumes it: {name, payload, execution_id?}
    multi_use: bool = False  # whether it stays when it is resumed

    def to_json(self) -> dict[str, Json]:
        """Return it without what is absent."""
        written: dict[str, Json] = {"execution_id": self.execution_id, "waits_for": self.waits_for}
        if self.until:
            written["until"] = self.until
        if self.stimulus:
            written["stimulus"] = self.stimulus
        if self.multi_use:
            written["multi_use"] = True
        return written


def join_from_json(written: dict[str, Json]) -> Join:
    """Read a place in a bulk; raises NewerFormError for one with parts that this code would lose."""
    return Join(**_check_known(written, Join, "a place"))


@dataclass(slots=True)
class Parent:
    """Who started an instance from inside a workflow; `bookmark_id` is set while that one waits for it."""

    instance_id: str
    item_id: str = ""  # its dispatch: only for the birth, whose head keeps it
    bookmark_id: str | None = None
    join: Join | None = None  # of one among many

    def to_json(self) -> dict[str, Json]:
        """Return it without what is absent, or in the head anyway."""
        written: dict[str, Json] = {"instance_id": self.instance_id}
        if self.bookmark_id:
            written["bookmark_id"] = self.bookmark_id
        if self.join:
            written["join"] = self.join.to_json()
        return written

    @classmethod
    def from_json(cls, written: dict[str, Json]) -> "Parent":
        """Read it back; raises NewerFormError for one with parts that this code would lose."""
        _check_known(written, cls, "a parent")
        return cls(
            written["instance_id"],
            bookmark_id=written.get("bookmark_id"),
            join=join_from_json(written["join"]) if "join" in written else None,
        )


@dataclass(slots=True)
class State:
    """All that an instance is, between two commands. The engine changes it in place."""

    instance_id: str
    inputs: dict[str, Json]
    status: InstanceStatus = InstanceStatus.PENDING
    correlation_id: str | None = None
    parent: Parent | None = None
    depth: int = 0  # dispatches above it
    life: str = (
        ""  # when it was born, if its id may be used again: tells its executions from an earlier life's
    )
    trigger: dict[str, Json] | None = (
        None  # {activity_id, value}: the start point it was started at, until then
    )
    large: bool = False  # whether it may hold what only objects can: of those born under LARGE_PAYLOADS
    cancels_along: bool = False  # whether it has started a child, waited for by none, that goes with it
    variables: dict[str, Json] = field(default_factory=dict)
    executions: dict[str, Execution] = field(default_factory=dict)
    ready: list[str] = field(default_factory=list)  # execution ids of steps, in the order to run
    bookmarks: dict[str, Bookmark] = field(default_factory=dict)
    output: Json = None
    response: dict[str, Json] | None = None  # {status, headers, body}: what answers the request it started at
    failure: Failure | None = None  # why it faulted
    sizes: dict[str, int] | None = None  # bytes by variable; measured when first needed, never stored
    bytes: int = 0  # their sum
    # Moves not carried out yet: a decision that grows too large for one commit pauses here, and goes on with
    # Continue after that commit. Never stored: a burst does not end while there are any, a replay makes them.
    agenda: deque[Any] = field(default_factory=deque)
    moves: int = 0  # carried out since the last step or wait

    @property
    def bytes_max(self) -> int:
        """How much it may hold: a fact of its birth, so that a replay decides alike."""
        return LARGE_STATE_BYTES_MAX if self.large else STATE_BYTES_MAX

    @property
    def value_bytes_max(self) -> int:
        """How large one input or result may be."""
        return value_bytes_max(self.large)

    def to_json(self) -> dict[str, Json]:
        """Return the snapshot; ids and status that the head row carries anyway are left to it."""
        flags = {"large": self.large, "cancels_along": self.cancels_along}
        written: dict[str, Json] = {
            "inputs": self.inputs,
            **{name: True for name, each in flags.items() if each},
        }
        if self.depth:
            written["depth"] = self.depth
        if self.life:
            written["life"] = self.life
        if self.trigger:
            written["trigger"] = self.trigger
        if self.parent:
            written["parent"] = self.parent.to_json()
        if self.variables:
            written["variables"] = self.variables
        if self.executions:
            written["executions"] = {key: each.to_json() for key, each in self.executions.items()}
        if self.ready:
            written["ready"] = self.ready
        if self.bookmarks:
            written["bookmarks"] = {key: each.to_json() for key, each in self.bookmarks.items()}
        if self.output is not None:
            written["output"] = self.output
        if self.response is not None:
            written["response"] = self.response
        if self.failure:
            written["failure"] = self.failure.to_json()
        return written

    @classmethod
    def from_json(
        cls, written: dict[str, Json], *, instance_id: str, status: str, correlation_id: str | None = None
    ) -> "State":
        """Read a snapshot back; raises NewerFormError for one with parts that this code would lose."""
        _check_known(written, cls, "a state")
        return cls(
            instance_id=instance_id,
            inputs=written["inputs"],
            status=instance_status(status),
            correlation_id=correlation_id,
            parent=Parent.from_json(written["parent"]) if "parent" in written else None,
            depth=written.get("depth", 0),
            life=written.get("life", ""),
            trigger=written.get("trigger"),
            large=written.get("large", False),
            cancels_along=written.get("cancels_along", False),
            variables=written.get("variables", {}),
            executions={
                key: _execution_from_json(key, each) for key, each in written.get("executions", {}).items()
            },
            ready=written.get("ready", []),
            bookmarks={
                key: Bookmark(key, **_check_known(each, Bookmark, "a bookmark"))
                for key, each in written.get("bookmarks", {}).items()
            },
            output=written.get("output"),
            response=written.get("response"),
            failure=Failure(**written["failure"]) if "failure" in written else None,
        )


def _execution_from_json(execution_id: str, written: dict[str, Json]) -> Execution:
    _check_known(written, Execution, "an execution")
    status = written.get("status", ExecutionStatus.RUNNING.value)
    if status not in _EXECUTION_STATUSES:
        raise NewerFormError(f"this code does not know the status {status!r} of an execution")
    return Execution(
        execution_id,
        written["activity_id"],
        written.get("scheduled_by", ""),
        written.get("iteration", 0),
        ExecutionStatus(status),
        written.get("attempt", 1),
        written.get("memory", {}),
    )


_EXECUTION_STATUSES = frozenset(each.value for each in ExecutionStatus)


def _check_known(written: dict[str, Json], kind: type, what: str) -> dict[str, Json]:
    """Return what was written; refuse parts that only newer code knows, and that a write would drop."""
    for name in written:
        if name not in kind.__slots__:  # type: ignore[attr-defined]
            raise NewerFormError(f"this code does not know the part {name!r} of {what}")
    return written


# --- commands: what the engine is told ---


@dataclass(slots=True)
class Start:
    """Begin: schedule the root."""

    kind = "start"


@dataclass(slots=True)
class Continue:
    """Carry out the moves that a large decision has left for after its commit."""

    kind = "continue"


@dataclass(slots=True)
class Finish:
    """A step's function has returned; `intentions` are those it queued through its context."""

    execution_id: str
    result: Json = None
    intentions: list["Intention"] = field(default_factory=list)
    started_at: str = ""
    kind = "finish"


@dataclass(slots=True)
class Raise:
    """A step's function has raised; `retry_at` (text instant) is set when another attempt follows."""

    execution_id: str
    failure: Failure
    retry_at: str | None = None
    started_at: str = ""
    kind = "raise"


@dataclass(slots=True)
class Resume:
    """A bookmark's wait is over."""

    bookmark_id: str
    outcome: str
    value: Json = None
    kind = "resume"


@dataclass(slots=True)
class Stimulate:
    """A stimulus has come: it resumes every bookmark here that waits for just this name and payload."""

    stimulus: dict[str, Json]
    value: Json = None
    kind = "stimulate"


@dataclass(slots=True)
class Cancel:
    """End the instance as cancelled."""

    reason: str
    kind = "cancel"


@dataclass(slots=True)
class Abort:
    """End the instance as faulted, for a reason outside any one activity."""

    failure: Failure
    kind = "abort"


Command = Start | Continue | Finish | Raise | Resume | Stimulate | Cancel | Abort


def command_to_json(command: Command) -> dict[str, Json]:
    """Write a command as it is stored in a revision row."""
    written: dict[str, Json] = {"kind": command.kind}
    for name in command.__slots__:
        value = getattr(command, name)
        if isinstance(value, Failure):
            written[name] = value.to_json()
        elif name == "intentions":
            if value:
                written[name] = [each.to_json() for each in value]
        elif value is not None and (name, value) != ("started_at", ""):
            written[name] = value
    return written


_COMMANDS: dict[str, type] = {
    each.kind: each for each in (Start, Continue, Finish, Raise, Resume, Stimulate, Cancel, Abort)
}


def command_from_json(written: dict[str, Json]) -> Command:
    """Read a stored command back; raises NewerFormError for one that this code could not replay."""
    if written["kind"] not in _COMMANDS:
        raise NewerFormError(f"this code does not know the command {written['kind']!r} of a revision")
    kind = _COMMANDS[written["kind"]]
    values = {key: value for key, value in written.items() if key != "kind"}
    _check_known(values, kind, f"the command {written['kind']!r}")
    if "failure" in values:
        values["failure"] = Failure(**values["failure"])
    if "intentions" in values:
        values["intentions"] = [Intention.from_json(each) for each in values["intentions"]]
    command: Command = kind(**values)
    return command


# --- what a command decides ---


@dataclass(slots=True)
class Intention:
    """An effect to happen after the commit; becomes an outbox item.

    `body` for start: {instance_id, definition_id, version?, input, correlation_id?, channel?, bookmark_id?,
    join?, cancel_with_parent?, depth}; for resume: {instance_id, bookmark_id, outcome, value?}, or {token,
    value?} by the token of a task, which is looked at when it is delivered; for run: {instance_id}; for
    cancel: {instance_id, item_id, more?, all?, parts?}, `more` being a list of such pairs, `parts` one of
    cancels that go apart, or of a bulk {instance_id, item_id, join_id}; for stimulus: {stimulus, value?,
    correlation_id?, instance_id?}; for join: what `joins.judge` reads; for event: {id, name, data, ts,
    user?, v?, meta?, payload?, correlation_id?, sinks?}.
    """

    command: ItemCommand
    item_id: str
    body: dict[str, Json]
    deliver_at: float | None = None  # not before; None: at once
    channel: str | None = None  # of its item, where the body names none

    def to_json(self) -> dict[str, Json]:
        """Return it for the revision row of the step that queued it."""
        return {"command": self.command.value, "item_id": self.item_id, "body": self.body}

    @classmethod
    def from_json(cls, written: dict[str, Json]) -> "Intention":
        """Read it back; raises NewerFormError for a command that this code does not know."""
        try:
            command = ItemCommand(written["command"])
        except ValueError:
            raise NewerFormError(f"this code does not know the command {written['command']!r}") from None
        return cls(command, written["item_id"], written["body"])


@dataclass(slots=True)
class Incident:
    """A recorded fault that may need an operator."""

    incident_id: str
    failure: Failure
    activity_id: str | None = None
    execution_id: str | None = None


@dataclass(slots=True)
class Decision:
    """What one command led to. The state was changed in place; the rest is to be committed with it.

    `applied` is False when the command no longer meets what it speaks of (a bookmark already resumed, a
    step already finished): then nothing was decided, and nothing changed.
    """

    applied: bool
    intentions: list[Intention] = field(default_factory=list)
    made: list[Bookmark] = field(default_factory=list)  # bookmarks that a stimulus can find from now on
    gone: list[Bookmark] = field(default_factory=list)  # and those that none can any more
    incidents: list[Incident] = field(default_factory=list)
    journal: list[dict[str, Json]] = field(default_factory=list)
    mark: Mark | None = None  # its ending, if it is one of a bulk
