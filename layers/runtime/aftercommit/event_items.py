"""Event items: read, claimed, recorded and given back, many at a time, each under its own condition.

A claim says until when; whoever holds it counts `sends` up, and records only while it still stands there. One
row keeps what became of the event at each sink, and is due while one of them is undone: it is never given up,
and gets a `ttl` only when all have it.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pynamodb.exceptions import AttributeDeserializationError

from aftercommit import aws, clock
from aftercommit.bodies import body_of
from aftercommit.errors import MalformedRowError
from aftercommit.jsons import Json, dumps
from aftercommit.limits import READ_BATCH_MAX
from aftercommit.set_aside import set_aside
from aftercommit.settings import settings
from aftercommit.statements import RowUpdate, update_each
from aftercommit.statuses import ItemStatus
from aftercommit.tables import ItemRow, split_key

Key = tuple[str, str]


@dataclass(eq=False)
class EventItem:
    """An undone event, as it was read; `sinks` is what became of it at each, `sends` counts its claims."""

    key: Key
    tenant: str
    body: dict[str, Json]
    bytes: int
    sinks: dict[str, dict[str, Json]]
    sends: int
    attempts: int
    created_at: str
    due_at: str
    claimed_until: str | None
    first_claimed_at: str | None
    claimed_at: float = 0  # when this process claimed it, or renewed its claim
    due: list[str] = field(default_factory=list)  # the sinks that it is to be sent to now

    @property
    def event_id(self) -> str:
        """Its id."""
        return self.key[1]

    def is_sent_to(self, sink: str) -> bool:
        """Whether a sink has it."""
        return "sent_at" in self.sinks.get(sink, {})

    def next_attempt_at(self, sink: str) -> str:
        """Return when it may be sent to a sink; as text, the empty one being earliest."""
        return str(self.sinks.get(sink, {}).get("next_attempt_at", ""))


def read_events(keys: Sequence[Key]) -> list[EventItem]:
    """Read events that are undone, oldest first; one that cannot be read is set aside, and stops no other."""
    rows: list[dict[str, Any]] = []
    asked = list(dict.fromkeys(keys))  # one that is named twice is one
    for first in range(0, len(asked), READ_BATCH_MAX):
        rows += _read_rows(asked[first : first + READ_BATCH_MAX])
    found = [each for row in rows if (each := _read(row))]
    return sorted(found, key=lambda each: (each.created_at, each.key))


def _read_rows(keys: list[Key]) -> list[dict[str, Any]]:
    table = settings().outbox_table
    wanted = [{"owner_key": {"S": owner_key}, "item_id": {"S": item_id}} for owner_key, item_id in keys]
    rows: list[dict[str, Any]] = []
    while wanted:
        request = {table: {"Keys": wanted, "ConsistentRead": True}}
        answer = aws.client("dynamodb").batch_get_item(RequestItems=request)
        rows += answer["Responses"].get(table, [])
        # Large rows come in parts, and so do those that were throttled; the latter rest in the sweep's hands.
        left = answer.get("UnprocessedKeys", {}).get(table, {}).get("Keys", [])
        if len(left) == len(wanted):
            break
        wanted = left
    return rows


def _read(row: dict[str, Any]) -> EventItem | None:
    key = (row["owner_key"]["S"], row["item_id"]["S"])
    try:
        if row.get("status") != {"S": ItemStatus.UNDONE.value}:
            return None
        tenant, _ = split_key(key[0])
        item = ItemRow()
        item.deserialize(row)
        for instant in (item.created_at, item.due_at):
            clock.from_text(instant)
        return EventItem(
            key=key,
            tenant=tenant,
            body=body_of(item),
            bytes=len(item.body.encode()),
            sinks=_read_sinks(item.sinks),
            sends=int(item.sends),
            attempts=int(item.attempts),
            created_at=item.created_at,
            due_at=item.due_at,
            claimed_until=item.claimed_until,
            first_claimed_at=item.first_claimed_at,
        )
    except MalformedRowError as error:
        reason = error.message
    except (AttributeDeserializationError, TypeError, ValueError) as error:
        reason = f"event {key[0]}/{key[1]} cannot be read: {error}"
    set_aside(*key, reason)
    return None


def _read_sinks(text: str | None) -> dict[str, dict[str, Json]]:
    sinks = json.loads(text) if text else {}
    if not isinstance(sinks, dict) or not all(isinstance(each, dict) for each in sinks.values()):
        raise TypeError("its sinks are no object of objects")
    return sinks


def claim_events(items: Sequence[EventItem]) -> list[EventItem]:
    """Claim events for one send; returns those that nobody else has claimed or settled since they were read.

    The first claim of all leaves `due_at` where it was born, as the outbox does: one write without an index
    move. Every later one moves it to the claim's end, so that what is claimed fills no page of the sweep's.
    """
    at = clock.now()
    until = clock.to_text(at + settings().event_claim_seconds)
    moment = clock.to_text(at)
    updates = []
    for item in items:
        sets: dict[str, str | int] = {"sends": item.sends + 1, "claimed_until": until}
        if item.first_claimed_at is None:
            sets["first_claimed_at"] = moment
        if item.sends or item.due_at <= moment:
            sets["due_at"] = until
        updates.append(_update(item, sets))
    claimed = _take(items, updates, at)
    for item in claimed:
        item.sends += 1
        item.first_claimed_at = item.first_claimed_at or moment
    return claimed


def _take(items: Sequence[EventItem], updates: Sequence[RowUpdate], at: float) -> list[EventItem]:
    """Update each item's row; returns those that are held by that, from `at` on."""
    won = update_each(settings().outbox_table, updates)
    taken = [item for item, is_won in zip(items, won, strict=True) if is_won]
    for item in taken:
        item.claimed_at = at
    return taken


