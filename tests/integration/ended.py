"""Workflows that end, and short ways to let days pass and to look at what is left."""

from aftercommit import (
    Delay,
    DispatchWorkflow,
    Event,
    Fault,
    Fork,
    Sequence,
    Step,
    Workflow,
    aws,
    clock,
)
from aftercommit.errors import NotFoundError
from aftercommit.sweep import sweep
from tests.integration.world import raw_rows

DAYS = 30
DAY = 86_400
TABLES = ("InstancesTable", "OutboxTable", "BookmarksTable")

step = Workflow("step", root=Step("act", name="a"))
faulty = Workflow("faulty", root=Fault("no"))
waiter = Workflow("waiter", root=Event("go"))
forgetting = Workflow("forgetting", root=DispatchWorkflow("late"))
told = Workflow("told", root=DispatchWorkflow("late", wait=True, on={"DispatchFailed": Sequence()}))
late = Workflow("late", root=Step("act", name="late"))
leaving = Workflow(
    "leaving",
    root=Fork(
        DispatchWorkflow("waiter", wait=True, cancel_with_parent=False),
        Delay(400 * DAY),
        Sequence(),
        wait="any",
    ),
)
awaiting = Workflow("awaiting", root=Sequence(DispatchWorkflow("step", wait=True), Event("go")))
WORKFLOWS = (step, faulty, waiter, forgetting, told, leaving, awaiting)


def end(world, workflow="step", **more):
    instance_id = world.dispatch(workflow, **more)
    world.run(instance_id)
    world.messages.clear()
    return instance_id


def rows(instance_id):
    return [row for table in TABLES for row in raw_rows(table) if instance_id in str(row)]


def multiply_items(world, number):
    """Give the one dispatch that is there so many twins; returns the ids of all."""
    [row] = [row for row in raw_rows("OutboxTable") if row["command"] == {"S": "start"}]
    ids = [row["item_id"]["S"] + f"-{each:04}" for each in range(number)]
    for each in ids:
        aws.client("dynamodb").put_item(TableName="OutboxTable", Item={**row, "item_id": {"S": each}})
    world.messages.clear()
    return ids


def pass_days(world, days):
    world.clock.at += days * DAY
    sweep()


def is_shown(world, instance_id):
    try:
        world.show(instance_id)
    except NotFoundError:
        return False
    return True


def in_days(days):
    return clock.to_text(clock.now() + days * DAY)
