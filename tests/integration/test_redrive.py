"""Redrive: a dispatch that was given up is tried again under the same identity, once per call that may."""

import pytest

from aftercommit import DispatchWorkflow, Event, Sequence, Step, Workflow
from aftercommit import redrive as redriving
from aftercommit.attempts import give_up, refuse
from aftercommit.cancel import cancel
from aftercommit.definitions import store
from aftercommit.delete import delete
from aftercommit.errors import ConditionFailedError, ConflictError, NotFoundError, TryLaterError
from aftercommit.model import Failure
from aftercommit.operations import send_event
from aftercommit.outbox import find_item, settle
from aftercommit.paging import Page
from aftercommit.publish import publish, retract
from aftercommit.redrive import redrive
from aftercommit.tables import ItemRow
from aftercommit.views import list_dispatches, list_incidents
from tests.integration.bulks import begin, parent_of, starts
from tests.integration.faults import Crash, no_answer
from tests.integration.world import effects

FAILURE = Failure("OSError", "gone")
late = Workflow("late", root=Step("act", name="late"))
forgetting = Workflow("forgetting", root=DispatchWorkflow("late"))
waiting = Workflow("waiting", root=DispatchWorkflow("late", wait=True, on={"DispatchFailed": Sequence()}))


@pytest.fixture
def failed(world):
    """A dispatch of a workflow that is not published, given up."""
    return give_up_dispatch(world, forgetting)


def give_up_dispatch(world, workflow):
    world.publish(workflow)
    world.dispatch(workflow.id)
    world.settle(60)
    item = world.item("start")
    assert item.status == "failed"
    world.messages.clear()
    return item


def again(item):
    return find_item(item.tenant, item.owner_id, item.item_id)


def redrive_it(item):
    return redrive(item.tenant, item.owner_id, item.item_id)


def reason_of(item):
    with pytest.raises(ConflictError, match="not redriven: ") as caught:
        redrive_it(item)
    return caught.value.message


def test_c20_a_dispatch_that_was_given_up_is_redriven_after_its_workflow_is_published(world, failed):
    world.publish(late)
    redrive_it(failed)
    assert len(world.messages) == 1  # a hint, so that nobody waits for the sweep
    world.serve()
    [child] = [head for head in world.heads() if head.definition_id == "late"]
    assert (child.instance_id, child.status) == (failed.instance_id, "completed")
    assert again(failed).status == "done"
    assert [name for name, _, _ in effects] == ["late"]


def test_a_redriven_dispatch_keeps_its_identity_and_counts_a_generation(world, failed):
    redriven = redrive_it(failed)
    assert (redriven.status, int(redriven.generation), int(redriven.attempts)) == ("undone", 2, 0)
    assert (redriven.item_id, redriven.instance_id) == (failed.item_id, failed.instance_id)
    assert redriven.last_error == failed.last_error  # until there is another
    assert (redriven.attention_at, redriven.settled_at) == (None, None)
    assert list_dispatches("default", owner_id=None, status="failed", page=Page())["dispatches"] == []


def test_redriving_closes_the_incident_and_a_second_failure_opens_another(world, failed):
    [first] = list_incidents("default", Page())["incidents"]
    redrive_it(failed)
    assert list_incidents("default", Page())["incidents"] == []
    assert [each["open"] for each in world.show(failed.owner_id)["incidents"]] == [False]
    world.settle(60)
    assert again(failed).status == "failed"
    [second] = list_incidents("default", Page())["incidents"]
    assert second["incident_id"] != first["incident_id"]
    assert len(world.incidents()) == 2


def test_without_its_hint_a_redriven_dispatch_is_found_by_the_sweep(world, failed, faults):
    world.publish(late)
    faults.before("SendMessageBatch", RuntimeError("queue away"))
    redrive_it(failed)
    assert world.messages == []
    world.forget_stream()
    world.settle(30)
    assert again(failed).status == "done"


def test_a_dispatch_that_is_still_tried_is_not_redriven(world):
    world.publish(forgetting)
    world.run(world.dispatch("forgetting"))
    assert "still being tried" in reason_of(world.item("start"))


