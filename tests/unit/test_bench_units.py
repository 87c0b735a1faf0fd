"""The published examples of what DynamoDB requests consume; bench/units.py names the pages."""

import pytest

from bench.units import Index, index_units, read_units, size_of, write_units

DUE = Index("due", ("shard", "due_at"), ("key", "row"))


def item(bytes_: int) -> dict:
    return {"a": {"S": "x" * (bytes_ - 1)}} if bytes_ else {}


def row(**values: str) -> dict:
    return {name: {"S": value} for name, value in {"key": "k", "row": "r", **values}.items()}


@pytest.mark.parametrize(
    ("value", "bytes_"),
    [
        ({"S": "abc"}, 3),
        ({"S": "é"}, 2),  # bytes of UTF-8, not characters
        ({"S": ""}, 0),
        ({"N": "1"}, 2),
        ({"N": "27"}, 2),
        ({"N": "-27"}, 3),
        ({"N": "461"}, 3),
        ({"N": "5500"}, 2),  # trailing zeroes are trimmed
        ({"N": "0.0055"}, 2),  # leading ones, too
        ({"N": "1e10"}, 2),
        ({"N": "0"}, 1),
        ({"B": b"1234"}, 4),
        ({"BOOL": False}, 1),
        ({"NULL": True}, 1),
        ({"L": []}, 3),
        ({"M": {}}, 3),
        ({"L": [{"S": "ab"}, {"N": "1"}]}, 3 + 1 + 2 + 1 + 2),
        ({"M": {"ab": {"S": "cde"}}}, 3 + 1 + 2 + 3),
        ({"SS": ["a", "bc"]}, 3),
        ({"NS": ["1", "22"]}, 4),
        ({"BS": [b"a", b"bc"]}, 3),
    ],
)
def test_a_value_takes_its_bytes_and_the_overhead_of_its_type(value, bytes_):
    assert size_of({"name": value}) == len("name") + bytes_


def test_an_unknown_type_is_refused():
    with pytest.raises(ValueError, match="unknown attribute type 'X'"):
        size_of({"a": {"X": 1}})


@pytest.mark.parametrize(
    ("bytes_", "consistent", "transactional", "units"),
    [
        (8 * 1024, True, False, 2),
        (8 * 1024, False, False, 1),
        (8 * 1024, False, True, 4),
        (3.5 * 1024, True, False, 1),
        (10 * 1024, True, False, 3),
        (0, True, False, 1),  # nothing found consumes, too
        (0, False, False, 0.5),
    ],
)
def test_a_read_takes_a_unit_per_4_kb_half_of_it_eventually_twice_in_a_transaction(
    bytes_, consistent, transactional, units
):
    assert read_units([item(int(bytes_))], consistent=consistent, transactional=transactional) == units


def test_a_query_rounds_the_sum_of_its_items():
    # 500 items of 64 bytes are 31.25 KB: eight units, not five hundred.
    assert read_units([item(64)] * 500, consistent=True) == 8
    assert read_units([], consistent=False) == 0.5


@pytest.mark.parametrize(
    ("old", "new", "transactional", "units"),
    [
        (None, 1024, False, 1),
        (None, 3 * 1024, False, 3),
        (None, 3 * 1024, True, 6),
        (None, 512, False, 1),
        (None, 1025, True, 4),  # rounded first, doubled then
        (2 * 1024, 1024, False, 2),  # an update or overwrite counts the larger of both
        (1024, 2 * 1024, False, 2),
        (3 * 1024, None, True, 6),  # a delete counts what it removes
        (None, None, False, 1),  # of nothing: a unit all the same
    ],
)
def test_a_write_takes_a_unit_per_kb_twice_in_a_transaction(old, new, transactional, units):
    before = None if old is None else item(old)
    after = None if new is None else item(new)
    assert write_units(before, after, transactional=transactional) == units


@pytest.mark.parametrize(
    ("old", "new", "units"),
    [
        (None, row(shard="1", due_at="t1"), 1),  # put into the index
        (None, row(shard="1"), 0),  # lacks a key attribute: not in the index
        (row(shard="1"), row(shard="1", due_at="t1"), 1),  # gains it
        (row(shard="1", due_at="t1"), row(shard="1", due_at="t2"), 2),  # removed, and put again
        (row(shard="1", due_at="t1"), row(shard="1"), 1),  # loses it
        (row(shard="1", due_at="t1"), None, 1),  # deleted
        (row(shard="1"), None, 0),
        (row(shard="1", due_at="t1"), row(shard="1", due_at="t1", status="done"), 0),  # not projected
        (row(shard="1", due_at="t1"), row(shard="1", due_at="t1"), 0),
    ],
)
def test_an_index_takes_units_only_for_what_changes_in_it(old, new, units):
    assert index_units(DUE, old, new) == units
