"""Outbox items: born in the commit that decided them, claimed before each send, settled with their effect.

An item's existence proves its owner's commit. While it is undone it has `due_at`, so the sweep finds it
whoever died.
"""

from collections.abc import Iterator

from pynamodb.attributes import NumberAttribute
from pynamodb.exceptions import AttributeDeserializationError
from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action

from aftercommit import clock, traces
from aftercommit.bodies import body_of, read_join, write_body
from aftercommit.errors import ConditionFailedError, MalformedRowError
from aftercommit.ids import derive_fraction, derive_id, derive_shard, part_name
from aftercommit.incidents import incident_put
from aftercommit.intentions import begin_stimulus_id, intend_next_occurrence
from aftercommit.limits import (
    BULK_CHILDREN_MAX,
    EVENT_SHARDS,
    JOIN_LOOK_SECONDS_MAX,
    MESSAGE_CHARACTERS_MAX,
    QUEUE_DELAY_SECONDS_MAX,
    TRACED_CHILDREN_MAX,
)
from aftercommit.log import count, logger
from aftercommit.model import (
    Failure,
    Incident,
    Intention,
    ItemCommand,
    ItemStatus,
    Json,
    Outcome,
    dumps,
)
from aftercommit.payloads import Payloads
from aftercommit.places import Join, Mark
from aftercommit.settings import settings
from aftercommit.tables import HeadRow, ItemRow, key_of
from aftercommit.tallies import leave_out, mark_actions, tally_writes
from aftercommit.writes import Delete, Put, Update, Write, commit

_DAY_SECONDS = 86_400
_LOOK_BACK = 2  # times the longest that a stimulus stays open
_LAST_STIMULUS_ID = "~"
_AWAITED = (ItemCommand.START, ItemCommand.JOIN)  # whose `wait` says whether the owner waits for it


def item_put(
    tenant: str,
    owner_id: str,
    intention: Intention,
    at: float,
    payloads: Payloads | None = None,
    *,
    trace: str | None = None,
) -> Put:
    """Return the write that stores an intention; it belongs into the commit that decided it.

    Of one that the owner itself has decided, what is large goes to the commit's `payloads`.
    The commit's own fence (the revision row, or the condition on another item) keeps it from being put twice.
    `trace` is kept where this invocation has none: that of what the intention follows from.
    """
    body = intention.body
    deliver_at = intention.deliver_at
    join = read_join(body)
    asleep = join is not None and join.sleeps
    text, payloads_name = write_body(intention, payloads)
    return Put(
        "item",
        ItemRow(
            key_of(tenant, owner_id),
            intention.item_id,
            tenant=tenant,
            owner_id=owner_id,
            command=intention.command.value,
            status=ItemStatus.UNDONE.value,
            instance_id=body.get("instance_id"),
            definition_id=body.get("definition_id"),
            version=body.get("version"),
            channel=body.get("channel") or intention.channel,
            wait=_is_awaited(body, join) if intention.command in _AWAITED else None,
            body=text,
            payloads=payloads_name,
            deliver_at=clock.to_text(deliver_at) if deliver_at else None,
            trace=(traces.current() or trace) if _is_traced(intention, join) else None,
            due_shard=_shard_of(intention),
            asleep=asleep or None,
            due_at=None if asleep else clock.to_text(_first_due_at(at, deliver_at)),
            created_at=clock.to_text(at),
        ),
    )


def _is_traced(intention: Intention, join: Join | None) -> bool:
    """Whether an intention goes on with the trace it is decided in.

    Of many children only the first do. A time of a schedule begins a trace of its own (`deliver`): it does
    not follow from the one before, and once one was recorded, all would be for ever.
    """
    if intention.command != ItemCommand.START:
        return True
    return intention.deliver_at is None and (join is None or join.index < TRACED_CHILDREN_MAX)


