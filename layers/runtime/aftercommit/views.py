"""Views: instances, journals, dispatches and stimuli as the API shows them. Reading only."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from itertools import islice
from typing import Any

from aftercommit import clock
from aftercommit.activities.http_endpoint import callback_name
from aftercommit.bodies import body_of
from aftercommit.errors import (
    MalformedRequestError,
    MalformedRowError,
    NotFoundError,
)
from aftercommit.ids import derive_child_id
from aftercommit.instances import find_head, find_whole
from aftercommit.jsons import Json, dumps
from aftercommit.limits import ANSWER_BYTES_MAX, PAGE_BYTES_MAX, PAGE_MAX
from aftercommit.model import Bookmark, State
from aftercommit.paging import Page, foreign_cursor, from_cursor, page_of, to_cursor
from aftercommit.requests import find_number
from aftercommit.salvage import read_item, read_items
from aftercommit.settings import settings
from aftercommit.statuses import InstanceStatus, ItemCommand, ItemStatus
from aftercommit.tables import (
    HeadRow,
    IncidentRow,
    ItemRow,
    RevisionRow,
    key_of,
    revision_name,
    split_key,
)
from aftercommit.tokens import make_callback_token, make_token

# A page that few instances match ends here, and its cursor goes on.
_EXAMINED_MAX = 1_000
_READ_MAX = 3 * PAGE_MAX  # where each row takes a request of its own
_REVISION_MAX = 10**10 - 1


def present(**values: Json) -> dict[str, Json]:
    """Return the values that are there."""
    return {name: value for name, value in values.items() if value is not None}


# --- instances ---


def show_instance(tenant: str, instance_id: str) -> dict[str, Json]:
    """Return an instance after its last commit, with its first dispatches and incidents.

    `more` names those of which there are more, for their lists to show. Raises NotFoundError.
    """
    found = find_whole(tenant, instance_id)
    if found is None:
        raise NotFoundError(f"no instance {instance_id!r}", field="id")
    head, state = found
    incidents = [_incident(row) for row in islice(_incidents(head.instance_key), PAGE_MAX + 1)]
    dispatches = [show_item(row) for row in islice(_dispatches(head.instance_key), PAGE_MAX + 1)]
    more = [
        name for name, rows in (("incidents", incidents), ("dispatches", dispatches)) if len(rows) > PAGE_MAX
    ]
    shown = {
        **_summary(head),
        "input": state.inputs,
        "output": state.output,
        "response": state.response,
        "variables": state.variables,
        "failure": state.failure.to_json() if state.failure else None,
        "bookmarks": [_bookmark(head, state, each) for each in state.bookmarks.values()],
        "incidents": incidents[:PAGE_MAX],
        "dispatches": dispatches[:PAGE_MAX],
    }
    if more:
        shown["more"] = more
    return _fit(shown) if state.large else shown


def _size_as_answer(shown: dict[str, Json]) -> int:
    """Return its bytes as it travels: a text inside JSON, which Python writes as ASCII below 3.12."""
    return len(json.dumps(dumps(shown), ensure_ascii=sys.version_info < (3, 12)).encode())


def _fit(shown: dict[str, Json]) -> dict[str, Json]:
    """Leave out what no answer of Lambda could carry, the output last, and say what was left out."""
    left_out: list[str] = []
    empty: dict[str, Json] = {"variables": {}, "bookmarks": [], "input": {}, "output": None}
    for name, nothing in empty.items():
        if _size_as_answer(shown) <= ANSWER_BYTES_MAX:
            break
        shown[name] = nothing
        left_out.append(name)
    return {**shown, "left_out": left_out} if left_out else shown


def _bookmark(head: HeadRow, state: State, bookmark: Bookmark) -> dict[str, Json]:
    shown = {"bookmark_id": bookmark.bookmark_id, **bookmark.to_json()}
    if bookmark.waits_for == "task":
        execution = state.executions[bookmark.execution_id]
        shown["inputs"] = execution.memory["inputs"]
        shown["activity_id"] = execution.activity_id
        shown["token"] = make_token(
            head.tenant, head.instance_id, bookmark.bookmark_id, head.secret, settings().callback_token_days
        )
    if bookmark.waits_for == "callback":
        token = make_callback_token(
            head.tenant,
            head.instance_id,
            callback_name(bookmark.stimulus or {}),
            head.secret,
            settings().callback_token_days,
        )
        shown["callback_path"] = f"/callbacks/{token}"
    if bookmark.waits_for == "child":
        shown["instance_id"] = derive_child_id(bookmark.execution_id)
    if bookmark.waits_for == "children":
        shown["total"] = state.executions[bookmark.execution_id].memory["total"]
    return shown


def _find_shown(tenant: str, instance_id: str) -> HeadRow:
    head = find_head(tenant, instance_id)
    if head is None or head.deleted_at:
        raise NotFoundError(f"no instance {instance_id!r}", field="id")
    return head


def _summary(head: HeadRow) -> dict[str, Json]:
    parent = present(instance_id=head.parent_instance_id, item_id=head.parent_item_id)
    return {
        "instance_id": head.instance_id,
        "definition_id": head.definition_id,
        "version": int(head.version),
        "status": head.status,
        "correlation_id": head.correlation_id,
        "parent": parent or None,
        "revision": int(head.revision),
        "created_at": head.created_at,
        "updated_at": head.updated_at,
        "ended_at": head.ended_at,
    }


def _incidents(instance_key: str, *, after: str | None = None) -> Iterator[IncidentRow]:
    start = {"instance_key": {"S": instance_key}, "row": {"S": after}} if after else None
    of_incidents = IncidentRow.row.startswith("incident#")
    return iter(IncidentRow.query(instance_key, of_incidents, consistent_read=True, last_evaluated_key=start))


def _incident(row: IncidentRow) -> dict[str, Json]:
    return present(
        incident_id=row.incident_id,
        activity_id=row.activity_id,
        execution_id=row.execution_id,
        item_id=row.item_id,
        error={"type": row.error_type, "message": row.message},
        created_at=row.created_at,
        open=row.attention_at is not None,
    )


def list_instances(
    tenant: str, *, definition_id: str | None, correlation_id: str | None, status: str | None, page: Page
) -> dict[str, Json]:
    """Return the instances of a definition or of a correlation id, newest first, optionally of one status."""
    if (definition_id is None) == (correlation_id is None):
        raise MalformedRequestError("give one of definition_id and correlation_id", field="definition_id")
    _check_status(status, InstanceStatus)
    index = HeadRow.by_definition if definition_id is not None else HeadRow.by_correlation
    key_name = "definition_key" if definition_id is not None else "correlation_key"
    key = key_of(tenant, definition_id if definition_id is not None else correlation_id or "")
    place = from_cursor(page.cursor, 2)
    start = None
    if place:
        start = {
            key_name: {"S": key},
            "created_at": {"S": place[0]},
            "instance_key": {"S": key_of(tenant, place[1])},
            "row": {"S": "head"},
        }
    keys = index.query(key, scan_index_forward=False, last_evaluated_key=start, page_size=PAGE_MAX)
    rows: list[Json] = []
    last: HeadRow | None = None
    for examined, head in enumerate(_heads(keys)):
        if len(rows) == page.limit or examined == _EXAMINED_MAX:
            return {
                "instances": rows,
                "cursor": to_cursor([last.created_at, last.instance_id] if last else []),
            }
        if not head.deleted_at and status in (None, head.status):
            rows.append(_summary(head))
        last = head
    return {"instances": rows}


def _check_status(status: str | None, statuses: type[StrEnum]) -> None:
    if status is not None and status not in list(statuses):
        raise MalformedRequestError(f"must be one of {', '.join(statuses)}", field="status")


def _heads(keys: Iterable[HeadRow]) -> Iterator[HeadRow]:
    """Read the heads that an index names, in the index's order, in batches."""
    batch: list[HeadRow] = []
    for key in keys:
        batch.append(key)
        if len(batch) == PAGE_MAX:
            yield from _read_heads(batch)
            batch = []
    yield from _read_heads(batch)


