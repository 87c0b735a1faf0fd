"""Starts that fail, for a reason that passes or one that lasts: tried again, then given up, never lost."""

import pytest

from aftercommit import DispatchWorkflow, Sequence, Step, Workflow, clock
from aftercommit.attempts import attempt_delay, refuse
from aftercommit.deliver import deliver
from aftercommit.model import Failure
from aftercommit.outbox import find_item
from aftercommit.tables import HeadRow, ItemRow
from tests.integration.faults import no_answer, refusal
from tests.integration.flows import child, names, parent, run_parent
from tests.integration.world import effects

FAILURE = Failure("OSError", "gone")
forgetting = Workflow("forgetting", root=DispatchWorkflow("child", input={"n": 1}))


@pytest.fixture
def item(world):
    run_parent(world, parent)
    return world.item("start")


def again(item):
    return find_item(item.tenant, item.owner_id, item.item_id)


def test_r12_a_start_that_met_a_busy_database_is_an_attempt_and_goes_through_later(world, item, faults):
    plan = faults.before("TransactWriteItems", refusal("ThrottlingException"), times=6)
    world.handle_item(item)
    assert plan.struck == 6
    assert (again(item).status, int(again(item).attempts)) == ("undone", 1)
    assert "TryLaterError" in again(item).last_error
    world.settle(60)
    assert again(item).status == "done"
    assert names().count("child") == 1


def test_a_start_whose_definition_cannot_be_read_for_now_is_an_attempt(world, item, faults):
    faults.before("Query", refusal("ProvisionedThroughputExceededException"), times=1)
    world.handle_item(item)
    assert int(again(item).attempts) == 1
    world.settle(60)
    assert again(item).status == "done"


def test_a_database_that_stays_busy_is_given_up_visibly_and_the_parent_is_told(world, item, faults):
    for _ in range(4):
        faults.before("TransactWriteItems", refusal("ThrottlingException"), times=6, match="child")
        world.handle_item(again(item))
        world.clock.at += 5
        if again(item).status == "failed":
            break
    world.settle(60)
    assert again(item).status == "failed"
    assert "ended DispatchFailed" in world.show(item.owner_id)["failure"]["message"]
    assert names().count("child") == 0


def test_an_attempt_that_cannot_be_recorded_either_comes_back_with_its_message(world, item, faults):
    faults.before("TransactWriteItems", refusal("ThrottlingException"), times=6)
    faults.before("UpdateItem", refusal("ThrottlingException"), times=6)
    with pytest.raises(Exception, match="Throttling"):
        world.handle_item(item)
    assert int(again(item).attempts) == 0
    world.settle(300)
    assert again(item).status == "done"


def test_an_admission_without_an_answer_that_took_effect_is_gone_on_with(world, item, faults):
    """The write takes effect at its last try, whose answer is lost as those before were."""
    faults.before("TransactWriteItems", no_answer(), times=5)
    faults.after("TransactWriteItems", no_answer())
    world.handle_item(item)
    assert again(item).status == "done"
    assert (names().count("child"), int(again(item).attempts)) == (1, 0)


def test_a_refused_input_is_tried_again_and_then_given_up_with_its_field(world):
    bad = Workflow("bad", root=DispatchWorkflow("child", input={"n": "x"}))
    run_parent(world, bad)
    world.settle(60)
    item = world.item("start")
    assert (item.status, int(item.attempts)) == ("failed", 4)
    assert "input.n" in item.last_error
    [incident] = world.show(item.owner_id)["incidents"]
    assert incident["item_id"] == item.item_id


def test_an_input_that_outgrows_an_instance_with_what_is_filled_in_is_given_up_and_told(world):
    inputs = {"text": str, "more": {"type": "string", "default": "d" * 160_000}}
    roomy = Workflow("roomy", inputs=inputs, root=Sequence())
    giving = Workflow("giving", root=DispatchWorkflow("roomy", input={"text": "x" * 255_000}, wait=True))
    run_parent(world, giving, roomy)
    world.settle(60)
    item = world.item("start")
    assert (item.status, int(item.attempts)) == ("failed", 4)
    assert item.last_error.startswith("TooLargeError: the input, with what is filled in")
    assert "ended DispatchFailed" in world.show(item.owner_id)["failure"]["message"]
    assert (len(world.heads()), world.raised) == (1, [])


