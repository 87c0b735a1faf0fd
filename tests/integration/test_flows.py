"""What users see of the main job, row by row of the list of behaviours that older systems tested."""

import pytest

from aftercommit import (
    DispatchWorkflow,
    Fault,
    Retry,
    Sequence,
    SetVariable,
    Step,
    Workflow,
    activity,
    clock,
    var,
)
from aftercommit.instances import lease
from aftercommit.queue import Message
from aftercommit.statuses import ItemStatus
from aftercommit.tables import HeadRow, ItemRow, key_of
from tests.integration.faults import Crash
from tests.integration.flows import child, child_head, forgetting, names, parent, run_parent, waiting_for
from tests.integration.world import behaviours

# --- the main job ---


def test_c18_waiting_the_parent_goes_on_after_the_child(world):
    instance_id = run_parent(world)
    assert world.show(instance_id)["status"] == "suspended"
    world.settle()
    shown = world.show(instance_id)
    assert (shown["status"], shown["output"]) == ("completed", {"n": 7})
    assert names() == ["before", "child", "after"]
    assert {row.status for row in world.items()} == {"done"}


def test_c18_not_waiting_the_parent_may_finish_first(world):
    instance_id = run_parent(world, forgetting)
    assert world.show(instance_id)["status"] == "completed"
    world.settle()
    assert names() == ["own", "child"]
    assert world.items("resume") == []


def test_c19_input_correlation_and_parent_reach_the_child(world):
    world.publish(child, parent)
    instance_id = world.dispatch("parent", correlation_id="order-7")
    world.settle()
    head = child_head(world)
    shown = world.show(head.instance_id)
    assert (shown["input"], shown["correlation_id"]) == ({"n": 7}, "order-7")
    assert shown["parent"] == {"instance_id": instance_id, "item_id": world.item("start").item_id}


def test_c03_an_item_and_the_revision_that_decided_it_are_one_commit(world, faults):
    """Older systems write the item first and remove orphans later; here there can be none."""
    world.publish(child, parent)
    for place in ("before", "after"):
        for number in range(2):
            instance_id = world.dispatch("parent", instance_id=f"{place}-{number}")
            plan = getattr(faults, place)("TransactWriteItems", Crash(), match="revision#", skip=number)
            try:
                world.run(instance_id)
            except Crash:
                assert plan.struck == 1
            plan.times = 0
            owners = {row.owner_id for row in world.items("start")}
            journal = [line for row in world.revisions(instance_id) for line in [row.journal]]
            assert (instance_id in owners) == any("intended" in line for line in journal)


@pytest.mark.parametrize("place", ["before", "after"])
@pytest.mark.parametrize("operation", ["PutItem", "UpdateItem", "TransactWriteItems", "SendMessageBatch"])
@pytest.mark.parametrize("skip", [0, 1, 2])
def test_i1_i2_i3_a_crash_around_any_request_leaves_one_child_and_no_waiting(
    world, faults, place, operation, skip
):
    world.publish(child, parent)
    plan = getattr(faults, place)(operation, Crash(), skip=skip)
    instance_id = "i"
    for _ in range(3):
        try:
            world.dispatch("parent", instance_id=instance_id)
            break
        except Crash:
            continue
    for _ in range(4):
        try:
            world.settle()
            break
        except Crash:
            world.clock.at += 130  # the queue and the sweep come again
    assert plan.struck == (0 if plan.times else 1)
    assert sorted(world.statuses().values()) == ["completed", "completed"]
    assert world.show(instance_id)["output"] == {"n": 7}
    assert {row.status for row in world.items()} == {"done"}


# --- starting ---


def test_c16_two_starts_of_one_item_give_one_instance_that_runs_once(world):
    """One after the other; the race itself is run against the deployed stack."""
    run_parent(world)
    item = world.item()
    for _ in range(3):
        world.handle_item(item)
    assert len(world.heads()) == 2
    assert names().count("child") == 1
    assert world.item("start").status == "done"


def test_r15_a_start_delivered_again_while_the_first_runs_changes_nothing(world):
    run_parent(world)
    item = world.item()
    behaviours["child"] = lambda context, value: world.handle_item(item) or value
    world.handle_item(item)
    assert names().count("child") == 1
    assert child_head(world).status == "completed"


def test_c17_a_start_whose_worker_dies_before_running_is_run_by_the_next(world):
    instance_id = run_parent(world)

    def die(context, value):
        del behaviours["child"]
        raise Crash

    behaviours["child"] = die
    with pytest.raises(Crash):
        world.handle_item(world.item())
    assert (child_head(world).status, world.item("start").status) == ("running", "done")
    world.settle()
    assert world.show(instance_id)["output"] == {"n": 7}


