"""Workflows of instances: their steps and children, retries, commits, time and size."""

from typing import Any

from aftercommit import (
    Delay,
    DispatchWorkflow,
    Event,
    Fault,
    Finish,
    Fork,
    If,
    Sequence,
    SetVariable,
    Step,
    Workflow,
    inputs,
    var,
)
from tests.simulation.activities import act, flaky, kill, long, queue, refuse

child = Workflow(
    "child",
    inputs={"name": str},
    root=Sequence(Step(act, name=inputs.name, result="first"), Step(act, name="child-second")),
    output={"told": var.first.done},
)
failing_child = Workflow(
    "failing-child", root=Sequence(Step(act, name="before-fault"), Fault("went wrong", code="Wrong"))
)
raising_child = Workflow("raising-child", root=Step(refuse))


def dispatch(workflow: str, **more: Any) -> DispatchWorkflow:
    """Return a dispatch of a workflow; `child` is given its input."""
    return DispatchWorkflow(workflow, input={"name": "child-first"} if workflow == "child" else None, **more)


waiting = Workflow(
    "waiting",
    root=Sequence(
        Step(act, name="before", result="before"),
        dispatch("child", wait=True, result="child"),
        Step(act, name="after"),
        Step(act, name="last"),
    ),
    output={"child": var.child.told},
)
not_waiting = Workflow(
    "not-waiting",
    root=Sequence(Step(act, name="before"), dispatch("child", result="child"), Step(act, name="after")),
    output={"child": var.child.instance_id},
)
several = Workflow(
    "several",
    root=Sequence(
        dispatch("child"),
        dispatch("child", wait=True),
        dispatch("child"),
        dispatch("child", wait=True),
    ),
)
fan_out = Workflow(
    "fan-out",
    root=Sequence(
        Step(act, name="before"), *(dispatch("grandchild") for _ in range(5)), Step(act, name="after")
    ),
)
grandchild = Workflow("grandchild", root=Step(act, name="deepest", result="found"), output=var.found.done)
middle = Workflow(
    "middle",
    root=Sequence(
        DispatchWorkflow("grandchild", wait=True, result="found"),
        Step(act, name="middle"),
        dispatch("child"),
    ),
    output=var.found,
)
top = Workflow(
    "top",
    root=Sequence(DispatchWorkflow("middle", wait=True, result="found"), Step(act, name="top")),
    output=var.found,
)
weighty_child = Workflow(
    "weighty-child",
    inputs={"padding": str},
    root=Step(act, name="weighed", size=70_000, result="weight"),
    output={"weight": var.weight.padding, "given": inputs.padding},
)
weighty = Workflow(
    "weighty",
    inputs={"padding": str},
    root=Sequence(
        Step(act, name="before", size=70_000, result="weight"),
        DispatchWorkflow("weighty-child", input={"padding": var.weight.padding}, wait=True, result="child"),
        Step(act, name="after"),
        SetVariable("weight", None),
        SetVariable("child", None),
        Step(act, name="last"),
    ),
)
child_faults = Workflow("child-faults", root=dispatch("failing-child", wait=True))
child_raises = Workflow("child-raises", root=dispatch("raising-child", wait=True))
fault_handled = Workflow(
    "fault-handled",
    root=Sequence(
        dispatch("failing-child", wait=True, result="child", on={"Faulted": Step(act, name="handled")}),
        If(
            var.child.error.type == "Wrong",
            then=Finish(output="handled"),
            otherwise=Fault("the fault was not told"),
        ),
    ),
)
retrying = Workflow(
    "retrying",
    root=Sequence(
        Step(flaky, name="third-time"),
        dispatch("child", wait=True),
        Step(flaky, name="second-time", succeeds_at=2),
    ),
)
never_works = Workflow("never-works", root=Step(flaky, name="never", succeeds_at=99))
unknown_child = Workflow(
    "unknown-child",
    root=Sequence(
        DispatchWorkflow("no-such-workflow", wait=True, on={"DispatchFailed": Step(act, name="told")}),
        DispatchWorkflow("no-such-workflow"),
        Step(act, name="after"),
    ),
)
unknown_unhandled = Workflow("unknown-unhandled", root=DispatchWorkflow("no-such-workflow", wait=True))
queueing = Workflow(
    "queueing", root=Sequence(Step(queue, workflow="child", result="ids"), Step(act, name="after"))
)
bursting = Workflow(
    "bursting",
    commit="burst",
    root=Sequence(
        Step(act, name="one"),
        Step(act, name="two"),
        SetVariable("x", 1),
        dispatch("child", wait=True, result="child"),
        Step(act, name="three"),
        Step(act, name="four"),
    ),
    output=var.child.told,
)
long_running = Workflow(
    "long-running",
    root=Sequence(*(Step(long, name=f"long-{number}") for number in range(4)), dispatch("child", wait=True)),
)
slow = Workflow("slow", root=Sequence(Step(long, name="slow"), dispatch("child"), Step(act, name="end")))
deployed_later = Workflow(
    "deployed-later", root=Sequence(Step(act, name="before"), Step("sim_later"), Step(act, name="after"))
)
killing = Workflow("killing", root=Sequence(Step(act, name="before"), Step(kill)))
killing_after_wait = Workflow(
    "killing-after-wait", root=Sequence(dispatch("child", wait=True), Step(kill), Step(act, name="not"))
)
killing_first = Workflow("killing-first", commit="burst", root=Sequence(Step(act, name="x"), Step(kill)))
large = Workflow(
    "large",
    root=Sequence(
        Step(act, name="large-1", size=3_900, result="a"),
        Step(act, name="large-2", size=6_000, result="b"),
        DispatchWorkflow("large-child", input={"given": var.b}, wait=True, result="c"),
        Step(act, name="large-3", size=250_000),
        dispatch("child", wait=True),
    ),
    output=var.c,
)
large_child = Workflow(
    "large-child",
    inputs={"given": dict},
    root=Sequence(
        Step(act, name="large-4", size=100_000, result="more"),
        Step(act, name="large-5", size=40_000, result="d"),
    ),
    output={"given": inputs.given, "more": var.more, "d": var.d},
)
outgrowing = Workflow(
    "outgrowing",
    root=Sequence(
        Step(act, name="a", size=200_000, result="a"), Step(act, name="b", size=200_000, result="b")
    ),
)
continuing = Workflow(
    "continuing", incidents="continue", root=Sequence(dispatch("child"), Step(refuse), Step(act, name="not"))
)
delaying = Workflow(
    "delaying",
    root=Sequence(
        Fork(
            Sequence(Delay(30), Step(act, name="late")),
            Sequence(dispatch("child", wait=True), Step(act, name="early")),
        ),
        Step(act, name="after"),
    ),
)
endless = Workflow("endless", root=Event("never"))
racing = Workflow(
    "racing",
    root=Sequence(
        Fork(
            Sequence(DispatchWorkflow("endless", wait=True), Step(act, name="not")),
            Sequence(Delay(20), Step(act, name="won")),
            wait="any",
        ),
        Step(act, name="after"),
    ),
)
