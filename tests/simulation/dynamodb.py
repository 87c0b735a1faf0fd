"""DynamoDB at the boundary of its client: an in-memory model, one thread at a time, and fast.

It answers `client._make_api_call(operation, arguments)` for what the runtime asks, by AWS's published rules.
The contract in table_contract.py runs against this model, moto and the emulator alike. An index may lag
behind its table, as real ones do.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from botocore import xform_name
from botocore.exceptions import ClientError

from tests.partiql import execute_batch
from tests.simulation import dynamodb_expressions as expressions
from tests.simulation.dynamodb_expressions import InvalidExpressionError, Item, Typed

Key = tuple[str, str]
Arguments = dict[str, Any]
Change = Callable[[str, "Item | None", "Item | None"], None]  # table, before, after

ITEM_BYTES_MAX = 400 * 1024
TRANSACTION_BYTES_MAX = 4 * 1024 * 1024
TRANSACTION_ACTIONS_MAX = 100
BATCH_WRITES_MAX = 25
PAGE_BYTES_MAX = 1024 * 1024
TOKEN_SECONDS = 600  # how long a ClientRequestToken is remembered
_FAILED = "The conditional request failed"


def failed(code: str, message: str, operation: str, **more: Any) -> ClientError:
    """Return the error that botocore raises for an answer with this code."""
    return ClientError({"Error": {"Code": code, "Message": message}, **more}, operation)


def size_of(value: Any) -> int:
    """Return the bytes of an attribute's value, by AWS's rules (numbers and containers roughly)."""
    if isinstance(value, str):
        return len(value) if value.isascii() else len(value.encode())
    if isinstance(value, dict):
        return sum(size_of(key) + size_of(each) for key, each in value.items())
    if isinstance(value, list | tuple):
        return sum(1 + size_of(each) for each in value)
    return len(value) if isinstance(value, bytes) else 1


def item_size(item: Item) -> int:
    """Return the bytes of an item: names and values."""
    return sum(len(name.encode()) + size_of(next(iter(typed.values()))) for name, typed in item.items())


def sort_value(value: Typed) -> Any:
    """Return what a key is sorted by."""
    return Decimal(value["N"]) if "N" in value else value["S"].encode()


@dataclass
class Index:
    """A global secondary index that projects keys only, possibly behind its table."""

    hash_name: str
    range_name: str
    rows: dict[Key, Item] = field(default_factory=dict)  # as a query finds them
    current: dict[Key, Item] = field(default_factory=dict)  # as they will be once it has caught up
    coming: list[tuple[float, Key, Item | None]] = field(default_factory=list)

    def change(self, at: float, key: Key, projected: Item | None) -> None:
        """Hear of a change of the table."""
        self.coming.append((at, key, projected))
        _replace(self.current, key, projected)

    def catch_up(self, until: float) -> None:
        """Take in the changes made until then, in their order."""
        while self.coming and self.coming[0][0] <= until:
            _, key, projected = self.coming.pop(0)
            _replace(self.rows, key, projected)


def _replace(rows: dict[Key, Item], key: Key, item: Item | None) -> None:
    if item is None:
        rows.pop(key, None)
    else:
        rows[key] = item


@dataclass
class Table:
    """One table: rows by key, and its indexes by name."""

    name: str
    hash_name: str
    range_name: str
    indexes: dict[str, Index] = field(default_factory=dict)
    rows: dict[Key, Item] = field(default_factory=dict)
    partitions: dict[str, dict[str, Item]] = field(default_factory=dict)

    def key_of(self, item: Item) -> Key:
        """Return the key of an item; raises InvalidExpressionError if a part is missing or empty."""
        parts = []
        for name in (self.hash_name, self.range_name):
            text = item.get(name, {}).get("S")
            if not text:
                raise InvalidExpressionError(
                    "One or more parameter values were invalid: missing, empty or of another type: " + name
                )
            parts.append(text)
        return parts[0], parts[1]

    def store(self, key: Key, item: Item | None, at: float) -> None:
        """Put a row in place of whatever has its key, or remove it."""
        if item is None:
            self.rows.pop(key, None)
            self.partitions.get(key[0], {}).pop(key[1], None)
        else:
            self.rows[key] = item
            self.partitions.setdefault(key[0], {})[key[1]] = item
        for index in self.indexes.values():
            index.change(at, key, self._project(index, item))

    def _project(self, index: Index, item: Item | None) -> Item | None:
        if item is None or index.hash_name not in item or index.range_name not in item:
            return None
        names = {self.hash_name, self.range_name, index.hash_name, index.range_name}
        return {name: item[name] for name in names}


class DynamoDB:
    """All tables of the world. `now` gives the time; `on_change` hears of each change of a row."""

    _request_signer = None  # PynamoDB asks for it

    def __init__(
        self, tables: list[Table], *, now: Callable[[], float], on_change: Change | None = None
    ) -> None:
        self.tables = {each.name: each for each in tables}
        self.now = now
        self.on_change = on_change or (lambda table, before, after: None)
        self.index_lag_seconds: Callable[[], float] = lambda: 0.0
        self.tokens: dict[str, float] = {}

    def _make_api_call(self, operation: str, arguments: Arguments) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = getattr(self, f"_{xform_name(operation)}")(arguments)
        except InvalidExpressionError as error:
            raise failed("ValidationException", str(error), operation) from None
        return answer

    def __getattr__(self, name: str) -> Any:
        """Offer each operation by its name in boto3, as `put_item`."""
        if name.startswith("_") or not hasattr(type(self), f"_{name}"):
            raise AttributeError(name)
        operation = "".join(part.capitalize() for part in name.split("_"))
        return lambda **arguments: self._make_api_call(operation, arguments)

    def _table(self, arguments: Arguments, operation: str = "") -> Table:
        try:
            return self.tables[arguments["TableName"]]
        except KeyError:
            raise failed("ResourceNotFoundException", "Requested resource not found", operation) from None

    # --- reads ---

    def _get_item(self, arguments: Arguments) -> dict[str, Any]:
        table = self._table(arguments, "GetItem")
        found = table.rows.get(table.key_of(arguments["Key"]))
        return {} if found is None else {"Item": _projected(found, arguments)}

    def _batch_get_item(self, arguments: Arguments) -> dict[str, Any]:
        asked = arguments["RequestItems"]
        if sum(len(each["Keys"]) for each in asked.values()) > TRANSACTION_ACTIONS_MAX:
            raise InvalidExpressionError("Too many items requested for the BatchGetItem call")
        found: dict[str, list[Item]] = {}
        for name, each in asked.items():
            table = self._table({"TableName": name}, "BatchGetItem")
            rows = [table.rows.get(table.key_of(key)) for key in each["Keys"]]
            found[name] = [_projected(row, each) for row in rows if row is not None]
        return {"Responses": found, "UnprocessedKeys": {}}

    def _query(self, arguments: Arguments) -> dict[str, Any]:
        table = self._table(arguments, "Query")
        names, values = _given(arguments)
        matches = expressions.condition(arguments["KeyConditionExpression"])
        if "IndexName" in arguments:
            index = table.indexes[arguments["IndexName"]]
            if arguments.get("ConsistentRead"):
                raise InvalidExpressionError("Consistent reads are not supported on global secondary indexes")
            index.catch_up(self.now() - self.index_lag_seconds())
            rows, order = list(index.rows.values()), index.range_name
        else:
            rows, order = self._partition(table, arguments), table.range_name
        found = [row for row in rows if matches(row, names, values)]
        found.sort(key=lambda row: (sort_value(row[order]), *table.key_of(row)))
        if arguments.get("ScanIndexForward") is False:
            found.reverse()
        return self._page(table, found, arguments)

    def _partition(self, table: Table, arguments: Arguments) -> list[Item]:
        # Only partitions that the condition names are looked at; the condition itself still decides.
        named = {value.get("S", "") for value in arguments["ExpressionAttributeValues"].values()}
        return [row for name in sorted(named) for row in table.partitions.get(name, {}).values()]

    def _scan(self, arguments: Arguments) -> dict[str, Any]:
        table = self._table(arguments, "Scan")
        rows = [table.rows[key] for key in sorted(table.rows)]
        return self._page(table, rows, arguments)

    def _page(self, table: Table, rows: list[Item], arguments: Arguments) -> dict[str, Any]:
        """Cut a page out of all that was found: after the start key, by Limit, by bytes; then filter."""
        start = arguments.get("ExclusiveStartKey")
        if start is not None:
            after = table.key_of(start)
            keys = [table.key_of(row) for row in rows]
            if after in keys:
                rows = rows[keys.index(after) + 1 :]
        limit = arguments.get("Limit")
        page, size = [], 0
        for row in rows:
            if (limit is not None and len(page) == limit) or size > PAGE_BYTES_MAX:
                break
            page.append(row)
            size += item_size(row)
        answer: dict[str, Any] = {}
        # With a limit met exactly, DynamoDB gives a key to go on from, even if nothing follows.
        if page and (len(page) < len(rows) or len(page) == limit):
            index = table.indexes.get(arguments.get("IndexName", ""))
            names = [table.hash_name, table.range_name]
            names += [index.hash_name, index.range_name] if index else []
            answer["LastEvaluatedKey"] = {name: page[-1][name] for name in names}
        if "FilterExpression" in arguments:
            names_given, values = _given(arguments)
            keeps = expressions.condition(arguments["FilterExpression"])
            kept = [row for row in page if keeps(row, names_given, values)]
        else:
            kept = page
        items = [_projected(row, arguments) for row in kept]
        return {"Items": items, "Count": len(items), "ScannedCount": len(page), **answer}

    # --- writes ---

    def _batch_execute_statement(self, arguments: Arguments) -> dict[str, Any]:
        def key_names(name: str) -> tuple[str, str]:
            table = self._table({"TableName": name}, "BatchExecuteStatement")
            return table.hash_name, table.range_name

        def update_item(**given: Any) -> Any:
            return self._make_api_call("UpdateItem", given)

        try:
            return execute_batch(arguments["Statements"], update_item, key_names)
        except ValueError as error:
            raise InvalidExpressionError(str(error)) from None

    def _put_item(self, arguments: Arguments) -> dict[str, Any]:
        return self._write_one("PutItem", "Put", arguments)

    def _update_item(self, arguments: Arguments) -> dict[str, Any]:
        return self._write_one("UpdateItem", "Update", arguments)

    def _delete_item(self, arguments: Arguments) -> dict[str, Any]:
        return self._write_one("DeleteItem", "Delete", arguments)

    def _batch_write_item(self, arguments: Arguments) -> dict[str, Any]:
        writes = [(name, each) for name, some in arguments["RequestItems"].items() for each in some]
        if not 1 <= len(writes) <= BATCH_WRITES_MAX:
            raise InvalidExpressionError("Too many items requested for the BatchWriteItem call")
        for name, each in writes:
            kind, row = next(iter(each.items()))
            self._write_one("BatchWriteItem", kind.removesuffix("Request"), {"TableName": name, **row})
        return {"UnprocessedItems": {}}

    def _write_one(self, operation: str, kind: str, arguments: Arguments) -> dict[str, Any]:
        table = self._table(arguments, operation)
        key, before, after = self._plan(table, kind, arguments)
        if not _holds(arguments, before):
            shown = {"Item": before} if before is not None and _shows_item(arguments) else {}
            raise failed("ConditionalCheckFailedException", _FAILED, operation, **shown)
        self._store(table, key, before, after)
        returned = arguments.get("ReturnValues", "NONE")
        if returned == "ALL_NEW":
            return {"Attributes": dict(after or {})}
        return {"Attributes": dict(before)} if returned == "ALL_OLD" and before is not None else {}

    def _plan(self, table: Table, kind: str, arguments: Arguments) -> tuple[Key, Item | None, Item | None]:
        """Return (key, the row as it is, as it would become); conditions are not looked at."""
        _refuse_unused(arguments)
        key = table.key_of(arguments["Item"] if kind == "Put" else arguments["Key"])
        before = table.rows.get(key)
        if kind == "Put":
            after: Item | None = dict(arguments["Item"])
        elif kind == "Update":
            names, values = _given(arguments)
            text = arguments.get("UpdateExpression", "")
            base = before if before is not None else dict(arguments["Key"])
            # An update whose condition fails is refused as such, even if its operands make no sense either.
            after = expressions.apply_update(text, base, names, values) if _holds(arguments, before) else base
            if any(after.get(name) != base.get(name) for name in (table.hash_name, table.range_name)):
                raise InvalidExpressionError("Cannot update attribute: this attribute is part of the key")
        else:
            after = None if kind == "Delete" else before
        if after is not None and kind != "ConditionCheck":
            _refuse_unstorable(table, after)
        return key, before, after

    def _store(self, table: Table, key: Key, before: Item | None, after: Item | None) -> None:
        if before == after:
            return  # DynamoDB emits no stream record for a write that changes nothing
        table.store(key, after, self.now())
        self.on_change(table.name, before, after)

    def _transact_write_items(self, arguments: Arguments) -> dict[str, Any]:
        operation = "TransactWriteItems"
        token = arguments.get("ClientRequestToken")
        if token and self.now() - self.tokens.get(token, float("-inf")) < TOKEN_SECONDS:
            return {}  # applied already: the same request again changes nothing
        actions = [next(iter(each.items())) for each in arguments["TransactItems"]]
        if not 1 <= len(actions) <= TRANSACTION_ACTIONS_MAX:
            raise InvalidExpressionError(
                f"Member must have length less than or equal to {TRANSACTION_ACTIONS_MAX}"
            )
        plans = []
        for kind, each in actions:
            table = self._table(each, operation)
            plans.append((kind, each, table, *self._plan(table, kind, each)))
        if len({(table.name, key) for _, _, table, key, _, _ in plans}) < len(plans):
            raise InvalidExpressionError("Transaction request cannot include multiple operations on one item")
        if sum(item_size(after or before or {}) for *_, before, after in plans) > TRANSACTION_BYTES_MAX:
            raise InvalidExpressionError("Collection size is over the limit of 4194304 bytes")
        reasons = [_reason(each, before) for _, each, _, _, before, _ in plans]
        if any(reason["Code"] != "None" for reason in reasons):
            raise cancelled(reasons)
        for kind, _, table, key, before, after in plans:
            if kind != "ConditionCheck":
                self._store(table, key, before, after)
        if token:
            self.tokens[token] = self.now()
        return {}


def cancelled(reasons: list[dict[str, Any]]) -> ClientError:
    """Return the error of a cancelled transaction."""
    codes = ", ".join(reason["Code"] for reason in reasons)
    message = f"Transaction cancelled, please refer cancellation reasons for specific reasons [{codes}]"
    return failed("TransactionCanceledException", message, "TransactWriteItems", CancellationReasons=reasons)


def _reason(action: Arguments, before: Item | None) -> dict[str, Any]:
    if _holds(action, before):
        return {"Code": "None"}
    shown = {"Item": before} if before is not None and _shows_item(action) else {}
    return {"Code": "ConditionalCheckFailed", "Message": _FAILED, **shown}


def _given(arguments: Arguments) -> tuple[expressions.Names, expressions.Values]:
    return arguments.get("ExpressionAttributeNames", {}), arguments.get("ExpressionAttributeValues", {})


def _holds(arguments: Arguments, before: Item | None) -> bool:
    text = arguments.get("ConditionExpression")
    return text is None or expressions.condition(text)(before or {}, *_given(arguments))


def _shows_item(arguments: Arguments) -> bool:
    return bool(arguments.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD")


def _projected(row: Item, arguments: Arguments) -> Item:
    text = arguments.get("ProjectionExpression")
    if text is None:
        return dict(row)
    names = arguments.get("ExpressionAttributeNames", {})
    wanted = [expressions.resolve(each.strip(), names) for each in text.split(",")]
    return {name: row[name] for name in wanted if name in row}


def _refuse_unused(arguments: Arguments) -> None:
    names, values = _given(arguments)
    used = expressions.placeholders(arguments.get("ConditionExpression"), arguments.get("UpdateExpression"))
    for given in (names, values):
        if unused := given.keys() - used:
            raise InvalidExpressionError(f"unused in expressions: keys: {sorted(unused)}")


def _refuse_unstorable(table: Table, item: Item) -> None:
    if item_size(item) > ITEM_BYTES_MAX:
        raise InvalidExpressionError("Item size has exceeded the maximum allowed size")
    for index in table.indexes.values():
        for name in (index.hash_name, index.range_name):
            if name in item and item[name] in ({"S": ""}, {"NULL": True}):
                raise InvalidExpressionError(f"an index key must not be empty: {name}")
