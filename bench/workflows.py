"""The workflows that are measured. Their steps do nothing, so that all that is counted is the engine's."""

from aftercommit import DispatchWorkflow, Sequence, Step, Workflow, activity, inputs, var


@activity
def pick(order_id: str) -> dict[str, str]:
    """Return as much as a usual step does."""
    return {"status": "ok", "reference": f"reference-of-{order_id}"}


def _step(number: int) -> Step:
    return Step(pick, order_id=inputs.order_id, result=f"step_{number}")


def _five_around(*between: DispatchWorkflow) -> Sequence:
    return Sequence(*map(_step, (1, 2, 3)), *between, *map(_step, (4, 5)))


ORDER = {"order_id": str}
OUTPUT = {"reference": var.step_5.reference}
child = Workflow("child", version=1, inputs=ORDER, root=_five_around(), output=OUTPUT)
awaited = Workflow(
    "awaited",
    version=1,
    inputs=ORDER,
    root=_five_around(
        DispatchWorkflow("child", input={"order_id": inputs.order_id}, wait=True, result="shipment")
    ),
    output=OUTPUT,
)
unawaited = Workflow(
    "unawaited",
    version=1,
    inputs=ORDER,
    root=_five_around(DispatchWorkflow("child", input={"order_id": inputs.order_id})),
    output=OUTPUT,
)
one_step = Workflow(
    "one-step",
    version=1,
    inputs=ORDER,
    root=_step(1),
    output={"reference": var.step_1.reference},
)