def _shard_of(intention: Intention) -> int:
    if intention.command == ItemCommand.EVENT:
        return EVENT_SHARDS[derive_shard(intention.item_id, len(EVENT_SHARDS))]
    return derive_shard(intention.item_id, settings().due_shards)


def _is_awaited(body: dict[str, Json], join: Join | None) -> bool:
    return "bookmark_id" in body or (join is not None and join.awaited)


def _first_due_at(at: float, deliver_at: float | None) -> float:
    """When the sweep takes a new item: after the eager path's head start, or when a far timer comes near."""
    earliest = max(at, deliver_at or at)
    if earliest - at > QUEUE_DELAY_SECONDS_MAX:
        return earliest - QUEUE_DELAY_SECONDS_MAX
    return earliest + settings().eager_head_start_seconds if settings().eager_delivery else at


def find_item(tenant: str, owner_id: str, item_id: str) -> ItemRow | None:
    """Read an item as it is now; raises MalformedRowError naming its key if it cannot be read."""
    try:
        item = ItemRow.get(key_of(tenant, owner_id), item_id, consistent_read=True)
        for instant in (item.due_at, item.deliver_at):
            if instant is not None:
                clock.from_text(instant)
    except ItemRow.DoesNotExist:
        return None
    except (AttributeDeserializationError, TypeError, ValueError) as error:
        raise MalformedRowError(
            f"outbox item {owner_id}/{item_id} cannot be read: {error}", field=item_id
        ) from error
    for name, attribute in ItemRow.get_attributes().items():
        if not attribute.null and getattr(item, name) is None:
            raise MalformedRowError(f"outbox item {owner_id}/{item_id} has no {name}", field=name)
    return item


def find_parts(tenant: str, owner_id: str, join_id: str, first: int, last: int) -> dict[int, ItemRow]:
    """Read the dispatches of a bulk from one index to another, as `walk_parts` does."""
    rows = _query_parts(tenant, owner_id, join_id, first, last)
    return {int(row.item_id.rpartition("-")[2]): row for row in rows}


def walk_parts(tenant: str, owner_id: str, join_id: str) -> Iterator[ItemRow]:
    """Read the dispatches of a bulk page by page, the last ones first, as far as their endings go.

    Only some attributes: what else stands in a row may be damaged.
    """
    return _query_parts(tenant, owner_id, join_id, 0, BULK_CHILDREN_MAX, forward=False)


def _query_parts(
    tenant: str, owner_id: str, join_id: str, first: int, last: int, *, forward: bool = True
) -> Iterator[ItemRow]:
    return iter(
        ItemRow.query(
            key_of(tenant, owner_id),
            ItemRow.item_id.between(part_name(join_id, first), part_name(join_id, last)),
            attributes_to_get=["owner_key", "item_id", "status", "asleep", "outcome", "output"],
            consistent_read=True,
            scan_index_forward=forward,
        )
    )


def open_stimuli(tenant: str, stimulus_id: str, *, until: str | None = None) -> list[ItemRow]:
    """Return the open stimuli of a key, oldest first, up to one of them.

    Only those of late: an older one that is still open has a message of its own, and what was done under a
    busy key all day need not be read.
    """
    oldest = clock.now() - _LOOK_BACK * settings().stimulus_open_seconds
    return list(
        ItemRow.query(
            key_of(tenant, stimulus_id),
            ItemRow.item_id.between(begin_stimulus_id(oldest), until or _LAST_STIMULUS_ID),
            filter_condition=ItemRow.status == ItemStatus.UNDONE.value,
            consistent_read=True,
        )
    )


