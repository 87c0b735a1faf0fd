"""Outbox items: born in the commit that decided them, claimed before each send, settled with their effect.

An item's existence proves its owner's commit. While it is undone it has `due_at`, so the sweep finds it
whoever died.
"""

import json
from typing import cast

from pynamodb.attributes import NumberAttribute
from pynamodb.exceptions import AttributeDeserializationError
from pynamodb.expressions.condition import Condition

from aftercommit import clock
from aftercommit.errors import ConditionFailedError, MalformedRowError
from aftercommit.ids import derive_id, derive_shard
from aftercommit.incidents import incident_put
from aftercommit.intentions import begin_stimulus_id, intend_next_occurrence
from aftercommit.limits import EVENT_SHARDS, MESSAGE_CHARACTERS_MAX, QUEUE_DELAY_SECONDS_MAX
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
from aftercommit.settings import settings
from aftercommit.tables import ItemRow, key_of
from aftercommit.writes import Delete, Put, Update, Write, commit, commit_unread

_DAY_SECONDS = 86_400
_LOOK_BACK = 2  # times the longest that a stimulus stays open
_LAST_STIMULUS_ID = "~"
# What the body of a command must have.
_PARTS: dict[str, dict[str, type]] = {
    ItemCommand.START.value: {"instance_id": str, "definition_id": str, "input": dict, "depth": int},
    ItemCommand.RESUME.value: {"instance_id": str, "bookmark_id": str, "outcome": str},
    ItemCommand.RUN.value: {"instance_id": str},
    ItemCommand.CANCEL.value: {"instance_id": str, "item_id": str},
    ItemCommand.STIMULUS.value: {"stimulus": dict},
    ItemCommand.EVENT.value: {"id": str, "name": str, "ts": int},
}


def item_put(tenant: str, owner_id: str, intention: Intention, at: float) -> Put:
    """Return the write that stores an intention; it belongs into the commit that decided it.

    The commit's own fence (the revision row, or the condition on another item) keeps it from being put twice.
    """
    body = intention.body
    deliver_at = intention.deliver_at
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
            channel=body.get("channel"),
            wait="bookmark_id" in body if intention.command == ItemCommand.START else None,
            body=dumps(body),
            deliver_at=clock.to_text(deliver_at) if deliver_at else None,
            due_shard=_shard_of(intention),
            due_at=clock.to_text(_first_due_at(at, deliver_at)),
            created_at=clock.to_text(at),
        ),
    )


def _shard_of(intention: Intention) -> int:
    if intention.command == ItemCommand.EVENT:
        return EVENT_SHARDS[derive_shard(intention.item_id, len(EVENT_SHARDS))]
    return derive_shard(intention.item_id, settings().due_shards)


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


def body_of(item: ItemRow) -> dict[str, Json]:
    """Return an item's command; raises MalformedRowError if it cannot be read."""
    told = f"the body of outbox item {item.owner_id}/{item.item_id}"
    try:
        body = json.loads(item.body)
        parts = _PARTS.get(item.command, {"instance_id": str}) | ({"bookmark_id": str} if item.wait else {})
        if item.command == ItemCommand.RESUME.value and "token" in body:
            parts = {"token": str}
        faulty = [name for name, kind in parts.items() if not isinstance(body[name], kind)]
    except (ValueError, KeyError, TypeError) as error:
        raise MalformedRowError(f"{told} cannot be read: {error!r}", field="body") from error
    if faulty:
        raise MalformedRowError(f"{told} has a faulty {faulty[0]}", field="body")
    return cast("dict[str, Json]", body)


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


def withdrawal(item: ItemRow, dispatch_item_id: str) -> Update:
    """Return the write that withdraws an undone dispatch of the same owner, for good."""
    actions = [
        ItemRow.status.set(ItemStatus.CANCELLED.value),
        ItemRow.settled_at.set(clock.to_text(clock.now())),
        ItemRow.due_at.remove(),
    ]
    undone = ItemRow.status == ItemStatus.UNDONE.value  # closes: its child was admitted
    return Update("withdrawal", ItemRow(item.owner_key, dispatch_item_id), actions, undone)


