"""Delete: take an ended instance away, when it is asked for, or by itself when its days are over.

It is hidden at once, and its rows go a day later, the head last: a day is longer than any frozen sandbox
lives, so no late writer finds its rows gone and makes new ones. If this dies midway, the head is due again.
"""

from pynamodb.expressions.condition import Condition

from aftercommit import clock
from aftercommit.activations import release_activation
from aftercommit.errors import ConditionFailedError, ConflictError, NotFoundError
from aftercommit.instances import find_head
from aftercommit.log import count, logger
from aftercommit.outbox import drop
from aftercommit.payloads import remove_payloads
from aftercommit.salvage import read_items
from aftercommit.settings import settings
from aftercommit.statuses import InstanceStatus, ItemCommand, ItemStatus, instance_status
from aftercommit.tables import PAYLOADS_PREFIX, HeadRow, ItemRow, RevisionRow, removal_shard, split_key
from aftercommit.writes import Delete, Update, commit

KEPT_SECONDS = 86_400
ENDINGS = frozenset(each.value for each in InstanceStatus if each.ended)


def delete(tenant: str, instance_id: str) -> None:
    """Hide an ended instance, and have its rows removed.

    Raises NotFoundError, or ConflictError saying what stands against it.
    """
    head = find_head(tenant, instance_id)
    if head is None or head.deleted_at:
        raise NotFoundError(f"no instance {instance_id!r}", field="id")
    if not instance_status(head.status).ended:
        raise ConflictError(f"instance {instance_id!r} is {head.status}; cancel it first", field="id")
    for item in read_items(head.instance_key):
        if item.status == ItemStatus.UNDONE and not _drop_if_vain(item, head):
            raise ConflictError(f"item {item.item_id} of instance {instance_id!r} is undone", field="id")
    try:
        _mark(head, "asked for over the API")
    except ConditionFailedError:
        raise NotFoundError(f"no instance {instance_id!r}", field="id") from None  # deleted meanwhile


def delete_if_over(head: HeadRow) -> None:
    """Delete an ended instance that is due, if its days are over and nothing of it may still be needed.

    The days are those that are set now, not when it ended. One that is needed has as many days again; when
    instances are kept for ever by now, so is it.
    """
    at = clock.now()
    days = settings().ended_instance_days
    kept_until = clock.to_text(clock.from_text(head.ended_at) + days * clock.DAY_SECONDS)
    # Closes: another sweep has seen to it since it was read, or a caller has deleted it.
    unmoved = HeadRow.due_at == head.due_at
    try:
        if not days:
            _keep(head, None, "ended instances are kept for ever", unmoved)
        elif clock.to_text(at) < kept_until:
            _keep(head, kept_until, f"ended instances are kept for {days} days", unmoved)
        elif needed := _find_needed(head):
            _keep(head, clock.to_text(at + days * clock.DAY_SECONDS), needed, unmoved)
            count("InstancesKept")
        else:
            _mark(head, f"its {days} days are over", unmoved)
    except ConditionFailedError:
        return


def _find_needed(head: HeadRow) -> str | None:
    """Return why an ended instance is still needed: what it owns is on its way, or waits for an operator.

    A dispatch that failed unawaited may be redriven, and goes unseen once its owner is gone; one that was
    waited for has been told. A status that only newer code knows may mean anything.
    """
    for item in read_items(head.instance_key):
        over = item.status in (ItemStatus.DONE, ItemStatus.CANCELLED)
        told = item.status == ItemStatus.FAILED and item.wait
        vain = item.status == ItemStatus.UNDONE and _drop_if_vain(item, head)
        if not (over or told or vain):
            return f"its item {item.item_id} is {item.status}"
    return None


def _drop_if_vain(item: ItemRow, head: HeadRow) -> bool:
    """Drop an undone item that only its own ended instance would have waited for; says if it is one."""
    waited = item.command == ItemCommand.RESUME or (item.command == ItemCommand.JOIN and item.wait)
    if not waited or item.instance_id != _id_of(head):
        return False
    drop(
        item, f"its instance is {head.status}"
    )  # a timer, an answer, or a join that nothing waits for any more
    return True


def _mark(head: HeadRow, reason: str, *conditions: Condition) -> None:
    """Hide an instance, with its removal due in a day; raises ConditionFailedError if it is hidden by now."""
    at = clock.now()
    actions = [
        HeadRow.deleted_at.set(clock.to_text(at)),
        HeadRow.due_shard.set(removal_shard(_id_of(head))),
        HeadRow.due_at.set(clock.to_text(at + KEPT_SECONDS)),
    ]
    # Closes: deleted meanwhile. And what has not ended is never deleted.
    condition = HeadRow.status.is_in(*sorted(ENDINGS)) & HeadRow.deleted_at.does_not_exist()
    for each in conditions:
        condition &= each
    commit([Update("deleted", HeadRow(head.instance_key, "head"), actions, condition)])
    _tell("instance deleted", "InstancesDeleted", head, reason)


def _keep(head: HeadRow, until: str | None, reason: str, unmoved: Condition) -> None:
    """Leave an ended instance for later, or for ever; raises ConditionFailedError if it has moved already."""
    actions = [HeadRow.due_at.set(until) if until else HeadRow.due_at.remove()]
    commit([Update("kept", HeadRow(head.instance_key, "head"), actions, unmoved)])
    logger.info("instance kept", extra={"instance_id": _id_of(head), "until": until, "reason": reason})


def remove_rows(head: HeadRow) -> None:
    """Remove every row of an instance that was deleted a day ago; dying midway leaves the head."""
    # Keys only: what else stands in a row may be damaged.
    items = ItemRow.query(head.instance_key, attributes_to_get=["owner_key", "item_id"], consistent_read=True)
    for item in items:
        ItemRow(item.owner_key, item.item_id).delete()
    rows = RevisionRow.query(
        head.instance_key, attributes_to_get=["instance_key", "row"], consistent_read=True
    )
    for row in rows:
        if row.row.startswith(PAYLOADS_PREFIX):
            # By what this very life of the id has announced: another may have begun.
            remove_payloads(head.instance_key, row.row)
        if row.row != "head":
            RevisionRow(head.instance_key, row.row).delete()
    release_activation(head)
    same = HeadRow.deleted_at == head.deleted_at  # closes: removed by another sweep, and its id begun anew
    try:
        commit([Delete("head", HeadRow(head.instance_key, "head"), same)])
    except ConditionFailedError:
        return
    _tell("instance removed", "InstancesRemoved", head, f"it was deleted at {head.deleted_at}")


def _tell(message: str, metric: str, head: HeadRow, reason: str) -> None:
    tenant, instance_id = split_key(head.instance_key)
    logger.info(message, extra={"tenant": tenant, "instance_id": instance_id, "reason": reason})
    count(metric)


def _id_of(head: HeadRow) -> str:
    return split_key(head.instance_key)[1]