def _read_heads(batch: list[HeadRow]) -> Iterator[HeadRow]:
    if not batch:
        return
    found = {
        head.instance_key: head for head in HeadRow.batch_get([(each.instance_key, "head") for each in batch])
    }
    yield from (found[each.instance_key] for each in batch if each.instance_key in found)


def show_journal(tenant: str, instance_id: str, page: Page) -> dict[str, Json]:
    """Return what an instance did, revision by revision; raises NotFoundError."""
    _find_shown(tenant, instance_id)
    place = from_cursor(page.cursor, 1)
    after = find_number(place[0], 0, _REVISION_MAX - 1) if place else 0
    if after is None:
        raise foreign_cursor()
    rows = RevisionRow.query(
        key_of(tenant, instance_id),
        RevisionRow.row.between(revision_name(after + 1), revision_name(_REVISION_MAX)),
        consistent_read=True,
        page_size=page.limit + 1,
    )
    shown: list[Json] = []
    size = 0
    for row in rows:
        size += len(row.journal.encode())
        # Many lines make a page end early, but not before its first revision.
        if len(shown) == page.limit or (shown and size > PAGE_BYTES_MAX):
            return {"revisions": shown, "cursor": to_cursor([str(shown[-1]["revision"])])}
        told = {"committed_at": row.committed_at, "nonce": row.nonce, "activities": _lines(row.journal)}
        shown.append({"revision": int(row.revision), **told})
    return {"revisions": shown}


