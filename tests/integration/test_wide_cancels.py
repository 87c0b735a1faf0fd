"""However much one commit has to undo or to wait for, it fits into one transaction."""

import pytest

from aftercommit import (
    BulkDispatchWorkflows,
    DispatchWorkflow,
    Event,
    Fault,
    Fork,
    ParallelForEach,
    Sequence,
    Step,
    Workflow,
    expr,
)
from aftercommit.cancel import cancel
from tests.integration.bulks import admit, begin, starts
from tests.integration.faults import Crash

idle = Workflow("idle", inputs={"n": int}, root=Event("never"))
_BULK = BulkDispatchWorkflows("idle", [1], input={"n": 1}, wait=True)
_CHILD = DispatchWorkflow("idle", input={"n": 1}, wait=True)


def wide(activity, number, *more):
    root = Fork(ParallelForEach(expr(f"[1..{number}]"), activity), *more)
    return Workflow("wide", inputs={"item": {}, "index": int}, root=root)


@pytest.fixture
def cancelled(world):
    """An instance that waited in many bulk dispatches at once."""
    world.publish(idle, wide(_BULK, 101))
    instance_id = world.dispatch("wide", {"item": 1, "index": 1})
    world.run(instance_id)
    admit(world, 7)
    assert cancel("default", instance_id, "enough")
    return instance_id


def test_c33_many_bulk_dispatches_are_cancelled_by_one_commit(world, cancelled):
    assert world.show(cancelled)["status"] == "cancelled"
    [gathered] = world.items("cancel")
    world.handle_item(gathered)
    parts = [each for each in world.items("cancel") if each.item_id != gathered.item_id]
    assert len(parts) == 101
    for each in parts:
        world.handle_item(each)
    assert sorted({(row.status, row.outcome) for row in starts(world)}) == [
        ("cancelled", "Cancelled"),
        ("done", "Cancelled"),
    ]
    assert {row.status for row in world.items("join")} == {"cancelled"}
    assert {row.status for row in world.items("cancel")} == {"done"}


def test_one_that_dies_among_the_parts_makes_each_once(world, cancelled, faults):
    [gathered] = world.items("cancel")
    faults.after("PutItem", Crash(), skip=40, match="join_id")
    with pytest.raises(Crash):
        world.handle_item(gathered)
    assert len(world.items("cancel")) == 42
    world.handle_item(gathered)
    world.handle_item(gathered)
    assert len(world.items("cancel")) == 102


def test_a_fault_behind_a_full_commit_fits_into_it(world):
    over = wide(_CHILD, 179, Fault("no"))
    parent = Workflow("over", root=BulkDispatchWorkflows("wide", [1, 2], wait=True, concurrent_max=1))
    begin(world, parent, idle, over)
    admit(world, 0)
    [head] = [each for each in world.heads() if each.definition_id == "wide"]
    assert head.status == "faulted"
    assert len(world.items("start")) == 181


def test_waits_that_many_steps_lead_to_under_commit_by_burst_fit_into_their_commits(world):
    branch = Sequence(Step("act", name="s"), Event("e"))
    world.publish(Workflow("made", commit="burst", root=ParallelForEach(expr("[1..120]"), branch)))
    instance_id = world.dispatch("made")
    world.run(instance_id)
    assert world.show(instance_id)["status"] == "suspended"
