"""Which ended instances are kept: those still needed, or by a changed setting; and parents and children."""

import json

import pytest

from aftercommit import (
    DispatchWorkflow,
    Event,
    Sequence,
    Step,
    Workflow,
)
from aftercommit.cancel import cancel
from aftercommit.delete import delete
from aftercommit.redrive import redrive
from aftercommit.start import start
from aftercommit.sweep import sweep
from aftercommit.tables import HeadRow, IncidentRow, ItemRow
from tests.integration.ended import (
    DAY,
    DAYS,
    WORKFLOWS,
    end,
    in_days,
    is_shown,
    late,
    pass_days,
    rows,
)
from tests.integration.waits import send
from tests.integration.world import behaviours


@pytest.fixture
def w(world, set_environment):
    set_environment(ENDED_INSTANCE_DAYS=str(DAYS))
    world.publish(*WORKFLOWS)
    return world


@pytest.fixture
def ended(w):
    """An instance that has completed just now."""
    return end(w)


# --- what is still needed ---


def test_what_owns_an_undone_item_is_kept_as_many_days_again(w, log_lines, capsys):
    instance_id = end(w, "forgetting")
    w.forget_stream()
    item = w.item("start")
    key = {"owner_key": item.owner_key, "item_id": item.item_id}
    w.set_raw(ItemRow, key, due_at={"S": in_days(400)})
    pass_days(w, DAYS)
    assert w.head(instance_id).due_at == in_days(DAYS)
    assert is_shown(w, instance_id)
    assert "InstancesKept" in capsys.readouterr().out
    [line] = [line for line in map(json.loads, log_lines) if line["message"] == "instance kept"]
    assert (line["instance_id"], line["reason"]) == (instance_id, f"its item {item.item_id} is undone")
    w.set_raw(ItemRow, key, status={"S": "done"}, due_at=None)
    pass_days(w, DAYS)
    assert not is_shown(w, instance_id)


def test_what_owns_a_dispatch_that_failed_untold_is_kept_until_that_is_redriven(w):
    instance_id = end(w, "forgetting")
    w.settle(seconds=600)
    item = w.item("start")
    assert item.status == "failed"
    for _ in range(3):
        pass_days(w, DAYS)
        assert is_shown(w, instance_id)
    w.publish(late)
    redrive("default", instance_id, item.item_id)
    w.settle(seconds=600)
    assert w.item("start").status == "done"
    pass_days(w, DAYS)
    assert not is_shown(w, instance_id)


def test_a_caller_may_delete_what_is_kept(w):
    instance_id = end(w, "forgetting")
    w.settle(seconds=600)
    pass_days(w, DAYS)
    delete("default", instance_id)
    pass_days(w, 1)
    assert rows(instance_id) == []


def test_a_failure_that_was_told_to_who_waited_keeps_nothing(w):
    instance_id = end(w, "told")
    w.settle(seconds=600)
    assert w.item("start").status == "failed"
    pass_days(w, DAYS)
    pass_days(w, 1)
    assert rows(instance_id) == []


def test_incidents_go_with_their_instance(w):
    w.publish(Workflow("raising", root=Step("act", name="raising")))
    behaviours["raising"] = lambda *_: 1 / 0
    instance_id = end(w, "raising")
    assert w.head(instance_id).status == "faulted"
    assert len(list(IncidentRow.attention.query("default"))) == 1
    pass_days(w, DAYS)
    pass_days(w, 1)
    assert list(IncidentRow.attention.query("default")) == []


@pytest.mark.parametrize("status", ["asleep", None])
def test_an_item_whose_status_this_code_does_not_know_keeps_its_owner(w, status):
    instance_id = end(w, "told")
    w.settle(seconds=600)
    item = w.item("start")
    damaged = {"S": status} if status else None
    w.set_raw(ItemRow, {"owner_key": item.owner_key, "item_id": item.item_id}, status=damaged)
    pass_days(w, DAYS)
    assert is_shown(w, instance_id)


def test_a_head_without_its_time_is_told_as_one_that_cannot_be_read(w, ended):
    w.set_raw(HeadRow, {"instance_key": f"default#{ended}", "row": "head"}, ended_at=None)
    other = end(w)
    pass_days(w, DAYS)
    assert is_shown(w, ended)
    assert not is_shown(w, other)
    assert [each.error_type for each in w.incidents()] == ["UnreadableInstanceError"]


# --- the setting, when it is changed ---


def test_a_longer_time_counts_for_those_that_are_there(w, set_environment, ended):
    set_environment(ENDED_INSTANCE_DAYS="90")
    pass_days(w, DAYS)
    assert w.head(ended).due_at == in_days(60)
    pass_days(w, 60)
    assert not is_shown(w, ended)


