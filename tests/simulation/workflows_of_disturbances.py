"""Workflows whose world is upset: dispatched late, cancelled as a tree, damaged as they wait."""

from aftercommit import DispatchWorkflow, Event, ParallelForEach, Sequence, Step, Workflow
from tests.simulation.activities import act, long
from tests.simulation.workflows_of_instances import dispatch

late_child = Workflow("late-child", root=Step(act, name="late"))
dispatching_late = Workflow("dispatching-late", root=DispatchWorkflow("late-child"))
endless_middle = Workflow("endless-middle", root=DispatchWorkflow("endless", wait=True))
cancelled_tree = Workflow(
    "cancelled-tree",
    root=Sequence(
        DispatchWorkflow("endless-middle", cancel_with_parent=True),
        dispatch("child"),
        DispatchWorkflow("endless-middle", wait=True),
        Step(act, name="not"),
    ),
)
told_of_unread = Workflow(
    "told-of-unread",
    root=Sequence(dispatch("child", wait=True, on={"DispatchFailed": Step(act, name="told")})),
)
long_child = Workflow("long-child", root=Step(long, name="long-below"))
awaiting_long = Workflow(
    "awaiting-long", root=Sequence(DispatchWorkflow("long-child", wait=True), Step(act, name="after"))
)


def _tree(level: int, width: int) -> Workflow:
    below = DispatchWorkflow(f"tree-{level + 1}", wait=True)
    return Workflow(f"tree-{level}", root=ParallelForEach(list(range(width)), below))


tree_0, tree_1, tree_2 = _tree(0, 10), _tree(1, 10), _tree(2, 9)
tree_3 = Workflow("tree-3", root=Event("never"))
