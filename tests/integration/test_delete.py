"""Delete: an ended instance is hidden at once, and every row of it is gone after a day, the head last."""

import pytest

from aftercommit import DispatchWorkflow, Workflow, clock
from aftercommit.cancel import cancel
from aftercommit.delete import KEPT_SECONDS, delete
from aftercommit.errors import ConflictError, NotFoundError
from aftercommit.instances import find_head
from aftercommit.sweep import sweep
from aftercommit.tables import RevisionRow
from tests.integration.faults import Crash, refusal
from tests.integration.waits import parent, sleeper, waiter, waiting
from tests.integration.world import raw_rows

TABLES = ("InstancesTable", "OutboxTable", "BookmarksTable")


@pytest.fixture
def w(world):
    world.publish(waiter, parent, sleeper, Workflow("forgetting", root=DispatchWorkflow("nobody")))
    return world


@pytest.fixture
def ended(w):
    """An ended instance with journal, a failed dispatch and its incident."""
    instance_id = w.dispatch("forgetting")
    w.settle(seconds=600)
    assert len(w.incidents()) == 1
    return instance_id


def rows(instance_id):
    return [row for table in TABLES for row in raw_rows(table) if instance_id in str(row)]


def pass_a_day(world):
    world.clock.at += KEPT_SECONDS + 1
    sweep()


def test_r07_a_deleted_instance_is_hidden_at_once_and_all_its_rows_go_after_a_day(w, ended):
    stored = len(rows(ended))
    delete("default", ended)
    with pytest.raises(NotFoundError):
        w.show(ended)
    w.clock.at += KEPT_SECONDS - 1
    sweep()
    assert len(rows(ended)) == stored
    pass_a_day(w)
    assert rows(ended) == []


@pytest.mark.parametrize("state", ["pending", "suspended"])
def test_what_has_not_ended_is_not_deleted(w, state):
    instance_id = w.dispatch("waiter", {"order": "A"})
    if state == "suspended":
        w.run(instance_id)
    before = w.everything()
    with pytest.raises(ConflictError, match=f"is {state}; cancel it first"):
        delete("default", instance_id)
    assert w.everything() == before


def test_what_owns_an_undone_item_is_not_deleted(w):
    instance_id = w.dispatch("forgetting")
    w.run(instance_id)
    with pytest.raises(ConflictError, match="is undone"):
        delete("default", instance_id)
    w.settle(seconds=600)
    delete("default", instance_id)


def test_r07_a_timer_that_nothing_waits_for_any_more_is_in_nobodys_way(w):
    instance_id = w.dispatch("sleeper", {"seconds": 10**8})
    w.run(instance_id)
    cancel("default", instance_id, "x")
    delete("default", instance_id)
    assert w.item().due_at is None
    pass_a_day(w)
    assert rows(instance_id) == []
    w.clock.at += 10**8
    w.settle()
    assert w.heads() == []


def test_a_second_delete_another_tenants_and_an_unknown_one_look_the_same(w, ended):
    with pytest.raises(NotFoundError):
        delete("other", ended)
    delete("default", ended)
    for name in (ended, "nobody"):
        with pytest.raises(NotFoundError):
            delete("default", name)
    with pytest.raises(NotFoundError):
        cancel("default", ended, "x")


def test_of_two_deletes_at_once_one_wins(w, ended, monkeypatch):
    stale = find_head("default", ended)
    delete("default", ended)
    before = w.everything()
    monkeypatch.setattr("aftercommit.delete.find_head", lambda *_: stale)
    with pytest.raises(NotFoundError):
        delete("default", ended)
    assert w.everything() == before


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize(
    ("operation", "skip"),
    [("BatchWriteItem", 0), ("BatchWriteItem", 1), ("DeleteItem", 0)],  # items, rows, head
)
def test_a_sweep_that_dies_while_removing_is_finished_by_the_next(w, ended, faults, moment, operation, skip):
    delete("default", ended)
    plan = getattr(faults, moment)(operation, Crash(), skip=skip)
    w.clock.at += KEPT_SECONDS + 1
    with pytest.raises(Crash):
        sweep()
    assert plan.struck == 1
    if moment == "before":
        assert find_head("default", ended)  # the head is the last to go
    w.clock.at += 3_600
    sweep()
    assert rows(ended) == []


def test_c05_a_removal_that_fails_changes_nothing_else_and_is_made_on_a_later_pass(w, ended, faults):
    """What else expires is removed by DynamoDB itself; the rows of deleted instances are ours to remove."""
    delete("default", ended)
    stored = rows(ended)
    faults.before("BatchWriteItem", refusal("InternalServerError"), times=99)
    pass_a_day(w)
    kept = {(row.get("row") or row["item_id"])["S"]: row for row in rows(ended)}
    for row in stored:
        same = kept.pop((row.get("row") or row["item_id"])["S"])
        assert {**same, "due_at": 0, "sends": 0} == {**row, "due_at": 0, "sends": 0}  # looked at again later
    assert kept == {}
    faults.close()
    w.clock.at += 3_600
    sweep()
    assert rows(ended) == []


def test_rows_that_cannot_be_read_are_removed_too(w, ended):
    [row, *_] = w.revisions(ended)
    w.set_raw(
        RevisionRow, {"instance_key": row.instance_key, "row": row.row}, revision={"S": "x"}, journal=None
    )
    delete("default", ended)
    pass_a_day(w)
    assert rows(ended) == []


def test_the_children_of_a_deleted_instance_stay(w):
    instance_id = w.dispatch("parent")
    w.settle(seconds=60)
    cancel("default", instance_id, "x")
    w.settle(seconds=60)
    delete("default", instance_id)
    pass_a_day(w)
    assert [head.definition_id for head in w.heads()] == ["waiter"]


def test_an_id_is_free_again_when_its_rows_are_gone(w):
    waiting(w, instance_id="mine")
    cancel("default", "mine", "x")
    delete("default", "mine")
    pass_a_day(w)
    waiting(w, instance_id="mine")
    assert w.show("mine")["status"] == "suspended"
    assert clock.from_text(w.head("mine").created_at) == pytest.approx(clock.now(), abs=0.001)
