"""What users see of delivery, row by row of the list of behaviours that older systems tested."""

from aftercommit import (
    DispatchWorkflow,
    Sequence,
    Workflow,
    clock,
)
from aftercommit.deliver import deliver
from aftercommit.sweep import sweep
from aftercommit.tables import ItemRow
from tests.integration.faults import no_answer, refusal
from tests.integration.flows import child, names, parent, run_parent
from tests.integration.world import behaviours


def test_c01_of_two_deliverers_one_sends_and_no_attempt_is_counted(world):
    run_parent(world)
    item = world.item()
    key = (item.owner_key, item.item_id)
    assert [deliver([key]), deliver([key])] == [1, 0]
    assert len(world.messages) == 1
    assert int(world.item().attempts) == 0


def test_c06_an_item_is_acked_once_and_a_late_record_undoes_nothing(world, faults):
    """The send fails for the deliverer, though the message is out: its record comes after the ack."""
    run_parent(world)
    item = world.item()
    faults.after("SendMessageBatch", RuntimeError("lost"), times=1)
    world.handle_item(item)
    before = world.everything()
    assert deliver([(item.owner_key, item.item_id)]) == 0
    assert world.everything() == before


def test_c07_sent_but_not_recorded_counts_no_attempt_and_has_one_effect(world, faults):
    """Here the record of a send is its claim, made before: a claim that fails sends nothing."""
    instance_id = run_parent(world)
    item = world.item()
    faults.after("UpdateItem", no_answer(), match=item.item_id)
    assert deliver([(item.owner_key, item.item_id)]) in (0, 1)
    assert int(world.item().attempts) == 0
    world.forget_stream()
    world.settle()
    assert world.show(instance_id)["status"] == "completed"
    assert names().count("child") == 1


def test_c08_a_send_that_fails_is_an_attempt_and_the_item_stays(world, faults):
    run_parent(world)
    item = world.item()
    faults.before("SendMessageBatch", refusal("OverLimit"))
    assert deliver([(item.owner_key, item.item_id)]) == 0
    found = world.item()
    assert (found.status, int(found.attempts)) == ("undone", 1)
    assert "OverLimit" in found.last_error


def test_c09_r03_a_failure_that_cannot_be_recorded_stops_no_other(world, faults):
    many = Workflow("many", root=Sequence(*[DispatchWorkflow("child", input={"n": n}) for n in range(4)]))
    run_parent(world, many)
    items = world.items()
    faults.before("UpdateItem", RuntimeError("away"), match=items[1].item_id, times=9)
    assert deliver([(each.owner_key, each.item_id) for each in items]) == 3
    assert len(world.messages) == 3


def test_c12_with_eager_delivery_off_the_sweep_delivers(world, set_environment):
    set_environment(EAGER_DELIVERY="false")
    instance_id = run_parent(world)
    sweep()
    assert len(world.messages) == 1
    began = clock.now()
    world.settle()
    assert world.show(instance_id)["status"] == "completed"
    assert clock.now() - began < 25


def test_c02_tenants_do_not_wait_for_each_other(world):
    world.publish(child, parent)
    busy, other = (world.dispatch("parent", tenant=tenant) for tenant in ("busy", "other"))
    world.run(busy, tenant="busy")
    world.messages.clear()
    behaviours["child"] = lambda context, value: value if context.tenant == "other" else 1 / 0
    world.run(other, tenant="other")
    world.settle()
    assert world.show(other, "other")["status"] == "completed"
    assert world.show(busy, "busy")["status"] == "faulted"


def test_r17_the_sweep_repeats_until_everything_has_gone_through(world, faults):
    """Nothing is recovered only once, at a start: each pass finds what the last could not do."""
    instance_id = run_parent(world)
    world.forget_stream()
    faults.before("SendMessageBatch", RuntimeError("away"), times=2)
    faults.before("Query", RuntimeError("away"), times=8)
    world.settle()
    assert world.show(instance_id)["status"] == "completed"


def test_c13_ineligible_items_are_set_aside_before_the_limit_counts(world, set_environment):
    set_environment(DUE_SHARDS="1", SWEEP_BATCH="3", EAGER_DELIVERY="false")
    many = Workflow("many", root=Sequence(*[DispatchWorkflow("child", input={"n": n}) for n in range(6)]))
    run_parent(world, many)
    for row in world.items()[:3]:
        key = {"owner_key": row.owner_key, "item_id": row.item_id}
        world.set_raw(ItemRow, key, body={"S": "{"}, due_at={"S": clock.to_text(clock.now() - 100)})
    for _ in range(3):
        sweep()
    assert len(world.messages) >= 3
