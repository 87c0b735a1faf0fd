"""Delete: take an ended instance away, when it is asked for, or by itself when its days are over.

It is hidden at once, and its rows go a day later, the head last: a day is longer than any frozen sandbox
lives, so no late writer finds its rows gone and makes new ones. If this dies midway, the head is due again.
"""

from collections.abc import Iterator
from itertools import islice

from pynamodb.expressions.condition import Condition

from aftercommit import aws, clock
from aftercommit.activations import release_activation
from aftercommit.errors import ConditionFailedError, ConflictError, NotFoundError, TryLaterError
from aftercommit.ids import new_token
from aftercommit.instances import find_head
from aftercommit.limits import BATCH_WRITES_MAX
from aftercommit.log import count, ids_of, logger, reason_of
from aftercommit.outbox import drop
from aftercommit.payloads import remove_payloads
from aftercommit.salvage import read_items
from aftercommit.settings import settings
from aftercommit.statuses import InstanceStatus, ItemCommand, ItemStatus, instance_status
from aftercommit.tables import (
    PAYLOADS_PREFIX,
    HeadRow,
    ItemRow,
    RevisionRow,
    ids_of_instance,
    removal_shard,
    split_key,
)
from aftercommit.tries import pause
from aftercommit.writes import TRIES_MAX, Delete, Update, commit

_Key = dict[str, str]  # a row's, attributes by name
KEPT_SECONDS = 86_400
_LOOK_SECONDS = 30  # who has so many items that this is too short for them is not looked at every hour
_ITEMS_UNCLAIMED_MAX = 10  # so few are looked at sooner than another sweep would come to it
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


def delete_if_over(head: HeadRow, until: float) -> None:
    """Delete an ended instance that is due, if its days are over and nothing of it may still be needed.

    The days are those that are set now, not when it ended. One that is needed has as many days again, and so
    has one of so many items that they could not be looked at by `until`; when instances are kept for ever by
    now, so is it.
    """
    at = clock.now()
    days = settings().ended_instance_days
    kept_until = clock.to_text(clock.from_text(head.ended_at) + days * clock.DAY_SECONDS)
    try:
        if not days:
            _keep(head, None, "ended instances are kept for ever")
        elif clock.to_text(at) < kept_until:
            _keep(head, kept_until, f"ended instances are kept for {days} days")
        elif needed := _find_needed(head, until):
            _keep(head, clock.to_text(at + days * clock.DAY_SECONDS), needed)
            count("InstancesKept")
        else:
            _mark(head, f"its {days} days are over", _unmoved(head))
    except ConditionFailedError:
        return


def _unmoved(head: HeadRow) -> Condition:
    # Closes: another sweep has seen to it since it was read, or a caller has deleted it.
    return HeadRow.due_at == head.due_at


def _find_needed(head: HeadRow, until: float) -> str | None:
    """Return why an ended instance is still needed: what it owns is on its way, or waits for an operator.

    A dispatch that failed unawaited may be redriven, and goes unseen once its owner is gone; one that was
    waited for has been told. A status that only newer code knows may mean anything. Of many items, the
    instance is claimed first; raises ConditionFailedError if another sweep has done that, and TryLaterError
    if the pass had little time left for the look.
    """
    begun = clock.now()
    for number, item in enumerate(read_items(head.instance_key), 1):
        if number == _ITEMS_UNCLAIMED_MAX:
            _claim(head)
        if number % _ITEMS_UNCLAIMED_MAX == 0 and clock.now() >= until:
            if until - begun >= _LOOK_SECONDS:
                return "its items are too many to be looked at in one pass"
            raise TryLaterError("the pass had too little time left to look at its items")
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


def _claim(head: HeadRow) -> None:
    """Leave a long look to this sweep alone; if it dies on the way, the instance comes up again later."""
    later = clock.to_text(clock.now() + settings().ack_timeout_max_seconds)
    actions = [HeadRow.due_at.set(later)]
    commit([Update("claim", HeadRow(head.instance_key, "head"), actions, _unmoved(head))])
    head.due_at = later


def _keep(head: HeadRow, until: str | None, reason: str) -> None:
    """Leave an ended instance for later, or for ever; raises ConditionFailedError if it has moved already."""
    actions = [HeadRow.due_at.set(until) if until else HeadRow.due_at.remove()]
    commit([Update("kept", HeadRow(head.instance_key, "head"), actions, _unmoved(head))])
    logger.info("instance kept", extra={**_ids_of(head), "until": until, "reason": reason})


def remove_rows(head: HeadRow, until: float) -> None:
    """Remove every row of an instance that was deleted a day ago, the head last.

    Dying midway leaves the head. So does `until`, and whatever has to be tried later: the rest goes when it
    is due again.
    """
    try:
        _remove_all(settings().outbox_table, _items(head), until)
        _remove_all(settings().instances_table, _rows(head, until), until)
    except TryLaterError as error:
        logger.info("instance removed in part", extra={**_ids_of(head), "reason": reason_of(error)})
        return
    release_activation(head)
    same = HeadRow.deleted_at == head.deleted_at  # closes: removed by another sweep, and its id begun anew
    try:
        commit([Delete("head", HeadRow(head.instance_key, "head"), same)])
    except ConditionFailedError:
        return
    _tell("instance removed", "InstancesRemoved", head, f"it was deleted at {head.deleted_at}")


# Keys only, of either: what else stands in a row may be damaged.
def _items(head: HeadRow) -> Iterator[_Key]:
    names = ["owner_key", "item_id"]
    for item in ItemRow.query(head.instance_key, attributes_to_get=names, consistent_read=True):
        yield {"owner_key": item.owner_key, "item_id": item.item_id}


def _rows(head: HeadRow, until: float) -> Iterator[_Key]:
    """Yield all rows of an instance but the head; those that announce objects, when these are removed."""
    names = ["instance_key", "row"]
    for row in RevisionRow.query(head.instance_key, attributes_to_get=names, consistent_read=True):
        if row.row.startswith(PAYLOADS_PREFIX):
            _check_time(until)
            # By what this very life of the id has announced: another may have begun.
            remove_payloads(head.instance_key, row.row)
        if row.row != "head":
            yield {"instance_key": row.instance_key, "row": row.row}


def _remove_all(table: str, keys: Iterator[_Key], until: float) -> None:
    """Remove rows, many in one request; raises TryLaterError if time is up, or DynamoDB cannot keep up."""
    while batch := list(islice(keys, BATCH_WRITES_MAX)):
        nonce = new_token()
        left = [
            {"DeleteRequest": {"Key": {name: {"S": each} for name, each in key.items()}}} for key in batch
        ]
        for number in range(TRIES_MAX):
            if number:
                pause(nonce, number)
            _check_time(until)
            # One partition takes so many writes a second, and no more: those beyond come back.
            answer = aws.client("dynamodb").batch_write_item(RequestItems={table: left})
            left = answer.get("UnprocessedItems", {}).get(table, [])
            if not left:
                break
        else:
            raise TryLaterError(f"DynamoDB left {len(left)} rows of {table} where they were")


def _check_time(until: float) -> None:
    if clock.now() >= until:
        raise TryLaterError("time is up")


def _tell(message: str, metric: str, head: HeadRow, reason: str) -> None:
    logger.info(message, extra={**_ids_of(head), "reason": reason})
    count(metric)


def _ids_of(head: HeadRow) -> dict[str, str]:
    # Those of the key by the key: what else stands in a row may be damaged.
    return {**ids_of(head), **ids_of_instance(head.instance_key)}


def _id_of(head: HeadRow) -> str:
    return split_key(head.instance_key)[1]
