"""The newer build's e2e_workflows/releases.py: version 2 of each tree, a new activity, a new activity type.

The new type stands for a newer runtime: code that lacks it cannot read the trees that name it. A rollback
leaves the one as it is (napping), and publishes its own version over the other (ringing).
"""

from e2e_workflows.steps import note_effect

from aftercommit import (
    ActivityContext,
    Delay,
    DispatchWorkflow,
    Event,
    Sequence,
    Step,
    Workflow,
    activity,
    inputs,
)
from aftercommit.activities import TYPES

BUILD = "new"


class Nap(Delay):
    """A wait that the old build has never heard of."""


TYPES["Nap"] = Nap


@activity(timeout_seconds=1)
def mark(order_id: str, name: str, context: ActivityContext) -> None:
    note_effect(name, order_id, context, build=BUILD)


@activity(timeout_seconds=1)
def seal(order_id: str, context: ActivityContext) -> None:
    note_effect("seal", order_id, context, build=BUILD)


relayed_child = Workflow(
    "relayed-child", inputs={"order_id": str}, root=Step(mark, order_id=inputs.order_id, name="child")
)
relayed = Workflow(
    "relayed",
    version=2,
    inputs={"order_id": str, "seconds": int},
    root=Sequence(
        Step(mark, order_id=inputs.order_id, name="first"),
        Delay(inputs.seconds),
        Step(mark, order_id=inputs.order_id, name="added"),
        DispatchWorkflow("relayed-child", input={"order_id": inputs.order_id}, wait=True),
        Step(mark, order_id=inputs.order_id, name="last"),
    ),
    output={"version": 2},
)
released = Workflow(
    "released",
    version=2,
    inputs={"order_id": str},
    root=Sequence(
        Step(mark, order_id=inputs.order_id, name="first"),
        Event("release", payload={"order": inputs.order_id}),
        Step(seal, order_id=inputs.order_id),
        Step(mark, order_id=inputs.order_id, name="last"),
    ),
    output={"version": 2},
)
napping = Workflow(
    "napping",
    version=1,
    inputs={"order_id": str},
    root=Sequence(
        Step(mark, order_id=inputs.order_id, name="first"),
        Event("release", payload={"order": inputs.order_id}),
        Nap(1),
        Step(mark, order_id=inputs.order_id, name="last"),
    ),
    output={"version": 1},
)
ringing = Workflow("ringing", version=2, root=Sequence(Event("ring", starts=True), Nap(1)))
chiming = Workflow("chiming", version=2, root=Delay(1))
