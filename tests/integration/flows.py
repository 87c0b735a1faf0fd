"""The workflows that the tests of flows share, and how they begin."""

from aftercommit import (
    DispatchWorkflow,
    Sequence,
    Step,
    Workflow,
    var,
)
from aftercommit import inputs as given_inputs
from tests.integration.world import effects

child = Workflow(
    "child",
    inputs={"n": int},
    root=Step("act", name="child", value=given_inputs.n, result="x"),
    output={"n": var.x},
)


def waiting_for(workflow_id="child", *, on=None, **given):
    return Workflow(
        "parent",
        root=Sequence(
            Step("act", name="before"),
            DispatchWorkflow(workflow_id, input=given, wait=True, result="made", on=on),
            Step("act", name="after"),
        ),
        output=var.made,
    )


parent = waiting_for(n=7)
forgetting = Workflow(
    "forgetting", root=Sequence(DispatchWorkflow("child", input={"n": 1}), Step("act", name="own"))
)


def names():
    return [name for name, _, _ in effects]


def run_parent(world, *workflows):
    """Run a parent up to its dispatch; returns its id."""
    world.publish(child, *(workflows or [parent]))
    instance_id = world.dispatch((workflows or [parent])[0].id)
    world.run(instance_id)
    world.messages.clear()
    return instance_id


def child_head(world):
    return next(head for head in world.heads() if head.definition_id == "child")
