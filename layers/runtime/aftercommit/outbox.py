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
from aftercommit.ids import derive_shard, part_name
from aftercommit.intentions import begin_stimulus_id, intend_next_occurrence
from aftercommit.jsons import Json
from aftercommit.limits import (
    BULK_CHILDREN_MAX,
    EVENT_SHARDS,
    JOIN_LOOK_SECONDS_MAX,
    MESSAGE_CHARACTERS_MAX,
    QUEUE_DELAY_SECONDS_MAX,
    TRACED_CHILDREN_MAX,
)
from aftercommit.log import count, ids_of, logger
from aftercommit.model import Failure, Intention
from aftercommit.payloads import Payloads
from aftercommit.places import Join
from aftercommit.settings import settings
from aftercommit.statuses import ItemCommand, ItemStatus
from aftercommit.tables import ItemRow, key_of
from aftercommit.writes import Delete, Put, Update, Write, commit

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
        for instant in (item.due_at, item.deliver_at, item.created_at):
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
        actions.append(ItemRow.due_at.set(clock.to_text(resend_at(item, at))))
    undone = ItemRow.status == ItemStatus.UNDONE.value  # closes: settled since it was read
    unclaimed = still(ItemRow.sends, item.sends)  # closes: claimed since it was read
    try:
        commit([Update("claim", ItemRow(item.owner_key, item.item_id), actions, undone & unclaimed)])
    except ConditionFailedError:
        return False
    return True


def still(counter: NumberAttribute, read: float) -> Condition:
    """Say that a counter is as it was read; one that the row lacks was read as 0, and must not strand it."""
    same: Condition = counter == read
    return same if read else counter.does_not_exist() | same


def resend_at(item: ItemRow, at: float) -> float:
    """Return when an item that is sent now is due again, unless it is acknowledged."""
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
        actions.append(ItemRow.ttl.set(int(at) + settings().done_retention_days * clock.DAY_SECONDS))
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
    return [Delete("ack", ItemRow(item.owner_key, item.item_id), undone & same), *next_occurrence(item, at)]


def is_occurrence(item: ItemRow) -> bool:
    """Whether an item is one time of a published schedule: no other start is due later."""
    return item.command == ItemCommand.START.value and item.deliver_at is not None


def next_occurrence(item: ItemRow, at: float) -> list[Write]:
    """Return the write that arms the time after this one, if the item is a time of a schedule."""
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
        tell_item("item dropped", "ItemsDropped", item, reason)


def tell_withdrawn(item: ItemRow, reason: str, *, number: int = 1) -> None:
    """Tell that dispatches of an item's owner were withdrawn: their children will never start."""
    logger.info("dispatches withdrawn", extra={**ids_of(item), "number": number, "reason": reason})
    count("ItemsWithdrawn", number)


def postpone_item(item: ItemRow, due_at: float) -> None:
    """Leave an undone item for later; one that was settled meanwhile stays as it is."""
    undone = ItemRow.status == ItemStatus.UNDONE.value
    actions = [ItemRow.due_at.set(clock.to_text(due_at))]
    try:
        commit([Update("postpone", ItemRow(item.owner_key, item.item_id), actions, undone)])
    except ConditionFailedError:
        return


def tell_item(message: str, metric: str, item: ItemRow, reason: str) -> None:
    """Tell what has become of an item, by a line with its ids and a metric.

    `reason` is never a failure's message, which may name inputs (`told_of`): its type, or a text of ours.
    """
    logger.warning(message, extra={**ids_of(item), "reason": reason})
    count(metric)


def told_of(failure: Failure) -> str:
    """Return a failure as an item's `last_error` says it."""
    return f"{failure.type}: {failure.message}"[:MESSAGE_CHARACTERS_MAX]
