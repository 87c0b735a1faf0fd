"""Events from your own transactions: stored with your data in one DynamoDB transaction, or not at all.

For any Python code: needs boto3 (or PynamoDB) and no deployment of the runtime beside it. Whoever dies after
the commit, the runtime that owns the outbox table tells every sink of the event, at least once, under its id.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from aftercommit import clock, schema
from aftercommit.errors import EventExistsError, EventRefusedError, InputRefusedError
from aftercommit.ids import EVENT_OWNER, derive_event_owner, derive_shard, new_event_id
from aftercommit.jsons import Json, dumps
from aftercommit.limits import (
    EVENT_BYTES_MAX,
    EVENT_CHARACTERS_MAX,
    EVENT_SESSIONS_MAX,
    EVENT_SHARDS,
    NAME_CHARACTERS_MAX,
    TRANSACTION_ACTIONS_MAX,
    TRANSACTION_BYTES_MAX,
)
from aftercommit.statuses import ItemCommand, ItemStatus

if TYPE_CHECKING:
    from pynamodb.transactions import TransactWrite

__all__ = [
    "Event",
    "EventExistsError",
    "EventRefusedError",
    "add_event",
    "event_put",
    "read_event",
    "telling",
]

TABLE_VARIABLE = "AFTERCOMMIT_OUTBOX_TABLE"
# Receivers keep names that begin so to themselves.
_RESERVED = ("aftercommit/", "aws.", "inngest/")
_TENANT = re.compile(r"[a-z0-9-]{1,64}")
_SECONDS_MAX = 10**11  # in which milliseconds would be mistaken for seconds
# The sweep takes an event over when the stream has had this long. Writers know no settings.
_HEAD_START_SECONDS = 10
# A row past its time is as good as gone, though DynamoDB removes it late.
_ABSENT = "attribute_not_exists(owner_key) OR #ttl < :now"


@dataclass(frozen=True, kw_only=True)
class Event:
    """Something that has happened, to be told to the sinks that the runtime is deployed with.

    `id` is drawn if none is given; give one to make a second announcement of the same thing fail. `timestamp`
    is when it happened (seconds since the epoch), the time of adding if none is given. `sessions` (id by key)
    are never taken from anywhere else. `payload` and `correlation_id` are what workflows match it by.
    """

    name: str = field(kw_only=False)
    data: dict[str, Json] = field(kw_only=False)
    id: str = ""
    user: dict[str, Json] | None = None
    version: str | None = None
    timestamp: float | None = None
    sessions: dict[str, str] | None = None
    tenant: str = "default"
    payload: dict[str, Json] | None = None
    correlation_id: str | None = None

    def __post_init__(self) -> None:
        """Draw the id, so that it is known before the event is added."""
        if not self.id:
            object.__setattr__(self, "id", new_event_id(clock.now()))


def add_event(transaction: "TransactWrite", event: Event, *, table: str | None = None) -> str:
    """Add an event to a PynamoDB transaction; returns its id.

    `table`: the outbox table of the runtime, else the variable AFTERCOMMIT_OUTBOX_TABLE. Raises
    EventRefusedError naming what cannot be stored, or which limit of the transaction is passed.
    """
    item = _item_of(event)
    kinds = ("_put_items", "_update_items", "_delete_items", "_condition_check_items")
    actions = [each for kind in kinds for each in getattr(transaction, kind)]
    _check_transaction([*actions, {"Item": item}])
    model = _model(_table(table))
    row = model()
    row.attribute_values.update({name: _plain(value) for name, value in item.items()})
    condition = model.owner_key.does_not_exist() | (model.ttl < int(clock.now()))
    transaction.save(row, condition=condition, return_values="ALL_OLD")
    return event.id


def event_put(
    event: Event, *, table: str | None = None, actions: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    """Return the entry of an event for the `TransactItems` of a boto3 client; its id is `event.id`.

    `actions`: the entries that are there already, to be checked with it. Raises as `add_event` does.
    """
    item = _item_of(event)
    _check_transaction([*(next(iter(each.values())) for each in actions), {"Item": item}])
    put = {
        "TableName": _table(table),
        "Item": item,
        "ConditionExpression": _ABSENT,
        "ExpressionAttributeNames": {"#ttl": "ttl"},
        "ExpressionAttributeValues": {":now": {"N": str(int(clock.now()))}},
        # By the row that is there, `telling` knows that it was the event which failed the transaction.
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
    return {"Put": put}


@contextmanager
def telling() -> Iterator[None]:
    """Around a transaction: one that failed because an event's id exists raises EventExistsError."""
    try:
        yield
    except Exception as error:
        if event_id := _find_existing(error):
            raise EventExistsError(event_id) from error
        raise