def test_a_shorter_time_counts_for_what_ends_from_then_on(w, set_environment, ended):
    set_environment(ENDED_INSTANCE_DAYS="10")
    other = end(w)
    pass_days(w, 10)
    assert (is_shown(w, ended), is_shown(w, other)) == (True, False)
    pass_days(w, 20)
    assert not is_shown(w, ended)


def test_what_comes_due_while_all_are_kept_for_ever_is(w, set_environment, ended):
    set_environment(ENDED_INSTANCE_DAYS="0")
    pass_days(w, DAYS)
    assert w.head(ended).due_at is None
    set_environment(ENDED_INSTANCE_DAYS="30")
    pass_days(w, 10 * DAYS)
    assert is_shown(w, ended)


def test_what_was_deleted_is_removed_though_all_others_are_kept_for_ever_by_now(w, set_environment, ended):
    pass_days(w, DAYS)
    set_environment(ENDED_INSTANCE_DAYS="0")
    pass_days(w, 1)
    assert rows(ended) == []


def test_what_ended_before_it_was_switched_on_stays(w, set_environment):
    set_environment(ENDED_INSTANCE_DAYS="0")
    instance_id = end(w)
    set_environment(ENDED_INSTANCE_DAYS=str(DAYS))
    pass_days(w, 10 * DAYS)
    assert is_shown(w, instance_id)


# --- parents and children ---


def test_a_child_that_is_gone_is_not_started_again_by_old_messages_of_its_parent(w):
    parent_id = end(w, "awaiting")
    [item] = w.items("start")
    w.settle(seconds=60)
    assert w.head(parent_id).status == "suspended"
    w.clock.at += DAYS * DAY
    sweep()
    pass_days(w, 1)
    assert [head.instance_id for head in w.heads()] == [parent_id]
    before = w.everything()
    w.handle_item(item)
    # Nor by a worker that has read the dispatch before its child was admitted.
    start(item, w.worker())
    assert w.everything() == before
    send("go")
    w.settle(seconds=60)
    assert w.head(parent_id).status == "completed"


def test_an_id_that_begins_anew_has_children_of_its_own_though_the_old_ones_are_there(w):
    w.publish(Workflow("asking", root=DispatchWorkflow("step", wait=True)))
    for life in (1, 2):
        w.dispatch("asking", instance_id="mine")
        w.settle(seconds=60)
        assert w.show("mine")["status"] == "completed"
        children = [head for head in HeadRow.scan() if head.row == "head" and head.definition_id == "step"]
        assert [head.status for head in children] == ["completed"] * life
        delete("default", "mine")
        pass_days(w, 1)


def leave_child(world):
    """Return (parent, child): the parent has ended, and the child that it waited for waits on."""
    parent_id = end(world, "leaving")
    world.settle(seconds=60)
    [child_id] = [head.instance_id for head in world.heads() if head.parent_instance_id == parent_id]
    assert (world.head(parent_id).status, world.head(child_id).status) == ("completed", "suspended")
    return parent_id, child_id


def test_a_child_outlives_its_parent_and_tells_nobody_then(w):
    parent_id, child_id = leave_child(w)
    pass_days(w, DAYS)
    pass_days(w, 1)
    assert rows(parent_id) == [row for row in rows(child_id) if parent_id in str(row)]
    send("go")
    w.settle(seconds=600)
    assert w.head(child_id).status == "completed"
    [told] = [item for item in w.items("resume") if item.owner_id == child_id]
    assert told.status == "done"
    assert w.incidents() == []
    pass_days(w, DAYS)
    pass_days(w, 1)
    assert w.heads() == []


@pytest.mark.parametrize("days", ["0", "30"])
def test_a_parent_that_is_missing_and_cannot_have_gone_by_itself_is_an_incident(w, set_environment, days):
    set_environment(ENDED_INSTANCE_DAYS=days)
    parent_id, child_id = leave_child(w)
    HeadRow(f"default#{parent_id}", "head").delete()
    w.clock.at += DAYS * DAY - 3_600 if days == "30" else DAYS * DAY
    send("go")
    w.settle(seconds=600)
    [told] = [item for item in w.items("resume") if item.owner_id == child_id]
    assert told.status == "failed"
    assert [each.instance_id for each in w.incidents()] == [child_id]


def test_a_cancel_of_a_child_that_is_gone_is_done(w):
    w.publish(Workflow("tidy", root=Sequence(DispatchWorkflow("step", cancel_with_parent=True), Event("go"))))
    parent_id = end(w, "tidy")
    w.settle(seconds=60)
    w.clock.at += DAYS * DAY
    sweep()
    pass_days(w, 1)
    assert [head.instance_id for head in w.heads()] == [parent_id]
    cancel("default", parent_id, "x")
    w.settle(seconds=60)
    assert {item.status for item in w.items("cancel")} == {"done"}