def renew_claims(items: Sequence[EventItem]) -> list[EventItem]:
    """Renew own claims; returns those that are still held."""
    at = clock.now()
    until = clock.to_text(at + settings().event_claim_seconds)
    updates = [_update(item, {"claimed_until": until, "due_at": until}) for item in items]
    return _take(items, updates, at)


def record_events(items: Sequence[EventItem], wanted: Sequence[str]) -> list[EventItem]:
    """Record what became of claimed events, as their `sinks` say; returns those that were still held.

    `wanted` names the sinks that an event goes to which names none itself. One that all have is done; one
    that goes on to another sink now stays claimed; any other is due at its next attempt.
    """
    at = clock.now()
    updates = [_record(item, sinks_of(item, wanted), at) for item in items]
    return _take(items, updates, at)


def _record(item: EventItem, wanted: Sequence[str], at: float) -> RowUpdate:
    sets: dict[str, str | int] = {"sinks": dumps(item.sinks)}
    undone = [name for name in wanted if not item.is_sent_to(name)]
    if item.attempts:
        sets["attempts"] = item.attempts
        errors = [
            f"{name}: {told['last_error']}" for name, told in item.sinks.items() if "last_error" in told
        ]
        sets["last_error"] = "; ".join(errors)
    if not undone:
        sets |= {
            "status": ItemStatus.DONE.value,
            "settled_at": clock.to_text(at),
            "ttl": int(at) + settings().event_retention_days * clock.DAY_SECONDS,
        }
        return _update(item, sets, ("due_at", "claimed_until"))
    if item.due:
        until = clock.to_text(at + settings().event_claim_seconds)
        return _update(item, sets | {"claimed_until": until, "due_at": until})
    sets["due_at"] = min(item.next_attempt_at(name) for name in undone) or clock.to_text(at)
    return _update(item, sets, ("claimed_until",))


def give_back(items: Sequence[EventItem]) -> None:
    """Give claims back that were not used: the events are due at once, and no attempt is counted."""
    moment = clock.to_text(clock.now())
    updates = [_update(item, {"due_at": moment}, ("claimed_until",)) for item in items]
    update_each(settings().outbox_table, updates)


def postpone_events(items: Sequence[EventItem], reason: str) -> None:
    """Leave events for later that nothing can be done with now.

    It counts `sends` up, as a claim does: the stream brings each change of an event that was never claimed.
    """
    later = clock.to_text(clock.now() + settings().event_delay_max_seconds)
    updates = [
        _update(item, {"sends": item.sends + 1, "due_at": later, "last_error": reason}) for item in items
    ]
    update_each(settings().outbox_table, updates)


def sinks_of(item: EventItem, deployed: Sequence[str]) -> list[str]:
    """Return the sinks that an event goes to: those that it names, else all that are deployed."""
    named = item.body.get("sinks")
    return list(named) if isinstance(named, list) else list(deployed)


def _update(item: EventItem, sets: dict[str, str | int], removes: tuple[str, ...] = ()) -> RowUpdate:
    return RowUpdate(
        key={"owner_key": item.key[0], "item_id": item.key[1]},
        sets=sets,
        removes=removes,
        expected={
            "status": ItemStatus.UNDONE.value,  # closes: all sinks have it, or it was set aside
            "sends": item.sends,  # closes: another deliverer has claimed it since
        },
    )