@pytest.mark.parametrize("way", ["unknown", "refused"])
def test_c20_a_child_that_cannot_start_is_told_after_four_attempts(world, way):
    given = waiting_for("nobody") if way == "unknown" else waiting_for(n="seven")
    instance_id = run_parent(world, given)
    world.settle()
    shown = world.show(instance_id)
    assert (shown["status"], shown["failure"]["type"]) == ("faulted", "ChildDispatchFailedError")
    [dispatched] = shown["dispatches"]
    assert (dispatched["status"], dispatched["attempts"]) == ("failed", 4)
    assert ("nobody" if way == "unknown" else "input.n") in shown["failure"]["message"]


def test_c20_a_definition_that_is_published_meanwhile_is_met_by_a_later_attempt(world):
    instance_id = run_parent(world, waiting_for("late"))
    world.handle_item(world.item())
    assert int(world.item().attempts) == 1
    world.publish(Workflow("late", root=Sequence(), output="made"))
    world.settle()
    assert world.show(instance_id)["output"] == "made"


@pytest.mark.parametrize("wait", [True, False])
def test_r16_a_child_id_that_is_taken_by_another_fails_closed(world, wait):
    given = Workflow("parent", root=DispatchWorkflow("child", input={"n": 1}, wait=wait))
    instance_id = run_parent(world, given)
    taken = world.item().instance_id
    world.dispatch("child", {"n": 99}, instance_id=taken)
    world.settle()
    shown = world.show(instance_id)
    assert world.item("start").status == "failed"
    assert world.show(taken)["input"] == {"n": 99}
    if wait:
        assert shown["failure"]["type"] == "ChildDispatchFailedError"
        assert "was not started by this dispatch" in shown["failure"]["message"]
    else:
        [incident] = shown["incidents"]
        assert incident["error"]["type"] == "InstanceExistsError"


def test_r16_a_child_that_is_this_parents_converges(world):
    """Its item is undone still, as if the ack had been lost with a restored table."""
    instance_id = run_parent(world)
    item = world.item()
    world.handle_item(item)
    key = {"owner_key": item.owner_key, "item_id": item.item_id}
    world.set_raw(ItemRow, key, status={"S": "undone"}, due_at={"S": clock.to_text(clock.now())})
    world.handle_item(item)
    assert world.items("start")[0].status == "done"
    world.settle()
    assert world.show(instance_id)["status"] == "completed"
    assert names().count("child") == 1


def test_dispatches_nested_too_deep_end_as_dispatch_failed_at_once(world, set_environment):
    set_environment(DISPATCH_DEPTH_MAX="2")
    nested = Workflow("nested", root=DispatchWorkflow("nested", wait=True))
    instance_id = run_parent(world, nested)
    world.settle()
    assert len(world.heads()) == 3
    failed = next(row for row in world.items("start") if row.status == "failed")
    assert (int(failed.attempts), "DispatchTooDeep" in failed.last_error) == (0, True)
    assert world.show(instance_id)["status"] == "faulted"


def test_c04_a_resume_whose_instance_is_gone_ends_as_failed_with_an_incident(world):
    instance_id = run_parent(world)
    world.handle_item(world.item())
    HeadRow(key_of("default", instance_id), "head").delete()
    world.settle()
    resume = world.item("resume")
    assert resume.status == "failed"
    assert instance_id in resume.last_error
    assert [row.item_id for row in world.incidents()] == [resume.item_id]
    assert {head.instance_id for head in world.heads()} == {child_head(world).instance_id}


# --- endings ---


def test_r01_a_child_that_ends_while_its_parent_still_holds_the_lease_is_not_lost(world):
    """The telling is an item of the child's last commit, and comes again until it is acknowledged."""
    world.publish(child, forgetting_then_waiting := _both())
    instance_id = world.dispatch(forgetting_then_waiting.id)

    def child_runs_meanwhile(context, value):
        world.deliver_new()
        world.serve()
        return value

    behaviours["slow"] = child_runs_meanwhile
    world.settle()
    assert world.show(instance_id)["status"] == "completed"


def _both():
    return Workflow(
        "both",
        root=Sequence(
            DispatchWorkflow("child", input={"n": 1}),
            Step("act", name="slow"),
            DispatchWorkflow("child", input={"n": 2}, wait=True),
        ),
    )


