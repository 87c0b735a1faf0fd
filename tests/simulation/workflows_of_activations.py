"""Workflows of which one instance lives at a time, in all or per correlation id."""

from aftercommit import (
    Delay,
    DispatchWorkflow,
    Event,
    Fault,
    Finish,
    If,
    PublishEvent,
    Sequence,
    Step,
    Workflow,
    expr,
    var,
)
from tests.simulation.activities import act

only_one = Workflow(
    "only-one",
    activation="singleton",
    root=Sequence(Step(act, name="only"), Delay(20), Step(act, name="only-end")),
)
one_each = Workflow(
    "one-each", activation="correlation", root=Sequence(Step(act, name="each"), Delay(20), Finish())
)
# Lives longer than any fault holds up what comes after it.
long_one = Workflow(
    "long-one", activation="singleton", root=Sequence(Step(act, name="long-one"), Delay(6_000))
)
refused_child = Workflow(
    "refused-child",
    root=Sequence(
        DispatchWorkflow("long-one"),
        Delay(1_500),
        DispatchWorkflow("long-one"),
        DispatchWorkflow("long-one", wait=True, result="x", on={"DispatchFailed": Step(act, name="refused")}),
        If(
            var.x.error.type == "ActivationRefusedError",
            then=Step(act, name="after"),
            otherwise=Fault("the refusal was not told"),
        ),
    ),
)
beginning_once = Workflow(
    "beginning-once",
    activation="singleton",
    root=Sequence(Event("begin-once", starts=True), Step(act, name="begun-once"), Delay(6_000)),
)
opening_twice = Workflow(
    "opening-twice",
    root=Sequence(
        PublishEvent("begin-once"),
        Delay(1_500),
        PublishEvent("begin-once"),
        If(expr("1 = 2"), then=DispatchWorkflow("beginning-once")),
    ),
)