def _lines(journal: str) -> list[dict[str, Json]]:
    """Give each line its instant: what one command led to is stored with it once."""
    lines: list[dict[str, Json]] = []
    for line in json.loads(journal):
        lines.append({"at": lines[-1]["at"], **line} if lines else line)
    return lines


# --- dispatches ---


def show_item(row: ItemRow) -> dict[str, Json]:
    """Return an outbox item, without its input."""
    return present(
        owner_id=row.owner_id,
        item_id=row.item_id,
        command=row.command,
        status=row.status,
        outcome=row.outcome,
        asleep=row.asleep,
        instance_id=row.instance_id,
        definition_id=row.definition_id,
        version=int(row.version) if row.version else None,
        channel=row.channel,
        wait=row.wait,
        attempts=int(row.attempts or 0),
        sends=int(row.sends or 0),
        generation=int(row.generation or 1),
        last_error=row.last_error,
        created_at=row.created_at,
        due_at=row.due_at,
        settled_at=row.settled_at,
    )


def age_of(created_at: str | None) -> int | None:
    """Return how many seconds ago something was made; None where that cannot be read."""
    try:
        return int(clock.now() - clock.from_text(created_at or ""))
    except ValueError:
        return None


def _dispatches(owner_key: str) -> Iterator[ItemRow]:
    return (row for row in read_items(owner_key) if row.command == ItemCommand.START)


def show_dispatch(tenant: str, owner_id: str, item_id: str) -> dict[str, Json]:
    """Return one dispatch; raises NotFoundError."""
    row = read_item(key_of(tenant, owner_id), item_id)
    if row and row.command == ItemCommand.START:
        return show_item(row)
    raise NotFoundError(f"no dispatch {item_id!r} of {owner_id!r}", field="id")


def list_dispatches(tenant: str, *, owner_id: str | None, status: str | None, page: Page) -> dict[str, Json]:
    """Return the dispatches of an owner, or those of a tenant that failed and no parent was told of."""
    _check_status(status, ItemStatus)
    if owner_id is not None:
        place = from_cursor(page.cursor, 1)
        found = (
            show_item(row)
            for row in read_items(key_of(tenant, owner_id), after=place[0] if place else None)
            if row.command == ItemCommand.START and status in (None, row.status)
        )
        rows = list(islice(found, page.limit + 1))
        last = rows[page.limit - 1]["item_id"] if len(rows) > page.limit else None
        return page_of(list(rows), page, "dispatches", [last])
    if status != ItemStatus.FAILED:
        raise MalformedRequestError("give an owner_id, or status=failed", field="owner_id")
    return list_attention(tenant, page, "dispatches", ItemCommand.START, show_item)


