"""Redrive: the operator's second try of a dispatch that was given up, under the same identity.

The failed item becomes undone again and its incident is closed, in one commit; from then on it is delivered
as any other. Whoever dies after that has lost a hint at most. A child that is there after all is converged
on.
"""

from aftercommit import clock
from aftercommit.bodies import body_of
from aftercommit.errors import ConditionFailedError, ConflictError, MalformedRowError, NotFoundError
from aftercommit.ids import derive_id
from aftercommit.instances import find_head
from aftercommit.log import count, ids_of, logger, reason_of
from aftercommit.outbox import find_item, is_occurrence
from aftercommit.queue import Message, Sending, send
from aftercommit.statuses import InstanceStatus, ItemCommand, ItemStatus
from aftercommit.tables import HeadRow, IncidentRow, ItemRow
from aftercommit.writes import Check, Update, Write, commit

_TOLD: dict[str, str] = {
    ItemStatus.UNDONE: "it is still being tried",
    ItemStatus.DONE: "it has started its instance",
    ItemStatus.CANCELLED: "it was withdrawn, as its owner was cancelled",
}


def redrive(tenant: str, owner_id: str, item_id: str) -> ItemRow:
    """Make a failed dispatch that nobody waits for undone again; returns it as it is then.

    Raises NotFoundError, or ConflictError with the reason. Of two callers at once, one makes it undone.
    """
    item = _find_redrivable(tenant, owner_id, item_id)
    generation = int(item.generation)
    failed = ItemRow.status == ItemStatus.FAILED.value  # closes: redriven meanwhile, by another caller
    same = ItemRow.generation == generation  # closes: redriven meanwhile, and given up again
    first = same | ItemRow.generation.does_not_exist() if generation == 1 else same
    actions = [
        ItemRow.status.set(ItemStatus.UNDONE.value),
        ItemRow.generation.set(generation + 1),
        ItemRow.attempts.set(0),
        ItemRow.due_at.set(clock.to_text(clock.now())),
        ItemRow.attention_at.remove(),
        ItemRow.settled_at.remove(),
        ItemRow.outcome.remove(),  # of one of a bulk: its child is to leave its own
        ItemRow.output.remove(),
    ]
    row = ItemRow(item.owner_key, item.item_id)
    try:
        commit(
            [Update("redrive", row, actions, failed & first), *_require_owner(item), *_close_incident(item)]
        )
    except ConditionFailedError:
        _find_redrivable(tenant, owner_id, item_id)  # raises, with what it has become
        raise ConflictError("it was changed meanwhile; look at it again", field="id") from None
    logger.info("redriven", extra={**ids_of(item), "generation": generation + 1})
    count("ItemsRedriven")
    message = Message(tenant, owner_id, item_id)
    for refused in send([Sending(message, channel=item.channel, trace=item.trace)]):
        if refused:  # it is due: the sweep delivers it
            logger.warning("hint not sent", extra={**ids_of(item), "reason": reason_of(refused)})
    return _find(tenant, owner_id, item_id)


def _find_redrivable(tenant: str, owner_id: str, item_id: str) -> ItemRow:
    item = _find(tenant, owner_id, item_id)
    if is_occurrence(item):
        raise _refused("it is one time of a schedule, whose next time is armed already")
    if item.status != ItemStatus.FAILED:
        raise _refused(_TOLD.get(item.status, f"it is {item.status}"))
    if item.wait:
        raise _refused("its owner waited for it, and was told that it failed")
    try:
        body = body_of(item)
    except MalformedRowError as error:
        raise _refused(error.message) from None
    if "trigger" in body:
        return item  # a stimulus has started it: it has no instance for an owner
    owner = find_head(tenant, owner_id)
    if owner is None or owner.deleted_at:
        raise _refused("its owner is deleted")
    if body.get("cancel_with_parent") and owner.status == InstanceStatus.CANCELLED:
        raise _refused("its owner was cancelled, and it with it")
    return item


def _find(tenant: str, owner_id: str, item_id: str) -> ItemRow:
    try:
        item = find_item(tenant, owner_id, item_id)
    except MalformedRowError as error:
        raise _refused(error.message) from None
    if item is None or item.command != ItemCommand.START:
        raise NotFoundError(f"no dispatch {item_id!r} of {owner_id!r}", field="id")
    return item


def _refused(reason: str) -> ConflictError:
    return ConflictError(f"not redriven: {reason}", field="id")


def _require_owner(item: ItemRow) -> list[Write]:
    """Return the check that the owner is still one whose dispatch may be redriven."""
    body = body_of(item)
    if "trigger" in body:
        return []
    there = HeadRow.instance_key.exists() & HeadRow.deleted_at.does_not_exist()  # closes: deleted meanwhile
    if body.get("cancel_with_parent"):
        # Closes: cancelled meanwhile, which has passed over a dispatch that had failed.
        there &= HeadRow.status != InstanceStatus.CANCELLED.value
    return [Check("owner", HeadRow, (item.owner_key, "head"), there)]


def _close_incident(item: ItemRow) -> list[Write]:
    """Return the write that takes the incident of giving up off the operator's list, if it is there."""
    incident_id = derive_id("incident", item.item_id, int(item.generation))
    name = f"incident#{incident_id}"
    there = IncidentRow.instance_key.exists()  # closes: the owner's rows are being removed
    if not any(IncidentRow.query(item.owner_key, IncidentRow.row == name, consistent_read=True)):
        return []
    actions = [IncidentRow.attention_at.remove()]
    return [Update("incident", IncidentRow(item.owner_key, name), actions, there)]
