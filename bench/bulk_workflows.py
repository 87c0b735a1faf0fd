"""A bulk dispatch over as many children as are asked for; each child is one step that does nothing."""

from aftercommit import BulkDispatchWorkflows, Step, Workflow, expr, inputs, var
from bench.workflows import ORDER, pick

bulk = Workflow(
    "bulk",
    version=1,
    inputs={"children": int},
    root=BulkDispatchWorkflows(
        "bulk-child",
        expr("[1..inputs.children]"),
        input={"order_id": "order-2026-000123"},
        wait=True,
        result="told",
    ),
    output={"completed": var.told.completed},
)
bulk_child = Workflow(
    "bulk-child",
    version=1,
    inputs=ORDER,
    root=Step(pick, order_id=inputs.order_id, result="picked"),
    output={"reference": var.picked.reference},
)
