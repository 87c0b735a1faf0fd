"""SendHttpRequest under the engine, and what a worker asks it; nothing is sent."""

import pytest

from aftercommit import (
    ActivityContext,
    Flowchart,
    Retry,
    SendHttpRequest,
    Sequence,
    SetVariable,
    Step,
    Try,
    var,
)
from aftercommit import inputs as given_inputs
from aftercommit.definition import read_definition
from aftercommit.errors import DefinitionRefusedError, HttpStatusError
from aftercommit.expressions import concat
from aftercommit.functions import ActivityFunction, descriptors, find_function, registered_names
from aftercommit.model import Failure, Raise, Resume
from aftercommit.statuses import ExecutionStatus, InstanceStatus
from tests.unit.engine_runs import AT, Run, failure_of
from tests.unit.test_activities_http import faults_of

URL = "https://shop.example/orders?key=secret"
NOTHING = {"type": "Sequence", "activities": []}


# --- what it asks for ---


def request_of(run):
    [execution_id] = run.state.ready
    return run.state.executions[execution_id].memory["inputs"]["request"]


def test_a_request_is_evaluated_once_and_made_ready():
    run = Run(
        SendHttpRequest(
            concat("https://shop.example/", given_inputs.id),
            method="PUT",
            headers={"X-Order": given_inputs.id},
            body={"id": given_inputs.id},
            timeout_seconds=3,
        ),
        inputs={"id": "o-1"},
    )
    assert request_of(run) == {
        "url": "https://shop.example/o-1",
        "method": "PUT",
        "headers": {"X-Order": "o-1"},
        "body": {"id": "o-1"},
        "timeout_seconds": 3,
    }


def test_a_request_is_a_get_of_ten_seconds_unless_it_says_otherwise():
    request = request_of(Run(SendHttpRequest(URL)))
    assert (request["method"], request["timeout_seconds"], request["body"]) == ("GET", 10, None)


