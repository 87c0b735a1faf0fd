"""Workflows that answer HTTP requests, and that wait for a callback address to be called."""

from aftercommit import Delay, HttpEndpoint, Sequence, Step, Workflow, WriteHttpResponse, var
from tests.simulation.activities import act, ask
from tests.simulation.workflows_of_instances import dispatch

answering = Workflow(
    "answering",
    root=Sequence(
        HttpEndpoint("orders", methods=["POST"], starts=True, result="request"),
        Step(act, name="answered"),
        WriteHttpResponse(201, body=var.request.body),
        dispatch("child", wait=True),
        Step(act, name="after"),
    ),
    output=var.request.body,
)
asking_early = Workflow(
    "asking-early",
    root=Sequence(
        Step(ask, name="x"), Delay(20), HttpEndpoint(name="x", result="x"), Step(act, name="called")
    ),
    output=var.x.body,
)
asking_late = Workflow(
    "asking-late",
    root=Sequence(
        Step(ask, name="x", answered_after=20),
        HttpEndpoint(name="x", result="x"),
        Step(act, name="called"),
    ),
    output=var.x.body,
)