def list_attention(
    tenant: str,
    page: Page,
    name: str,
    command: str | None,
    show: Callable[[ItemRow], dict[str, Json]],
) -> dict[str, Json]:
    """Return the failed items of a tenant that await an operator, oldest first, optionally of one command."""
    place = from_cursor(page.cursor, 3)
    start = None
    if place:
        start = {
            "tenant": {"S": tenant},
            "attention_at": {"S": place[0]},
            "owner_key": {"S": key_of(tenant, place[1])},
            "item_id": {"S": place[2]},
        }
    keys = ItemRow.attention.query(tenant, last_evaluated_key=start, page_size=PAGE_MAX)

    def shown_of(key: ItemRow) -> dict[str, Json] | None:
        row = read_item(key.owner_key, key.item_id)
        return show(row) if row and row.attention_at and command in (None, row.command) else None

    def place_of(key: ItemRow) -> list[Json]:
        return [key.attention_at, split_key(key.owner_key)[1], key.item_id]

    return _fill(page, name, keys, shown_of, place_of)


def _fill(
    page: Page,
    name: str,
    keys: Iterable[Any],
    shown_of: Callable[[Any], dict[str, Json] | None],
    place_of: Callable[[Any], list[Json]],
) -> dict[str, Json]:
    """Return a page of what an index names, each row read by itself; those that show nothing are passed over.

    It ends early, with a cursor, when it has read a few pages' worth.
    """
    shown: list[Json] = []
    last: Any = None
    for read, key in enumerate(keys):
        if len(shown) == page.limit or read == _READ_MAX:
            return {name: shown, "cursor": to_cursor(place_of(last))}
        if (each := shown_of(key)) is not None:
            shown.append(each)
        last = key
    return {name: shown}


# --- stimuli and incidents ---


def show_stimulus(row: ItemRow) -> dict[str, Json]:
    """Return a stimulus without its input."""
    try:
        body = body_of(row)
    except MalformedRowError:  # set aside for just that
        body = {"stimulus": {"name": None}}
    return present(
        stimulus_id=f"{row.owner_id}.{row.item_id}",
        name=body["stimulus"]["name"],
        correlation_id=body.get("correlation_id"),
        instance_id=body.get("instance_id"),
        execution_id=body["stimulus"].get("execution_id"),
        status="open" if row.status == ItemStatus.UNDONE else "dead",
        attempts=int(row.attempts or 0),
        last_error=row.last_error,
        created_at=row.created_at,
        due_at=row.due_at,
        settled_at=row.settled_at,
        replayed_as=f"{row.owner_id}.{row.replayed_as}" if row.replayed_as else None,
    )


def list_dead_letters(tenant: str, page: Page) -> dict[str, Json]:
    """Return the dead letters of a tenant, oldest first; those that were replayed are left out."""
    return list_attention(tenant, page, "dead_letters", ItemCommand.STIMULUS, show_stimulus)


def list_incidents(tenant: str, page: Page, *, instance_id: str | None = None) -> dict[str, Json]:
    """Return the open incidents of a tenant, newest first, or all of one instance, in no order of time."""
    if instance_id is not None:
        return _list_incidents_of(key_of(tenant, instance_id), page)
    place = from_cursor(page.cursor, 3)
    start = None
    if place:
        start = {
            "tenant": {"S": tenant},
            "attention_at": {"S": place[0]},
            "instance_key": {"S": key_of(tenant, place[1])},
            "row": {"S": place[2]},
        }
    keys = IncidentRow.attention.query(
        tenant, scan_index_forward=False, last_evaluated_key=start, page_size=PAGE_MAX
    )

    def shown_of(key: IncidentRow) -> dict[str, Json] | None:
        rows = IncidentRow.query(key.instance_key, IncidentRow.row == key.row, consistent_read=True)
        return next(map(_listed_incident, rows), None)

    def place_of(key: IncidentRow) -> list[Json]:
        return [key.attention_at, split_key(key.instance_key)[1], key.row]

    return _fill(page, "incidents", keys, shown_of, place_of)


def _list_incidents_of(instance_key: str, page: Page) -> dict[str, Json]:
    place = from_cursor(page.cursor, 1)
    if place and not place[0].startswith("incident#"):
        raise foreign_cursor()
    rows = list(islice(_incidents(instance_key, after=place[0] if place else None), page.limit + 1))
    last = rows[page.limit - 1].row if len(rows) > page.limit else None
    return page_of([_listed_incident(row) for row in rows], page, "incidents", [last])


def _listed_incident(row: IncidentRow) -> dict[str, Json]:
    return {"instance_id": row.instance_id, **_incident(row), "age": age_of(row.created_at)}
