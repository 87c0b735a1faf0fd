"""Workflows that dispatch in bulk, and the children that they dispatch."""

from typing import Any

from aftercommit import (
    BulkDispatchWorkflows,
    Delay,
    Event,
    Fault,
    Fork,
    If,
    Sequence,
    SetVariable,
    Step,
    Workflow,
    expr,
    inputs,
    var,
)
from tests.simulation.activities import act

counted_child = Workflow(
    "counted-child",
    inputs={"item": {}, "index": int},
    root=Sequence(Step(act, name="counted"), If(inputs.item == "bad", then=Fault("bad item"))),
    output=inputs.index,
)
endless_child = Workflow("endless-child", inputs={"item": {}, "index": int}, root=Event("never"))


def _bulk(*items: str, workflow: str = "counted-child", **more: Any) -> BulkDispatchWorkflows:
    return BulkDispatchWorkflows(workflow, list(items), result="told", **more)


bulk = Workflow(
    "bulk", root=Sequence(_bulk("a", "b", "c", wait=True), Step(act, name="after")), output=var.told
)
bulk_unawaited = Workflow(
    "bulk-unawaited", root=Sequence(_bulk("a", "b", "c", concurrent_max=1), Step(act, name="after"))
)
bulk_in_lanes = Workflow(
    "bulk-in-lanes",
    root=Sequence(
        _bulk("a", "bad", "c", "d", wait=True, concurrent_max=2, tolerated_failures="50%"),
        Step(act, name="after"),
    ),
    output=var.told,
)
bulk_tolerating = Workflow(
    "bulk-tolerating",
    root=Sequence(_bulk("a", "bad", "c", wait=True, tolerated_failures=1), Step(act, name="after")),
    output=var.told,
)
bulk_failing = Workflow(
    "bulk-failing",
    root=Sequence(
        _bulk("a", "bad", "c", "d", wait=True, concurrent_max=1, on={"Faulted": Step(act, name="handled")}),
        Step(act, name="after"),
    ),
    output=var.told,
)
bulk_unknown = Workflow(
    "bulk-unknown",
    root=_bulk("a", "b", workflow="no-such-workflow", wait=True, concurrent_max=1, tolerated_failures=2),
    output=var.told,
)
bulk_handled = Workflow(
    "bulk-handled",
    root=Sequence(
        SetVariable("seen", []),
        _bulk(
            "a",
            "bad",
            "c",
            "d",
            wait=True,
            tolerated_failures=1,
            concurrent_max=3,
            batch_max=2,
            each_completed=Sequence(
                SetVariable("seen", expr("$append(var.seen, var.batch.index)")), Step(act, name="batch")
            ),
            each_faulted=SetVariable("bad", expr("$append(var.bad, var.batch.index)")),
        ),
        Step(act, name="after"),
    ),
    output={"seen": var.seen, "bad": var.bad, "told": var.told},
)
bulk_abandoned = Workflow(
    "bulk-abandoned",
    root=Sequence(
        Fork(
            _bulk("a", "b", "c", workflow="endless-child", wait=True, concurrent_max=2),
            Sequence(Delay(20), Step(act, name="won")),
            wait="any",
        ),
        Step(act, name="after"),
    ),
)
bulks_abandoned = Workflow(
    "bulks-abandoned",
    root=Fork(
        *(_bulk("a", workflow="endless-child", wait=True) for _ in range(3)),
        Sequence(Delay(20), Step(act, name="won")),
        wait="any",
    ),
)
bulk_endless = Workflow("bulk-endless", root=_bulk(*"abcde", workflow="endless-child", wait=True))
bulk_twice = Workflow(
    "bulk-twice",
    root=Sequence(Fork(_bulk("a", "b", wait=True), _bulk("c", "d", wait=True)), Step(act, name="after")),
)
