"""Which children go with a parent that is cancelled: a policy of each dispatch, and who was first."""

import pytest

from aftercommit import DispatchWorkflow, Event, ForEach, Fork, Sequence, Step, Workflow, var
from aftercommit.cancel import cancel
from aftercommit.intentions import intend_cancels_of
from aftercommit.outbox import find_item
from aftercommit.tables import ItemRow
from tests.integration.faults import Crash
from tests.integration.waits import send
from tests.integration.world import behaviours, effects

waiter = Workflow("waiter", root=Event("go"))
quick = Workflow("quick", root=Step("act", name="quick"))


def dispatching(**more):
    """A parent with one child, that goes on waiting for something else."""
    return Workflow("parent", root=Fork(DispatchWorkflow("waiter", **more), Event("never")))


def begin(world, workflow, *, admitted=True):
    world.publish(waiter, quick, workflow)
    parent_id = world.dispatch(workflow.id)
    world.run(parent_id)
    if admitted:
        world.settle(60)
    world.messages.clear()
    return parent_id


def end(parent_id):
    return cancel("default", parent_id, "not wanted")


def child_status(world):
    return next((head.status for head in world.heads() if head.definition_id == "waiter"), None)


@pytest.mark.parametrize(
    ("policy", "status"),
    [
        ({"wait": True}, "cancelled"),
        ({"wait": True, "cancel_with_parent": True}, "cancelled"),
        ({"wait": True, "cancel_with_parent": False}, "suspended"),
        ({}, "suspended"),
        ({"cancel_with_parent": False}, "suspended"),
        ({"cancel_with_parent": True}, "cancelled"),
    ],
    ids=str,
)
def test_c33_a_child_goes_with_its_cancelled_parent_if_its_dispatch_says_so(world, policy, status):
    parent_id = begin(world, dispatching(**policy))
    assert end(parent_id)
    world.settle(60)
    assert world.show(parent_id)["status"] == "cancelled"
    assert child_status(world) == status


@pytest.mark.parametrize("wait", [True, False])
def test_a_start_that_was_not_admitted_is_withdrawn_and_never_runs(world, wait):
    workflow = Workflow(
        "parent", root=Fork(DispatchWorkflow("quick", wait=wait, cancel_with_parent=True), Event("never"))
    )
    parent_id = begin(world, workflow, admitted=False)
    start = world.item("start")
    end(parent_id)
    for item in world.items("cancel"):
        world.handle_item(item)
    for item in world.items("cancel"):
        world.handle_item(item)
    assert find_item("default", parent_id, start.item_id).status == "cancelled"
    world.handle_item(start)  # its message comes all the same
    world.settle(60)
    assert effects == []


def test_a_start_that_was_not_admitted_and_is_to_be_left_alone_runs(world):
    parent_id = begin(
        world, Workflow("parent", root=Fork(DispatchWorkflow("quick"), Event("never"))), admitted=False
    )
    end(parent_id)
    world.settle(60)
    assert [name for name, _, _ in effects] == ["quick"]


def test_a_child_that_is_left_alone_ends_and_tells_nobody_any_more(world):
    parent_id = begin(world, dispatching(wait=True, cancel_with_parent=False))
    end(parent_id)
    send("go")
    world.settle(600)
    assert child_status(world) == "completed"
    assert world.show(parent_id)["status"] == "cancelled"
    assert all(item.status == "done" for item in world.items())


@pytest.mark.parametrize("wait", [True, False])
def test_a_child_that_ended_first_outranks_a_late_cancel(world, wait):
    workflow = Workflow(
        "parent", root=Fork(DispatchWorkflow("quick", wait=wait, cancel_with_parent=True), Event("never"))
    )
    parent_id = begin(world, workflow, admitted=False)
    world.handle_item(world.item("start"))  # it has ended, and its parent was not told yet
    end(parent_id)
    world.settle(600)
    [child] = [head for head in world.heads() if head.definition_id == "quick"]
    assert child.status == "completed"
    assert all(item.status == "done" for item in world.items())


