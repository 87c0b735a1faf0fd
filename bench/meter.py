"""The meter: sees every request that the runtime's own clients make, and says what AWS would count for it.

It hangs on botocore's events, so it meets the requests as they are. What stood in the table before and after
is read through a client of its own, which it does not count.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from bench.units import Index, Item, index_units, read_units, size_of, write_units
from tests.partiql import to_update

WRITES = {"PutItem": "Put", "UpdateItem": "Update", "DeleteItem": "Delete"}


@dataclass(frozen=True)
class Table:
    """A table's key, and its indexes."""

    key: tuple[str, ...]
    indexes: tuple[Index, ...]


@dataclass
class Request:
    """One request, and what it consumed."""

    function: str  # that made it
    operation: str
    table_units: int = 0  # write units of tables, doubled if transactional
    index_units: int = 0
    read_units: float = 0
    revisions: list[int] = field(default_factory=list)  # log positions that it put
    reasons: list[str] = field(default_factory=list)

    @property
    def write_units(self) -> int:
        """Units of tables and indexes together."""
        return self.table_units + self.index_units


@dataclass
class _Write:
    action: str
    table: str
    key: Item
    old: Item | None
    attempted: Item | None  # a put's item: counted even if its condition fails


class Meter:
    """Counts requests; `on_insert` hears of each new item, as a stream would."""

    def __init__(
        self,
        tables: dict[str, Table],
        read: Callable[[str, Item], Item | None],
        on_insert: Callable[..., None],
    ) -> None:
        self.tables = tables
        self.read = read
        self.on_insert = on_insert
        self.function = ""
        self.requests: list[Request] = []

    def watch(self, client: Any) -> None:
        """Count what a client sends from now on."""
        service = client.meta.service_model.service_name
        client.meta.events.register(f"before-parameter-build.{service}", self._before)
        client.meta.events.register(f"after-call.{service}", self._after)

    def _before(self, params: dict[str, Any], model: Any, context: dict[str, Any], **_: Any) -> None:
        context["bench.params"] = params
        context["bench.writes"] = self._read_writes(model.name, params)

    def _after(self, parsed: dict[str, Any], model: Any, context: dict[str, Any], **_: Any) -> None:
        request = Request(self.function, model.name)
        self.requests.append(request)
        params, writes = context["bench.params"], context["bench.writes"]
        failed = "Error" in parsed
        for write in writes:
            self._count_write(request, write, failed=failed)
        if model.name in ("GetItem", "Query"):
            self._count_read(request, params, parsed)
        elif model.name == "BatchGetItem":
            self._count_batch(request, params, parsed)
        elif not writes and model.service_model.service_name == "dynamodb":
            raise NotImplementedError(f"the benchmark cannot count {model.name} yet")

    def _read_writes(self, operation: str, params: dict[str, Any]) -> list[_Write]:
        if operation in WRITES:
            actions = [(WRITES[operation], params)]
        elif operation == "TransactWriteItems":
            actions = [next(iter(each.items())) for each in params["TransactItems"]]
        elif operation == "BatchExecuteStatement":
            actions = [("Update", self._read_statement(each)) for each in params["Statements"]]
        elif operation == "BatchWriteItem":
            actions = [
                (kind.removesuffix("Request"), {"TableName": table, **given})
                for table, some in params["RequestItems"].items()
                for each in some
                for kind, given in each.items()
            ]
        else:
            return []
        writes = []
        for action, each in actions:
            table = each["TableName"]
            key = each.get("Key") or {name: each["Item"][name] for name in self.tables[table].key}
            writes.append(_Write(action, table, key, self.read(table, key), each.get("Item")))
        return writes

    def _read_statement(self, statement: dict[str, Any]) -> dict[str, Any]:
        table = statement["Statement"].split('"')[1]
        return to_update(statement, self.tables[table].key)

    def _count_batch(self, request: Request, params: dict[str, Any], parsed: dict[str, Any]) -> None:
        # Each item is rounded by itself.
        for table, asked in params["RequestItems"].items():
            items = parsed["Responses"].get(table, [])
            consistent = bool(asked.get("ConsistentRead"))
            request.read_units += sum(read_units([item], consistent=consistent) for item in items)
            request.reasons.append(f"{len(items)} items {sum(map(size_of, items))} B")

    def _count_write(self, request: Request, write: _Write, *, failed: bool) -> None:
        transactional = request.operation == "TransactWriteItems"
        new = self.read(write.table, write.key)
        units = write_units(write.old, write.attempted or new, transactional=transactional)
        request.table_units += units
        told, moves = f"{units}", []
        if not failed:
            for index in self.tables[write.table].indexes:
                if count := index_units(index, write.old, new):
                    request.index_units += count
                    moves.append(index.name if count == 1 else f"{index.name} x{count}")
        size = max(size_of(write.old), size_of(write.attempted or new))
        told += f"+{len(moves)} ({', '.join(moves)})" if moves else ""
        request.reasons.append(f"{write.action.lower()} {_row_name(write.key, new)} {size} B: {told}")
        if failed:
            request.reasons.append("condition failed")
            return
        row = write.key.get("row", {}).get("S", "")
        if row.startswith("revision#"):
            request.revisions.append(int(row.partition("#")[2]))
        if write.old is None and new is not None:
            self.on_insert(write.table, write.key, new)

    def _count_read(self, request: Request, params: dict[str, Any], parsed: dict[str, Any]) -> None:
        if "FilterExpression" in params:
            raise NotImplementedError("what a filter leaves out is counted, too, and was not read")
        items = [parsed.get("Item")] if request.operation == "GetItem" else parsed.get("Items", [])
        if "ProjectionExpression" in params:  # items are counted whole
            table = params["TableName"]
            keys = self.tables[table].key
            items = [self.read(table, {name: each[name] for name in keys}) for each in items]
        request.read_units = read_units(items, consistent=bool(params.get("ConsistentRead")))
        name = _row_name(params["Key"], items[0]) if "Key" in params else _query_name(params)
        request.reasons.append(f"{name} {sum(map(size_of, items))} B")


def _row_name(key: Item, item: Item | None) -> str:
    """Name a row by its kind, leaving ids out: `revision#3`, `head`, `item (start)`."""
    if "row" in key:
        kind, _, rest = key["row"]["S"].partition("#")
        return f"{kind}#{int(rest)}" if rest.isdecimal() else kind
    command = (item or {}).get("command", {}).get("S", "?")
    return f"item ({command})"


def _query_name(params: dict[str, Any]) -> str:
    return f"index {params['IndexName']}" if "IndexName" in params else "published version"