def read_event(item: Mapping[str, Any]) -> dict[str, Json]:
    """Return the event of a stored row, as DynamoDB gives it ({"body": {"S": ...}}), as sinks get it."""
    import json  # noqa: PLC0415 - for tests that read rows; writers need it not

    return envelope(json.loads(item["body"]["S"]))


def envelope(body: dict[str, Json]) -> dict[str, Json]:
    """Return what sinks are told of an event: all but what is for workflows and for delivery."""
    return {name: body[name] for name in ("id", "name", "data", "user", "v", "ts", "meta") if name in body}


def _find_existing(error: Exception) -> str | None:
    """Return the id of the event that a cancelled transaction has met, of boto3 or of PynamoDB."""
    reasons = [each.raw_item for each in getattr(error, "cancellation_reasons", ()) if each]
    response = getattr(error, "response", None) or {}
    reasons += [each.get("Item") for each in response.get("CancellationReasons", ())]
    for item in reasons:
        owner_id = (item or {}).get("owner_id", {}).get("S", "")
        if owner_id.startswith(EVENT_OWNER):
            return str(item["item_id"]["S"])
    return None


def _table(given: str | None) -> str:
    table = given or os.environ.get(TABLE_VARIABLE)
    if not table:
        raise EventRefusedError(f"no table: give one, or set {TABLE_VARIABLE}", field="table")
    return table


def _item_of(event: Event) -> dict[str, dict[str, str]]:
    """Check an event, and return its row in DynamoDB's form."""
    _check(event)
    at = clock.now()
    happened_at = at if event.timestamp is None else event.timestamp
    body = {
        "id": event.id,
        "name": event.name,
        "data": event.data,
        "ts": int(happened_at * 1000),
        "user": event.user,
        "v": event.version,
        "meta": {"sessions": event.sessions} if event.sessions else None,
        "payload": event.payload,
        "correlation_id": event.correlation_id,
    }
    try:
        text = dumps({name: value for name, value in body.items() if value is not None})
    except (TypeError, ValueError, RecursionError) as error:
        raise EventRefusedError(f"cannot be written as JSON: {error}", field="data") from None
    if (size := len(text.encode())) > EVENT_BYTES_MAX:
        raise EventRefusedError(
            f"the event has {size} bytes as JSON; sinks take {EVENT_BYTES_MAX}", field="data"
        )
    owner_id = derive_event_owner(event.id)
    moment = clock.to_text(at)
    return {
        "owner_key": {"S": f"{event.tenant}#{owner_id}"},
        "item_id": {"S": event.id},
        "tenant": {"S": event.tenant},
        "owner_id": {"S": owner_id},
        "command": {"S": ItemCommand.EVENT.value},
        "status": {"S": ItemStatus.UNDONE.value},
        "body": {"S": text},
        "attempts": {"N": "0"},
        "sends": {"N": "0"},
        "generation": {"N": "1"},
        "due_shard": {"N": str(EVENT_SHARDS[derive_shard(event.id, len(EVENT_SHARDS))])},
        "due_at": {"S": clock.to_text(at + _HEAD_START_SECONDS)},
        "created_at": {"S": moment},
    }