def test_a_fault_or_an_end_of_the_parent_leaves_those_alone_that_nobody_waits_for(world):
    workflow = Workflow("parent", root=DispatchWorkflow("waiter", cancel_with_parent=True))
    parent_id = begin(world, workflow)
    assert world.show(parent_id)["status"] == "completed"
    assert not end(parent_id)
    world.settle(60)
    assert child_status(world) == "suspended"


def test_what_an_activity_dispatches_goes_with_its_instance_if_it_says_so(world):
    behaviours["queue"] = lambda context, _: [
        context.dispatch("waiter", cancel_with_parent=along) for along in (True, False)
    ]
    workflow = Workflow("parent", root=Sequence(Step("act", name="queue"), Event("never")))
    parent_id = begin(world, workflow)
    end(parent_id)
    world.settle(60)
    statuses = sorted(head.status for head in world.heads() if head.definition_id == "waiter")
    assert statuses == ["cancelled", "suspended"]


MANY = 60  # more than two intentions speak of


@pytest.fixture
def many(world):
    """A parent that has started many, each to go with it, and one that is not."""
    root = Sequence(
        ForEach(list(range(MANY)), DispatchWorkflow("waiter", cancel_with_parent=True), item="n"),
        DispatchWorkflow("waiter"),
        Event("never"),
    )
    return begin(world, Workflow("parent", root=root), admitted=False)


def withdrawn(world):
    return [item.status for item in world.items("start")].count("cancelled")


def test_however_many_were_started_all_go_that_are_to(world, many):
    end(many)
    world.handle_item(world.item("cancel"))
    assert len(world.items("cancel")) == 1 + 3
    for item in world.items("cancel"):
        world.handle_item(item)
    assert withdrawn(world) == MANY


@pytest.mark.parametrize("skip", [0, 1, 2, 3])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_worker_that_dies_while_telling_them_is_finished_by_the_next(world, many, faults, moment, skip):
    end(many)
    along = world.item("cancel")
    operation = "PutItem" if skip < 3 else "UpdateItem"
    getattr(faults, moment)(operation, Crash(), skip=skip if skip < 3 else 0)
    with pytest.raises(Crash):
        world.handle_item(along)
    world.handle_item(along)
    assert len(world.items("cancel")) == 1 + 3
    for item in world.items("cancel"):
        world.handle_item(item)
    assert withdrawn(world) == MANY


def test_a_dispatch_that_cannot_be_read_hides_none_of_the_others(world, many):
    [first, *_] = world.items("start")
    key = {"owner_key": first.owner_key, "item_id": first.item_id}
    world.set_raw(ItemRow, key, body={"N": "5"})
    end(many)
    world.handle_item(next(each for each in keys(world, "cancel")))
    for item in keys(world, "cancel"):
        world.handle_item(item)
    rows = world.everything()["OutboxTable"]
    assert sum('"status": {"S": "cancelled"}' in row for row in rows) == MANY - 1


def keys(world, command):
    """Return the items of a command, where not all rows can be read."""
    return list(ItemRow.scan(ItemRow.command == command))


def test_cancels_of_the_same_dispatches_are_the_same_items():
    pairs = [(f"instance-{n}", f"item-{n}") for n in range(60)]
    first, second = intend_cancels_of(pairs), intend_cancels_of(pairs)
    assert [each.item_id for each in first] == [each.item_id for each in second]
    told = [pair["item_id"] for each in first for pair in (each.body, *each.body["more"])]
    assert told == [item_id for _, item_id in pairs]
    assert intend_cancels_of([]) == []


def test_a_parent_without_such_children_makes_no_item_to_look_for_them(world):
    parent_id = begin(world, dispatching())
    end(parent_id)
    assert world.items("cancel") == []


def test_a_losing_branch_leaves_a_child_alone_that_its_dispatch_says_to(world):
    root = Fork(
        DispatchWorkflow("waiter", wait=True, cancel_with_parent=False, result="x"), Event("win"), wait="any"
    )
    parent_id = begin(world, Workflow("parent", root=root, output=var.x))
    send("win")
    world.settle(60)
    assert world.show(parent_id)["status"] == "completed"
    assert child_status(world) == "suspended"
