"""Delete: take an ended instance away. It is hidden at once, and its rows go a day later, the head last.

A day is longer than any frozen sandbox lives, so no late writer finds its rows gone and makes new ones.
"""

from aftercommit import clock
from aftercommit.activations import release_activation
from aftercommit.errors import ConditionFailedError, ConflictError, NotFoundError
from aftercommit.instances import find_head
from aftercommit.log import count, logger
from aftercommit.model import InstanceStatus, ItemCommand, ItemStatus, instance_status
from aftercommit.outbox import drop
from aftercommit.salvage import read_items
from aftercommit.tables import HeadRow, ItemRow, RevisionRow
from aftercommit.writes import Update, commit

KEPT_SECONDS = 86_400
_ENDINGS = [each.value for each in InstanceStatus if each.ended]


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
        if item.status != ItemStatus.UNDONE:
            continue
        waited = item.command == ItemCommand.RESUME or (item.command == ItemCommand.JOIN and item.wait)
        if waited and item.instance_id == instance_id:
            drop(item, f"its instance is {head.status}")  # a timer, an answer, or a join
        else:
            raise ConflictError(f"item {item.item_id} of instance {instance_id!r} is undone", field="id")
    at = clock.now()
    actions = [
        HeadRow.deleted_at.set(clock.to_text(at)),
        HeadRow.due_at.set(clock.to_text(at + KEPT_SECONDS)),
    ]
    ended = HeadRow.status.is_in(*_ENDINGS) & HeadRow.deleted_at.does_not_exist()
    try:
        commit([Update("deleted", HeadRow(head.instance_key, "head"), actions, ended)])
    except ConditionFailedError:
        raise NotFoundError(f"no instance {instance_id!r}", field="id") from None  # deleted meanwhile
    logger.info("instance deleted", extra={"instance_id": instance_id, "reason": "a caller asked for it"})
    count("InstancesDeleted")


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
        if row.row != "head":
            RevisionRow(head.instance_key, row.row).delete()
    release_activation(head)
    HeadRow(head.instance_key, "head").delete()
    told = {"instance_id": head.instance_id, "reason": f"it was deleted at {head.deleted_at}"}
    logger.info("rows of instance removed", extra=told)
    count("InstancesRemoved")
