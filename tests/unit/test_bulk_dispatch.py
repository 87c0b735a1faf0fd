"""BulkDispatchWorkflows under the engine: what it intends, in which commits, and how it goes on."""

import json

import pytest

from aftercommit import (
    BulkDispatchWorkflows,
    Event,
    Fault,
    Finish,
    Fork,
    Sequence,
    SetVariable,
    Step,
    Try,
    Workflow,
    expr,
    var,
)
from aftercommit import inputs as given_inputs
from aftercommit.errors import DefinitionRefusedError
from aftercommit.ids import derive_child_id
from aftercommit.joins import read_indexes
from aftercommit.limits import (
    BULK_CHILDREN_MAX,
    COMMIT_BYTES_MAX,
    COMMIT_INTENTIONS_MAX,
    INPUT_BYTES_MAX,
    MOVES_MAX,
    TRANSACTION_BYTES_MAX,
)
from aftercommit.model import Cancel, Continue, InstanceStatus, ItemCommand, Parent, dumps, size_of
from aftercommit.places import Join
from tests.unit.test_activities import failure_of
from tests.unit.test_activities_flow import happen, play
from tests.unit.test_engine import Run

DONE = {"total": 2, "completed": 2, "faulted": 0, "cancelled": 0, "dispatch_failed": 0, "outputs": ["x", "y"]}
FAILED = {**DONE, "completed": 1, "faulted": 1, "failures": [{"index": 1, "error": {"message": "no"}}]}


def bulk(items=("a", "b"), workflow="child", **more):
    return BulkDispatchWorkflows(workflow, list(items) if isinstance(items, tuple) else items, **more)


def of(run, command):
    return [each for each in run.intentions if each.command == command]


def starts(run):
    return [each.body for each in of(run, ItemCommand.START)]


def joins(run):
    return [each.body for each in of(run, ItemCommand.JOIN)]


# --- the starts ---


def test_c19_each_item_has_a_start_of_its_own_with_its_own_input():
    run = Run(bulk([{"n": [1]}, {"n": [2]}], input={"n": var.item.n, "all": given_inputs.x}), inputs={"x": 5})
    assert [each["input"] for each in starts(run)] == [{"n": [1], "all": 5}, {"n": [2], "all": 5}]
    assert len({each.item_id for each in run.intentions}) == 2
    assert len({each["instance_id"] for each in starts(run)}) == 2


def test_c19_without_an_input_a_child_gets_its_item_as_it_is_and_its_index():
    run = Run(bulk(given_inputs.x), inputs={"x": ["{% 1 + 1 %}", {"deep": [1]}]})
    assert [each["input"] for each in starts(run)] == [
        {"item": "{% 1 + 1 %}", "index": 0},
        {"item": {"deep": [1]}, "index": 1},
    ]


def test_c19_the_correlation_id_is_of_the_item_or_the_parents():
    run = Run(bulk(["a", None], correlation_id=var.item))
    assert [each.get("correlation_id") for each in starts(run)] == ["a", None]


def test_items_and_indexes_may_have_other_names():
    run = Run(bulk(item="order", index="place", input={"o": var.order, "p": var.place}))
    assert [each["input"] for each in starts(run)] == [{"o": "a", "p": 0}, {"o": "b", "p": 1}]


def test_what_is_drawn_for_one_item_is_not_drawn_for_the_next_and_is_repeatable():
    root = bulk(input={"drawn": expr("$random()")})
    first, second = starts(Run(root)), starts(Run(root))
    assert first == second
    assert first[0]["input"] != first[1]["input"]


def test_identities_follow_from_the_execution_and_the_index():
    first, second = Run(bulk(wait=True)), Run(bulk(wait=True))
    assert [each.item_id for each in first.intentions] == [each.item_id for each in second.intentions]
    two = Run(Sequence(bulk(), bulk()))
    assert len({each["instance_id"] for each in starts(two)}) == 4


def test_item_ids_sort_by_index():
    run = play(Run(bulk(expr("[1..120]"))))
    names = [each.item_id for each in run.intentions]
    assert names == sorted(names)


def test_everything_of_the_command_is_stored():
    run = Run(bulk(version=7, channel="slow"))
    assert {(each["version"], each["channel"], each["depth"]) for each in starts(run)} == {(7, "slow", 1)}


def test_not_waiting_it_goes_on_at_once_naming_its_children():
    run = Run(bulk(result="x", on={"Dispatched": Step("next")}))
    assert run.ready == ["root.on.Dispatched"]
    named = [each["instance_id"] for each in starts(run)]
    assert run.state.variables["x"] == {"count": 2, "instance_ids": named}
    assert all("join" not in each for each in starts(run))


def test_not_waiting_for_many_it_names_the_first_only():
    run = play(Run(bulk(expr("[1..500]"), result="x")))
    assert run.state.variables["x"]["count"] == 500
    assert len(run.state.variables["x"]["instance_ids"]) == 100


def test_c21_an_empty_list_is_done_at_once():
    run = Run(bulk([], wait=True, result="x"))
    assert run.state.status == InstanceStatus.COMPLETED
    assert run.intentions == []
    assert run.state.variables["x"]["total"] == 0
    run = Run(bulk(var.nothing, result="x"))
    assert run.state.variables["x"] == {"count": 0, "instance_ids": []}


