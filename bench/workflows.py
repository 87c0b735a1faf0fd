"""The workflows that are measured. Their steps do nothing, so that all that is counted is the engine's."""

from aftercommit import DispatchWorkflow, Sequence, Step, Workflow, activity, inputs, var

LARGE_BYTES = 100 * 1024
MANY = 1_001  # so that step 1,000 is one like any other, not the end


@activity
def pick(order_id: str) -> dict[str, str]:
    """Return as much as a usual step does."""
    return {"status": "ok", "reference": f"reference-of-{order_id}"}


@activity
def fill(order_id: str, size: int) -> str:
    """Return a large value."""
    return order_id[:1] * size


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
small_state = Workflow(
    "small-state",
    version=1,
    inputs=ORDER,
    root=Sequence(*(Step(pick, order_id=inputs.order_id, result="picked") for _ in range(MANY))),
)
large_state = Workflow(
    "large-state",
    version=1,
    inputs=ORDER,
    root=Sequence(
        Step(fill, order_id=inputs.order_id, size=LARGE_BYTES, result="large"),
        *(Step(pick, order_id=inputs.order_id, result="picked") for _ in range(MANY - 1)),
    ),
)
