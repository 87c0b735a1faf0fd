"""Set aside: fail an outbox item whose stored form cannot be read, so that it is seen and holds nothing back.

The failure and its consequences are one commit: an incident of the owner, and a resume of the owner if it may
wait for the child that will not start. What still can be read of the row decides which.
"""

import json

from aftercommit import clock
from aftercommit.errors import ConditionFailedError
from aftercommit.ids import derive_id
from aftercommit.incidents import incident_put
from aftercommit.jsons import Json
from aftercommit.limits import MESSAGE_CHARACTERS_MAX
from aftercommit.log import count, logger
from aftercommit.model import Failure, Incident, Intention
from aftercommit.outbox import item_put
from aftercommit.salvage import salvage
from aftercommit.statuses import ItemCommand, ItemStatus, Outcome
from aftercommit.tables import ItemRow
from aftercommit.writes import Update, Write, commit_unread


def set_aside(owner_key: str, item_id: str, reason: str) -> None:
    """Fail an item that cannot be read; one that is settled, or gone, is left alone."""
    at = clock.now()
    moment = clock.to_text(at)
    actions = [
        ItemRow.status.set(ItemStatus.FAILED.value),
        ItemRow.last_error.set(reason[:MESSAGE_CHARACTERS_MAX]),
        ItemRow.attention_at.set(moment),
        ItemRow.settled_at.set(moment),
        ItemRow.due_at.remove(),
    ]
    tenant, separator, owner_id = owner_key.partition("#")
    if separator:  # they may be what is missing, and without them nobody would see it
        actions += [ItemRow.tenant.set(tenant), ItemRow.owner_id.set(owner_id)]
    # Settled items are left alone; a status that is missing or of another kind is what this is for.
    unsettled = ~ItemRow.status.is_in(*(each.value for each in ItemStatus if each != ItemStatus.UNDONE))
    key = ItemRow(owner_key, item_id)
    writes: list[Write] = [Update("set aside", key, actions, ItemRow.owner_key.exists() & unsettled)]
    if separator and owner_id:
        row = salvage(owner_key, item_id)
        writes += _consequences(tenant, owner_id, row, Failure("MalformedRowError", reason), at)
    try:
        commit_unread(writes)
    except ConditionFailedError:
        return
    # Its row has the reason, which may name what was stored.
    logger.error("item set aside", extra={"tenant": tenant, "owner_id": owner_id, "item_id": item_id})
    count("ItemsSetAside")


def _consequences(tenant: str, owner_id: str, row: ItemRow, failure: Failure, at: float) -> list[Write]:
    if row.command == ItemCommand.STIMULUS.value:
        return []  # the failed item is the dead letter itself
    generation = int(row.generation or 1)
    incident = Incident(derive_id("incident", row.item_id, generation), failure)
    writes: list[Write] = [incident_put(tenant, owner_id, incident, at, item_id=row.item_id)]
    # Starts and joins say whether their owner waits. One that does not say so any more may be waited for.
    waits: bool | None = row.wait
    if waits or (waits is None and row.command in (ItemCommand.START.value, ItemCommand.JOIN.value)):
        body = {
            "instance_id": owner_id,
            "bookmark_id": _bookmark_id(row),
            "outcome": Outcome.DISPATCH_FAILED.value,
            "value": failure.to_json(),
        }
        told = Intention(ItemCommand.RESUME, derive_id("give-up", row.item_id, generation), body)
        writes.append(item_put(tenant, owner_id, told, at, trace=row.trace))
    return writes


def _bookmark_id(row: ItemRow) -> str:
    """Return what the owner waits at: the bookmark, or the item itself, by which the owner knows it."""
    try:
        named: Json = json.loads(row.body or "{}")["bookmark_id"]
    except (ValueError, KeyError, TypeError):
        named = None
    return named if isinstance(named, str) else str(row.item_id)
