"""Bulk dispatches as a whole: every ending, counted once, told once."""

import pytest

from aftercommit import BulkDispatchWorkflows, Event, Finish, Sequence, Step, Workflow, expr, moves, var
from aftercommit import inputs as given_inputs
from aftercommit.cancel import cancel
from aftercommit.delete import delete
from aftercommit.paging import Page
from aftercommit.publish import retract
from aftercommit.tables import SHARED_TENANT
from aftercommit.views import list_dispatches
from tests.integration.bulks import (
    admit,
    begin,
    bulk_of,
    child,
    handling,
    parent_of,
    resumes,
    starts,
    strict,
    tally,
    twice,
    waiting,
)
from tests.integration.waits import send
from tests.integration.world import effects


def finish(world, workflow, *more):
    world.publish(child, strict, workflow, *more)
    instance_id = world.dispatch(workflow.id)
    world.settle(seconds=900)
    return world.show(instance_id), instance_id


def test_c21_the_parent_goes_on_once_when_all_children_have_ended(world):
    shown, instance_id = finish(world, waiting)
    assert shown["status"] == "completed"
    assert shown["output"]["outputs"] == [{"was": "a"}, {"was": "b"}, {"was": "c"}]
    assert resumes(world, instance_id) == 1
    assert tally(world, instance_id) == {"completed": [0, 1, 2]}
    assert [row.status for row in world.items()] == ["done"] * 4


def test_c19_each_child_has_its_own_input_its_parent_and_correlation_id(world):
    finish(world, parent_of(["a", "b"], wait=True, correlation_id=var.item))
    children = [head for head in world.heads() if head.definition_id == "child"]
    assert {head.correlation_id for head in children} == {"a", "b"}
    assert {world.show(head.instance_id)["input"]["item"] for head in children} == {"a", "b"}
    parents = {(head.parent_instance_id, head.parent_item_id) for head in children}
    assert parents == {(row.owner_id, row.item_id) for row in starts(world)}


@pytest.mark.parametrize("wait", [True, False])
def test_c21_an_empty_list_completes_at_once(world, wait):
    shown, _ = finish(world, parent_of([], wait=wait))
    assert shown["status"] == "completed"
    assert world.items() == []


def test_c21_endings_are_counted_apart_and_told_in_order(world):
    workflow = parent_of(["a", "bad", "wait", "d"], wait=True, tolerated_failures=2)
    world.publish(child, workflow)
    instance_id = world.dispatch(workflow.id)
    world.settle(seconds=5)
    [still] = [head for head in world.heads() if head.status == "suspended" and head.definition_id == "child"]
    assert cancel("default", still.instance_id, "from outside")
    world.settle(seconds=600)
    shown = world.show(instance_id)
    told = shown["output"]
    assert [told[name] for name in ("total", "completed", "faulted", "cancelled", "dispatch_failed")] == [
        4,
        2,
        1,
        1,
        0,
    ]
    assert told["outputs"] == [{"was": "a"}, None, None, {"was": "d"}]
    assert [(each["index"], each["outcome"], each["error"]["message"]) for each in told["failures"]] == [
        (1, "Faulted", "bad item"),
        (2, "Cancelled", "from outside"),
    ]
    assert resumes(world, instance_id) == 1


def test_c20_a_definition_that_was_retracted_ends_each_start_as_failed(world):
    workflow = parent_of(["a", "b"], "strict", wait=True, tolerated_failures="100%", concurrent_max=1)
    instance_id = begin(world, workflow)
    admit(world, 0)
    retract(SHARED_TENANT, "strict")
    world.settle(seconds=900)
    told = world.show(instance_id)["output"]
    assert (told["completed"], told["dispatch_failed"]) == (1, 1)
    assert told["failures"][0]["error"]["type"] == "NotFoundError"
    assert tally(world, instance_id) == {"completed": [0], "dispatch_failed": [1]}
    assert [row.outcome for row in starts(world)] == ["Completed", "DispatchFailed"]
    assert world.incidents() == []


def test_an_input_that_does_not_fit_is_a_failed_dispatch_of_that_child_only(world):
    shown, _ = finish(world, parent_of(["a", 5], "strict", wait=True, tolerated_failures=1))
    assert shown["output"]["outputs"] == ["a", None]
    assert shown["output"]["failures"][0]["error"]["type"] == "InputRefusedError"


