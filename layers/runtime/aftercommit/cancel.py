"""Cancel: end an instance from outside, or withdraw a dispatch whose child is not wanted any more.

It takes no lease: it commits at the next log position, and whoever runs the instance is overtaken.
"""

from aftercommit import clock
from aftercommit.burst import Worker
from aftercommit.checkpoint import Pending, commit_unleased, decide
from aftercommit.errors import (
    ConditionFailedError,
    ContentionError,
    ItemSettledError,
    NotFoundError,
    OvertakenError,
)
from aftercommit.instances import find_head, load
from aftercommit.model import Cancel, Json, instance_status
from aftercommit.outbox import ack, body_of, settle, withdrawal
from aftercommit.tables import ItemRow
from aftercommit.writes import Update, commit

_TRIES_MAX = 20
_REASON = "its parent waits no more"


def cancel(tenant: str, instance_id: str, reason: str, *, ack: Update | None = None) -> bool:
    """End an instance as cancelled; returns False if it had ended already.

    `ack` settles the item that asks for it, in the same commit. Raises NotFoundError, or ItemSettledError if
    that item is settled already.
    """
    for _ in range(_TRIES_MAX):
        head = find_head(tenant, instance_id)
        if head is None or head.deleted_at:
            raise NotFoundError(f"no instance {instance_id!r}", field="id")
        if instance_status(head.status).ended:
            return False
        try:
            held = load(head, leased=False)
            pending = Pending(ack=ack)
            if not decide(held, pending, Cancel(reason)):
                return False  # its last step is committed, and its burst is about to say so
            commit_unleased(held, pending)
        except OvertakenError as error:
            if isinstance(error, ItemSettledError):
                raise
            continue  # it went on meanwhile: decide again on what it has become
        return True
    raise ContentionError(f"instance {instance_id} went on faster than it could be cancelled")


def cancel_child(item: ItemRow, worker: Worker) -> None:
    """See a cancel item through: withdraw the dispatch if its child was not admitted, else cancel that.

    If it speaks of several, they go one by one before the commit that settles it: if this dies midway, they
    are met again, and those that are cancelled already stay as they are.
    """
    del worker
    body = body_of(item)
    for each in body.get("more", []):
        _cancel_one(item, each)
    try:
        commit([withdrawal(item, body["item_id"]), ack(item, clock.now())])
    except ConditionFailedError as error:
        if "withdrawal" not in error.purposes:
            return  # this item is settled
    else:
        return
    try:
        if not cancel(item.tenant, item.instance_id, _REASON, ack=ack(item, clock.now())):
            settle(item)  # it ended first: a late cancel changes nothing
    except NotFoundError:
        settle(item)  # its dispatch was given up, so there never was a child
    except ItemSettledError:
        return


def _cancel_one(item: ItemRow, pair: dict[str, Json]) -> None:
    try:
        commit([withdrawal(item, pair["item_id"])])
    except ConditionFailedError:
        try:
            cancel(item.tenant, pair["instance_id"], _REASON)
        except NotFoundError:
            return  # its dispatch was given up, so there never was a child
