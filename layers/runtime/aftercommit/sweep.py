"""Sweep: the scheduled pass that finds what was stranded, whoever died: overdue items and instances.

And last, what is to go: ended instances whose days are over, and the rows of deleted ones. Any number of
sweeps may run side by side; each claim is conditional, so they share the work.
"""

from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

from pynamodb.exceptions import AttributeDeserializationError

from aftercommit import aws, clock
from aftercommit.delete import ENDINGS, delete_if_over, remove_rows
from aftercommit.deliver import deliver
from aftercommit.errors import AftercommitError, ConditionFailedError
from aftercommit.event_items import Key, read_events
from aftercommit.instances import record_unreadable
from aftercommit.jsons import dumps
from aftercommit.limits import EVENT_SHARDS, QUEUE_BATCH_MAX, REMOVAL_SHARDS
from aftercommit.log import count, gauge, ids_of, logger, reason_of, tell_failure
from aftercommit.payloads import discard_payloads
from aftercommit.queue import Message, Sending, known_channel, send
from aftercommit.settings import settings
from aftercommit.tables import PAYLOADS_PREFIX, HeadRow, ItemRow, ids_of_instance, split_key
from aftercommit.writes import Update, commit, commit_unread

_EVENT_BATCHES_MAX = 10  # of a shard, in one pass


@dataclass
class _Pass:
    """One pass: until when it may go on, and what it has found."""

    until: float
    oldest: float  # due time of what has been due for longest
    found: int = 0

    def see(self, due_at: str, shard: int) -> None:
        """Take down a row that is due; nobody waits for the removal of what has ended."""
        self.found += 1
        if shard in REMOVAL_SHARDS:
            return
        with suppress(ValueError):  # one that cannot be read says nothing of how late the others are
            self.oldest = min(self.oldest, clock.from_text(due_at))