@pytest.mark.parametrize(
    ("node", "path"),
    [
        ({}, "root.url"),
        ({"url": 5}, "root.url"),
        ({"url": "ftp://a.example"}, "root.url"),
        ({"url": "a.example/b"}, "root.url"),
        ({"url": "https://user:secret@a.example"}, "root.url"),
        ({"url": "https://"}, "root.url"),
        ({"url": "https://a.example/b c"}, "root.url"),
        ({"url": "https://a.example:99999"}, "root.url"),
        ({"url": URL, "method": "TRACE"}, "root.method"),
        ({"url": URL, "timeout_seconds": 0}, "root.timeout_seconds"),
        ({"url": URL, "timeout_seconds": 601}, "root.timeout_seconds"),
        ({"url": URL, "retry": {"attempts_max": 0}}, "root.retry"),
        ({"url": URL, "on": {"99": NOTHING}}, "root.on.99"),
        ({"url": URL, "on": {"6xx": NOTHING}}, "root.on.6xx"),
        ({"url": URL, "on": {"Done": NOTHING}}, "root.on.Done"),
        ({"url": URL, "activity": "charge"}, "root.activity"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused_by_its_path(node, path):
    found = faults_of(type="SendHttpRequest", **node)
    assert list(found) == [path]
    assert "secret" not in found[path]


@pytest.mark.parametrize(
    ("more", "given", "told"),
    [
        ({"url": given_inputs.x}, 5, "url must be a text"),
        ({"url": URL, "headers": {"a": given_inputs.x}}, 5, "headers.a must be a text"),
        ({"url": URL, "headers": given_inputs.x}, [], "headers must be an object"),
        ({"url": URL, "headers": given_inputs.x}, {"Host": "b"}, "headers.Host is set by"),
    ],
)
def test_a_request_that_cannot_be_sent_faults_naming_the_property(more, given, told):
    assert told in failure_of(Run(SendHttpRequest(**more), inputs={"x": given})).message


def test_the_built_in_function_is_no_activity_that_a_step_can_name_or_a_caller_sees():
    assert find_function("SendHttpRequest").built_in
    assert "SendHttpRequest" not in registered_names() | {each["name"] for each in descriptors()}
    with pytest.raises(DefinitionRefusedError, match="no activity named"):
        read_definition({"id": "w", "root": Step("SendHttpRequest").to_json()}, known=registered_names())
    assert read_definition({"id": "w", "root": SendHttpRequest(URL).to_json()}, known=registered_names())


# --- its end ---


def answered(status, *, on=None, result="x"):
    branches = {each: SetVariable("branch", each) for each in on or []}
    run = Run(Sequence(SendHttpRequest(URL, on=branches or None, result=result), SetVariable("after", 1)))
    run.finish({"status": status, "headers": {}, "body": "b"})
    return run


@pytest.mark.parametrize("status", [100, 200, 204, 301, 399])
def test_an_answer_below_400_completes(status):
    run = answered(status)
    assert run.state.variables == {"x": {"status": status, "headers": {}, "body": "b"}, "after": 1}
    [line] = [each for each in run.journal if each["type"] == "SendHttpRequest"]
    assert (line["status"], line["outcome"]) == ("completed", str(status))


@pytest.mark.parametrize("status", [400, 404, 500, 599])
def test_an_answer_from_400_that_nothing_handles_faults_and_tells_no_more_than_the_host(status):
    failure = failure_of(answered(status, on=["200", "Timeout"]))
    assert (failure.type, failure.message) == ("HttpStatusError", f"shop.example answered {status}")


@pytest.mark.parametrize(
    ("status", "branch"), [(404, "404"), (410, "4xx"), (503, "5xx"), (200, "200"), (302, "3xx")]
)
def test_a_branch_for_the_status_comes_before_that_for_its_class(status, branch):
    run = answered(status, on=["4xx", "404", "5xx", "200", "3xx"])
    assert run.state.variables["branch"] == branch
    assert run.state.variables["x"]["status"] == status
    assert run.state.status == InstanceStatus.COMPLETED


def raised(kind, *, on=()):
    root = SendHttpRequest(URL, on={each: SetVariable("branch", each) for each in on} or None, result="x")
    run = Run(root)
    run.give(Raise(run.state.ready[0], Failure(kind, "so")))
    return run


@pytest.mark.parametrize(
    ("kind", "branch"),
    [("HttpTimeoutError", "Timeout"), ("HttpFailedError", "Failed"), ("HttpRefusedError", "Failed")],
)
def test_no_answer_takes_its_branch_or_faults(kind, branch):
    run = raised(kind, on=["Timeout", "Failed"])
    assert run.state.variables == {"branch": branch, "x": {"error": {"type": kind, "message": "so"}}}
    assert failure_of(raised(kind)).type == kind


@pytest.mark.parametrize("kind", ["WorkerDiedError", "TypeError", "HttpStatusError"])
def test_what_does_not_tell_of_an_answer_takes_no_branch(kind):
    assert failure_of(raised(kind, on=["Timeout", "Failed", "5xx"])).type == kind


@pytest.mark.parametrize("result", [{"headers": {}}, None, {"status": 99}, {"status": True}])
def test_an_answer_without_a_status_faults(result):
    run = Run(SendHttpRequest(URL, on={"Failed": Sequence()}))
    run.finish(result)
    assert failure_of(run).type == "HttpFailedError"


def test_a_branch_may_take_time_and_the_outcome_stays_that_which_chose_it():
    chart = Flowchart(
        {
            "send": SendHttpRequest(URL, on={"4xx": Step("note")}),
            "missing": SetVariable("went", "missing"),
            "fine": SetVariable("went", "fine"),
        },
        [
            {"from": "send", "to": "missing", "outcome": "404"},
            {"from": "send", "to": "fine", "outcome": "200"},
        ],
        start="send",
    )
    run = Run(chart)
    run.finish({"status": 404})
    [sending] = [each for each in run.state.executions.values() if each.activity_id.endswith(".send")]
    assert sending.status == ExecutionStatus.RUNNING
    run.finish()
    assert run.state.variables == {"went": "missing"}


def test_a_try_handles_what_no_branch_does():
    run = Run(Try(SendHttpRequest(URL), handler=SetVariable("why", var.error.type)))
    run.finish({"status": 500})
    assert run.state.variables == {"why": "HttpStatusError"}


def test_a_retry_that_is_due_sends_the_same_request():
    run = Run(SendHttpRequest(URL))
    request = request_of(run)
    run.fail(retry_at="2026-11-30T21:45:25.000Z", kind="HttpTimeoutError")
    [bookmark] = run.state.bookmarks.values()
    run.give(Resume(bookmark.bookmark_id, "Done"))
    assert request_of(run) == request


# --- what a worker asks ---

SENT = find_function("SendHttpRequest")


def attempt(number, answer, **more):
    """Let a worker run an attempt whose request is answered so."""
    function = ActivityFunction("x", lambda request: answer, SENT.retry, 0, takes_context=False)
    context = ActivityContext("key", number, "i", None, "t", deadline=AT)
    return SendHttpRequest(URL, **more).run(function, {"request": {"url": URL}}, context)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_an_answer_that_may_change_raises_until_the_last_attempt(status):
    retry = Retry(attempts_max=3)
    for number in (1, 2):
        with pytest.raises(HttpStatusError, match=f"^shop.example answered {status}$"):
            attempt(number, {"status": status}, retry=retry)
    assert attempt(3, {"status": status}, retry=retry) == {"status": status}
    assert attempt(1, {"status": status}) == {"status": status}
    never = Retry(non_retryable=("HttpStatusError",))
    assert attempt(1, {"status": status}, retry=never) == {"status": status}


@pytest.mark.parametrize("status", [200, 301, 404, 428])
def test_any_other_answer_is_taken_at_once(status):
    assert attempt(1, {"status": status}, retry=Retry()) == {"status": status}


@pytest.mark.parametrize("answer", [None, "ok", {}, {"status": "200"}, {"status": True}, {"status": 1000}])
def test_what_stands_in_for_the_function_has_to_give_an_answer(answer):
    with pytest.raises(TypeError, match="an answer is an object"):
        attempt(1, answer)


def test_what_this_side_refuses_is_never_tried_again():
    policy = SendHttpRequest(URL, retry=Retry(attempts_max=9)).policy(SENT)
    again = {
        kind: policy.next_attempt_at(attempt=1, failure=Failure(kind, ""), at=AT, execution_id="e")
        for kind in ("HttpRefusedError", "HttpFailedError", "HttpTimeoutError")
    }
    assert [kind for kind, at in again.items() if at is None] == ["HttpRefusedError"]


def test_a_request_needs_its_time_to_be_left_in_the_invocation():
    assert SendHttpRequest(URL, timeout_seconds=30).seconds_needed(SENT) == 32
