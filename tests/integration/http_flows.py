"""Workflows that speak HTTP."""

from aftercommit import (
    ActivityContext,
    Delay,
    Event,
    Fork,
    HttpEndpoint,
    Sequence,
    SetVariable,
    Step,
    While,
    Workflow,
    WriteHttpResponse,
    activity,
    inputs,
    var,
)
from aftercommit.expressions import concat


@activity(name="tell_callback")
def tell_callback(name: str, context: ActivityContext) -> str:
    """Give the address out, by leaving it in the state."""
    return context.callback_path(name)


answering = Workflow(
    "answering",
    root=Sequence(
        HttpEndpoint("orders/new", methods=["POST", "PUT"], starts=True, result="request"),
        WriteHttpResponse(201, headers={"Location": "/orders/7"}, body={"order": var.request.body.id}),
        Step("act", name="noted"),
    ),
    output=var.request,
)
silent = Workflow(
    "silent", root=Sequence(HttpEndpoint("silent", starts=True), Step("act", name="heard"), Delay(60))
)
called_back = Workflow(
    "called-back",
    root=Sequence(
        Step("tell_callback", name="paid", result="path"),
        Delay(30),
        HttpEndpoint(name="paid", result="request"),
    ),
    output=var.request,
)
rounds = Workflow(
    "rounds",
    root=Sequence(
        SetVariable("n", 0),
        SetVariable("last", None),
        While(
            var.n < 2,
            Sequence(HttpEndpoint(name=concat("round-", var.n), result="last"), SetVariable("n", var.n + 1)),
        ),
    ),
    output=var.last.body,
)
same_name = Workflow(
    "same-name",
    root=Sequence(HttpEndpoint(name="x"), Event("go"), HttpEndpoint(name="x")),
)
beside = Workflow("beside", root=Fork(HttpEndpoint(name="x"), Event("go"), wait="any"))
unasked = Workflow("unasked", inputs={"n": int}, root=WriteHttpResponse(body=inputs.n))
