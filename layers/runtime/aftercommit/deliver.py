"""Deliver: claim outbox items and send each to the command queue.

Both paths meet here: the stream (eager) and the sweep. A claim goes right before its send; if the deliverer
dies in between, the item is still undone and becomes due again.
"""

from math import ceil

from aftercommit import clock, traces
from aftercommit.attempts import leave_to_newer, refuse
from aftercommit.errors import MalformedRowError
from aftercommit.functions import failure_of
from aftercommit.limits import QUEUE_DELAY_SECONDS_MAX
from aftercommit.log import about, count, gauge, ids_of, tell_failure
from aftercommit.outbox import claim, find_item, is_occurrence
from aftercommit.queue import Message, Sending, known_channel, send
from aftercommit.set_aside import set_aside
from aftercommit.settings import settings
from aftercommit.statuses import ItemCommand, ItemStatus
from aftercommit.tables import ItemRow, split_key

_SENDS_MAX = 100  # that are reckoned with: days
_STATUSES = frozenset(each.value for each in ItemStatus)
# They stay undone on purpose: while children run, and until something waits for what was told.
_LOOKED_AT_AGAIN = frozenset({ItemCommand.JOIN.value, ItemCommand.STIMULUS.value})


def deliver(keys: list[tuple[str, str]]) -> int:
    """Deliver the undone items of these (owner_key, item_id); returns how many were sent.

    One item's failure stops no other. A timer that is further away than a message can wait stays for the
    sweep.
    """
    claimed = [item for key in keys if (item := _claim(*key))]
    if not claimed:
        return 0
    results = send([_sending(item) for item in claimed])
    for item, failed in zip(claimed, results, strict=True):
        if failed:
            _record(item, failed)
    sent = [item for item, failed in zip(claimed, results, strict=True) if failed is None]
    count("ItemsSent", len(sent))
    _tell_resent([item for item in sent if item.sends and item.command not in _LOOKED_AT_AGAIN])
    return len(sent)


def _tell_resent(items: list[ItemRow]) -> None:
    """Tell of items that were sent before, and for how long the oldest has been undone all the same."""
    count("ItemsResent", len(items))
    # One that was redriven bears the birth and the sends of its earlier life.
    if waited := [_undone_seconds(item) for item in items if int(item.generation) == 1]:
        gauge("OldestResentSeconds", max(waited))


def _undone_seconds(item: ItemRow) -> float:
    """Return for how long at least an item has been sent and not acked; `due_at` moves on with each claim.

    That is since its birth, or the instant that it had to wait for; but not longer than its sends have taken,
    as one of a bulk may have slept first.
    """
    of = settings()
    waits = (of.ack_timeout_seconds * 2**number for number in range(min(int(item.sends) - 1, _SENDS_MAX)))
    taken = of.eager_head_start_seconds + sum(min(each, of.ack_timeout_max_seconds) for each in waits)
    since_birth = clock.now() - clock.from_text(item.deliver_at or item.created_at)
    return float(max(0.0, min(taken, since_birth)))


def _claim(owner_key: str, item_id: str) -> ItemRow | None:
    tenant, _, owner_id = owner_key.partition("#")
    try:
        with about(tenant=tenant, owner_id=owner_id, item_id=item_id):
            return _claim_one(owner_key, item_id)
    except Exception as error:  # noqa: BLE001 - one item's failure stops no other
        # Not this item's turn to fail: it stays undone, and due.
        tell_failure("claim failed", error)
    return None


def _claim_one(owner_key: str, item_id: str) -> ItemRow | None:
    at = clock.now()
    try:
        tenant, owner_id = split_key(owner_key)
        item = find_item(tenant, owner_id, item_id)
    except MalformedRowError as error:
        set_aside(owner_key, item_id, error.message)
        return None
    if item and item.status not in _STATUSES:
        if item.due_at and at >= clock.from_text(item.due_at):  # else it would come first in every pass
            leave_to_newer(item, f"this code does not know the status {item.status!r} of an item")
        return None
    if item is None or item.status != ItemStatus.UNDONE or not _is_for_queue(item, at):
        return None
    if item.sends and item.due_at and at < clock.from_text(item.due_at):
        return None  # somebody has sent it, and its ack is not overdue yet
    return item if claim(item, at) else None


def _is_for_queue(item: ItemRow, at: float) -> bool:
    """Whether an undone item is to be sent now: events are what deliver_events sends."""
    return not (item.asleep or item.command == ItemCommand.EVENT or _is_far(item, at))


def _is_far(item: ItemRow, at: float) -> bool:
    return bool(item.deliver_at) and clock.from_text(item.deliver_at) - at > QUEUE_DELAY_SECONDS_MAX


def _sending(item: ItemRow) -> Sending:
    message = Message(item.tenant, owner_id=item.owner_id, item_id=item.item_id)
    wait = clock.from_text(item.deliver_at) - clock.now() if item.deliver_at else 0
    # A start whose channel is lost is refused, and visible; what a running instance waits for must come.
    channel = item.channel if item.command == ItemCommand.START else known_channel(item.channel)
    trace = traces.begin() if is_occurrence(item) else item.trace
    return Sending(message, ceil(max(0.0, wait)), channel, trace)


def _record(item: ItemRow, error: Exception) -> None:
    """Record that the queue did not take an item; if that fails too, it is simply due again."""
    try:
        # A stimulus becomes a dead letter for what it meets, not for a queue that is away.
        refuse(item, failure_of(error), counts=item.command != ItemCommand.STIMULUS)
    except Exception as failed:  # noqa: BLE001 - likewise
        tell_failure("attempt not recorded", failed, **ids_of(item))
