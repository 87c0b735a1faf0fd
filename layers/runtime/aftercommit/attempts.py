"""Attempts at outbox items: counted when they are refused, and given up after the last, with the consequence.

Passing reasons and lasting ones are not told apart. Each write has the condition that the item is undone.
"""

from pynamodb.expressions.condition import Condition

from aftercommit import clock
from aftercommit.bodies import body_of, read_join
from aftercommit.errors import ConditionFailedError
from aftercommit.ids import derive_fraction, derive_id
from aftercommit.incidents import incident_put
from aftercommit.jsons import dumps
from aftercommit.limits import MESSAGE_CHARACTERS_MAX
from aftercommit.model import Failure, Incident, Intention
from aftercommit.outbox import (
    is_occurrence,
    item_put,
    next_occurrence,
    resend_at,
    settle,
    still,
    tell_item,
    told_of,
)
from aftercommit.places import Mark
from aftercommit.settings import settings
from aftercommit.statuses import ItemCommand, ItemStatus, Outcome
from aftercommit.tables import HeadRow, ItemRow, key_of
from aftercommit.tallies import leave_out, mark_actions, tally_writes
from aftercommit.writes import Put, Update, Write, commit


def refuse(item: ItemRow, failure: Failure, *, counts: bool = True) -> bool:
    """Record that an attempt at an item was refused; returns True if that was its last.

    A start has `start_attempts_max` attempts and is then given up, unless its child is there; every other
    command is tried until it is acknowledged. One that does not count leaves its reason only. Raises
    ConditionFailedError if the item was settled or attempted meanwhile.
    """
    attempts = int(item.attempts) + counts
    if item.command == ItemCommand.START.value and attempts >= settings().start_attempts_max:
        if _has_child(item):
            settle(item)
        else:
            give_up(item, failure, attempts=attempts)
        return True
    actions = [
        ItemRow.attempts.set(attempts),
        ItemRow.last_error.set(told_of(failure)),
        ItemRow.due_at.set(clock.to_text(clock.now() + attempt_delay(item, attempts))),
    ]
    undone = ItemRow.status == ItemStatus.UNDONE.value  # closes: settled meanwhile
    uncounted = still(ItemRow.attempts, item.attempts)  # closes: the same attempt counted twice
    condition = undone & uncounted & _as_read(item)
    commit([Update("attempt", ItemRow(item.owner_key, item.item_id), actions, condition)])
    tell_item("attempt refused", "AttemptsRefused", item, failure.type)
    return False


def attempt_delay(item: ItemRow, attempts: int) -> float:
    """Return the seconds from a refused attempt to the next one.

    Those of a start are even, with jitter that follows from item and attempt, so that what failed together
    does not come back together; those of every other command double.
    """
    of = settings()
    if item.command == ItemCommand.START.value:
        return of.start_delay_seconds + of.start_jitter_seconds * derive_fraction(item.item_id, attempts)
    doubled = of.start_delay_seconds * 2 ** min(max(0, attempts - 1), 12)
    return float(min(doubled, of.ack_timeout_max_seconds))


def _has_child(item: ItemRow) -> bool:
    """Whether the child of this very dispatch is there: only where one table was restored alone.

    Looking spares a waiting parent a wrong answer; that no child comes after it is given up is the condition
    of its admission.
    """
    try:
        head = HeadRow.get(key_of(item.tenant, item.instance_id), "head", consistent_read=True)
    except HeadRow.DoesNotExist:
        return False
    return bool(head.parent_item_id == item.item_id and head.parent_instance_id == item.owner_id)


def _as_read(item: ItemRow) -> Condition:
    """Say that an item was neither redriven since it was read, nor taken over by another version."""
    same: Condition = ItemRow.generation == item.generation
    if int(item.generation) == 1:  # one without the counter is of the first
        same = ItemRow.generation.does_not_exist() | same
    return same & (ItemRow.version == item.version) if is_occurrence(item) else same


