"""Intentions: how each kind is made. Its id derives from what decides it, so a repeat makes the same one."""

from collections.abc import Callable
from dataclasses import replace

from aftercommit import clock
from aftercommit.ids import derive_child_id, derive_id, derive_join_id, join_name, part_name
from aftercommit.jsons import Json
from aftercommit.model import Bookmark, Execution, Intention, State
from aftercommit.places import Join
from aftercommit.schedules import next_of
from aftercommit.statuses import InstanceStatus, ItemCommand, Outcome

_CANCELS_MAX = 25  # children that one intention speaks of
_CANCELS_APART_MAX = 2  # such intentions in one commit
_EVENT = "event"
OUTCOME_OF_ENDING = {
    InstanceStatus.COMPLETED: Outcome.COMPLETED,
    InstanceStatus.FAULTED: Outcome.FAULTED,
    InstanceStatus.CANCELLED: Outcome.CANCELLED,
}


def intend_start(
    scheduled_by: str,
    *,
    definition_id: str,
    version: int | None,
    input: dict[str, Json],  # noqa: A002 - the word of the design
    correlation_id: str | None,
    channel: str | None,
    depth: int,
    bookmark_id: str | None = None,
) -> Intention:
    """Intend the start of a child; its id and the item's derive from `scheduled_by`, the same each time."""
    body = {
        "instance_id": derive_child_id(scheduled_by),
        "definition_id": definition_id,
        "version": version,
        "input": input,
        "correlation_id": correlation_id,
        "channel": channel,
        "depth": depth,
        "bookmark_id": bookmark_id,
    }
    return Intention(
        ItemCommand.START,
        derive_id("dispatch", scheduled_by),
        {key: value for key, value in body.items() if value is not None},
    )


def as_part(start: Intention, join: Join, *, joins: bool) -> Intention:
    """Return a start as that of one of a bulk, named by its place; `joins`: its ending is counted."""
    more = {"join": join.to_json()} if joins else {}
    return Intention(start.command, part_name(join.join_id, join.index), {**start.body, **more})


def find_bookmark(state: State, name: str) -> Bookmark | None:
    """Return the bookmark of an id, or the one at which a dispatch or a join is awaited that is named itself.

    One whose row cannot be read does not tell its bookmark any more.
    """
    if name in state.bookmarks:
        return state.bookmarks[name]
    return next((each for each in state.bookmarks.values() if _awaited_at(state, each) == name), None)


def _awaited_at(state: State, bookmark: Bookmark) -> str | None:
    """Return the id of the item that a bookmark waits for, if that is a dispatch or a join."""
    if bookmark.waits_for == "child":
        return derive_id("dispatch", bookmark.execution_id)
    if bookmark.waits_for == "children":
        turn = state.executions[bookmark.execution_id].memory["turn"]
        return join_name(derive_join_id(bookmark.execution_id), turn)
    return None


def take_along(intention: Intention) -> Intention:
    """Let the child that is to be started be cancelled with its parent, though that does not wait for it."""
    intention.body["cancel_with_parent"] = True
    return intention


def intend_occurrence(
    owner: str,
    definition_id: str,
    version: int,
    activity_id: str,
    *,
    schedule: dict[str, Json],
    at: float,
) -> Intention:
    """Intend the start of a definition of `owner` at one time of its schedule.

    The instance's id derives from the time, so that no time starts two, whatever version is published.
    """
    text = clock.to_text(at)
    item_id = derive_id("occurrence", activity_id, text)
    body = {
        "instance_id": derive_id("scheduled", owner, definition_id, item_id),
        "owner": owner,
        "definition_id": definition_id,
        "version": version,
        "input": {},
        "depth": 0,
        "trigger": {"activity_id": activity_id, "value": {"at": text}},
        "schedule": schedule,
    }
    return Intention(ItemCommand.START, item_id, body, deliver_at=at)


def intend_next_occurrence(body: dict[str, Json], after: float) -> Intention | None:
    """Intend the occurrence after one; those that were missed meanwhile collapse into that one."""
    last = clock.from_text(body["trigger"]["value"]["at"])
    at = next_of(body["schedule"], after, last=last)
    if at is None:
        return None
    return intend_occurrence(
        body["owner"],
        body["definition_id"],
        body["version"],
        body["trigger"]["activity_id"],
        schedule=body["schedule"],
        at=at,
    )


def event_name(name: str) -> str:
    """Return the stimulus name of an event: apart from those of other kinds of wait."""
    return f"{_EVENT}:{name}"


def begin_stimulus_id(at: float) -> str:
    """Return what the ids of all stimuli of an instant begin with: as text they sort by time."""
    return f"{int(at * 1000):013}"


def stimulus_body(
    *,
    name: str,
    payload: dict[str, Json],
    value: Json,
    correlation_id: str | None = None,
    instance_id: str | None = None,
    execution_id: str | None = None,
) -> dict[str, Json]:
    """Return what a stimulus says.

    `correlation_id` and `instance_id` narrow down whom it reaches; `execution_id` names the one activity
    execution that it is for.
    """
    stimulus = {"name": name, "payload": payload}
    if execution_id is not None:
        stimulus["execution_id"] = execution_id
    body = {
        "stimulus": stimulus,
        "value": value,
        "correlation_id": correlation_id,
        "instance_id": instance_id,
    }
    return {key: each for key, each in body.items() if each is not None}


