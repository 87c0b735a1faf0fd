"""Occurrences: the times at which published definitions start by themselves. Each start point has one item.

The item is armed in the commit that publishes, and goes in the commit that starts the instance, which also
arms the next. So at any time there is one undone item per start point of the published version, whoever dies,
and publishing takes over or removes those of the version before.
"""

from aftercommit import clock
from aftercommit.bodies import body_of
from aftercommit.definition import Definition
from aftercommit.errors import MalformedRowError, NewerFormError
from aftercommit.ids import derive_id
from aftercommit.intentions import intend_occurrence
from aftercommit.jsons import Json
from aftercommit.outbox import item_put
from aftercommit.schedules import next_of
from aftercommit.statuses import ItemStatus
from aftercommit.tables import DEFAULT_TENANT, SHARED_TENANT, ItemRow, key_of
from aftercommit.writes import Delete, Put, Write

_UNDONE = ItemRow.status == ItemStatus.UNDONE.value


def occurrence_writes(
    owner: str, definition_id: str, definition: Definition | None, earlier: dict[str, dict[str, Json]] | None
) -> list[Write]:
    """Return the writes that arm what a definition starts by the clock, in place of the version before.

    A schedule that goes on unchanged keeps its next time, even one that is due just now. `earlier` are the
    schedules of the version before: an instant among them that has started its instance does not come again,
    and if nobody can tell (None), none that is over does. They belong into the commit that changes what is
    published, and fail if one of the items fires meanwhile.
    """
    at = clock.now()
    armed = _list_armed(owner, definition_id)
    puts = {}
    if definition:
        for activity_id, schedule in definition.schedules().items():
            due_at = next(
                (_due_at(body) for body in armed.values() if _is_same(body, activity_id, schedule)), None
            )
            if due_at is None and not _has_come(schedule, activity_id, earlier, at):
                due_at = next_of(schedule, at)
            if due_at is None:
                continue
            intention = intend_occurrence(
                owner, definition_id, definition.version, activity_id, schedule=schedule, at=due_at
            )
            put = item_put(_tenant_of(owner), owner_of_occurrences(owner, definition_id), intention, at)
            # Closes: the item that is taken over fires meanwhile.
            condition = _UNDONE if intention.item_id in armed else None
            puts[intention.item_id] = Put("occurrence", put.row, condition)
    owner_key = _key(owner, definition_id)
    gone = [
        Delete("occurrence", ItemRow(owner_key, item_id), _UNDONE)  # closes: it fires meanwhile
        for item_id in armed
        if item_id not in puts
    ]
    return [*puts.values(), *gone]


def _has_come(
    schedule: dict[str, Json], activity_id: str, earlier: dict[str, dict[str, Json]] | None, at: float
) -> bool:
    """Whether a schedule is an instant that has started its instance under the version before, or may."""
    if "at" not in schedule:
        return False
    if earlier is None:
        return clock.from_any_text(schedule["at"]) <= at
    return earlier.get(activity_id) == schedule


def next_times(owner: str, definition_id: str) -> dict[str, str]:
    """Return when each start point with a schedule is due next, as text, by activity id."""
    bodies = [body for body in _list_armed(owner, definition_id).values() if body]
    return {each["trigger"]["activity_id"]: each["trigger"]["value"]["at"] for each in bodies}


def owner_of_occurrences(owner: str, definition_id: str) -> str:
    """Return the owner id of a definition's occurrences: no instance can have it by chance."""
    return derive_id("occurrences", owner, definition_id)


def _tenant_of(owner: str) -> str:
    # What a deploy brings starts by itself for the tenant that callers without one belong to.
    return DEFAULT_TENANT if owner == SHARED_TENANT else owner


def _key(owner: str, definition_id: str) -> str:
    return key_of(_tenant_of(owner), owner_of_occurrences(owner, definition_id))


def _list_armed(owner: str, definition_id: str) -> dict[str, dict[str, Json]]:
    """Return the body of each item that is armed, by item id; an empty one where it cannot be read."""
    rows = ItemRow.query(_key(owner, definition_id), filter_condition=_UNDONE, consistent_read=True)
    return {row.item_id: _body(row) for row in rows}


def _body(item: ItemRow) -> dict[str, Json]:
    try:
        return body_of(item)
    except (MalformedRowError, NewerFormError):
        return {}


def _is_same(body: dict[str, Json], activity_id: str, schedule: dict[str, Json]) -> bool:
    return bool(body) and (body["trigger"]["activity_id"], body["schedule"]) == (activity_id, schedule)


def _due_at(body: dict[str, Json]) -> float:
    return clock.from_text(body["trigger"]["value"]["at"])