def claim(item: ItemRow, at: float) -> bool:
    """Claim an item for one send; returns False if another deliverer was first, or it is settled.

    The claim counts `sends` up from the value that was read, so of two deliverers that read the same row
    one wins. The eager path's first claim leaves `due_at` as the item was born with it, its head start:
    one write without an index move. Every later claim moves `due_at` to when the ack is overdue.
    """
    actions = [ItemRow.sends.set(item.sends + 1)]
    due_at = clock.from_text(item.due_at) if item.due_at else at
    if item.sends or at >= due_at:
        actions.append(ItemRow.due_at.set(clock.to_text(_resend_at(item, at))))
    undone = ItemRow.status == ItemStatus.UNDONE.value  # closes: settled since it was read
    unclaimed = _still(ItemRow.sends, item.sends)  # closes: claimed since it was read
    try:
        commit([Update("claim", ItemRow(item.owner_key, item.item_id), actions, undone & unclaimed)])
    except ConditionFailedError:
        return False
    return True


def _still(counter: NumberAttribute, read: float) -> Condition:
    """Say that a counter is as it was read; one that the row lacks was read as 0, and must not strand it."""
    same: Condition = counter == read
    return same if read else counter.does_not_exist() | same


def _resend_at(item: ItemRow, at: float) -> float:
    wait: int = settings().ack_timeout_seconds * 2 ** min(max(0, int(item.sends) - 1), 20)
    earliest = max(at, clock.from_text(item.deliver_at)) if item.deliver_at else at
    if item.command == ItemCommand.JOIN.value:
        wait = min(wait, JOIN_LOOK_SECONDS_MAX)
    return earliest + min(wait, settings().ack_timeout_max_seconds)


def ack(item: ItemRow, at: float) -> Update:
    """Return the write that settles an item as done; it belongs into the commit of its effect.

    It fails if the item is no longer undone: then its effect must not happen (again).
    """
    actions = [
        ItemRow.status.set(ItemStatus.DONE.value),
        ItemRow.settled_at.set(clock.to_text(at)),
        ItemRow.due_at.remove(),
    ]
    if item.command != ItemCommand.START.value or "trigger" in body_of(item):
        # Dispatches live as long as their owner: they are its record of its children. What a stimulus
        # starts has none.
        actions.append(ItemRow.ttl.set(int(at) + settings().done_retention_days * _DAY_SECONDS))
    return Update(
        "ack",
        ItemRow(item.owner_key, item.item_id),
        actions,
        ItemRow.status == ItemStatus.UNDONE.value,
    )


def settlement(item: ItemRow, at: float) -> list[Write]:
    """Return the writes that settle an item as done, with the effect of a start or with none.

    An occurrence goes, and the next one takes its place: a message that speaks of it still finds no item.
    """
    if not is_occurrence(item):
        return [ack(item, at)]
    undone = ItemRow.status == ItemStatus.UNDONE.value  # closes: it fires twice, or is not published any more
    same = ItemRow.version == item.version  # closes: another version was published, and has taken it over
    return [Delete("ack", ItemRow(item.owner_key, item.item_id), undone & same), *_next_occurrence(item, at)]


def is_occurrence(item: ItemRow) -> bool:
    """Whether an item is one time of a published schedule: no other start is due later."""
    return item.command == ItemCommand.START.value and item.deliver_at is not None


def _next_occurrence(item: ItemRow, at: float) -> list[Write]:
    following = intend_next_occurrence(body_of(item), at) if is_occurrence(item) else None
    return [item_put(item.tenant, item.owner_id, following, at)] if following else []


def withdrawal(item: ItemRow, withdrawn_item_id: str, *more: Action) -> Update:
    """Return the write that withdraws an undone item of the same owner, a dispatch or a join, for good."""
    actions = [
        *more,
        ItemRow.status.set(ItemStatus.CANCELLED.value),
        ItemRow.settled_at.set(clock.to_text(clock.now())),
        ItemRow.due_at.remove(),
    ]
    undone = ItemRow.status == ItemStatus.UNDONE.value  # closes: its child was admitted
    return Update("withdrawal", ItemRow(item.owner_key, withdrawn_item_id), actions, undone)


def settle(item: ItemRow) -> bool:
    """Ack an item that has nothing (more) to do; returns False for one that is settled already."""
    try:
        commit(settlement(item, clock.now()))
    except ConditionFailedError:
        return False
    return True