@pytest.mark.parametrize("tolerated", [0, "33%"])
def test_more_failures_than_tolerated_fault_the_parent_and_cancel_the_others(world, tolerated):
    workflow = parent_of(["wait", "bad", "wait"], wait=True, tolerated_failures=tolerated)
    shown, instance_id = finish(world, workflow)
    assert shown["failure"]["type"] == "ChildrenFaultedError"
    assert "bad item" in shown["failure"]["message"]
    statuses = world.statuses()
    del statuses[instance_id]
    assert sorted(statuses.values()) == ["cancelled", "cancelled", "faulted"]
    assert [row.status for row in world.items() if row.status == "undone"] == []
    assert [row.outcome for row in starts(world)] == ["Cancelled", "Faulted", "Cancelled"]


def test_a_share_of_failures_is_tolerated(world):
    shown, _ = finish(world, parent_of(["a", "bad", "c"], wait=True, tolerated_failures="34%"))
    assert shown["output"]["faulted"] == 1


def test_a_branch_handles_the_failures_and_reads_the_result(world):
    workflow = parent_of(["bad"], wait=True, on={"Faulted": Step("act", name="handled")})
    shown, _ = finish(world, workflow)
    assert shown["status"] == "completed"
    assert "handled" in [name for name, _, _ in effects]


def test_a_child_that_was_deleted_after_its_end_is_counted_all_the_same(world):
    instance_id = begin(world, waiting)
    first = admit(world, 0)
    delete("default", first)
    world.settle(seconds=2 * 86_400)
    assert world.show(instance_id)["output"]["outputs"][0] == {"was": "a"}
    assert first not in world.statuses()


def test_c21_two_bulks_in_one_instance_do_not_disturb_each_other(world):
    shown, instance_id = finish(world, twice)
    assert shown["output"][0]["outputs"] == [{"was": "a"}, None]
    assert shown["output"][1]["outputs"] == [{"was": "c"}]
    assert resumes(world, instance_id) == 2


def test_c18_not_waiting_the_parent_ends_first_and_names_its_children(world):
    workflow = parent_of(["a", "b"])
    instance_id = begin(world, workflow)
    shown = world.show(instance_id)
    assert shown["status"] == "completed"
    world.settle(seconds=60)
    ended = {key for key, status in world.statuses().items() if status == "completed"}
    assert ended == {instance_id, *shown["output"]["instance_ids"]}
    assert tally(world, instance_id) == {}
    assert [row.outcome for row in starts(world)] == [None, None]


def test_not_waiting_a_failed_start_is_an_incident_of_the_parent(world):
    _, instance_id = finish(world, parent_of([5], "strict"))
    [incident] = world.show(instance_id)["incidents"]
    assert incident["error"]["type"] == "InputRefusedError"


def test_views_show_how_each_child_has_ended(world):
    shown, instance_id = finish(world, parent_of(["a", "bad"], wait=True, tolerated_failures=1))
    assert [each["outcome"] for each in shown["dispatches"]] == ["Completed", "Faulted"]
    listed = list_dispatches("default", owner_id=instance_id, status=None, page=Page())["dispatches"]
    assert [each["outcome"] for each in listed] == ["Completed", "Faulted"]
    assert all("output" not in each for each in listed)


def test_a_view_shows_what_is_waited_for_and_what_sleeps(world):
    instance_id = begin(world, parent_of(["a", "b"], wait=True, concurrent_max=1))
    shown = world.show(instance_id)
    [bookmark] = shown["bookmarks"]
    assert (bookmark["waits_for"], bookmark["total"]) == ("children", 2)
    assert [each.get("asleep") for each in shown["dispatches"]] == [None, True]


# --- bounded outputs ---


def test_an_output_that_is_too_large_is_null_and_linked(world):
    large = Workflow("large", inputs={"item": str, "index": int}, root=Finish(given_inputs.item))
    workflow = parent_of(["x" * 5_000, "small"], "large", wait=True)
    shown, _ = finish(world, workflow, large)
    assert shown["output"]["outputs"] == [None, "small"]
    [link] = shown["output"]["left_out"]
    assert world.show(link["instance_id"])["output"] == "x" * 5_000
    assert [row.output for row in starts(world)] == [None, '"small"']


