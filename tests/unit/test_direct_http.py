"""Direct execution of workflows that speak HTTP: requests given, callbacks given, nothing sent."""

import pytest

from aftercommit import (
    ActivityContext,
    DispatchWorkflow,
    Event,
    HttpEndpoint,
    PublishEvent,
    Retry,
    SendHttpRequest,
    Sequence,
    SetVariable,
    Step,
    While,
    Workflow,
    WriteHttpResponse,
    activity,
    direct,
    var,
)
from aftercommit.errors import HttpTimeoutError, InputRefusedError
from aftercommit.expressions import concat

URL = "https://shop.example/orders"


@activity(name="direct_address")
def address(name: str, context: ActivityContext) -> str:
    return context.callback_path(name)


greeting = Workflow(
    "greeting",
    root=Sequence(
        HttpEndpoint("greet", methods=["GET", "POST"], starts=True, result="request"),
        WriteHttpResponse(201, body=concat("hello ", var.request.body.name)),
    ),
    output=var.request,
)


def test_a_request_starts_the_workflow_at_its_endpoint_and_is_answered():
    request = direct.Request(
        "greet", method="POST", query={"a": "b"}, headers={"X-A": "b"}, body={"name": "Ada"}
    )
    result = direct.run(greeting, request)
    assert result.response == {"status": 201, "headers": {}, "body": "hello Ada"}
    assert result.output == {
        "path": "greet",
        "method": "POST",
        "query": {"a": "b"},
        "headers": {"x-a": "b"},
        "body": {"name": "Ada"},
    }


@pytest.mark.parametrize("request_", [direct.Request("greet", "PUT"), direct.Request("else")])
def test_a_request_that_the_workflow_does_not_start_at_is_refused(request_):
    with pytest.raises(ValueError, match="does not start at"):
        direct.run(greeting, request_)


def test_without_a_request_the_workflow_waits_where_it_would_start():
    result = direct.run(greeting)
    assert (result.status, result.response) == ("suspended", None)


def test_inputs_of_a_workflow_that_a_request_starts_need_defaults():
    asking = Workflow("w", inputs={"n": int}, root=HttpEndpoint("a", starts=True))
    with pytest.raises(InputRefusedError):
        direct.run(asking, direct.Request("a"))


waiting = Workflow(
    "waiting",
    root=Sequence(
        Step("direct_address", name="paid", result="path"), HttpEndpoint(name="paid", result="request")
    ),
    output=[var.path, var.request.body],
)


def test_a_callback_is_given_like_an_event():
    result = direct.run(waiting, events=[direct.Callback("paid", {"by": "card"})])
    [path, body] = result.output
    assert (path.startswith("/callbacks/"), body) == (True, {"by": "card"})
    assert direct.run(waiting, events=[direct.Callback("else")]).status == "suspended"


def test_a_callback_counts_once_and_reaches_a_child_as_well():
    twice = Workflow("twice", root=Sequence(HttpEndpoint(name="x"), HttpEndpoint(name="x")))
    assert direct.run(twice, events=[direct.Callback("x")]).status == "suspended"
    assert direct.run(twice, events=[direct.Callback("x"), direct.Callback("x")]).status == "suspended"
    parent = Workflow("parent", root=DispatchWorkflow("waiting", wait=True, result="x"), output=var.x)
    assert direct.run(parent, workflows=[waiting], events=[direct.Callback("paid", 5)]).output[1] == 5


def test_rounds_of_a_loop_get_their_own_callbacks_among_events():
    loop = Workflow(
        "loop",
        root=Sequence(
            SetVariable("n", 0),
            While(
                var.n < 2,
                Sequence(
                    HttpEndpoint(name=concat("r", var.n), result="r"),
                    Event("go"),
                    SetVariable("n", var.n + 1),
                ),
            ),
        ),
        output=var.r.body,
    )
    go = PublishEvent("go")
    given = [direct.Callback("r1", "b"), go, direct.Callback("r0", "a", method="GET", headers={"A": "b"}), go]
    assert direct.run(loop, events=given).output == "b"


def test_an_address_cannot_be_given_out_where_nothing_waits_for_it():
    result = direct.run(Workflow("w", root=Step("direct_address", name="x")))
    assert result.failure.type == "ValueError"


# --- requests ---


def sending(**more):
    return Workflow(
        "w", root=SendHttpRequest(URL, method="POST", body={"a": 1}, result="x", **more), output=var.x
    )


def test_a_function_stands_in_for_what_is_sent():
    seen = []

    def answer(request):
        seen.append(request)
        return {"status": 200, "headers": {}, "body": "fine"}

    assert direct.run(sending(), activities={"SendHttpRequest": answer}).output["body"] == "fine"
    assert seen == [{"url": URL, "method": "POST", "headers": {}, "body": {"a": 1}, "timeout_seconds": 10}]


def test_without_a_function_nothing_is_sent():
    result = direct.run(sending(on={"Failed": Sequence()}))
    assert result.failure.type == "NotImplementedError"
    assert "give a function for 'SendHttpRequest'" in result.failure.message


def test_branches_and_retries_go_by_what_the_function_gives():
    statuses = [503, 429, 404]

    def answer(request, context):
        return {"status": statuses[context.attempt - 1]}

    root = sending(retry=Retry(first_delay_seconds=3600), on={"4xx": SetVariable("branch", "4xx")})
    result = direct.run(root, activities={"SendHttpRequest": answer})
    assert (result.output, result.variables["branch"]) == ({"status": 404}, "4xx")
    assert [line["status"] for line in result.journal][:2] == ["retrying", "retrying"]


def test_a_function_may_tell_of_no_answer():
    def answer(request):
        raise HttpTimeoutError("too slow")

    result = direct.run(
        sending(on={"Timeout": SetVariable("branch", "Timeout")}), activities={"SendHttpRequest": answer}
    )
    assert result.variables["branch"] == "Timeout"
