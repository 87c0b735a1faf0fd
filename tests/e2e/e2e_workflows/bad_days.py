"""Workflows whose dispatches fail at first, and children that go with their parent or stay."""

from aftercommit import DispatchWorkflow, Event, Fork, Workflow, inputs

forgetting_late = Workflow(
    "forgetting-late",
    inputs={"order_id": str},
    root=DispatchWorkflow("published-late", input={"order_id": inputs.order_id}),
)
awaiting_never = Workflow("awaiting-never", root=DispatchWorkflow("never-published", wait=True))
idle = Workflow("idle", root=Event("never"))
idling = Workflow(
    "idling",
    root=Fork(
        DispatchWorkflow("idle", wait=True),
        DispatchWorkflow("idle", cancel_with_parent=True),
        DispatchWorkflow("idle"),
        Event("never"),
    ),
)
