"""A fan-out over many children that are quick, for the tests that kill workers meanwhile."""

from aftercommit import BulkDispatchWorkflows, Finish, Workflow, expr, inputs, var

bulk = Workflow(
    "bulk",
    inputs={"children": int},
    root=BulkDispatchWorkflows("bulk-child", expr("[1..inputs.children]"), wait=True, result="told"),
    output=var.told,
)
bulk_child = Workflow(
    "bulk-child", inputs={"item": int, "index": int}, root=Finish(inputs.item), output=inputs.item
)

__all__ = ["bulk", "bulk_child"]