def give_up(item: ItemRow, failure: Failure, *, attempts: int | None = None) -> None:
    """Fail an undone item for good, with its consequence in the same commit.

    A parent that waits is resumed with DispatchFailed; the start of one of a bulk is marked and counted as
    that; a stimulus becomes a dead letter; anything else becomes an incident of the owner. What no parent is
    told of waits for an operator. Of an occurrence, the next is armed: a time that failed ends no schedule.
    Raises ConditionFailedError if the item was settled meanwhile: then nothing happens.
    """
    at = clock.now()
    actions = [
        ItemRow.status.set(ItemStatus.FAILED.value),
        ItemRow.last_error.set(told_of(failure)),
        ItemRow.attempts.set(int(item.attempts) if attempts is None else attempts),
        ItemRow.settled_at.set(clock.to_text(at)),
        ItemRow.due_at.remove(),
    ]
    # What a parent was told of is its to deal with: no operator could redrive it, nor ever be done with it.
    if not (item.wait and item.command == ItemCommand.START.value):
        actions.append(ItemRow.attention_at.set(clock.to_text(at)))
    mark = mark_give_up(item, failure)
    if mark:
        actions += mark_actions(mark)
    if item.command == ItemCommand.STIMULUS.value or is_occurrence(item):
        actions.append(ItemRow.ttl.set(int(at) + settings().dead_letter_days * clock.DAY_SECONDS))
    failed = Update(
        "failed",
        ItemRow(item.owner_key, item.item_id),
        actions,
        # Closes: a start admitted meanwhile has its child; one redriven meanwhile has all its attempts again,
        # and so has a time of a schedule that another version has taken over.
        (ItemRow.status == ItemStatus.UNDONE.value) & _as_read(item),
    )
    writes: list[Write] = [failed, *next_occurrence(item, at)]
    if mark:
        writes += tally_writes(item.tenant, mark, at)
    # A stimulus that failed is the dead letter itself: kept for a while to be read and replayed.
    if item.command != ItemCommand.STIMULUS.value and not (mark and mark.join.awaited):
        writes.append(_consequence(item, failure, at))
    try:
        commit(writes)
    except ConditionFailedError as error:
        fewer = leave_out(writes, error.purposes)
        if fewer is None:
            raise
        commit(fewer)
    if item.command == ItemCommand.STIMULUS.value:
        tell_item("dead letter", "DeadLetters", item, failure.type)
    else:
        tell_item("item given up", "ItemsGivenUp", item, failure.type)


def give_up_if_undone(item: ItemRow, failure: Failure, *, attempts: int | None = None) -> bool:
    """Give an item up as `give_up` does; returns False, with nothing changed, if it was settled meanwhile."""
    try:
        give_up(item, failure, attempts=attempts)
    except ConditionFailedError:
        return False
    return True


def mark_give_up(item: ItemRow, failure: Failure) -> Mark | None:
    """Return how the child of an item that is given up has ended, if that is the start of one of a bulk."""
    if item.command != ItemCommand.START.value:
        return None
    join = read_join(body_of(item))
    told = {**failure.to_json(), "message": failure.message[:MESSAGE_CHARACTERS_MAX]}
    return Mark(item.owner_id, join, Outcome.DISPATCH_FAILED.value, dumps(told)) if join else None


def _consequence(item: ItemRow, failure: Failure, at: float) -> Put:
    if item.wait and item.command == ItemCommand.START.value:
        resume = Intention(
            ItemCommand.RESUME,
            derive_id("give-up", item.item_id, int(item.generation)),
            {
                "instance_id": item.owner_id,
                "bookmark_id": body_of(item)["bookmark_id"],
                "outcome": Outcome.DISPATCH_FAILED.value,
                "value": failure.to_json(),
            },
        )
        return item_put(item.tenant, item.owner_id, resume, at, trace=item.trace)
    incident = Incident(derive_id("incident", item.item_id, int(item.generation)), failure)
    return incident_put(item.tenant, item.owner_id, incident, at, item_id=item.item_id)


def leave_to_newer(item: ItemRow, reason: str) -> None:
    """Postpone an item that only newer code can see through, each time for longer; else it stays as it is.

    So a rollback loses nothing: the item is visible with its reason, and served once that code is back.
    """
    actions = [
        ItemRow.sends.set(item.sends + 1),
        ItemRow.last_error.set(reason[:MESSAGE_CHARACTERS_MAX]),
        ItemRow.due_at.set(clock.to_text(resend_at(item, clock.now()))),
    ]
    same = ItemRow.status == item.status  # closes: newer code has settled it, or moved it on
    unclaimed = still(ItemRow.sends, item.sends)  # closes: claimed since it was read
    try:
        commit([Update("leave", ItemRow(item.owner_key, item.item_id), actions, same & unclaimed)])
    except ConditionFailedError:
        return
    tell_item("left to newer code", "LeftToNewerCode", item, reason)
