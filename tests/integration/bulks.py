"""Workflows that dispatch in bulk, and short ways to look at what became of it."""

from aftercommit import (
    BulkDispatchWorkflows,
    Event,
    Fault,
    Fork,
    If,
    Sequence,
    SetVariable,
    Step,
    Workflow,
    expr,
    var,
)
from aftercommit import inputs as given_inputs
from aftercommit.ids import derive_child_id
from aftercommit.joins import COUNTED
from aftercommit.tables import TallyRow, key_of

child = Workflow(
    "child",
    inputs={"item": {}, "index": int},
    root=Sequence(
        If(given_inputs.item == "bad", then=Fault("bad item", code="Bad")),
        If(given_inputs.item == "wait", then=Event("never")),
        Step("act", name="child", value=given_inputs.item),
    ),
    output={"was": given_inputs.item},
)
strict = Workflow("strict", inputs={"item": str, "index": int}, root=Sequence(), output=given_inputs.item)


def bulk_of(items, workflow="child", **more):
    return BulkDispatchWorkflows(workflow, items, result="x", **more)


def parent_of(items, workflow="child", *, workflow_id="parent", inputs=None, **more):
    root = Sequence(bulk_of(items, workflow, **more), Step("act", name="after"))
    return Workflow(workflow_id, inputs=inputs, root=root, output=var.x)


waiting = parent_of(["a", "b", "c"], wait=True)
racing = Workflow(
    "racing",
    root=Fork(bulk_of(["wait", "wait", "wait"], wait=True, concurrent_max=2), Event("go"), wait="any"),
)
twice = Workflow(
    "twice",
    root=Fork(
        BulkDispatchWorkflows("child", ["a", "bad"], wait=True, tolerated_failures=1, result="x"),
        BulkDispatchWorkflows("child", ["c"], wait=True, result="y"),
    ),
    output=[var.x, var.y],
)


def handling(items, **more):
    return parent_of(
        items,
        wait=True,
        each_completed=SetVariable("seen", expr("$append(var.seen, [var.batch.index])")),
        each_faulted=SetVariable("bad", expr("$append(var.bad, [var.batch.index])")),
        **more,
    )


def begin(world, workflow, *more):
    """Run a parent up to where it has dispatched; returns its id."""
    world.publish(child, strict, workflow, *more)
    instance_id = world.dispatch(workflow.id)
    world.run(instance_id)
    world.messages.clear()
    return instance_id


def starts(world):
    return sorted(world.items("start"), key=lambda row: row.item_id)


def admit(world, index):
    """Let a worker have the start of a child."""
    item = starts(world)[index]
    world.handle_item(item)
    return derive_child_id(item.item_id)


def tally(world, instance_id):
    """Return the indexes that are counted, by how; and how often."""
    counted = {name: [] for name in COUNTED.values()}
    rows = TallyRow.query(key_of("default", instance_id), TallyRow.row.startswith("count#"))
    for row in rows:
        for name in counted:
            counted[name] += map(int, getattr(row, name) or ())
    return {name: sorted(found) for name, found in counted.items() if found}


def resumes(world, instance_id):
    """Return how often an instance was continued at a bookmark."""
    return sum('"kind":"resume"' in row.commands for row in world.revisions(instance_id))
