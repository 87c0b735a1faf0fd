"""Workflows that publish events and hear them, once or again and again."""

from aftercommit import (
    Break,
    Delay,
    DispatchWorkflow,
    Event,
    Fork,
    If,
    PublishEvent,
    Sequence,
    SetVariable,
    Step,
    While,
    Workflow,
    expr,
    var,
)
from tests.simulation.activities import act
from tests.simulation.workflows_of_instances import dispatch

hearing = Workflow(
    "hearing",
    root=Sequence(Event("said", payload={"n": 1}, result="heard"), Step(act, name="heard")),
    output=var.heard,
)
telling = Workflow(
    "telling",
    root=Sequence(
        Step(act, name="before"),
        PublishEvent("said", payload={"n": 2}),
        PublishEvent("said", payload={"n": 1}, input="hello"),
        Step(act, name="told"),
    ),
)
counting = Workflow(
    "counting",
    root=Sequence(
        SetVariable("n", 0),
        While(var.n < 2, Sequence(Event("tick"), Step(act, name="round"), SetVariable("n", var.n + 1))),
    ),
)
ticking = Workflow(
    "ticking", root=Sequence(PublishEvent("tick"), Step(act, name="between"), PublishEvent("tick"))
)
beginning = Workflow(
    "beginning", root=Sequence(Event("begin", starts=True, result="x"), Step(act, name="begun")), output=var.x
)
opening = Workflow(
    "opening",
    # Named so that it is published; it is the event that starts it.
    root=Sequence(PublishEvent("begin", input="go"), If(expr("1 = 2"), then=DispatchWorkflow("beginning"))),
)
announcing = Workflow(
    "announcing",
    root=Sequence(
        Step(act, name="before"),
        PublishEvent("sim/announced", input={"n": 1}, sinks=["queue"]),
        Step(act, name="after"),
    ),
)
listening = Workflow(
    "listening",
    root=Sequence(
        Event("ping", each=Sequence(Step(act, name="ping"), If(var.x.last == 1, then=Break())), result="x"),
        Step(act, name="after-pings"),
    ),
)
# With steps between, so that each has an instant of its own.
pinging = Workflow(
    "pinging",
    root=Sequence(
        PublishEvent("ping", input={"last": 0}),
        Step(act, name="between"),
        PublishEvent("ping", input={"last": 0}),
        Step(act, name="between"),
        PublishEvent("ping", input={"last": 1}),
    ),
)
overlapping = Workflow(
    "overlapping",
    root=Sequence(
        Fork(
            Event("ring", each=Sequence(Step(act, name="ring"), Delay(20), dispatch("child"))),
            Event("stop"),
            wait="any",
        ),
        Step(act, name="stopped"),
    ),
)
ringing = Workflow(
    "ringing",
    root=Sequence(
        PublishEvent("ring", correlation_id="r"),
        PublishEvent("ring", correlation_id="r"),
        Delay(1_500),
        PublishEvent("stop"),
    ),
)
