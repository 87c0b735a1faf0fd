"""HttpEndpoint and WriteHttpResponse under the engine, without AWS."""

import pytest

from aftercommit import (
    Fault,
    Fork,
    HttpEndpoint,
    Sequence,
    SetVariable,
    Step,
    While,
    Workflow,
    WriteHttpResponse,
    engine,
    expr,
    var,
)
from aftercommit import inputs as given_inputs
from aftercommit.activities import TYPES
from aftercommit.definition import read_definition
from aftercommit.errors import DefinitionRefusedError
from aftercommit.expressions import concat
from aftercommit.limits import INPUT_BYTES_MAX, STATE_BYTES_MAX
from aftercommit.model import Start, State, Stimulate
from aftercommit.statuses import InstanceStatus
from tests.unit.engine_runs import AT, Run, failure_of

REQUEST = {"method": "POST", "path": "orders", "query": {}, "headers": {}, "body": {"id": 7}}


def faults_of(**node):
    with pytest.raises(DefinitionRefusedError) as caught:
        read_definition({"id": "w", "root": node})
    return dict(caught.value.faults)


def started(root, activity_id="root", value=REQUEST, **more):
    definition = Workflow("w", root=root, **more).definition
    state = State("i", {}, trigger={"activity_id": activity_id, "value": value})
    engine.advance(definition, state, Start(), AT)
    return state


# --- HttpEndpoint: a start ---


def test_an_endpoint_starts_at_each_of_its_methods():
    assert HttpEndpoint("orders/new", methods=["POST", "PUT"], starts=True).payloads() == [
        ("http", {"path": "orders/new", "method": "POST"}),
        ("http", {"path": "orders/new", "method": "PUT"}),
    ]
    assert HttpEndpoint("orders", starts=True).payloads() == [("http", {"path": "orders", "method": "GET"})]
    assert HttpEndpoint("orders", methods=[], starts=True).payloads() == []
    assert HttpEndpoint(name="answer").payloads() is None


def test_the_request_that_started_the_instance_goes_into_the_result():
    state = started(HttpEndpoint("orders", starts=True, result="request"), output=var.request.body)
    assert (state.status, state.output) == (InstanceStatus.COMPLETED, {"id": 7})


def test_an_endpoint_that_the_instance_did_not_start_at_waits_beside_the_one_it_did():
    ways = [HttpEndpoint("a", starts=True), HttpEndpoint("b", starts=True, result="x")]
    state = started(Fork(*ways, wait="any"), "root.branches[1]")
    assert (state.status, state.variables) == (InstanceStatus.COMPLETED, {"x": REQUEST})


def test_a_loop_starts_at_its_endpoint_once():
    state = started(While(expr("true"), HttpEndpoint("a", starts=True)), "root.body")
    [bookmark] = state.bookmarks.values()
    assert (bookmark.waits_for, bookmark.stimulus) == ("request", None)


@pytest.mark.parametrize(
    "path", ["a", "orders/new", "v1.0/~user/a_b-c", "...", "a" * 200, ".well-known/x", "A/9"]
)
def test_a_path_of_plain_segments_is_taken(path):
    assert read_definition({"id": "w", "root": HttpEndpoint(path, starts=True).to_json()})


@pytest.mark.parametrize(
    "path",
    ["/a", "a/", "a//b", ".", "a/../b", "a/.", "..", "a b", "a?b", "ä", "{% inputs.a %}", "a\n", "a" * 201],
)
def test_a_path_that_is_none_is_refused(path):
    assert "segments of letters" in faults_of(type="HttpEndpoint", starts=True, path=path)["root.path"]


@pytest.mark.parametrize(
    ("node", "paths"),
    [
        ({"starts": True}, ["root.path"]),
        ({"starts": True, "path": ""}, ["root.path"]),
        ({"starts": True, "path": 5}, ["root.path"]),
        ({"starts": True, "path": "a", "methods": ["get"]}, ["root.methods[0]"]),
        ({"starts": True, "path": "a", "methods": ["GET", "TRACE"]}, ["root.methods[1]"]),
        ({"starts": True, "path": "a", "methods": ["GET", "PUT", "GET"]}, ["root.methods[2]"]),
        ({"starts": True, "path": "a", "methods": "GET"}, ["root.methods"]),
        ({"starts": True, "path": "a", "methods": [5]}, ["root.methods"]),
        ({"starts": True, "path": "a", "name": "n"}, ["root.name"]),
        ({}, ["root.name"]),
        ({"name": ""}, ["root.name"]),
        ({"name": 5}, ["root.name"]),
        ({"name": "n" * 201}, ["root.name"]),
        ({"name": "n", "path": "a"}, ["root.path"]),
        ({"name": "n", "methods": ["GET"]}, ["root.methods"]),
        ({"name": "n", "registers_none": False}, ["root.registers_none"]),
        ({"name": "n", "starts": "yes"}, ["root.starts"]),
    ],
)
def test_what_belongs_to_the_other_use_or_makes_no_sense_is_refused_by_its_path(node, paths):
    found = faults_of(type="HttpEndpoint", **node)
    assert set(paths) <= set(found)
    assert all(each.startswith("root.") for each in found)