def sweep(*, seconds_left: float = 60) -> bool:
    """Make one pass over all shards; returns True if it filled its limit, so that another should follow."""
    begun = clock.now()
    this = _Pass(begun + seconds_left, begun)
    shards = settings().due_shards
    # Each pass begins elsewhere, so that a shard which fills them all leaves none of the others waiting.
    first = int(begun // settings().sweep_interval_seconds)
    for shard in ((first + number) % shards for number in range(shards)):
        try:
            _sweep_items(shard, this)
            _sweep_instances(shard, this)
        except Exception as error:  # noqa: BLE001 - one shard's failure stops no other
            tell_failure("shard not swept", error, shard=shard)
        if clock.now() >= this.until:
            break
    for shard in EVENT_SHARDS:
        try:
            _sweep_events(shard)
        except Exception as error:  # noqa: BLE001 - likewise
            tell_failure("events not swept", error, shard=shard)
    for number in range(len(REMOVAL_SHARDS)):
        shard = REMOVAL_SHARDS[(first + number) % len(REMOVAL_SHARDS)]
        try:
            _sweep_instances(shard, this)
        except Exception as error:  # noqa: BLE001 - likewise
            tell_failure("ended instances not swept", error, shard=shard)
    gauge("OldestDueSeconds", begun - this.oldest)
    return clock.now() >= this.until or this.found >= settings().sweep_batch


def _sweep_events(shard: int) -> None:
    """Hand a shard's overdue events over, in batches, to the function that sends events.

    It claims them: so a sink that is slow or away holds up no sweep, and events that nobody takes, in shards
    of their own, stand before nothing else.
    """
    limit = _EVENT_BATCHES_MAX * settings().event_batch
    due = ItemRow.due.query(shard, ItemRow.due_at <= clock.to_text(clock.now()), limit=limit, page_size=limit)
    keys: list[Key] = [(row.owner_key, row.item_id) for row in due]
    if not keys:
        return
    for oldest in read_events(keys[:1]):
        gauge("OldestUnsentEventSeconds", max(0.0, clock.now() - clock.from_text(oldest.created_at)))
    if not settings().events_function:
        logger.error("no function delivers events", extra={"events": len(keys)})
        return
    for first in range(0, len(keys), settings().event_batch):
        payload = dumps({"keys": keys[first : first + settings().event_batch]})
        aws.client("lambda").invoke(
            FunctionName=settings().events_function, InvocationType="Event", Payload=payload.encode()
        )
    count("EventsSwept", len(keys))


def _sweep_items(shard: int, this: _Pass) -> None:
    """Deliver a shard's overdue items, oldest first, in batches that are claimed right before their send."""
    limit = settings().sweep_batch
    due = iter(
        ItemRow.due.query(shard, ItemRow.due_at <= clock.to_text(clock.now()), limit=limit, page_size=limit)
    )
    while clock.now() < this.until and (batch := list(islice(due, QUEUE_BATCH_MAX))):
        for row in batch:
            this.see(row.due_at, shard)
        sent = deliver([(row.owner_key, row.item_id) for row in batch])
        logger.info("swept items", extra={"found": len(batch), "sent": sent})
        count("ItemsSwept", len(batch))


def _sweep_instances(shard: int, this: _Pass) -> None:
    """Send a shard's overdue instances to be run: pending ones, and those whose worker is gone.

    Of the shards of ended ones, delete those whose days are over, and remove those that were deleted.
    """
    limit = settings().sweep_batch
    for row in HeadRow.due.query(
        shard, HeadRow.due_at <= clock.to_text(clock.now()), limit=limit, page_size=limit
    ):
        if clock.now() >= this.until:
            break
        try:
            this.see(row.due_at, shard)
            if row.row.startswith(PAYLOADS_PREFIX):
                discard_payloads(row.instance_key, row.row)
            elif head := _claim_instance(row, this.until):
                tenant, instance_id = split_key(row.instance_key)
                message = Message(tenant, instance_id=instance_id)
                send([Sending(message, channel=known_channel(head.channel), trace=head.trace)])
                logger.info("swept instance", extra=ids_of(head))
                count("InstancesSwept")
        except (AttributeDeserializationError, TypeError, ValueError) as error:
            _push_back(row, str(error))
        except Exception as error:  # noqa: BLE001 - one instance's failure stops no other
            tell_failure("instance not swept", error, **ids_of_instance(row.instance_key))


def _claim_instance(due: HeadRow, until: float) -> HeadRow | None:
    """Move an instance's due time forward; returns its head if its lease is free: it is to be sent.

    One that has ended or was deleted is seen to here.
    """
    at = clock.now()
    try:
        head = HeadRow.get(due.instance_key, due.row, consistent_read=True)
    except HeadRow.DoesNotExist:
        return None  # another sweep has removed it, and the index is behind
    if not head.due_at or head.due_at > clock.to_text(at):
        return None
    if head.status in ENDINGS and not head.deleted_at:
        delete_if_over(head, until)
        return None
    held = bool(head.lease_until) and head.lease_until > clock.to_text(at)
    sends = int(head.sends or 0)
    longest = settings().ack_timeout_max_seconds
    # Removing may take its time; and while this sweep is at it, no other one frees its id for a new instance,
    # whose rows bear the same names.
    wait = longest if head.deleted_at else min(settings().ack_timeout_seconds * 2 ** min(sends, 12), longest)
    # While its worker may live, it is due when the lease runs out; that is no send.
    due_at = head.lease_until if held else clock.to_text(at + wait)
    actions = [HeadRow.due_at.set(due_at), HeadRow.sends.set(sends if held else sends + 1)]
    unclaimed = HeadRow.due_at == head.due_at  # closes: another sweep, or a worker that finished it
    try:
        commit([Update("claim", HeadRow(head.instance_key, "head"), actions, unclaimed)])
    except ConditionFailedError:
        return None
    if head.deleted_at:
        remove_rows(head, until)
        return None
    return None if held else head


def _push_back(due: HeadRow, reason: str) -> None:
    """Move an instance that cannot be read behind those that can, with an incident; it comes up again."""
    later = clock.to_text(clock.now() + settings().ack_timeout_max_seconds)
    row = HeadRow(due.instance_key, due.row)
    unmoved = HeadRow.due_at == due.due_at  # closes: repaired, or pushed back by another sweep
    try:
        record_unreadable(*split_key(due.instance_key), f"its head cannot be read: {reason}")
        commit_unread([Update("push back", row, [HeadRow.due_at.set(later)], unmoved)])
    except AftercommitError as error:
        told = {**ids_of_instance(due.instance_key), "reason": reason_of(error)}
        logger.warning("instance not pushed back", extra=told)
