"""Workflows that wait and start at events, and short ways to speak to them."""

from aftercommit import (
    Delay,
    DispatchWorkflow,
    Event,
    Fork,
    PublishEvent,
    RunTask,
    Sequence,
    SetVariable,
    Step,
    While,
    Workflow,
    inputs,
    var,
)
from aftercommit.operations import send_event
from aftercommit.tables import BookmarkRow, TriggerRow

waiter = Workflow(
    "waiter",
    inputs={"order": str},
    root=Event("paid", payload={"order": inputs.order}, result="got"),
    output=var.got,
)
looper = Workflow(
    "looper",
    root=Sequence(
        SetVariable("n", 0),
        SetVariable("all", []),
        While(
            var.n < 2,
            Sequence(Event("tick", result="last"), SetVariable("n", var.n + 1), Step("act", name=var.last)),
        ),
    ),
    output=var.n,
)
starter = Workflow("starter", root=Event("begin", starts=True, result="got"), output=var.got)
tasker = Workflow("tasker", root=RunTask("approve", inputs={"amount": 5}, result="got"), output=var.got)
sleeper = Workflow("sleeper", inputs={"seconds": int}, root=Delay(inputs.seconds))
parent = Workflow("parent", root=DispatchWorkflow("waiter", input={"order": "A"}, wait=True))
racer = Workflow(
    "racer",
    root=Fork(DispatchWorkflow("waiter", input={"order": "A"}, wait=True), Event("go"), wait="any"),
)
teller = Workflow(
    "teller",
    root=Sequence(
        PublishEvent("paid", payload={"order": "A"}, input={"from": "teller"}), Step("act", name="after")
    ),
)


def send(name, payload=None, value=None, *, tenant="default", correlation_id=None, instance_id=None, **more):
    return send_event(
        tenant,
        name,
        payload=payload or {},
        value=value,
        correlation_id=correlation_id,
        instance_id=instance_id,
        **more,
    )


def bookmark_rows():
    return list(BookmarkRow.scan())


def trigger_rows():
    return sorted(TriggerRow.scan(), key=lambda row: row.row)


def waiting(world, order="A", **more):
    """Start a waiter, and let it come to its wait."""
    instance_id = world.dispatch("waiter", {"order": order}, **more)
    world.run(instance_id, tenant=more.get("tenant", "default"))
    world.messages.clear()
    return instance_id


def stimuli(world):
    return world.items("stimulus")
