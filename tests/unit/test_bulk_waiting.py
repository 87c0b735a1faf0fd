"""BulkDispatchWorkflows under the engine, once its children are intended: waits, lanes, handlers, endings."""

import json

import pytest

from aftercommit import Event, Fault, Finish, Fork, Sequence, SetVariable, Step, Try, expr, var
from aftercommit.ids import derive_child_id
from aftercommit.joins import read_indexes
from aftercommit.model import Cancel, Parent
from aftercommit.places import Join
from aftercommit.statuses import InstanceStatus, ItemCommand
from tests.unit.bulk_runs import DONE, FAILED, bulk, joins, of, starts
from tests.unit.engine_runs import Run, failure_of, happen, play

# --- waiting ---


def test_waiting_each_child_knows_its_place_and_the_join_what_it_waits_for():
    run = Run(bulk(wait=True, result="x"))
    [join] = joins(run)
    [bookmark] = run.state.bookmarks.values()
    assert bookmark.waits_for == "children"
    assert join == {
        "instance_id": "i",
        "bookmark_id": bookmark.bookmark_id,
        "join_id": starts(run)[0]["join"]["join_id"],
        "total": 2,
        "rows": 1,
        "tolerated": 0,
        "outputs": True,
    }
    assert [each["join"]["index"] for each in starts(run)] == [0, 1]


@pytest.mark.parametrize(("total", "rows"), [(1, 1), (9, 1), (10, 2), (100, 20), (1_000, 200), (10_000, 200)])
def test_r11_few_children_share_a_row_of_the_tally(total, rows):
    run = play(Run(bulk(expr(f"[1..{total}]"), wait=True)))
    assert joins(run)[0]["rows"] == rows


def test_the_parent_goes_on_with_one_resume():
    run = Run(Sequence(bulk(wait=True, result="x"), Step("next")))
    assert run.resume("Completed", DONE)
    assert run.ready == ["root.activities[1]"]
    assert run.state.variables["x"] == DONE
    assert of(run, ItemCommand.CANCEL) == []


def test_more_failures_than_tolerated_fault_unless_a_branch_handles_them():
    run = Run(bulk(wait=True))
    run.resume("Faulted", FAILED)
    assert failure_of(run).type == "ChildrenFaultedError"
    assert failure_of(run).message == "1 of 2 children child ended badly, the first: no (0 tolerated)"
    handled = Run(bulk(wait=True, result="x", on={"Faulted": Step("next")}))
    handled.resume("Faulted", FAILED)
    assert handled.ready == ["root.on.Faulted"]
    assert handled.state.variables["x"] == FAILED


def test_a_try_handles_the_fault():
    run = Run(Try(bulk(wait=True), handler=SetVariable("why", var.error.type)))
    run.resume("Faulted", FAILED)
    assert run.state.variables == {"why": "ChildrenFaultedError"}


@pytest.mark.parametrize("on", [None, {"Faulted": Finish()}])
def test_children_that_run_on_are_cancelled_by_one_intention(on):
    run = Run(bulk(wait=True, on=on))
    run.resume("Faulted", {**FAILED, "completed": 0, "unfinished": 1})
    [cancel] = of(run, ItemCommand.CANCEL)
    assert cancel.body["item_id"].startswith(cancel.body["join_id"])


@pytest.mark.parametrize(
    ("asked", "tolerated"),
    [(None, 0), (3, 3), ("20%", 2), ("29%", 2), ("100%", 10), ("0%", 0), ("12.5%", 1), (expr("1 + 1"), 2)],
)
def test_failures_are_tolerated_by_number_or_share(asked, tolerated):
    run = Run(bulk(expr("[1..10]"), wait=True, tolerated_failures=asked))
    assert joins(run)[0]["tolerated"] == tolerated


def test_a_losing_branch_cancels_its_children_by_one_intention():
    run = play(Run(Fork(bulk(expr("[1..300]"), wait=True), Event("stop"), wait="any")))
    happen(run, "stop")
    assert run.state.status == InstanceStatus.COMPLETED
    assert len(of(run, ItemCommand.CANCEL)) == 1


def test_an_instance_that_ends_leaves_children_it_does_not_wait_for_alone():
    run = Run(Fork(Sequence(bulk(concurrent_max=1), Event("stop"))))
    run.give(Cancel("enough"))
    assert of(run, ItemCommand.CANCEL) == []


def test_a_fault_under_continue_cancels_the_children_it_can_wait_for_no_more():
    root = Fork(bulk(["a", 5], wait=True, correlation_id=var.item), Event("never"))
    run = Run(root, incidents="continue")
    assert len(of(run, ItemCommand.CANCEL)) == 1
    assert [each.waits_for for each in run.state.bookmarks.values()] == ["stimulus"]


# --- lanes ---


def test_lanes_are_told_to_each_child():
    run = Run(bulk(expr("[1..5]"), wait=True, concurrent_max=2))
    places = [Join(**each["join"]) for each in starts(run)]
    assert [each.sleeps for each in places] == [False, False, True, True, True]
    assert [each.follower for each in places] == [2, 3, 4, None, None]


