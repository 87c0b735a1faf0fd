"""Cancel: end an instance from outside, or withdraw a dispatch whose child is not wanted any more.

It takes no lease: it commits at the next log position, and whoever runs the instance is overtaken.
"""

from collections.abc import Iterator
from contextlib import suppress

from pynamodb.expressions.update import Action

from aftercommit import clock
from aftercommit.bodies import body_of
from aftercommit.burst import Worker
from aftercommit.checkpoint import Pending, commit_unleased, decide
from aftercommit.errors import (
    AftercommitError,
    ConditionFailedError,
    ContentionError,
    ItemSettledError,
    MalformedRowError,
    NotFoundError,
    OvertakenError,
    TryLaterError,
    UnreadableInstanceError,
)
from aftercommit.ids import derive_child_id
from aftercommit.instances import find_head, load_unleased
from aftercommit.intentions import intend_cancels_of
from aftercommit.jsons import Json
from aftercommit.limits import COMMIT_INTENTIONS_MAX
from aftercommit.log import count, ids_of, logger
from aftercommit.model import Cancel, Intention
from aftercommit.outbox import ack, drop, item_put, settle, tell_withdrawn, walk_parts, withdrawal
from aftercommit.queue import Message, Sending, send
from aftercommit.salvage import read_items
from aftercommit.statuses import ItemCommand, ItemStatus, Outcome, instance_status
from aftercommit.tables import ItemRow
from aftercommit.writes import Put, Update, commit

_TRIES_MAX = 20
_REASON = "its parent waits no more"
_PAGE_SECONDS = 20
_WITHDRAWN = ItemRow.outcome.set(Outcome.CANCELLED.value)


def cancel(tenant: str, instance_id: str, reason: str, *, ack: Update | None = None) -> bool:
    """End an instance as cancelled; returns False if it had ended already.

    `ack` settles the item that asks for it, in the same commit. Raises NotFoundError, ItemSettledError if
    that item is settled already, and UnreadableInstanceError or NewerFormError for one that this code cannot
    load.
    """
    for _ in range(_TRIES_MAX):
        head = find_head(tenant, instance_id)
        if head is None or head.deleted_at:
            raise NotFoundError(f"no instance {instance_id!r}", field="id")
        if instance_status(head.status).ended:
            return False
        try:
            held = load_unleased(head)
            pending = Pending(ack=ack)
            if not decide(held, pending, Cancel(reason)):
                return False  # its last step is committed, and its burst is about to say so
            commit_unleased(held, pending)
        except OvertakenError as error:
            if isinstance(error, ItemSettledError):
                raise
            continue  # it went on meanwhile: decide again on what it has become
        logger.info("instance cancelled", extra={**ids_of(head), "reason": reason})
        count("InstancesCancelled")
        return True
    raise ContentionError(f"instance {instance_id} went on faster than it could be cancelled")


def cancel_child(item: ItemRow, worker: Worker) -> None:
    """See a cancel item through: withdraw the dispatch if its child was not admitted, else cancel that.

    If it speaks of several, they go one by one before the commit that settles it: if this dies midway, they
    are met again, and those that are cancelled already stay as they are. One that cannot be cancelled now
    holds back no other: it is raised in the end, and the item stays undone.
    """
    body = body_of(item)
    if "join_id" in body:
        _cancel_bulk(item, body["join_id"], worker)
        return
    if body.get("all"):
        _cancel_along(item)
        return
    if "parts" in body:
        _make_parts(item, [Intention.from_json(each) for each in body["parts"]])
        return
    if left := _cancel_each(item, body.get("more", [])):
        _cancel_each(item, [{"instance_id": item.instance_id, "item_id": body["item_id"]}])
        raise left[0]
    try:
        commit([withdrawal(item, body["item_id"]), ack(item, clock.now())])
    except ConditionFailedError as error:
        if "withdrawal" not in error.purposes:
            return  # this item is settled
    else:
        tell_withdrawn(item, _REASON)
        return
    try:
        if not cancel(item.tenant, item.instance_id, _REASON, ack=ack(item, clock.now())):
            drop(item, f"{item.instance_id} ended first")
    except NotFoundError:
        drop(item, "its dispatch was given up: there never was a child")
    except ItemSettledError:
        return