def test_without_a_result_variable_the_parent_keeps_nothing(world):
    workflow = Workflow("silent", root=BulkDispatchWorkflows("child", ["a"], wait=True))
    shown, _ = finish(world, workflow)
    assert (shown["status"], shown["variables"]) == ("completed", {})


# --- lanes ---


@pytest.mark.parametrize("wait", [True, False])
def test_in_lanes_no_more_children_run_at_once(world, wait):
    instance_id = begin(world, parent_of(["wait", "b", "c", "d"], wait=wait, concurrent_max=2))
    world.settle(seconds=60)
    assert [row.status for row in starts(world)] == ["done", "done", "undone", "done"]
    assert starts(world)[2].asleep
    [held] = [head for head in world.heads() if head.status == "suspended" and head.definition_id == "child"]
    cancel("default", held.instance_id, "go on")
    world.settle(seconds=60)
    assert [row.status for row in starts(world)] == ["done"] * 4
    assert len(tally(world, instance_id)["completed"]) == 3


def test_a_start_that_is_given_up_wakes_the_next_of_its_lane(world):
    workflow = parent_of([5, "b", 7, "d"], "strict", wait=True, concurrent_max=1, tolerated_failures=2)
    shown, _ = finish(world, workflow)
    assert shown["output"]["outputs"] == [None, "b", None, "d"]


def test_eager_off_the_sweep_wakes_joins_and_starts(world, set_environment):
    set_environment(EAGER_DELIVERY="false")
    shown, _ = finish(world, parent_of(["a", "b", "c"], wait=True, concurrent_max=1))
    assert shown["status"] == "completed"


# --- handlers ---


def test_c21_handlers_are_given_each_child_once_in_batches(world):
    workflow = handling(["a", "bad", "c", "bad", "e"], tolerated_failures=2, batch_max=2)
    shown, instance_id = finish(world, workflow)
    seen = shown["variables"]["seen"]
    assert sorted(seen if isinstance(seen, list) else [seen]) == [0, 2, 4]
    assert sorted(shown["variables"]["bad"]) == [1, 3]
    assert shown["output"]["completed"] == 3
    assert 4 <= resumes(world, instance_id) <= 6


def test_a_batch_is_handed_over_while_other_children_still_run(world):
    workflow = handling(["a", "wait"], tolerated_failures=1)
    world.publish(child, workflow)
    instance_id = world.dispatch(workflow.id)
    world.settle(seconds=90)
    shown = world.show(instance_id)
    assert shown["status"] == "suspended"
    assert shown["variables"]["seen"] in (0, [0])


def test_a_handler_that_waits_itself_holds_up_nothing_else(world):
    slow = Sequence(Step("act", name="batch"), Event("go-on"))
    workflow = parent_of(["a", "b", "c"], wait=True, batch_max=1, each_completed=slow)
    world.publish(child, workflow)
    instance_id = world.dispatch(workflow.id)
    world.settle(seconds=60)
    assert len(tally(world, instance_id)["completed"]) == 3
    for _ in range(3):
        send("go-on")
        world.settle(seconds=120)
    assert world.show(instance_id)["status"] == "completed"
    assert [name for name, _, _ in effects].count("batch") == 3


# --- many ---


def test_r02_more_children_than_one_commit_holds_are_joined_with_one_resume(world, monkeypatch):
    monkeypatch.setattr(moves, "COMMIT_INTENTIONS_MAX", 10)
    workflow = Workflow("many", root=bulk_of(expr("[1..25]"), "simple", wait=True))
    simple = Workflow("simple", inputs={"item": int, "index": int}, root=Finish(given_inputs.item))
    instance_id = begin(world, workflow, simple)
    assert [int(row.revision) for row in world.revisions(instance_id)] == [1, 2, 3]
    for item in starts(world):
        world.handle_item(item)
    [join] = world.items("join")
    world.handle_item(join)
    shown = world.show(instance_id)
    assert (shown["status"], shown["variables"]["x"]["outputs"]) == ("completed", list(range(1, 26)))
    assert resumes(world, instance_id) == 1
