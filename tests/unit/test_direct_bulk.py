"""Direct execution of bulk dispatches: as on AWS, without it."""

import pytest

from aftercommit import (
    BulkDispatchWorkflows,
    Delay,
    Event,
    Fault,
    Fork,
    If,
    Sequence,
    SetVariable,
    Step,
    Workflow,
    direct,
    expr,
    var,
)
from aftercommit import inputs as given_inputs
from aftercommit.statuses import InstanceStatus

child = Workflow(
    "child",
    inputs={"item": {}, "index": int},
    root=Sequence(
        Step("note", what="begins", index=given_inputs.index),
        If(given_inputs.item == "bad", then=Fault("bad item", code="Bad")),
        Delay(10),
        Step("note", what="ends", index=given_inputs.index),
    ),
    output={"was": given_inputs.item},
)
strict = Workflow("strict", inputs={"item": str, "index": int}, root=Sequence(), output=given_inputs.item)
notes = []


def note(what, index):
    notes.append((what, index))


@pytest.fixture(autouse=True)
def _no_notes():
    notes.clear()


def run(root, *more, **given):
    parent = Workflow("parent", root=root, output=var.x)
    return direct.run(parent, workflows=[child, strict, *more], activities={"note": note}, **given)


def bulk(*items, workflow="child", **more):
    return BulkDispatchWorkflows(workflow, list(items), result="x", **more)


def test_c21_it_waits_for_all_and_gives_their_outputs_in_order():
    result = run(bulk("a", "b", "c", wait=True))
    assert result.output["outputs"] == [{"was": "a"}, {"was": "b"}, {"was": "c"}]
    assert [each.status for each in result.children] == [InstanceStatus.COMPLETED] * 3


def test_c18_not_waiting_it_ends_before_its_children_do():
    result = run(Sequence(bulk("a", "b"), Step("note", what="parent", index=-1)))
    assert result.status == InstanceStatus.COMPLETED
    assert notes.index(("parent", -1)) < notes.index(("ends", 0))
    assert len(result.children) == 2


def test_an_empty_list_is_done():
    assert run(bulk(wait=True)).output["outputs"] == []


def test_c21_endings_are_counted_apart():
    result = run(bulk("a", "bad", wait=True, tolerated_failures=1))
    assert (result.output["completed"], result.output["faulted"]) == (1, 1)
    [failure] = result.output["failures"]
    assert failure["error"] == {"type": "Bad", "message": "bad item"}
    assert result.output["outputs"] == [{"was": "a"}, None]


def test_c20_starts_that_are_refused_are_counted_as_such():
    result = run(bulk("a", 5, workflow="strict", wait=True, tolerated_failures=1))
    assert result.output["dispatch_failed"] == 1
    assert result.output["failures"][0]["error"]["type"] == "InputRefusedError"
    result = run(bulk("a", "b", workflow="unknown", wait=True, tolerated_failures="100%"))
    assert result.output["dispatch_failed"] == 2


def test_too_many_failures_cancel_the_others():
    result = run(bulk("a", "bad", "c", wait=True, on={"Faulted": SetVariable("y", 1)}))
    assert result.status == InstanceStatus.COMPLETED
    assert result.output["unfinished"] == 2
    statuses = [each.status for each in result.children]
    assert statuses == [InstanceStatus.CANCELLED, InstanceStatus.FAULTED, InstanceStatus.CANCELLED]


@pytest.mark.parametrize("wait", [True, False])
def test_in_lanes_one_begins_when_the_one_before_it_has_ended(wait):
    result = run(
        bulk("a", "bad", "c", "d", wait=wait, concurrent_max=1, tolerated_failures=1 if wait else None)
    )
    assert len(result.children) == 4
    order = [index for what, index in notes if what == "begins"]
    assert order == [0, 1, 2, 3]
    assert notes.index(("ends", 0)) < notes.index(("begins", 1))
    assert notes.index(("ends", 2)) < notes.index(("begins", 3))


def test_a_start_that_is_refused_wakes_the_next_of_its_lane():
    result = run(bulk(5, "b", 7, "d", workflow="strict", wait=True, concurrent_max=1, tolerated_failures=2))
    assert result.output["outputs"] == [None, "b", None, "d"]


def test_sleeping_starts_are_withdrawn():
    result = run(bulk("bad", "b", "c", wait=True, concurrent_max=1, on={"Faulted": SetVariable("y", 1)}))
    assert result.status == InstanceStatus.COMPLETED
    assert ("ends", 2) not in notes


def test_c21_handlers_see_each_child_once():
    seen = SetVariable("seen", expr("$append(var.seen, var.batch.index)"))
    bad = SetVariable("bad", expr("$append(var.bad, var.batch.error.type)"))
    root = Sequence(
        SetVariable("seen", []),
        SetVariable("bad", []),
        bulk(
            "a",
            "bad",
            "c",
            "bad",
            "e",
            wait=True,
            tolerated_failures=2,
            batch_max=1,
            each_completed=seen,
            each_faulted=bad,
        ),
    )
    result = run(root)
    assert sorted(result.variables["seen"]) == [0, 2, 4]
    assert result.variables["bad"] == ["Bad", "Bad"]
    assert result.output["completed"] == 3


def test_a_losing_branch_cancels_its_children():
    endless = Workflow("endless", inputs={"item": {}, "index": int}, root=Event("never"))
    root = Fork(bulk("a", "b", workflow="endless", wait=True, concurrent_max=1), Delay(5), wait="any")
    result = run(root, endless)
    assert result.status == InstanceStatus.COMPLETED
    assert [each.status for each in result.children] == [InstanceStatus.CANCELLED]


def test_c21_two_bulks_do_not_disturb_each_other():
    first = BulkDispatchWorkflows("child", ["a", "bad"], wait=True, tolerated_failures=1, result="x")
    second = BulkDispatchWorkflows("child", ["c"], wait=True, result="y")
    result = run(Fork(first, second))
    assert result.variables["x"]["outputs"] == [{"was": "a"}, None]
    assert result.variables["y"]["outputs"] == [{"was": "c"}]
