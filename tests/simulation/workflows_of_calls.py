"""Workflows that wait for what callers ask of the API, end by it, or are published by it."""

from aftercommit import (
    Correlate,
    Delay,
    DispatchWorkflow,
    Event,
    Fault,
    Finish,
    Fork,
    If,
    RunTask,
    Sequence,
    SetVariable,
    StartAt,
    Step,
    Timer,
    While,
    Workflow,
    var,
)
from tests.simulation.activities import act, long, tell
from tests.simulation.workflows_of_instances import dispatch

asked = Workflow("asked", root=Sequence(RunTask("t", result="x"), Step(act, name="answered")), output=var.x)
told = Workflow(
    "told",
    root=Sequence(
        Event("told", payload={"n": 1}, result="a"),
        Event("told", payload={"n": 1}, result="b"),
        Step(act, name="heard"),
        If(var.b.order == 2, then=Finish(), otherwise=Fault("out of order")),
    ),
)
acting = Workflow(
    "acting",
    root=Sequence(
        Step(tell, task_of="asked", run="lonely", workflow="child"), Step(act, name="after-telling")
    ),
)
rounding = Workflow(
    "rounding",
    root=Sequence(
        SetVariable("n", 0),
        While(
            var.n < 2,
            Sequence(Event("tick", result="got"), Step(act, name=var.got), SetVariable("n", var.n + 1)),
        ),
    ),
)
correlated = Workflow(
    "correlated",
    root=Sequence(Correlate("c-1"), Event("said", payload={"n": 1}), Step(act, name="heard")),
)
stepping = Workflow(
    "stepping",
    root=Sequence(Step(act, name="before"), Step(long, name="slow"), Event("never"), Step(act, name="not")),
)
heir = Workflow("heir", root=Sequence(Step(act, name="begun"), Event("never"), Step(act, name="not")))
testator = Workflow(
    "testator",
    root=Sequence(
        Fork(DispatchWorkflow("heir", wait=True), DispatchWorkflow("heir", wait=True)), Step(act, name="not")
    ),
)
brief = Workflow("brief", root=Step(act, name="brief", seconds=2, result="x"), output=var.x.done)
hasty = Workflow(
    "hasty", root=Sequence(DispatchWorkflow("brief", wait=True, result="told"), Step(act, name="after"))
)
tasked = Workflow(
    "tasked",
    root=Sequence(RunTask("approve", result="answer"), Step(act, name="answered")),
    output=var.answer,
)
waiting_for_begin = Workflow("waiting-for-begin", root=Sequence(Event("begin"), Step(act, name="heard")))
mortal = Workflow("mortal", root=Sequence(dispatch("child", wait=True), Delay(5), Step(act, name="after")))
_DAYS_3 = 3 * 86_400
outliving = Workflow(
    "outliving", root=Sequence(dispatch("child", wait=True), Delay(_DAYS_3), Step(act, name="after"))
)
long_liver = Workflow("long-liver", root=Sequence(Delay(_DAYS_3), Step(act, name="outlived")))
# Ends at once, and leaves the child alone that it has waited for, and a timer.
survived = Workflow(
    "survived",
    root=Fork(
        DispatchWorkflow("long-liver", wait=True, cancel_with_parent=False),
        Delay(10 * _DAYS_3),
        Step(act, name="won"),
        wait="any",
    ),
)

many_timers = Workflow(
    "many-timers", root=Fork(*[Delay(10 * _DAYS_3)] * 12, Step(act, name="won"), wait="any")
)


def _version(name: str) -> Workflow:
    """Return a version of one workflow that starts at an event, waits a while, and tells which it is."""
    return Workflow(
        "versioned",
        root=Sequence(Event("begin", starts=True), Step(act, name="begun"), Delay(30), Step(act, name=name)),
    )


version_a, version_b = _version("version-a"), _version("version-b")


def _clocked(name: str) -> Workflow:
    """Return a version of one workflow: it starts every ten minutes, and once after 1,500 seconds."""
    return Workflow(
        "clocked",
        root=Fork(
            Sequence(Timer(600, starts=True), Step(act, name=name)),
            StartAt("2030-03-17T18:11:40Z", starts=True),
            wait="any",
        ),
    )


clocked_a, clocked_b = _clocked("clock-a"), _clocked("clock-b")