@pytest.mark.parametrize("items", [5, "text", {"a": 1}])
def test_items_that_are_no_list_fault(items):
    assert "expected a list" in failure_of(Run(bulk(given_inputs.x), inputs={"x": items})).message


def test_more_items_than_one_dispatch_may_have_fault_before_any_is_dispatched():
    run = Run(bulk(given_inputs.x, wait=True), inputs={"x": [1] * (BULK_CHILDREN_MAX + 1)})
    failure = failure_of(run)
    assert failure.type == "TooManyItemsError"
    assert str(BULK_CHILDREN_MAX) in failure.message
    assert run.intentions == []


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"input": expr("var.item")}, "expected an object"),
        ({"concurrent_max": expr("0")}, "expected a whole number from 1"),
        ({"concurrent_max": expr("'2'")}, "expected a whole number from 1"),
        ({"tolerated_failures": expr("-1"), "wait": True}, "expected a whole number from 0"),
        ({"tolerated_failures": expr("'101%'"), "wait": True}, "expected a whole number from 0"),
        ({"correlation_id": 5}, "a correlation id is a text"),
    ],
)
def test_what_makes_no_sense_for_these_items_faults(more, told):
    assert told in failure_of(Run(bulk(**more))).message


@pytest.mark.parametrize(
    ("more", "place"),
    [
        ({"concurrent_max": 0}, "concurrent_max"),
        ({"concurrent_max": True}, "concurrent_max"),
        ({"concurrent_max": "3"}, "concurrent_max"),
        ({"tolerated_failures": -1, "wait": True}, "tolerated_failures"),
        ({"tolerated_failures": "20", "wait": True}, "tolerated_failures"),
        ({"tolerated_failures": "120%", "wait": True}, "tolerated_failures"),
        ({"tolerated_failures": 1}, "tolerated_failures"),
        ({"each_completed": Finish()}, "each_completed"),
        ({"each_faulted": Finish()}, "each_faulted"),
        ({"batch_max": 101, "wait": True}, "batch_max"),
        ({"index": "item"}, "index"),
        ({"on": {"Completed": Finish()}}, "on.Completed"),
        ({"on": {"Cancelled": Finish()}, "wait": True}, "on.Cancelled"),
    ],
)
def test_what_can_never_make_sense_is_refused_naming_the_property(more, place):
    with pytest.raises(DefinitionRefusedError) as caught:
        _ = Workflow("w", root=bulk(**more)).definition
    assert [each for each, _ in caught.value.faults] == [f"root.{place}"]


# --- over many commits ---


def commits_of(run_of):
    """Play a decision to its end; returns the number of intentions and bytes of each commit."""
    run = Run(*run_of[0], **run_of[1])
    commits, done = [], 0
    while True:
        new = run.intentions[done:]
        commits.append((len(new), sum(size_of(each.body) for each in new)))
        done = len(run.intentions)
        if not run.state.agenda:
            return run, commits
        assert run.give(Continue())


def test_r02_a_fan_out_of_ten_thousand_takes_commits_of_bounded_size_and_few_moves():
    run, commits = commits_of([[bulk(expr("[1..10000]"), wait=True)], {}])
    assert len(starts(run)) == 10_000
    assert max(count for count, _ in commits) <= COMMIT_INTENTIONS_MAX
    assert run.state.moves < MOVES_MAX / 50
    assert len(dumps(run.state.to_json())) < 2_000
    assert run.state.status == InstanceStatus.SUSPENDED


def test_commits_are_bounded_in_bytes_too():
    root = bulk(expr("[1..40]"), input={"x": given_inputs.x}, wait=True)
    run, commits = commits_of([[root], {"inputs": {"x": "x" * 200_000}}])
    assert len(starts(run)) == 40
    assert COMMIT_BYTES_MAX < max(bytes_ for _, bytes_ in commits) < TRANSACTION_BYTES_MAX - 500_000


def test_the_join_is_stored_behind_all_children():
    run, _ = commits_of([[bulk(expr("[1..200]"), wait=True)], {}])
    assert [each.command for each in run.intentions].index(ItemCommand.JOIN) == 200


def test_the_journal_has_a_line_per_commit_not_per_child():
    run, commits = commits_of([[bulk(expr("[1..200]"), wait=True)], {}])
    lines = [line for line in run.journal if line["status"] == "intended"]
    assert len(lines) == len(commits)
    assert sum(line["count"] for line in lines) == 200


def test_an_input_that_is_too_large_faults_naming_its_item_and_cancels_those_before():
    text = "x" * (INPUT_BYTES_MAX - 20)
    root = bulk(["a", text], input={"given": var.item, "index": var.index}, wait=True)
    run = Run(root)
    assert failure_of(run).type == "InputTooLargeError"
    assert "for item 1" in run.state.failure.message
    assert len(of(run, ItemCommand.CANCEL)) == 1


def test_what_ends_a_fan_out_midway_cancels_what_it_has_started():
    run = Run(bulk(expr("[1..200]"), wait=True))
    assert run.state.agenda
    run.give(Cancel("enough"))
    [cancel] = of(run, ItemCommand.CANCEL)
    assert cancel.body["join_id"] == run.intentions[0].item_id[:32]
    assert joins(run) == []


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
