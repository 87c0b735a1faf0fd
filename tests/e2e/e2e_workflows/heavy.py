"""A parent and a child that hand each other more than a row can hold."""

from aftercommit import ActivityContext, DispatchWorkflow, Sequence, Step, Workflow, activity, inputs, var
from e2e_workflows.steps import note_effect


@activity(timeout_seconds=1)
def repeat(order_id: str, text: str, times: int, context: ActivityContext) -> str:
    note_effect("repeat", order_id, context)
    return text * times


heavy_child = Workflow(
    "heavy-child",
    version=1,
    inputs={"order_id": str, "text": str},
    root=Step(repeat, order_id=inputs.order_id, text=inputs.text, times=1, result="made"),
    output=var.made,
)

heavy = Workflow(
    "heavy",
    version=1,
    inputs={"order_id": str, "text": str},
    root=Sequence(
        Step(repeat, order_id=inputs.order_id, text=inputs.text, times=2, result="doubled"),
        DispatchWorkflow(
            "heavy-child",
            input={"order_id": inputs.order_id, "text": var.doubled},
            wait=True,
            result="child",
        ),
    ),
    output=var.child,
)