# --- HttpEndpoint: a wait ---


def test_a_callback_waits_for_its_name_in_its_own_instance():
    run = Run(HttpEndpoint(name=concat("paid-", given_inputs.n), result="x"), inputs={"n": 1}, output=var.x)
    [bookmark] = run.state.bookmarks.values()
    assert (bookmark.waits_for, bookmark.stimulus) == (
        "callback",
        {"name": "callback:paid-1", "payload": {"instance_id": "i"}},
    )
    other = {**bookmark.stimulus, "payload": {"instance_id": "another"}}
    assert not run.give(Stimulate(other, REQUEST))
    assert run.give(Stimulate(bookmark.stimulus, REQUEST))
    assert run.state.output == REQUEST


@pytest.mark.parametrize("name", [5, None, "", "n" * 201, ["a"]])
def test_a_callback_whose_name_is_none_faults(name):
    failure = failure_of(Run(HttpEndpoint(name=given_inputs.n), inputs={"n": name}))
    assert "a callback's name is a text of 1 to 200 characters" in failure.message


def test_only_what_can_be_called_back_gives_tokens():
    giving = {name for name, kind in TYPES.items() if kind.gives_tokens is not Step.gives_tokens}
    assert giving == {"HttpEndpoint", "RunTask"}
    assert HttpEndpoint(name="a").gives_tokens()
    assert not HttpEndpoint("a", starts=True).gives_tokens()


# --- WriteHttpResponse ---


def test_a_response_is_kept_with_the_state_and_survives_a_snapshot():
    run = Run(
        Sequence(
            SetVariable("n", 5),
            WriteHttpResponse(given_inputs.s, headers={"X-Count": expr("$string(var.n)")}, body={"n": var.n}),
            Step("a"),
        ),
        inputs={"s": 201},
    )
    response = {"status": 201, "headers": {"x-count": "5"}, "body": {"n": 5}}
    assert run.state.response == response
    written = run.state.to_json()
    assert State.from_json(written, instance_id="i", status="running").response == response


def test_a_response_has_a_status_without_being_asked():
    assert Run(WriteHttpResponse()).state.response == {"status": 200, "headers": {}, "body": None}


def test_the_first_response_counts():
    run = Run(Sequence(WriteHttpResponse(201), WriteHttpResponse(404, body="no")))
    assert run.state.response["status"] == 201
    assert run.state.status == InstanceStatus.COMPLETED


def test_a_response_stays_when_the_instance_faults():
    run = Run(Sequence(WriteHttpResponse(202), Fault("later")))
    assert (run.state.status, run.state.response["status"]) == (InstanceStatus.FAULTED, 202)


@pytest.mark.parametrize(
    ("response", "told"),
    [
        ({"status": 199}, "status must be a whole number from 200 to 599"),
        ({"status": 600}, "status must be"),
        ({"status": "200"}, "status must be"),
        ({"status": True}, "status must be"),
        ({"status": 200.5}, "status must be"),
        ({"headers": "x"}, "headers must be an object of texts"),
        ({"headers": {"a b": "x"}}, "headers.a b is no name of a header"),
        ({"headers": {"": "x"}}, "headers. is no name of a header"),
        ({"headers": {"x-a": 5}}, "headers.x-a must be a text without line breaks"),
        ({"headers": {"x-a": "b\r\nset-cookie: c"}}, "headers.x-a must be a text without line breaks"),
        ({"headers": {"Content-Length": "5"}}, "headers.Content-Length is set by whoever carries"),
    ],
)
def test_a_bad_response_faults_naming_the_property(response, told):
    values = {name: getattr(given_inputs, name) for name in response}
    failure = failure_of(Run(WriteHttpResponse(**values), inputs=response))
    assert failure.type == "HttpResponseError"
    assert told in failure.message


def test_a_response_counts_towards_the_state():
    run = Run(
        Sequence(SetVariable("a", given_inputs.a), WriteHttpResponse(body=given_inputs.a)),
        inputs={"a": "x" * (STATE_BYTES_MAX // 3)},
    )
    failure = failure_of(run)
    assert failure.type == "StateTooLargeError"
    assert "the response" in failure.message


def test_a_response_is_no_larger_than_an_answer_may_be_whatever_the_state_may_hold():
    for size, told in ((INPUT_BYTES_MAX - 1_000, None), (INPUT_BYTES_MAX, "ResponseTooLargeError")):
        run = Run(WriteHttpResponse(200, body="x" * size))
        assert (run.state.failure and run.state.failure.type) == told