def test_a_dispatch_that_has_started_its_instance_is_not_redriven(world, failed):
    settle_as_done(world, failed)
    assert "has started" in reason_of(failed)


def settle_as_done(world, item):
    redrive_it(item)
    settle(again(item))
    world.messages.clear()


def test_a_dispatch_that_was_withdrawn_is_not_redriven(world, failed):
    key = {"owner_key": failed.owner_key, "item_id": failed.item_id}
    world.set_raw(ItemRow, key, status={"S": "cancelled"})
    assert "was withdrawn" in reason_of(failed)


def test_a_dispatch_whose_parent_was_told_is_not_redriven(world):
    item = give_up_dispatch(world, waiting)
    before = world.everything()
    assert "was told" in reason_of(item)
    assert world.everything() == before


def test_a_dispatch_of_a_deleted_owner_is_not_redriven(world, failed):
    delete("default", failed.owner_id)
    assert "its owner is deleted" in reason_of(failed)
    world.head(failed.owner_id).delete()
    assert "its owner is deleted" in reason_of(failed)


def test_a_dispatch_that_was_to_go_with_its_cancelled_owner_is_not_redriven(world):
    dispatch = DispatchWorkflow("late", cancel_with_parent=True)
    item = give_up_dispatch(world, Workflow("along", root=Sequence(dispatch, Event("never"))))
    cancel("default", item.owner_id, "enough")
    assert "its owner was cancelled" in reason_of(item)


def test_one_time_of_a_schedule_is_not_redriven(world, failed):
    key = {"owner_key": failed.owner_key, "item_id": failed.item_id}
    world.set_raw(ItemRow, key, deliver_at={"S": failed.created_at})
    assert "next time is armed already" in reason_of(failed)


def test_what_a_stimulus_has_started_is_redriven_though_no_instance_owns_it(world):
    begun = Workflow("begun", root=Sequence(Event("begin", starts=True), Step("act", name="begun")))
    world.publish(begun)
    send_event("default", "begin", payload={}, value=None, correlation_id=None, instance_id=None)
    world.handle_item(world.item("stimulus"))
    item = world.item("start")
    give_up(item, FAILURE)
    redrive_it(item)
    world.settle(60)
    assert again(item).status == "done"
    assert [name for name, _, _ in effects] == ["begun"]


def test_a_row_that_cannot_be_read_is_not_redriven_until_it_is_repaired(world, failed):
    key = {"owner_key": failed.owner_key, "item_id": failed.item_id}
    world.set_raw(ItemRow, key, body={"S": "{"})
    assert "cannot be read" in reason_of(failed)
    world.set_raw(ItemRow, key, body={"S": failed.body}, attempts={"S": "x"})
    assert "cannot be read" in reason_of(failed)
    world.set_raw(ItemRow, key, attempts={"N": "4"})
    assert redrive_it(failed).status == "undone"


@pytest.mark.parametrize("change", [{"owner_id": "nobody"}, {"item_id": "nothing"}, {"tenant": "other"}])
def test_i11_an_unknown_dispatch_and_another_tenants_are_not_found(world, failed, change):
    names = {"tenant": "default", "owner_id": failed.owner_id, "item_id": failed.item_id}
    before = world.everything()
    with pytest.raises(NotFoundError, match="no dispatch"):
        redrive(**names | change)
    assert world.everything() == before


def test_an_item_that_is_no_dispatch_is_not_found(world):
    give_up_dispatch(world, waiting)
    with pytest.raises(NotFoundError):
        redrive_it(world.item("resume"))


def test_c27_of_two_redrives_at_once_one_makes_it_undone(world, failed, monkeypatch):
    stale = again(failed)
    redrive_it(failed)
    before = world.everything()
    reads = [stale]
    find = redriving.find_item
    monkeypatch.setattr(redriving, "find_item", lambda *key: reads.pop() if reads else find(*key))
    with pytest.raises(ConflictError, match="still being tried"):
        redrive_it(failed)
    assert world.everything() == before