def test_the_delay_of_a_start_has_jitter_that_follows_from_item_and_attempt(item, set_environment):
    delays = [attempt_delay(item, number) for number in range(1, 50)]
    assert delays == [attempt_delay(item, number) for number in range(1, 50)]
    assert all(1 <= each <= 2 for each in delays)
    assert len(set(delays)) == len(delays)
    set_environment(START_DELAY_SECONDS="7", START_JITTER_SECONDS="0")
    assert attempt_delay(item, 3) == 7


# --- before giving up, the child is looked for ---


def restored(world, item, **values):
    """Make an item what it was before its child was admitted, as where its table was restored alone."""
    world.handle_item(item)
    key = {"owner_key": item.owner_key, "item_id": item.item_id}
    world.set_raw(ItemRow, key, status={"S": "undone"}, attempts={"N": "3"}, **values)
    return again(item)


def test_a_start_whose_child_is_there_is_settled_and_not_given_up(world, item):
    found = restored(world, item)
    assert refuse(found, FAILURE)
    assert again(item).status == "done"
    world.settle(60)
    assert world.show(item.owner_id)["status"] == "completed"


def test_a_queue_that_refuses_the_last_send_finds_the_child_too(world, item, faults):
    found = restored(world, item, due_at={"S": clock.to_text(clock.now())})
    faults.before("SendMessageBatch", RuntimeError("away"))
    assert deliver([(found.owner_key, found.item_id)]) == 0
    assert again(item).status == "done"


def test_r16_an_instance_that_is_somebody_elses_is_no_child(world, item):
    found = restored(world, item)
    key = {"instance_key": f"default#{item.instance_id}", "row": "head"}
    world.set_raw(HeadRow, key, parent_item_id={"S": "another"})
    assert refuse(found, FAILURE)
    assert again(item).status == "failed"


# --- c04: the owner is not there ---


def test_c04_a_start_whose_owner_is_gone_is_not_applied_and_leaves_an_incident(world):
    """The outbox was restored alone: looked for only where the item is old, as a new one proves its owner."""
    run_parent(world, forgetting)
    item = world.item("start")
    world.head(item.owner_id).delete()
    world.clock.at += 120
    world.settle(60)
    assert again(item).status == "failed"
    assert "OwnerMissingError" in again(item).last_error
    assert [row.item_id for row in world.incidents()] == [item.item_id]
    assert effects == []


def test_c04_a_waited_start_whose_owner_is_gone_ends_visibly_too(world, item):
    world.head(item.owner_id).delete()
    world.clock.at += 120
    world.settle(60)
    assert [row.status for row in world.items()] == ["failed", "failed"]
    assert len(world.incidents()) == 1
    assert names().count("child") == 0


def test_an_old_start_whose_owner_is_there_is_admitted(world, item):
    world.clock.at += 7_000
    world.settle(300)
    assert again(item).status == "done"


# --- depth ---


@pytest.mark.parametrize(("deepest", "status"), [("2", "completed"), ("1", "faulted")])
def test_dispatches_nest_as_deep_as_the_setting_and_no_deeper(world, set_environment, deepest, status):
    set_environment(DISPATCH_DEPTH_MAX=deepest)
    middle = Workflow("middle", root=DispatchWorkflow("child", input={"n": 1}, wait=True))
    top = Workflow("top", root=DispatchWorkflow("middle", wait=True))
    world.publish(child, middle, top)
    instance_id = world.dispatch("top")
    world.settle(60)
    shown = world.show(instance_id)
    assert shown["status"] == status
    if status == "faulted":
        assert "nest deeper than 1" in shown["failure"]["message"]
        assert [int(row.attempts) for row in world.items("start")][-1] == 0  # at once: no attempt changes it
    assert names().count("child") == (status == "completed")


def test_r03_one_start_that_fails_holds_back_none_beside_it(world):
    root = Sequence(
        DispatchWorkflow("no-such"), DispatchWorkflow("child", input={"n": 1}), Step("act", name="own")
    )
    run_parent(world, Workflow("mixed", root=root))
    world.settle(60)
    assert sorted(row.status for row in world.items("start")) == ["done", "failed"]


def test_c17_r15_a_start_delivered_again_after_a_retry_starts_nothing_twice(world, item, faults):
    faults.before("TransactWriteItems", refusal("ThrottlingException"), times=6)
    world.handle_item(item)
    for _ in range(3):
        world.handle_item(item)
    world.settle(60)
    assert names().count("child") == 1
    assert world.show(item.owner_id)["status"] == "completed"
