"""The backlog: what of a tenant's outbox is pending, and what has failed, for operators. Reading only.

What is pending stands in the due index, for all tenants together, in shards. A page reads the shards side by
side, in order of time, and passes over what others own. Its cursor holds the time and the shard of the row it
stopped at, and a digest of that row's key: so it is a place, and tells nothing of whose row that is.
"""

from collections.abc import Callable, Iterator
from heapq import merge
from itertools import chain, takewhile
from typing import NamedTuple

from aftercommit.errors import MalformedRequestError
from aftercommit.ids import derive_id
from aftercommit.jsons import Json
from aftercommit.limits import EVENT_SHARDS, PAGE_MAX
from aftercommit.paging import Page, foreign_cursor, from_cursor, to_cursor
from aftercommit.requests import find_number
from aftercommit.salvage import read_item
from aftercommit.settings import settings
from aftercommit.statuses import ItemCommand, ItemStatus
from aftercommit.tables import ItemRow
from aftercommit.views import age_of, list_attention, present, show_item, show_stimulus

_EXAMINED_MAX = 1_000  # rows of all tenants that one page looks at


class _Place(NamedTuple):
    """Where a page stopped, or a row of the due index stands."""

    due_at: str
    shard: int
    digest: str


def list_outbox(tenant: str, *, status: str | None, command: str | None, page: Page) -> dict[str, Json]:
    """Return the items of a tenant that are pending, or that failed, the oldest of each page first.

    Pages of pending items follow the time at which they are due. Raises MalformedRequestError.
    """
    if command is not None and command not in list(ItemCommand):
        raise MalformedRequestError(f"must be one of {', '.join(ItemCommand)}", field="command")
    if status == "failed":
        return list_attention(tenant, page, "items", command, _show)
    if status != "pending":
        raise MalformedRequestError("must be one of pending, failed", field="status")
    return _list_pending(tenant, page, "items", command, _show)


def list_open_stimuli(tenant: str, page: Page) -> dict[str, Json]:
    """Return the open stimuli of a tenant, as `list_outbox` does what is pending."""
    return _list_pending(tenant, page, "stimuli", ItemCommand.STIMULUS, show_stimulus)


def _show(row: ItemRow) -> dict[str, Json]:
    return present(**show_item(row), deliver_at=row.deliver_at, age=age_of(row.created_at))


def _list_pending(
    tenant: str, page: Page, name: str, command: str | None, show: Callable[[ItemRow], dict[str, Json]]
) -> dict[str, Json]:
    rows: list[ItemRow] = []
    last: _Place | None = None
    cursor = None
    for examined, (place, key) in enumerate(_due(tenant, _read_place(page.cursor))):
        if last and (len(rows) == page.limit or examined == _EXAMINED_MAX):
            cursor = to_cursor([last.due_at, str(last.shard), last.digest])
            break
        last = place
        if key.owner_key.partition("#")[0] != tenant:
            continue
        row = read_item(key.owner_key, key.item_id)
        # The index is a moment behind; a row without a status cannot be read, and waits to be set aside.
        if row and row.status in (ItemStatus.UNDONE, None) and command in (None, row.command):
            rows.append(row)
    rows.sort(key=lambda row: str(row.created_at))
    return present(**{name: [show(row) for row in rows]}, cursor=cursor)


def _read_place(cursor: str | None) -> _Place | None:
    place = from_cursor(cursor, 3)
    if place is None:
        return None
    due_at, shard, digest = place
    number = find_number(shard, 0, EVENT_SHARDS[-1])
    if number is None:
        raise foreign_cursor()
    return _Place(due_at, number, digest)


def _due(tenant: str, after: _Place | None) -> Iterator[tuple[_Place, ItemRow]]:
    """Read the due index behind a place, in order of time and then of shard."""
    numbers = (*range(settings().due_shards), *EVENT_SHARDS)
    shards = (_due_in(tenant, shard, after) for shard in numbers)
    return merge(*shards, key=lambda each: each[0][:2])


def _due_in(tenant: str, shard: int, after: _Place | None) -> Iterator[tuple[_Place, ItemRow]]:
    condition = None
    if after:
        later = ItemRow.due_at > after.due_at
        condition = later if shard < after.shard else ItemRow.due_at >= after.due_at
    found = (
        (_Place(row.due_at, shard, derive_id("place", tenant, row.owner_key, row.item_id)[:16]), row)
        for row in ItemRow.due.query(shard, condition, page_size=PAGE_MAX)
    )
    return _behind(after, found) if after and shard == after.shard else found


def _behind(after: _Place, found: Iterator[tuple[_Place, ItemRow]]) -> Iterator[tuple[_Place, ItemRow]]:
    """Leave out what was listed of the rows of one instant; all come again if the last one is gone."""
    first_later: list[tuple[_Place, ItemRow]] = []

    def is_same(each: tuple[_Place, ItemRow]) -> bool:
        if each[0].due_at != after.due_at:
            first_later.append(each)
        return not first_later

    same = list(takewhile(is_same, found))
    listed = next((n for n, (place, _) in enumerate(same, 1) if place.digest == after.digest), 0)
    return chain(same[listed:], first_later, found)