def test_lanes_for_all_are_none():
    run = Run(bulk(wait=True, concurrent_max=2))
    assert "lanes" not in starts(run)[0]["join"]


def test_not_waiting_in_lanes_a_join_without_a_bookmark_watches_over_them():
    run = Run(Sequence(bulk(concurrent_max=1), Step("next")))
    assert run.ready == ["root.activities[1]"]
    [join] = joins(run)
    assert "bookmark_id" not in join
    assert join["lanes"] == 1


# --- handlers ---


def batch_of(handler, *indexes, exceeded=False):
    batch = [{"index": each, "instance_id": "c", "output": each} for each in indexes]
    return {"handler": handler, "batch": batch, "exceeded": exceeded}


def handling(**more):
    return bulk(
        expr("[1..4]"),
        wait=True,
        each_completed=Step("act", given=var.batch, result="handled"),
        each_faulted=SetVariable("bad", var.batch),
        **more,
    )


def test_c21_a_handler_runs_for_a_batch_and_the_wait_goes_on():
    run = Run(handling())
    first = next(iter(run.state.bookmarks))
    run.resume("Done", batch_of("each_completed", 0, 2))
    assert run.ready == ["root.each_completed"]
    execution = run.state.executions[run.state.ready[0]]
    assert [each["index"] for each in execution.memory["inputs"]["given"]] == [0, 2]
    assert run.state.bookmarks == {}
    run.finish()
    [second] = run.state.bookmarks
    assert second != first
    assert read_indexes(joins(run)[1]["handed"]) == {0, 2}
    assert joins(run)[1]["bookmark_id"] == second
    assert run.state.status == InstanceStatus.SUSPENDED


def test_each_turn_has_a_join_of_its_own():
    run = Run(handling())
    run.resume("Done", batch_of("each_faulted", 1))
    run.resume("Done", batch_of("each_faulted", 3))
    assert len({each.item_id for each in of(run, ItemCommand.JOIN)}) == 3
    assert read_indexes(joins(run)[2]["handed"]) == {1, 3}
    run.resume("Completed", {**DONE, "total": 4})
    assert run.state.status == InstanceStatus.COMPLETED


def test_a_batch_may_have_another_name():
    run = Run(bulk(wait=True, batch="ended", each_faulted=SetVariable("x", var.ended)))
    run.resume("Done", batch_of("each_faulted", 1))
    assert run.state.variables["x"][0]["index"] == 1


def test_too_many_failures_cancel_the_others_once_while_batches_are_still_handed_over():
    run = Run(handling())
    run.resume("Done", batch_of("each_faulted", 1, exceeded=True))
    run.resume("Done", batch_of("each_faulted", 3, exceeded=True))
    run.resume("Faulted", {**FAILED, "unfinished": 1})
    assert len(of(run, ItemCommand.CANCEL)) == 1


def test_a_handler_that_faults_ends_the_wait_and_cancels_the_children():
    run = Run(bulk(wait=True, each_completed=Fault("no")))
    run.resume("Done", batch_of("each_completed", 0))
    assert failure_of(run).message == "no"
    assert len(of(run, ItemCommand.CANCEL)) == 1


def test_what_ends_the_instance_during_a_handler_cancels_the_children():
    run = Run(handling())
    run.resume("Done", batch_of("each_completed", 0))
    run.give(Cancel("enough"))
    assert len(of(run, ItemCommand.CANCEL)) == 1


# --- the children's side ---

PLACE = Join("j", 1, 3, 1, awaited=True)


@pytest.mark.parametrize(
    ("root", "outcome", "output"),
    [
        (Finish({"n": 1}), "Completed", {"n": 1}),
        (Finish(), "Completed", None),
        (Fault("no", code="Why"), "Faulted", {"type": "Why", "message": "no"}),
    ],
)
def test_i7_a_childs_ending_is_marked_in_its_own_decision(root, outcome, output):
    run = Run(root, parent=Parent("p", "j-00001", join=PLACE))
    mark = run.mark
    assert (mark.owner_id, mark.join, mark.outcome) == ("p", PLACE, outcome)
    assert json.loads(mark.output) == output
    assert run.intentions == []


def test_a_cancelled_child_is_marked_as_that():
    run = Run(Event("never"), parent=Parent("p", "j-00001", join=PLACE))
    run.give(Cancel("enough"))
    assert run.mark.outcome == "Cancelled"


def test_an_output_that_is_too_large_is_not_passed_on():
    run = Run(Finish("x" * 5_000), parent=Parent("p", "j-00001", join=PLACE))
    assert (run.mark.outcome, run.mark.output) == ("Completed", None)


def test_a_childs_place_survives_its_snapshot():
    parent = Parent("p", "j-00001", join=Join("j", 1, 3, 1, lanes=2, channel="slow"))
    assert Parent.from_json(parent.to_json()) == Parent("p", join=parent.join)


def test_ids_of_children_follow_from_those_of_their_dispatches():
    run = Run(bulk(wait=True))
    for each in of(run, ItemCommand.START):
        assert each.body["instance_id"] == derive_child_id(each.item_id)