def _check(event: Event) -> None:
    for name, text in (("id", event.id), ("name", event.name), ("version", event.version)):
        if text is not None:
            _check_text(name, text, EVENT_CHARACTERS_MAX)
    if event.name.startswith(_RESERVED):
        raise EventRefusedError(f"is reserved: it begins with one of {', '.join(_RESERVED)}", field="name")
    if event.correlation_id is not None:
        _check_text("correlation_id", event.correlation_id, NAME_CHARACTERS_MAX)
    _check_text("tenant", event.tenant, NAME_CHARACTERS_MAX)
    if not _TENANT.fullmatch(event.tenant):
        raise EventRefusedError("has 1 to 64 lower-case letters, digits or '-'", field="tenant")
    at: Any = event.timestamp
    if at is not None and (
        isinstance(at, bool) or not isinstance(at, int | float) or not 0 <= at < _SECONDS_MAX
    ):
        raise EventRefusedError("must be seconds since the epoch", field="timestamp")
    _check_object("data", event.data)
    for name, value in (("user", event.user), ("payload", event.payload), ("sessions", event.sessions)):
        if value is not None:
            _check_object(name, value)
    sessions = event.sessions or {}
    if len(sessions) > EVENT_SESSIONS_MAX or not all(isinstance(each, str) for each in sessions.values()):
        raise EventRefusedError(f"must be at most {EVENT_SESSIONS_MAX} texts by key", field="sessions")


def _check_text(name: str, text: Any, longest: int) -> None:
    if not isinstance(text, str) or not 1 <= len(text) <= longest:
        raise EventRefusedError(f"must be a text of 1 to {longest} characters", field=name)
    _check_storable(name, text)


def _check_object(name: str, value: Any) -> None:
    if not isinstance(value, dict):
        raise EventRefusedError(f"must be an object, not {type(value).__name__}", field=name)
    _check_storable(name, value)


def _check_storable(name: str, value: Json) -> None:
    try:
        schema.check_storable(value, name)
    except InputRefusedError as error:
        raise EventRefusedError(error.message, field=error.field) from None


def _check_transaction(actions: Sequence[Mapping[str, Any]]) -> None:
    """Check what DynamoDB would refuse of a transaction whose last action puts an event."""
    if len(actions) > TRANSACTION_ACTIONS_MAX:
        raise EventRefusedError(
            f"a transaction has at most {TRANSACTION_ACTIONS_MAX} actions", field="transaction"
        )
    items = [each["Item"] for each in actions if "Item" in each]
    if sum(map(_size_of, items)) > TRANSACTION_BYTES_MAX:
        raise EventRefusedError(
            f"a transaction has at most {TRANSACTION_BYTES_MAX} bytes", field="transaction"
        )
    added = items[-1]
    if any(each.get("owner_key") == added["owner_key"] for each in items[:-1]):
        raise EventRefusedError("another event of this id is in the transaction", field="id")


def _size_of(item: Any) -> int:
    """Return the bytes of an item in DynamoDB's form, roughly for what is neither text nor bytes."""
    if isinstance(item, dict):
        return sum(len(name.encode()) + _size_of(value) for name, value in item.items())
    if isinstance(item, list | tuple | set):
        return sum(map(_size_of, item))
    return len(item.encode() if isinstance(item, str) else item) if isinstance(item, str | bytes) else 1


def _plain(value: dict[str, str]) -> str | int:
    return int(value["N"]) if "N" in value else value["S"]


@cache
def _model(table: str) -> Any:
    """Return the PynamoDB model of an event's row, as far as a writer writes it."""
    from pynamodb.attributes import NumberAttribute, UnicodeAttribute  # noqa: PLC0415 - boto3's users need none
    from pynamodb.models import Model  # noqa: PLC0415

    names = {"owner_key": True, "item_id": False}
    texts = ("tenant", "owner_id", "command", "status", "body", "due_at", "created_at")
    attributes: dict[str, Any] = {
        **{name: UnicodeAttribute(hash_key=first, range_key=not first) for name, first in names.items()},
        **{name: UnicodeAttribute() for name in texts},
        **{name: NumberAttribute() for name in ("attempts", "sends", "generation", "due_shard")},
        "ttl": NumberAttribute(null=True),
    }
    meta = type("Meta", (), {"table_name": table})
    return type("EventItem", (Model,), {"Meta": meta, "__module__": __name__, **attributes})