def settle(item: ItemRow) -> None:
    """Ack an item that has nothing (more) to do; one that is settled already stays as it is."""
    try:
        commit(settlement(item, clock.now()))
    except ConditionFailedError:
        return


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

    A start has `start_attempts_max` attempts and is then given up; every other command is tried until it
    is acknowledged. One that does not count leaves its reason only. Raises ConditionFailedError if the item
    was settled or attempted meanwhile.
    """
    attempts = int(item.attempts) + counts
    if item.command == ItemCommand.START.value and attempts >= settings().start_attempts_max:
        give_up(item, failure, attempts=attempts)
        return True
    at = clock.now()
    wait = min(
        settings().start_delay_seconds * 2 ** min(max(0, attempts - 1), 12),
        settings().ack_timeout_max_seconds,
    )
    if item.command == ItemCommand.START.value:
        wait = settings().start_delay_seconds
    actions = [
        ItemRow.attempts.set(attempts),
        ItemRow.last_error.set(_told(failure)),
        ItemRow.due_at.set(clock.to_text(at + wait)),
    ]
    undone = ItemRow.status == ItemStatus.UNDONE.value  # closes: settled meanwhile
    uncounted = _still(ItemRow.attempts, item.attempts)  # closes: the same attempt counted twice
    commit([Update("attempt", ItemRow(item.owner_key, item.item_id), actions, undone & uncounted)])
    _tell("attempt refused", "AttemptsRefused", item, failure)
    return False


def give_up(item: ItemRow, failure: Failure, *, attempts: int | None = None) -> None:
    """Fail an undone item for good, with its consequence in the same commit.

    A parent that waits is resumed with DispatchFailed; a stimulus becomes a dead letter; anything else
    becomes an incident of the owner. Of an occurrence, the next one is armed: a time that failed ends no
    schedule.
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
    if item.command == ItemCommand.STIMULUS.value or is_occurrence(item):
        actions.append(ItemRow.ttl.set(int(at) + settings().dead_letter_days * _DAY_SECONDS))
    failed = Update(
        "failed",
        ItemRow(item.owner_key, item.item_id),
        actions,
        ItemRow.status == ItemStatus.UNDONE.value,  # closes: a start admitted meanwhile has its child
    )
    if item.command == ItemCommand.STIMULUS.value:
        # The failed item is the dead letter itself: kept for a while to be read and replayed.
        commit([failed])
    else:
        commit([failed, _consequence(item, failure, at), *_next_occurrence(item, at)])
    _tell("item given up", "ItemsGivenUp", item, failure)


def _consequence(item: ItemRow, failure: Failure, at: float) -> Put:
    if item.wait:
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
        return item_put(item.tenant, item.owner_id, resume, at)
    incident = Incident(derive_id("incident", item.item_id, int(item.generation)), failure)
    return incident_put(item.tenant, item.owner_id, incident, at, item_id=item.item_id)


def set_aside(owner_key: str, item_id: str, reason: str) -> None:
    """Fail an item whose stored form cannot be read, so that it is seen and holds nothing back."""
    at = clock.to_text(clock.now())
    actions = [
        ItemRow.status.set(ItemStatus.FAILED.value),
        ItemRow.last_error.set(reason[:MESSAGE_CHARACTERS_MAX]),
        ItemRow.attention_at.set(at),
        ItemRow.settled_at.set(at),
        ItemRow.due_at.remove(),
    ]
    tenant, separator, owner_id = owner_key.partition("#")
    if separator:  # they may be what is missing, and without them nobody would see it
        actions += [ItemRow.tenant.set(tenant), ItemRow.owner_id.set(owner_id)]
    # Settled items are left alone; a status that is missing or of another kind is what this is for.
    unsettled = ~ItemRow.status.is_in(*(each.value for each in ItemStatus if each != ItemStatus.UNDONE))
    row = ItemRow(owner_key, item_id)
    try:
        commit_unread(Update("set aside", row, actions, ItemRow.owner_key.exists() & unsettled))
    except ConditionFailedError:
        return
    logger.error("item set aside", extra={"owner_key": owner_key, "item_id": item_id, "reason": reason})
    count("ItemsSetAside")


def _tell(message: str, metric: str, item: ItemRow, failure: Failure) -> None:
    ids = {"owner_id": item.owner_id, "item_id": item.item_id, "command": item.command}
    logger.warning(message, extra={**ids, "reason": _told(failure)})
    count(metric)


def _told(failure: Failure) -> str:
    return f"{failure.type}: {failure.message}"[:MESSAGE_CHARACTERS_MAX]
