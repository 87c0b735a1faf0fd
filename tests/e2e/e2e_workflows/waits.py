"""Workflows that wait: for an event, a task, a time, and for whichever comes first."""

from aftercommit import (
    Delay,
    DispatchWorkflow,
    Event,
    Fork,
    PublishEvent,
    RunTask,
    Sequence,
    Step,
    Workflow,
    inputs,
    var,
)
from e2e_workflows.steps import note

hearing = Workflow(
    "hearing",
    inputs={"order_id": str},
    root=Sequence(
        Event("paid", payload={"order": inputs.order_id}, result="paid"),
        Step(note, order_id=inputs.order_id, name="heard"),
    ),
    output=var.paid,
)
telling = Workflow(
    "telling",
    inputs={"order_id": str},
    root=PublishEvent("paid", payload={"order": inputs.order_id}, input={"by": "workflow"}),
)
beginning = Workflow(
    "beginning",
    root=Sequence(
        Event("begin", starts=True, result="given"),
        Step(note, order_id=var.given.order_id, name="begun"),
    ),
    output=var.given,
)
placing = Workflow(
    "placing",
    root=Sequence(
        Event("shop/placed", starts=True, result="order"),
        Step(note, order_id=var.order.order_id, name="placed"),
    ),
    output=var.order,
)
announcing = Workflow(
    "announcing",
    inputs={"order_id": str},
    root=PublishEvent("shop/announced", input={"order_id": inputs.order_id}, sinks=["queue"]),
)
asking = Workflow(
    "asking",
    inputs={"order_id": str},
    root=RunTask("approve", inputs={"order": inputs.order_id}, result="answer"),
    output=var.answer,
)
pausing = Workflow(
    "pausing",
    inputs={"order_id": str, "seconds": int},
    root=Sequence(Delay(inputs.seconds), Step(note, order_id=inputs.order_id, name="awake")),
)
alone = Workflow(
    "alone",
    activation="correlation",
    inputs={"order_id": str},
    root=Event("released", payload={"order": inputs.order_id}),
)
deciding = Workflow(
    "deciding",
    inputs={"order_id": str},
    root=Fork(
        DispatchWorkflow("hearing", input={"order_id": inputs.order_id}, wait=True),
        Event("decided", payload={"order": inputs.order_id}),
        wait="any",
    ),
)
