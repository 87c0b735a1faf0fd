"""Intentions: how each kind is made. Its id derives from what decides it, so a repeat makes the same one."""

from dataclasses import replace

from aftercommit import clock
from aftercommit.ids import derive_child_id, derive_id
from aftercommit.model import (
    Bookmark,
    Execution,
    InstanceStatus,
    Intention,
    ItemCommand,
    Json,
    Outcome,
    State,
)
from aftercommit.schedules import next_of

_CANCELS_MAX = 25  # children that one intention speaks of
_EVENT = "event"
_OUTCOME_OF_ENDING = {
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
    intentions = []
    for first in range(0, len(pairs), _CANCELS_MAX):
        body: dict[str, Json] = dict(pairs[first])
        if more := pairs[first + 1 : first + _CANCELS_MAX]:
            body["more"] = more
        item_id = derive_id("cancel", execution_ids[first])
        intentions.append(Intention(ItemCommand.CANCEL, item_id, body))
    return intentions


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
        "outcome": _OUTCOME_OF_ENDING[state.status],
        "value": state.output if state.status == InstanceStatus.COMPLETED else failure,
    }
    return Intention(ItemCommand.RESUME, derive_id("ending", state.instance_id), body)