@pytest.mark.parametrize(
    ("root", "outcome", "told"),
    [
        (Fault("no stock", code="Stock"), "Faulted", {"type": "Stock", "message": "no stock"}),
        (Step("act", name="raise"), "Faulted", {"type": "ZeroDivisionError", "message": "division by zero"}),
    ],
)
def test_r08_r09_a_bad_ending_reaches_the_parent_which_can_tell_why(world, root, outcome, told):
    behaviours["raise"] = lambda context, value: 1 / 0
    bad = Workflow("bad", root=root)
    given = waiting_for("bad", on={outcome: SetVariable("why", var.made.error)})
    world.publish(bad)
    instance_id = run_parent(world, given)
    world.settle()
    shown = world.show(instance_id)
    assert shown["status"] == "completed"
    assert shown["variables"]["why"] == told


def test_c34_the_strategy_fault_stops_with_one_incident(world):
    behaviours["before"] = lambda context, value: 1 / 0
    instance_id = run_parent(world)
    shown = world.show(instance_id)
    assert shown["status"] == "faulted"
    [incident] = shown["incidents"]
    assert incident["error"]["type"] == "ZeroDivisionError"
    assert world.items() == []


def test_i6_a_resume_delivered_again_applies_once(world):
    instance_id = run_parent(world)
    world.handle_item(world.item())
    resume = world.item("resume")
    for _ in range(3):
        world.handle_item(resume)
    assert names().count("after") == 1
    assert world.show(instance_id)["status"] == "completed"


def test_a_resume_of_an_instance_that_ended_is_only_acked(world):
    instance_id = run_parent(world)
    world.handle_item(world.item())
    key = {"instance_key": f"default#{instance_id}", "row": "head"}
    world.set_raw(HeadRow, key, status={"S": "cancelled"})
    resume = world.item("resume")
    world.handle_item(resume)
    assert world.item("resume").status == ItemStatus.DONE
    assert "after" not in names()


def test_a_resume_that_meets_a_held_lease_comes_back_later_and_later(world):
    """A copy replaces the message, so that waiting never counts as failing."""
    instance_id = run_parent(world)
    world.handle_item(world.item())
    world.messages.clear()
    lease("default", instance_id, clock.now() + 1_000, waiting=True)
    resume = world.item("resume")
    text = Message("default", owner_id=resume.owner_id, item_id=resume.item_id).to_text()
    delays = []
    for _ in range(7):
        world.handle(text)
        [sent] = world.messages
        delays.append(sent.due - clock.now())
        text = sent.body
        world.messages.clear()
    assert delays == [1, 2, 4, 8, 16, 30, 30]
    assert int(world.item("resume").attempts) == 0
    world.clock.at += 1_000
    world.handle(text)
    assert world.show(instance_id)["status"] == "completed"


def test_a_message_to_run_an_instance_that_is_running_does_nothing(world):
    """Whoever holds the lease goes on by itself, and the sweep comes if it dies."""
    instance_id = run_parent(world)
    world.handle_item(world.item())
    lease("default", instance_id, clock.now() + 1_000, waiting=True)
    world.messages.clear()
    before = world.everything()
    world.run(instance_id)
    assert world.everything() == before
    assert world.messages == []


# --- activities that dispatch ---


@activity(name="dispatching", retry=Retry(attempts_max=3, first_delay_seconds=1))
def dispatching_activity(context):
    context.dispatch("child", {"n": context.attempt})
    if context.attempt < 2:
        raise OSError("not yet")


def test_r05_what_an_activity_dispatches_commits_with_its_result_or_not_at_all(world):
    world.publish(child, Workflow("w", root=Step(dispatching_activity)))
    instance_id = world.dispatch("w")
    world.run(instance_id)
    assert [row.command for row in world.items()] == ["resume"]
    world.settle()
    assert world.show(child_head(world).instance_id)["input"] == {"n": 2}
    assert len(world.items("start")) == 1


def test_r06_the_channel_and_all_else_of_a_dispatch_is_stored_with_its_item(world):
    given = Workflow(
        "parent",
        root=DispatchWorkflow("child", input={"n": 1}, channel="slow", version=1, correlation_id="c"),
    )
    run_parent(world, given)
    item = world.item()
    assert (item.channel, int(item.version), item.definition_id) == ("slow", 1, "child")
    world.settle()  # the deployment knows no such channel: given up, visibly
    assert "unknown channel 'slow'" in world.item().last_error
    assert world.item().status == "failed"


def test_c21_a_fan_out_larger_than_a_transaction_goes_through_in_several_commits(world):
    number = 120
    many = Workflow("many", root=Sequence(*[DispatchWorkflow("empty") for _ in range(number)]))
    world.publish(Workflow("empty", root=Sequence()))
    instance_id = run_parent(world, many)
    assert len(world.items()) == number
    assert len(world.revisions(instance_id)) == 2
    assert world.show(instance_id)["status"] == "completed"
