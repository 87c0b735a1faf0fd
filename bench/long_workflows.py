"""Long instances, to see whether a late step, or one of a large state, costs more than an early one."""

from aftercommit import Sequence, Step, Workflow, activity, inputs
from bench.workflows import ORDER, pick

LARGE_BYTES = 100 * 1024
MANY = 1_001  # so that step 1,000 is one like any other, not the end


@activity
def fill(order_id: str, size: int) -> str:
    """Return a large value."""
    return order_id[:1] * size


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
