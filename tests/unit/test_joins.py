"""Joins by themselves: what a tally comes to, and what a parent is told, bounded."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercommit.ids import derive_child_id, join_name, part_name
from aftercommit.joins import (
    End,
    HandOver,
    Tally,
    add_indexes,
    compose_batch,
    compose_result,
    judge,
    read_indexes,
)
from aftercommit.jsons import size_of
from aftercommit.limits import BATCH_BYTES_MAX, BULK_CHILDREN_MAX, BULK_OUTPUTS_BYTES_MAX
from aftercommit.statuses import Outcome

BODY = {"join_id": "j", "total": 4, "rows": 1, "tolerated": 0, "outputs": True}
HANDLING = {**BODY, "handlers": ["each_completed", "each_faulted"], "batch_max": 2}
COMPLETED, FAULTED = Outcome.COMPLETED, Outcome.FAULTED


def tally_of(completed=(), faulted=(), cancelled=(), dispatch_failed=()):
    tally = Tally()
    tally.add("Completed", completed)
    tally.add("Faulted", faulted)
    tally.add("Cancelled", cancelled)
    tally.add("DispatchFailed", dispatch_failed)
    return tally


@pytest.mark.parametrize(
    ("tolerated", "tally", "verdict"),
    [
        (0, tally_of(), None),
        (0, tally_of([0, 1, 2]), None),
        (0, tally_of([0, 1, 2, 3]), End(COMPLETED)),
        (0, tally_of([0], faulted=[2]), End(FAULTED)),
        (1, tally_of([0], faulted=[2]), None),
        (1, tally_of([0, 1, 3], faulted=[2]), End(COMPLETED)),
        (1, tally_of(cancelled=[1], dispatch_failed=[2]), End(FAULTED)),
        (2, tally_of([0], [1], [2]), None),
        (3, tally_of([0], [1], [2], [3]), End(COMPLETED)),
        (4, tally_of(faulted=[0, 1, 2, 3]), End(COMPLETED)),
    ],
)
def test_a_join_ends_when_all_have_ended_or_too_many_have_failed(tolerated, tally, verdict):
    assert judge({**BODY, "tolerated": tolerated}, tally) == verdict


def test_c22_a_child_told_of_twice_is_counted_once():
    tally = tally_of([0, 1])
    tally.add("Completed", [1])
    assert len(tally.all) == 2


@pytest.mark.parametrize(
    ("handed", "tally", "verdict"),
    [
        ([], tally_of([3, 0, 1]), HandOver("each_completed", [0, 1], exceeded=False)),
        ([0, 1], tally_of([3, 0, 1]), HandOver("each_completed", [3], exceeded=False)),
        ([0], tally_of([0], [2]), HandOver("each_faulted", [2], exceeded=True)),
        ([0], tally_of([0], cancelled=[2]), HandOver("each_faulted", [2], exceeded=True)),
        ([0, 2], tally_of([0], [2]), End(FAULTED)),
        ([0, 1], tally_of([0, 1]), None),
        ([0, 1, 2, 3], tally_of([0, 1, 2, 3]), End(COMPLETED)),
    ],
)
def test_what_has_ended_is_handed_over_before_the_end(handed, tally, verdict):
    assert judge({**HANDLING, "handed": add_indexes("0", handed)}, tally) == verdict


def test_only_what_has_a_handler_is_handed_over():
    assert judge({**HANDLING, "handlers": ["each_faulted"]}, tally_of([0, 1])) is None


def test_children_of_a_batch_are_near_to_each_other():
    body = {**HANDLING, "total": 10_000, "batch_max": 100}
    assert judge(body, tally_of([5, 900, 1_005, 9_000])).indexes == [5, 900]


@given(st.sets(st.integers(0, BULK_CHILDREN_MAX)), st.sets(st.integers(0, BULK_CHILDREN_MAX)))
def test_indexes_survive_being_written(first, more):
    assert read_indexes(add_indexes(add_indexes("0", first), more)) == first | more


def test_all_indexes_take_little_room():
    assert len(add_indexes("0", range(BULK_CHILDREN_MAX))) <= 2_500


def test_ids_of_joins_stand_apart_from_those_of_children():
    assert part_name("j", 0) <= part_name("j", BULK_CHILDREN_MAX) < join_name("j", 0)


# --- what the parent is told ---


def test_outputs_come_in_the_order_of_items_and_endings_are_told_apart():
    body = {**BODY, "total": 5}
    tally = tally_of([4, 0], [1], [2], [3])
    failure = json.dumps({"type": "E", "message": "no"})
    marks = {
        0: ("Completed", '{"n":1}'),
        1: ("Faulted", failure),
        2: ("Cancelled", failure),
        3: ("DispatchFailed", failure),
        4: ("Completed", "null"),
    }
    told = compose_result(body, tally, marks)
    assert {name: told[name] for name in ("completed", "faulted", "cancelled", "dispatch_failed")} == {
        "completed": 2,
        "faulted": 1,
        "cancelled": 1,
        "dispatch_failed": 1,
    }
    assert told["outputs"] == [{"n": 1}, None, None, None, None]
    assert [(each["index"], each["outcome"]) for each in told["failures"]] == [
        (1, "Faulted"),
        (2, "Cancelled"),
        (3, "DispatchFailed"),
    ]
    assert told["failures"][0]["error"] == {"type": "E", "message": "no"}
    assert "left_out" not in told
    assert "unfinished" not in told


def test_what_runs_on_is_told_as_unfinished():
    assert compose_result(BODY, tally_of([0], [1]), {})["unfinished"] == 2


def test_without_a_result_variable_no_outputs_are_told():
    told = compose_result({**BODY, "outputs": False}, tally_of([0, 1, 2, 3]), {})
    assert told == {"total": 4, "completed": 4, "faulted": 0, "cancelled": 0, "dispatch_failed": 0}


def test_an_output_that_was_too_large_is_null_and_linked():
    marks = {0: ("Completed", "1"), 1: ("Completed", None), 2: ("Completed", "3"), 3: ("Completed", "4")}
    told = compose_result(BODY, tally_of([0, 1, 2, 3]), marks)
    assert told["outputs"] == [1, None, 3, 4]
    assert told["left_out"] == [{"index": 1, "instance_id": derive_child_id("j-00001")}]


def test_outputs_that_are_too_large_together_are_left_out_from_there_on():
    text = json.dumps("x" * 4_000)
    total = 10_000
    marks = dict.fromkeys(range(total), ("Completed", text))
    told = compose_result({**BODY, "total": total}, tally_of(range(total)), marks)
    given = [each for each in told["outputs"] if each is not None]
    assert len(given) == BULK_OUTPUTS_BYTES_MAX // len(text)
    assert told["outputs"][: len(given)] == given
    assert len(told["left_out"]) == 100
    assert size_of(told) < BULK_OUTPUTS_BYTES_MAX + 64 * 1024


def test_many_failures_are_told_of_by_the_first():
    told = compose_result({**BODY, "total": 10_000}, tally_of(faulted=range(10_000)), {})
    assert [each["index"] for each in told["failures"]] == list(range(10))


def test_a_batch_holds_what_it_has_room_for_and_at_least_one():
    text = json.dumps("x" * 4_000)
    verdict = HandOver("each_completed", list(range(100)), exceeded=False)
    told = compose_batch("j", verdict, dict.fromkeys(range(100), ("Completed", text)))
    assert 1 < len(told["batch"]) < 100
    assert size_of(told) < BATCH_BYTES_MAX + 100
    large = json.dumps("x" * BATCH_BYTES_MAX)
    told = compose_batch("j", verdict, dict.fromkeys(range(100), ("Completed", large)))
    assert [each["index"] for each in told["batch"]] == [0]


def test_a_batch_tells_outputs_and_failures():
    verdict = HandOver("each_faulted", [0, 1], exceeded=False)
    told = compose_batch(
        "j", verdict, {0: ("Completed", "[1]"), 1: ("Faulted", '{"type":"E","message":"m"}')}
    )
    assert told["batch"] == [
        {"index": 0, "instance_id": derive_child_id("j-00000"), "output": [1]},
        {
            "index": 1,
            "instance_id": derive_child_id("j-00001"),
            "outcome": "Faulted",
            "error": {"type": "E", "message": "m"},
        },
    ]