def intend_stimulus(unique: str, *, at: float, **body: Json) -> Intention:
    """Intend a stimulus (see `stimulus_body`).

    Its id begins with its time, so that those of one key are applied in order.
    """
    return Intention(ItemCommand.STIMULUS, f"{begin_stimulus_id(at)}-{unique}", stimulus_body(**body))


def stamped(intention: Intention, at: float) -> Intention:
    """Return what an activity has queued with its instant, as far as its id needs one.

    The instant is that of the command that brings it, so that it is the same in a replay.
    """
    if intention.command != ItemCommand.STIMULUS:
        return intention
    return replace(intention, item_id=f"{begin_stimulus_id(at)}-{intention.item_id}")


# Where an event can be told, nearest first: the order in which it is sent.
SINKS = ("stimuli", "queue", "bus", "webhook")


def intend_event(
    event_id: str,
    *,
    at: float,
    name: str,
    data: Json,
    payload: dict[str, Json] | None = None,
    correlation_id: str | None = None,
    sinks: list[str] | None = None,
) -> Intention:
    """Intend to tell `sinks` of an event, or all that are deployed when it is sent.

    `payload` and `correlation_id` are for those whom it starts and resumes.
    """
    body = {
        "id": event_id,
        "name": name,
        "data": data,
        "ts": int(at * 1000),
        "payload": payload,
        "correlation_id": correlation_id,
        "sinks": sinks,
    }
    return Intention(
        ItemCommand.EVENT, event_id, {key: each for key, each in body.items() if each is not None}
    )


def intend_cancels(execution_ids: list[str]) -> list[Intention]:
    """Intend that the children are not wanted any more that these executions have started and wait for.

    One intention speaks of many, so that however wide a fan-out was, it can be cancelled in one commit.
    """
    pairs = [
        {"instance_id": derive_child_id(each), "item_id": derive_id("dispatch", each)}
        for each in execution_ids
    ]
    return _intend_in_parts(pairs, lambda first: execution_ids[first])


def intend_cancel_along(instance_id: str) -> Intention:
    """Intend that the children go that nobody waits for and that were to go with this instance.

    However many it has started over its life: they stand in the outbox, and are looked for there.
    """
    body = {"instance_id": instance_id, "item_id": "", "all": True}
    return Intention(ItemCommand.CANCEL, derive_id("cancel-along", instance_id), body)


def intend_cancels_of(dispatches: list[tuple[str, str]]) -> list[Intention]:
    """Intend that the children are not wanted any more of these dispatches, (instance id, item id)."""
    pairs = [{"instance_id": instance_id, "item_id": item_id} for instance_id, item_id in dispatches]
    return _intend_in_parts(pairs, lambda first: f"along-{dispatches[first][1]}")


def _intend_in_parts(pairs: list[dict[str, Json]], name: Callable[[int], str]) -> list[Intention]:
    intentions = []
    for first in range(0, len(pairs), _CANCELS_MAX):
        body: dict[str, Json] = dict(pairs[first])
        if more := pairs[first + 1 : first + _CANCELS_MAX]:
            body["more"] = more
        intentions.append(Intention(ItemCommand.CANCEL, derive_id("cancel", name(first)), body))
    return intentions


def gather_cancels(instance_id: str, cancels: list[Intention]) -> list[Intention]:
    """Return them as few intentions as one commit surely holds, whatever else it is full of.

    The others are parts of one, whose delivery makes the items of them.
    """
    if len(cancels) <= _CANCELS_APART_MAX:
        return cancels
    parts = [each.to_json() for each in cancels]
    body = {"instance_id": instance_id, "item_id": "", "parts": parts}
    return [Intention(ItemCommand.CANCEL, derive_id("cancels", cancels[0].item_id), body)]


def intend_bulk_cancel(instance_id: str, execution_id: str, turn: int) -> Intention:
    """Intend that no child of a bulk dispatch is wanted any more, nor its join of this turn.

    One intention for all: they are found by their names, and what is left of them by their rows.
    """
    join_id = derive_join_id(execution_id)
    body = {"instance_id": instance_id, "item_id": join_name(join_id, turn), "join_id": join_id}
    return Intention(ItemCommand.CANCEL, derive_id("cancel", execution_id), body)


def intend_retry(instance_id: str, execution: Execution, bookmark: Bookmark) -> Intention:
    """Intend the next attempt of a step, when its bookmark is due."""
    body = {"instance_id": instance_id, "bookmark_id": bookmark.bookmark_id, "outcome": Outcome.DONE}
    item_id = derive_id("retry", execution.execution_id, execution.attempt)
    deliver_at = clock.from_text(bookmark.until) if bookmark.until else None
    return Intention(ItemCommand.RESUME, item_id, body, deliver_at=deliver_at)


def intend_ending(state: State) -> Intention | None:
    """Intend to tell the parent that waits, if one does, how the instance has ended."""
    if state.parent is None or not state.parent.bookmark_id:
        return None
    failure = state.failure.to_json() if state.failure else None
    body = {
        "instance_id": state.parent.instance_id,
        "bookmark_id": state.parent.bookmark_id,
        "outcome": OUTCOME_OF_ENDING[state.status],
        "value": state.output if state.status == InstanceStatus.COMPLETED else failure,
    }
    return Intention(ItemCommand.RESUME, derive_id("ending", state.instance_id), body)
