"""Cancel: ends an instance from outside at any moment, over whoever runs it, and tells its children."""

import pytest

from aftercommit import DispatchWorkflow, Event, Sequence, Step, Workflow
from aftercommit.cancel import cancel
from aftercommit.definitions import load_definition
from aftercommit.errors import NotFoundError
from aftercommit.instances import find_head
from aftercommit.tables import DefinitionRow
from tests.integration.faults import Crash
from tests.integration.waits import bookmark_rows, parent, racer, send, sleeper, waiter, waiting
from tests.integration.world import behaviours, effects

stepper = Workflow("stepper", root=Sequence(Step("act", name="one"), Step("act", name="two")))


@pytest.fixture
def w(world):
    world.publish(waiter, parent, racer, stepper, sleeper)
    return world


def end(instance_id):
    return cancel("default", instance_id, "not wanted")


def test_a_pending_instance_is_cancelled_and_never_runs(w):
    instance_id = w.dispatch("stepper")
    assert end(instance_id)
    w.settle()
    assert w.show(instance_id)["status"] == "cancelled"
    assert effects == []


def test_c32_a_suspended_instance_is_cancelled_with_its_bookmarks(w):
    instance_id = waiting(w)
    assert end(instance_id)
    shown = w.show(instance_id)
    assert (shown["status"], shown["bookmarks"]) == ("cancelled", [])
    assert shown["failure"] == {"type": "Cancelled", "message": "not wanted"}
    assert bookmark_rows() == []
    assert w.head(instance_id).due_at is None


def test_c32_a_second_cancel_and_one_of_an_ended_instance_change_nothing(w):
    instance_id = waiting(w)
    assert end(instance_id)
    before = w.everything()
    assert not end(instance_id)
    assert w.everything() == before
    done = w.dispatch("stepper")
    w.settle(seconds=5)
    before = w.everything()
    assert not end(done)
    assert w.everything() == before


def test_an_unknown_instance_and_another_tenants_look_the_same(w):
    instance_id = waiting(w)
    for tenant, name in (("default", "nobody"), ("other", instance_id)):
        with pytest.raises(NotFoundError, match="no instance"):
            cancel(tenant, name, "x")
    assert w.show(instance_id)["status"] == "suspended"


def test_i4_a_step_that_runs_meanwhile_is_not_committed_over_the_cancel(w):
    instance_id = w.dispatch("stepper")
    behaviours["one"] = lambda context, value: end(instance_id)
    w.run(instance_id)
    w.settle()
    assert w.show(instance_id)["status"] == "cancelled"
    assert [name for name, _, _ in effects] == ["one"]
    assert len(w.revisions(instance_id)) == 1


def test_a_cancel_that_meets_the_end_of_the_burst_decides_again_on_what_has_become(w, monkeypatch):
    instance_id = w.dispatch("stepper")
    stale = find_head("default", instance_id)
    w.run(instance_id)
    reads = [stale]
    monkeypatch.setattr(
        "aftercommit.cancel.find_head", lambda *key: reads.pop() if reads else find_head(*key)
    )
    assert not end(instance_id)
    assert w.show(instance_id)["status"] == "completed"


def test_a_cancel_overtaken_by_a_step_is_tried_again_behind_it(w, monkeypatch):
    instance_id = w.dispatch("stepper")
    stale = find_head("default", instance_id)

    def die(context, value):
        raise Crash

    behaviours["two"] = die
    with pytest.raises(Crash):
        w.run(instance_id)  # its first step is committed
    reads = [stale]
    monkeypatch.setattr(
        "aftercommit.cancel.find_head", lambda *key: reads.pop() if reads else find_head(*key)
    )
    assert end(instance_id)
    assert [int(row.revision) for row in w.revisions(instance_id)] == [1, 2]
    w.settle()
    assert w.show(instance_id)["status"] == "cancelled"


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_canceller_that_dies_has_done_it_whole_or_not_at_all(w, faults, moment):
    instance_id = w.dispatch("parent")
    w.run(instance_id)
    getattr(faults, moment)("TransactWriteItems", Crash())
    with pytest.raises(Crash):
        end(instance_id)
    assert w.show(instance_id)["status"] == ("suspended" if moment == "before" else "cancelled")
    assert len(w.items("cancel")) == (moment == "after")
    assert end(instance_id) == (moment == "before")


