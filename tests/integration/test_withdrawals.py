"""Children that nobody waits for any more: withdrawn before they begin, or cancelled, however many."""

import pytest

from aftercommit import DispatchWorkflow, Event, ParallelForEach, Workflow
from aftercommit.cancel import cancel
from aftercommit.views import show_instance

CHILDREN = 27  # more than one intention to cancel speaks of
waiter = Workflow("waiter", root=Event("never"))
wide = Workflow("wide", root=ParallelForEach(list(range(CHILDREN)), DispatchWorkflow("waiter", wait=True)))


def statuses(world, owner_id):
    found = world.statuses()
    found.pop(owner_id)
    return sorted(set(found.values())), len(found)


@pytest.mark.parametrize("admitted", [True, False])
def test_a_wide_fan_out_that_is_cancelled_leaves_no_child_running(world, admitted):
    world.publish(waiter, wide)
    parent = world.dispatch("wide")
    if admitted:
        world.settle()
    else:
        world.run(parent)
        world.forget_stream()
    assert cancel("default", parent, "enough")
    world.settle()
    assert show_instance("default", parent)["status"] == "cancelled"
    if admitted:
        assert statuses(world, parent) == (["cancelled"], CHILDREN)
    else:
        assert statuses(world, parent) == ([], 0)