def drop(item: ItemRow, reason: str) -> None:
    """Ack an item whose effect has become void, and tell why."""
    if settle(item):
        _tell("item dropped", "ItemsDropped", item, reason)


def tell_withdrawn(item: ItemRow, reason: str, *, number: int = 1) -> None:
    """Tell that dispatches of an item's owner were withdrawn: their children will never start."""
    logger.info("dispatches withdrawn", extra={"owner_id": item.owner_id, "number": number, "reason": reason})
    count("ItemsWithdrawn", number)


def postpone_item(item: ItemRow, due_at: float) -> None:
    """Leave an undone item for later; one that was settled meanwhile stays as it is."""
    undone = ItemRow.status == ItemStatus.UNDONE.value
    actions = [ItemRow.due_at.set(clock.to_text(due_at))]
    try:
        commit([Update("postpone", ItemRow(item.owner_key, item.item_id), actions, undone)])
    except ConditionFailedError:
        return


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
        ItemRow.last_error.set(_told(failure)),
        ItemRow.due_at.set(clock.to_text(clock.now() + attempt_delay(item, attempts))),
    ]
    undone = ItemRow.status == ItemStatus.UNDONE.value  # closes: settled meanwhile
    uncounted = _still(ItemRow.attempts, item.attempts)  # closes: the same attempt counted twice
    condition = undone & uncounted & _as_read(item)
    commit([Update("attempt", ItemRow(item.owner_key, item.item_id), actions, condition)])
    _tell("attempt refused", "AttemptsRefused", item, _told(failure))
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
    that; a stimulus becomes a dead letter; anything else becomes an incident of the owner. Of an occurrence,
    the next one is armed: a time that failed ends no schedule.
    Raises ConditionFailedError if the item was settled meanwhile: then nothing happens.
    """
    at = clock.now()
    actions = [
        ItemRow.status.set(ItemStatus.FAILED.value),
        ItemRow.last_error.set(_told(failure)),
        ItemRow.attempts.set(int(item.attempts) if attempts is None else attempts),
        ItemRow.settled_at.set(clock.to_text(at)),
        ItemRow.attention_at.set(clock.to_text(at)),
        ItemRow.due_at.remove(),
    ]
    mark = mark_give_up(item, failure)
    if mark:
        actions += mark_actions(mark)
    if item.command == ItemCommand.STIMULUS.value or is_occurrence(item):
        actions.append(ItemRow.ttl.set(int(at) + settings().dead_letter_days * _DAY_SECONDS))
    failed = Update(
        "failed",
        ItemRow(item.owner_key, item.item_id),
        actions,
        # Closes: a start admitted meanwhile has its child; one redriven meanwhile has all its attempts again,
        # and so has a time of a schedule that another version has taken over.
        (ItemRow.status == ItemStatus.UNDONE.value) & _as_read(item),
    )
    writes: list[Write] = [failed, *_next_occurrence(item, at)]
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
    _tell("item given up", "ItemsGivenUp", item, _told(failure))


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
        ItemRow.due_at.set(clock.to_text(_resend_at(item, clock.now()))),
    ]
    same = ItemRow.status == item.status  # closes: newer code has settled it, or moved it on
    unclaimed = _still(ItemRow.sends, item.sends)  # closes: claimed since it was read
    try:
        commit([Update("leave", ItemRow(item.owner_key, item.item_id), actions, same & unclaimed)])
    except ConditionFailedError:
        return
    _tell("left to newer code", "LeftToNewerCode", item, _told(Failure("NewerFormError", reason)))


def _tell(message: str, metric: str, item: ItemRow, reason: str) -> None:
    ids = {"owner_id": item.owner_id, "item_id": item.item_id, "command": item.command}
    logger.warning(message, extra={**ids, "reason": reason})
    count(metric)


def _told(failure: Failure) -> str:
    return f"{failure.type}: {failure.message}"[:MESSAGE_CHARACTERS_MAX]
