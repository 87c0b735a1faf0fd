"""DynamoDB's published rules for what a request consumes, as pure functions.

Sources, all at https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ :
sizes        CapacityUnitCalculations.html
reads        read-write-operations.html (4 KB a unit, half if eventually consistent; a query rounds its sum)
writes       read-write-operations.html (1 KB a unit, twice in a transaction; updates and overwrites count
             the larger of before and after; a failed condition consumes too)
indexes      GSI.html, "Write capacity units" (put 1, remove 1, key change 2, changed projection 1, else 0)
That a transaction doubles the table's share only, never the indexes', is not on those pages. It was
measured on AWS by the authors of https://github.com/paritysuite/dynamodb-conformance (pull request 137) and
https://github.com/nubo-db/dynoxide (pull request 188).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil
from typing import Any

AttributeValue = dict[str, Any]  # as on the wire: {"S": "text"}, {"N": "1"}, ...
Item = dict[str, AttributeValue]

WRITE_UNIT_BYTES = 1024
READ_UNIT_BYTES = 4096


@dataclass(frozen=True)
class Index:
    """A global secondary index with the projection KEYS_ONLY: its own key, and its table's."""

    name: str
    key: tuple[str, ...]
    table_key: tuple[str, ...]

    def entry(self, item: Item | None) -> Item | None:
        """Return what the index holds of an item: nothing if the item lacks one of the index's attributes."""
        if item is None or any(name not in item for name in self.key):
            return None
        return {name: item[name] for name in (*self.key, *self.table_key)}


def size_of(item: Item | None) -> int:
    """Return the bytes of an item: names and values."""
    return sum(len(name.encode()) + _size_of_value(value) for name, value in (item or {}).items())


def _size_of_value(value: AttributeValue) -> int:  # noqa: PLR0911 - one per type
    ((kind, content),) = value.items()
    match kind:
        case "S":
            return len(content.encode())
        case "N":
            return _size_of_number(content)
        case "B":
            return len(content)
        case "BOOL" | "NULL":
            return 1
        case "L":
            return 3 + sum(1 + _size_of_value(each) for each in content)
        case "M":
            return 3 + sum(1 + len(name.encode()) + _size_of_value(each) for name, each in content.items())
        case "SS":
            return sum(len(each.encode()) for each in content)
        case "NS":
            return sum(_size_of_number(each) for each in content)
        case "BS":
            return sum(len(each) for each in content)
    raise ValueError(f"unknown attribute type {kind!r}")


def _size_of_number(text: str) -> int:
    """One byte per two significant digits, and one more; the sign of a negative number takes another."""
    digits = text.lower().partition("e")[0].lstrip("+-").replace(".", "").strip("0")
    return ceil(len(digits) / 2) + 1 + text.startswith("-")


def write_units(old: Item | None, new: Item | None, *, transactional: bool = False) -> int:
    """Return the table's share of a write that turns `old` into `new` (None: no item)."""
    units = max(1, ceil(max(size_of(old), size_of(new)) / WRITE_UNIT_BYTES))
    return 2 * units if transactional else units


def index_units(index: Index, old: Item | None, new: Item | None) -> int:
    """Return an index's share of a write; the same inside a transaction as outside."""
    before, after = index.entry(old), index.entry(new)
    if before == after:
        return 0
    if before is None or after is None:
        return _units_of_entry(before or after)
    if any(before[name] != after[name] for name in index.key):
        return _units_of_entry(before) + _units_of_entry(after)
    return max(_units_of_entry(before), _units_of_entry(after))


def _units_of_entry(entry: Item | None) -> int:
    return max(1, ceil(size_of(entry) / WRITE_UNIT_BYTES))


def read_units(
    items: Iterable[Item | None], *, consistent: bool = False, transactional: bool = False
) -> float:
    """Return what it takes to read one item, or a page of a query, whose sizes are summed before rounding."""
    units = max(1, ceil(sum(size_of(item) for item in items) / READ_UNIT_BYTES))
    if transactional:
        return 2.0 * units
    return float(units) if consistent else units / 2