def test_a_redrive_that_read_an_earlier_generation_is_refused(world, failed, monkeypatch):
    stale = again(failed)
    redrive_it(failed)
    give_up(again(failed), FAILURE)
    reads = [stale]
    find = redriving.find_item
    monkeypatch.setattr(redriving, "find_item", lambda *key: reads.pop() if reads else find(*key))
    with pytest.raises(ConflictError, match="changed meanwhile"):
        redrive_it(failed)
    assert (again(failed).status, int(again(failed).generation)) == ("failed", 2)


def test_a_worker_of_an_earlier_generation_can_neither_count_an_attempt_nor_give_up(world, failed):
    stale = again(failed)
    stale.attempts = 0
    redrive_it(failed)
    before = world.everything()
    for act in (refuse, give_up):
        with pytest.raises(ConditionFailedError):
            act(stale, FAILURE)
    assert world.everything() == before


def test_i3_a_late_message_of_the_first_generation_starts_the_same_child(world, failed):
    world.publish(late)
    redrive_it(failed)
    for _ in range(3):
        world.handle_item(failed)
    assert len([head for head in world.heads() if head.definition_id == "late"]) == 1
    assert [name for name, _, _ in effects] == ["late"]


def test_c15_r16_a_redriven_dispatch_whose_child_is_there_converges(world, failed):
    """As where the outbox was restored from before the admission."""
    world.publish(late)
    redrive_it(failed)
    world.serve()
    key = {"owner_key": failed.owner_key, "item_id": failed.item_id}
    world.set_raw(ItemRow, key, status={"S": "failed"})
    redrive_it(failed)
    world.settle(60)
    assert again(failed).status == "done"
    assert [name for name, _, _ in effects] == ["late"]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_redrive_that_dies_is_whole_or_not_at_all(world, failed, faults, moment):
    getattr(faults, moment)("TransactWriteItems", Crash())
    with pytest.raises(Crash):
        redrive_it(failed)
    undone, [incident] = again(failed).status == "undone", world.incidents()
    assert undone == (incident.attention_at is None) == (moment == "after")


def test_a_redrive_without_an_answer_asks_to_come_again(world, failed, faults):
    faults.before("TransactWriteItems", no_answer(), times=9)
    with pytest.raises(TryLaterError):
        redrive_it(failed)
    assert again(failed).status == "failed"


def test_an_owner_whose_dispatch_was_redriven_is_not_deleted_before_that_has_ended(world, failed):
    redrive_it(failed)
    with pytest.raises(ConflictError, match="is undone"):
        delete("default", failed.owner_id)


def test_a_retracted_workflow_is_met_again_by_a_redrive_once_it_is_back(world):
    store("*", late.definition)
    publish("*", late.definition)
    retract("*", "late")
    item = give_up_dispatch(world, forgetting)
    publish("*", late.definition)
    redrive_it(item)
    world.settle(60)
    assert again(item).status == "done"


def test_a_redrive_while_its_owner_is_deleted_is_refused(world, failed, faults):
    faults.meanwhile("TransactWriteItems", lambda: delete("default", failed.owner_id))
    assert "deleted" in reason_of(failed)
    assert again(failed).status == "failed"


def test_a_redrive_while_its_owner_is_cancelled_and_it_with_it_is_refused(world, faults):
    root = Sequence(DispatchWorkflow("late", cancel_with_parent=True), Event("never"))
    failed = give_up_dispatch(world, Workflow("taking", root=root))
    faults.meanwhile("TransactWriteItems", lambda: cancel("default", failed.owner_id, "enough"))
    assert "cancelled" in reason_of(failed)
    assert again(failed).status == "failed"


def test_a_redriven_child_of_a_bulk_leaves_its_own_ending(world):
    begin(world, parent_of(["a", "b"], workflow="later", concurrent_max=1))
    world.settle(300)
    first = starts(world)[0]
    assert (first.status, first.outcome) == ("failed", "DispatchFailed")
    world.publish(Workflow("later", inputs={"item": str, "index": int}, root=Sequence(), output="done"))
    assert redrive_it(first).outcome is None
    world.settle(300)
    assert (again(first).outcome, again(first).output) == ("Completed", '"done"')