def test_c33_a_waiting_child_that_was_not_admitted_is_withdrawn(w):
    instance_id = w.dispatch("parent")
    w.run(instance_id)
    w.messages.clear()
    assert end(instance_id)
    w.handle_item(w.item("cancel"))
    assert w.item("start").status == "cancelled"
    w.handle_item(w.item("start"))
    assert len(w.heads()) == 1


@pytest.mark.parametrize("moment", ["before", "after"])
def test_c33_a_waiting_child_that_runs_is_cancelled_though_the_worker_dies(w, faults, moment):
    instance_id = w.dispatch("parent")
    w.settle(seconds=60)
    assert end(instance_id)
    getattr(faults, moment)("TransactWriteItems", Crash(), skip=1)  # behind the withdrawal
    with pytest.raises(Crash):
        w.handle_item(w.item("cancel"))
    w.settle(seconds=600)
    assert [head.status for head in w.heads()] == ["cancelled"] * 2
    assert [item.status for item in w.items() if item.status == "undone"] == []
    if moment == "before":
        assert bookmark_rows() == []  # after: one is left in excess, for the next stimulus to remove


def test_c33_cancelling_goes_down_through_generations(w):
    w.publish(Workflow("grandparent", root=DispatchWorkflow("parent", wait=True)))
    instance_id = w.dispatch("grandparent")
    w.settle(seconds=60)
    assert end(instance_id)
    w.settle(seconds=60)
    assert [head.status for head in w.heads()] == ["cancelled"] * 3


def test_a_child_that_has_ended_keeps_its_ending(w):
    instance_id = w.dispatch("parent")
    w.settle(seconds=60)
    [child] = [head for head in w.heads() if head.definition_id == "waiter"]
    send("paid", {"order": "A"}, 1)
    [stimulus] = w.items("stimulus")
    w.handle_item(stimulus)
    assert end(instance_id)
    w.settle(seconds=60)
    assert w.statuses() == {instance_id: "cancelled", child.instance_id: "completed"}


@pytest.mark.parametrize("admitted", [True, False])
def test_the_child_of_a_losing_branch_is_cancelled(w, admitted):
    instance_id = w.dispatch("racer")
    if admitted:
        w.settle(seconds=60)
    else:
        w.run(instance_id)
        w.messages.clear()
    send("go")
    w.handle_item(w.items("stimulus")[0])
    w.handle_item(w.item("cancel"))
    w.settle(seconds=60)
    assert w.show(instance_id)["status"] == "completed"
    children = [head.status for head in w.heads() if head.definition_id == "waiter"]
    assert children == (["cancelled"] if admitted else [])


def test_a_late_answer_of_a_cancelled_child_changes_nothing(w):
    instance_id = w.dispatch("parent")
    w.settle(seconds=60)
    assert end(instance_id)
    w.settle(seconds=60)
    revisions = len(w.revisions(instance_id))
    for item in w.items():
        w.handle_item(item)
    assert len(w.revisions(instance_id)) == revisions


def test_the_timer_of_a_cancelled_instance_does_nothing(w):
    instance_id = w.dispatch("sleeper", {"seconds": 3_000})
    w.run(instance_id)
    assert end(instance_id)
    w.settle()
    assert w.show(instance_id)["status"] == "cancelled"
    assert [item.status for item in w.items()] == ["done"]


def test_i2_a_child_whose_definition_is_missing_is_cancelled_once_that_is_back(w):
    w.publish(
        Workflow("kept", root=Event("never")), Workflow("keeping", root=DispatchWorkflow("kept", wait=True))
    )
    parent_id = w.dispatch("keeping")
    w.settle(60)
    [child] = [head for head in w.heads() if head.definition_id == "kept"]
    rows = [row for row in DefinitionRow.scan() if row.definition_key == "*#kept"]
    for row in rows:
        row.delete()
    load_definition.cache_clear()
    cancel("default", parent_id, "enough")
    w.settle(60)
    assert w.item("cancel").status == "undone"
    for row in rows:
        row.save()
    w.settle(3_600)
    assert w.statuses()[child.instance_id] == "cancelled"
