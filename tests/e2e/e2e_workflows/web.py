"""Workflows that speak HTTP: start at a request, wait for a callback, and call others."""

from aftercommit import (
    ActivityContext,
    HttpEndpoint,
    SendHttpRequest,
    Sequence,
    SetVariable,
    Step,
    Workflow,
    WriteHttpResponse,
    activity,
    inputs,
    var,
)
from e2e_workflows.steps import note


@activity
def give_address(name: str, context: ActivityContext) -> str:
    """Leave a callback address in the state, where the test reads it."""
    return context.callback_path(name)


ordering = Workflow(
    "ordering",
    root=Sequence(
        HttpEndpoint("orders/new", methods=["POST"], starts=True, result="request"),
        WriteHttpResponse(
            201, headers={"X-Order": var.request.body.order_id}, body={"seen": var.request.query}
        ),
        Step(note, order_id=var.request.body.order_id, name="ordered"),
    ),
    output=var.request.headers,
)
expecting = Workflow(
    "expecting",
    inputs={"order_id": str},
    root=Sequence(
        Step(give_address, name="paid", result="path"),
        HttpEndpoint(name="paid", result="request"),
        Step(note, order_id=inputs.order_id, name="called"),
    ),
    output=var.request.body,
)
asking_web = Workflow(
    "asking-web",
    inputs={"url": str},
    root=SendHttpRequest(
        inputs.url,
        method="POST",
        body={"hello": "there"},
        result="answer",
        on={"403": SetVariable("branch", "403"), "5xx": SetVariable("branch", "5xx")},
    ),
    output=[var.branch, var.answer.status, var.answer.body],
)
