"""Workflows that a newer build changes (newer_releases.py); each step notes which build has run it."""

from aftercommit import (
    ActivityContext,
    Delay,
    DispatchWorkflow,
    Event,
    Sequence,
    Step,
    Timer,
    Workflow,
    activity,
    inputs,
)
from e2e_workflows.steps import note_effect

BUILD = "old"
DAY_SECONDS = 86_400


@activity(timeout_seconds=1)
def mark(order_id: str, name: str, context: ActivityContext) -> None:
    note_effect(name, order_id, context, build=BUILD)


relayed_child = Workflow(
    "relayed-child", inputs={"order_id": str}, root=Step(mark, order_id=inputs.order_id, name="child")
)
relayed = Workflow(
    "relayed",
    version=1,
    inputs={"order_id": str, "seconds": int},
    root=Sequence(
        Step(mark, order_id=inputs.order_id, name="first"),
        Delay(inputs.seconds),
        DispatchWorkflow("relayed-child", input={"order_id": inputs.order_id}, wait=True),
        Step(mark, order_id=inputs.order_id, name="last"),
    ),
    output={"version": 1},
)
released = Workflow(
    "released",
    version=1,
    inputs={"order_id": str},
    root=Sequence(
        Step(mark, order_id=inputs.order_id, name="first"),
        Event("release", payload={"order": inputs.order_id}),
        Step(mark, order_id=inputs.order_id, name="last"),
    ),
    output={"version": 1},
)
ringing = Workflow("ringing", version=1, root=Event("ring", starts=True))
chiming = Workflow("chiming", version=1, root=Timer(DAY_SECONDS, starts=True))