def _cancel_along(item: ItemRow) -> None:
    """Make an item for each few of the owner's dispatches that go with it; the owner has ended: no more come.

    The items' ids derive from the dispatches'.
    """
    found = read_items(item.owner_key)
    _make_parts(
        item, intend_cancels_of([(row.instance_id, row.item_id) for row in found if _goes_along(row)])
    )


def _make_parts(item: ItemRow, parts: list[Intention]) -> None:
    """Make an item of each part of a cancel; then that one is done itself.

    Their ids are those of what they cancel, so that of a second telling, however far the first one came, only
    what is missing is made.
    """
    at = clock.now()
    absent = ItemRow.item_id.does_not_exist()  # closes: told twice
    puts = [Put("part", item_put(item.tenant, item.owner_id, each, at).row, absent) for each in parts]
    for put in puts:
        with suppress(ConditionFailedError):
            commit([put])
    settle(item)


def _goes_along(row: ItemRow) -> bool:
    try:
        return row.command == ItemCommand.START and bool(body_of(row).get("cancel_with_parent"))
    except MalformedRowError:
        return False  # it will be set aside, and never start


def _cancel_each(item: ItemRow, pairs: list[dict[str, Json]], *more: Action) -> list[AftercommitError]:
    """Cancel children one by one; returns why some of them cannot be cancelled now."""
    left: list[AftercommitError] = []
    for each in pairs:
        try:
            _cancel_one(item, each, *more)
        except (UnreadableInstanceError, TryLaterError) as error:
            left.append(error)
    return left


def _cancel_one(item: ItemRow, pair: dict[str, Json], *more: Action) -> None:
    try:
        commit([withdrawal(item, pair["item_id"], *more)])
    except ConditionFailedError:
        # Without a child, its dispatch was given up.
        with suppress(NotFoundError):
            cancel(item.tenant, pair["instance_id"], _REASON)
    else:
        tell_withdrawn(item, _REASON)


def _cancel_bulk(item: ItemRow, join_id: str, worker: Worker) -> None:
    """Withdraw the starts of a bulk whose children were not admitted, and cancel the other children.

    The last ones first, so that none is woken by the end of one before it in its lane. What is done stands in
    the rows: if this dies midway, or has no time left, the next one goes on with what is left. None is
    counted, as their join is withdrawn with the last of them, or has told its end.
    """
    left: list[AftercommitError] = []
    for page in _pages(item, join_id):
        left += _cancel_page(item, page)
        if not worker.has_time_for(_PAGE_SECONDS):
            again = Message(item.tenant, owner_id=item.owner_id, item_id=item.item_id)
            send([Sending(again, trace=item.trace)])
            return
    if left:
        raise left[0]
    try:
        commit([withdrawal(item, body_of(item)["item_id"]), ack(item, clock.now())])
    except ConditionFailedError:
        settle(item)


def _pages(item: ItemRow, join_id: str) -> Iterator[list[ItemRow]]:
    """Yield the dispatches of a bulk that may have something left to cancel, the last ones first."""
    page = []
    for row in walk_parts(item.tenant, item.owner_id, join_id):
        if not row.outcome and row.status in (ItemStatus.UNDONE, ItemStatus.DONE):
            page.append(row)
        if len(page) == COMMIT_INTENTIONS_MAX:
            yield page
            page = []
    yield page


def _cancel_page(item: ItemRow, page: list[ItemRow]) -> list[AftercommitError]:
    undone = [row for row in page if row.status == ItemStatus.UNDONE]
    left = page
    try:
        if undone:
            commit([withdrawal(item, row.item_id, _WITHDRAWN) for row in undone])
            tell_withdrawn(item, _REASON, number=len(undone))
        left = [row for row in page if row.status == ItemStatus.DONE]
    except ConditionFailedError:
        pass  # one of them was admitted meanwhile: they go one by one
    pairs = [{"item_id": row.item_id, "instance_id": derive_child_id(row.item_id)} for row in left]
    return _cancel_each(item, pairs, _WITHDRAWN)
