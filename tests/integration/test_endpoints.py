"""Workflows that start at HTTP requests: what the caller gets, and what the workflow sees."""

import base64
import json

import pytest

from aftercommit import HttpEndpoint, Sequence, Step, Workflow, WriteHttpResponse, var
from aftercommit.definitions import find_pointer, store, stored_versions
from aftercommit.errors import DefinitionRefusedError, OvertakenError
from aftercommit.limits import BODY_BYTES_MAX, INPUT_BYTES_MAX
from aftercommit.publish import publish, publish_draft, publish_workflows, put_draft
from aftercommit.tables import SHARED_TENANT
from tests.integration.faults import no_answer
from tests.integration.handlers import error_of
from tests.integration.http_flows import answering, silent, unasked
from tests.integration.waits import trigger_rows
from tests.integration.world import behaviours, effects

OTHER = {"x-tenant-id": "other"}
JSON = {"content-type": "application/json"}
PATH = "/endpoints/orders/new"


@pytest.fixture
def w(example):
    example.publish(answering, silent, unasked)
    return example


def heads(world, name="answering"):
    return [each for each in world.heads() if each.definition_id == name]


def request_seen(api, world):
    """Return the request that the one instance has seen."""
    [head] = heads(world)
    return api.get(f"/instances/{head.instance_id}")[1]["output"]


# --- answers ---


def test_a_request_is_answered_with_what_the_workflow_has_written(api, w):
    answer = api.raw("POST", PATH, {"id": 7}, headers=JSON)
    assert (answer["statusCode"], json.loads(answer["body"])) == (201, {"order": 7})
    headers = {name.lower(): value for name, value in answer["headers"].items()}
    assert headers == {"location": "/orders/7", "content-type": "application/json"}
    [head] = heads(w)
    shown = api.get(f"/instances/{head.instance_id}")[1]
    assert (shown["status"], shown["response"]["status"]) == ("completed", 201)
    assert [name for name, _, _ in effects] == ["noted"]


@pytest.mark.parametrize(
    ("response", "body", "kind"),
    [
        (WriteHttpResponse(), "", None),
        (WriteHttpResponse(204), "", None),
        (WriteHttpResponse(body="täxt"), "täxt", "text/plain; charset=utf-8"),
        (WriteHttpResponse(headers={"Content-Type": "text/html"}, body="<p>"), "<p>", "text/html"),
        (WriteHttpResponse(body=[1, "ä"]), '[1, "ä"]', "application/json"),
        (WriteHttpResponse(body=False), "false", "application/json"),
        (WriteHttpResponse(headers={"content-type": "a/b+json"}, body={}), "{}", "a/b+json"),
    ],
)
def test_a_body_is_json_unless_it_is_text(api, w, response, body, kind):
    w.publish(Workflow("written", root=Sequence(HttpEndpoint("written", starts=True), response)))
    answer = api.raw("GET", "/endpoints/written")
    assert (answer["body"], answer["headers"].get("content-type")) == (body, kind)
    assert "Content-Type" not in answer["headers"]


def test_a_workflow_that_writes_nothing_is_accepted(api, w):
    status, body = api.get("/endpoints/silent")
    [head] = heads(w, "silent")
    assert (status, body) == (202, {"instance_id": head.instance_id})
    assert head.status == "suspended"


def test_a_workflow_that_faults_before_it_writes_is_accepted_and_shows_why(api, w):
    behaviours["heard"] = lambda context, value: 1 / 0
    status, body = api.get("/endpoints/silent")
    assert status == 202
    assert api.get(f"/instances/{body['instance_id']}")[1]["failure"]["type"] == "ZeroDivisionError"


def test_what_takes_longer_than_the_api_has_goes_on_in_the_background(api, w):
    w.publish(
        Workflow(
            "long",
            root=Sequence(
                HttpEndpoint("long", starts=True),
                Step("act", name="a"),
                Step("act", name="b"),
                WriteHttpResponse(),
            ),
        )
    )

    def take_long(context, value):
        w.clock.at += 24

    behaviours["a"] = take_long
    status, body = api.get("/endpoints/long")
    assert status == 202
    assert w.head(body["instance_id"]).status == "running"
    w.settle(seconds=60)
    assert api.get(f"/instances/{body['instance_id']}")[1]["response"]["status"] == 200


def test_a_response_in_an_instance_that_nobody_called_harms_nothing(api, w):
    status, shown = api.post("/workflows/unasked/execute", {"input": {"n": 5}})
    assert (status, shown["status"], shown["response"]["body"]) == (200, "completed", 5)


def test_a_request_whose_answer_cannot_be_read_is_accepted_all_the_same(api, w, monkeypatch):
    def busy(*_):
        raise OvertakenError("goes on")

    monkeypatch.setattr("aftercommit.endpoints.find_whole", busy)
    assert api.post(PATH, {"id": 7}, headers=JSON)[0] == 202
    assert len(heads(w)) == 1


# --- what the workflow sees ---


def test_a_workflow_sees_the_request_without_credentials(api, w):
    headers = {
        "Content-Type": "application/json; charset=utf-8",
        "X-Mine": "1",
        "Authorization": "AWS4-HMAC-SHA256 s3cr3t",
        "COOKIE": "s3cr3t",
        "Proxy-Authorization": "s3cr3t",
        "X-Amz-Security-Token": "s3cr3t",
    }
    query = {"a": "1,2", "X-Amz-Signature": "s3cr3t", "x-amz-security-token": "s3cr3t"}
    api.raw("PUT", PATH, '{"id": {"n": 1.5}}', headers=headers, query=query)
    request = request_seen(api, w)
    assert request == {
        "method": "PUT",
        "path": "orders/new",
        "query": {"a": "1,2"},
        "headers": {"host": "example", "content-type": headers["Content-Type"], "x-mine": "1"},
        "body": {"id": {"n": 1.5}},
    }
    assert "s3cr3t" not in json.dumps(w.everything())


@pytest.mark.parametrize(
    ("content", "kind", "seen"),
    [
        (b"", None, {"body": None}),
        (b"", "application/json", {"body": None}),
        (b"a=1&b=%20", "application/x-www-form-urlencoded", {"body": "a=1&b=%20"}),
        ("täxt".encode(), "text/plain", {"body": "täxt"}),
        (b"\x00\xff", "application/octet-stream", {"body": "AP8=", "base64": True}),
        (b"[1]", "application/vnd.a+json", {"body": [1]}),
        (b"[1]", None, {"body": "[1]"}),
    ],
)
def test_a_body_is_json_text_or_base64(api, w, content, kind, seen):
    headers = {"content-type": kind} if kind else {}
    text = base64.b64encode(content).decode()
    api.raw("POST", PATH, text, headers=headers, base64_encoded=True)
    request = request_seen(api, w)
    assert {name: request[name] for name in ("body", "base64") if name in request} == seen


@pytest.mark.parametrize(
    ("more", "status", "code", "field"),
    [
        ({"body": "{", "headers": JSON}, 400, "malformed", "body"),
        ({"body": "[NaN]", "headers": JSON}, 400, "malformed", "body"),
        ({"body": "[" * 90_000, "headers": JSON}, 400, "malformed", "body"),
        ({"body": '["\\ud800"]', "headers": JSON}, 422, "input_refused", "request.body[0]"),
        ({"body": "é", "base64_encoded": True}, 400, "malformed", "body"),
        ({"body": "\ud800"}, 400, "malformed", "body"),
        ({"body": "x" * INPUT_BYTES_MAX}, 413, "too_large", "body"),
        ({"body": "x" * (BODY_BYTES_MAX + 1)}, 413, "too_large", "body"),
        ({"headers": {"x-tenant-id": "A B"}}, 400, "malformed", "X-Tenant-Id"),
    ],
)
def test_a_request_that_cannot_be_taken_is_refused_and_starts_nothing(api, w, more, status, code, field):
    answer = api.raw("POST", PATH, **more)
    error_of((answer["statusCode"], json.loads(answer["body"])), status, code, field)
    assert heads(w) == []


# --- where nothing starts ---


@pytest.mark.parametrize(
    "path",
    [
        "/endpoints/nothing",
        "/endpoints/orders",
        "/endpoints/Orders/new",
        "/endpoints/orders//new",
        "/endpoints/a%20b",
        f"{PATH}/",
        f"{PATH}/more",
    ],
)
def test_a_path_that_nothing_starts_at_is_not_found(api, w, path):
    error_of(api.post(path), 404, "not_found", "path")


@pytest.mark.parametrize("path", ["/endpoints", "/endpoints/"])
def test_a_path_without_an_endpoint_is_no_route(api, w, path):
    error_of(api.post(path), 404, "not_found")


def test_a_path_of_other_methods_says_which(api, w):
    answer = api.raw("GET", PATH)
    assert answer["headers"]["Allow"] == "POST, PUT"
    error_of((answer["statusCode"], json.loads(answer["body"])), 405, "method_not_allowed", "method")


def test_an_endpoint_that_is_published_no_more_is_not_found(api, w):
    w.publish(Workflow("answering", version=2, root=HttpEndpoint("else", starts=True)))
    error_of(api.post(PATH), 404, "not_found", "path")
    assert api.get("/endpoints/else")[0] == 202


def test_i11_endpoints_of_two_tenants_are_apart(api, w):
    put_draft("other", "mine", {"root": HttpEndpoint("mine", starts=True).to_json()})
    publish_draft("other", "mine")
    error_of(api.get("/endpoints/mine"), 404, "not_found", "path")
    status, body = api.get("/endpoints/mine", headers=OTHER)
    assert status == 202
    assert w.head(body["instance_id"], "other").tenant == "other"
    error_of(api.get(f"/instances/{body['instance_id']}"), 404, "not_found", "id")


# --- the same request again ---


def test_the_same_idempotency_key_starts_once_and_gets_the_same_answer(api, w):
    headers = {**JSON, "idempotency-key": "k"}
    first = api.raw("POST", PATH, {"id": 7}, headers={**headers, "x-amz-date": "1"})
    again = api.raw("POST", PATH, {"id": 7}, headers={**headers, "x-amz-date": "2"})
    assert (
        (first["statusCode"], first["body"]) == (again["statusCode"], again["body"]) == (201, '{"order": 7}')
    )
    assert len(heads(w)) == 1
    assert [name for name, _, _ in effects] == ["noted"]


@pytest.mark.parametrize(
    ("method", "body", "query"),
    [("POST", {"id": 8}, None), ("PUT", {"id": 7}, None), ("POST", {"id": 7}, {"a": "b"})],
)
def test_the_same_idempotency_key_with_another_request_is_refused(api, w, method, body, query):
    headers = {**JSON, "idempotency-key": "k"}
    api.raw("POST", PATH, {"id": 7}, headers=headers)
    again = api.call(method, PATH, body, headers=headers, query=query)
    error_of(again, 422, "idempotency_key_reused", "Idempotency-Key")


def test_without_a_key_each_request_starts_its_own(api, w):
    for _ in range(2):
        assert api.post(PATH, {"id": 7}, headers=JSON)[0] == 201
    assert len(heads(w)) == 2


def test_a_birth_whose_answer_was_lost_runs_once(api, w, faults):
    faults.after("PutItem", no_answer(), match="head")
    assert api.post(PATH, {"id": 7}, headers=JSON) == (201, {"order": 7})
    assert len(heads(w)) == 1


# --- two workflows at one place ---


def rival(path="orders/new", methods=("PUT",), **more):
    return Workflow("rival", root=HttpEndpoint(path, methods=list(methods), starts=True), **more)


def test_a_second_workflow_that_starts_at_the_same_request_is_refused_when_it_is_published(api, w):
    body = {"root": HttpEndpoint("orders/new", methods=["GET", "PUT"], starts=True).to_json()}
    assert api.call("PUT", "/workflows/rival", body)[0] == 200
    told = error_of(api.post("/workflows/rival/publish"), 422, "definition_refused", "root")
    assert told == "root: starts at orders/new PUT, as workflow 'answering' does"
    assert find_pointer("default", "rival") is None


def test_a_workflow_may_take_over_what_the_one_before_gives_up_in_the_same_deploy(w, monkeypatch):
    first = Workflow("b-first", root=HttpEndpoint("moved", starts=True))
    deploys = {
        "1": [first],
        "2": [Workflow("a-second", root=HttpEndpoint("moved", starts=True))],
        "3": [
            Workflow("a-second", root=HttpEndpoint("moved", starts=True)),
            Workflow("b-first", version=2, root=Sequence()),
        ],
        "4": [
            Workflow("c", root=HttpEndpoint("other", starts=True)),
            Workflow("d", root=HttpEndpoint("other", starts=True)),
        ],
    }
    monkeypatch.setattr("aftercommit.publish.load_workflows", deploys.get)
    publish_workflows("1")
    with pytest.raises(DefinitionRefusedError, match="as workflow 'b-first' does"):
        publish_workflows("2")
    publish_workflows("3")
    moved = [row for row in trigger_rows() if row.definition_id in ("a-second", "b-first")]
    assert [(row.definition_id, int(row.version)) for row in moved] == [("a-second", 1)]
    with pytest.raises(DefinitionRefusedError, match="as workflow 'c' does"):
        publish_workflows("4")
    assert stored_versions(SHARED_TENANT, "d") == {}  # so that its tree can be changed under the same version


def test_two_that_were_published_at_once_all_the_same_answer_with_both_names(api, w):
    store(SHARED_TENANT, rival().definition)
    publish(SHARED_TENANT, rival().definition)  # as if each had looked before the other had published
    told = error_of(api.call("PUT", PATH), 409, "conflict", "path")
    assert told == "workflows 'answering' and 'rival' both start at PUT orders/new"
    assert api.post(PATH, {"id": 1}, headers=JSON)[0] == 201
    assert len(heads(w)) == 1


def test_a_tenants_own_workflow_and_one_of_the_deploy_are_two_as_well(api, w):
    w.publish(rival(), owner="default")
    error_of(api.call("PUT", PATH), 409, "conflict", "path")
    assert api.call("PUT", PATH, {"id": 1}, headers={**JSON, **OTHER})[0] == 201


def test_a_tenants_own_workflow_of_the_same_name_is_in_place_of_that_of_the_deploy(api, w):
    w.publish(
        Workflow(
            "answering",
            root=Sequence(
                HttpEndpoint("orders/new", methods=["POST"], starts=True, result="x"),
                WriteHttpResponse(418, body=var.x.method),
            ),
        ),
        owner="default",
    )
    answer = api.raw("POST", PATH)
    assert (answer["statusCode"], answer["body"]) == (418, "POST")
    assert api.raw("POST", PATH, {"id": 1}, headers={**JSON, **OTHER})["statusCode"] == 201


# --- start points that give nothing ---


def test_c30_duplicates_within_a_workflow_are_refused_naming_the_second(w):
    twice = Sequence(
        HttpEndpoint("a", methods=["GET", "PUT"], starts=True),
        HttpEndpoint("a", methods=["PUT"], starts=True),
    )
    with pytest.raises(DefinitionRefusedError) as caught:
        w.publish(Workflow("w", root=twice))
    assert caught.value.faults == [("root.activities[1]", "starts at a PUT, as another activity here does")]


def test_c30_a_start_point_that_gives_nothing_is_refused_naming_the_activity(w):
    root = Sequence(HttpEndpoint("a", methods=[], starts=True))
    with pytest.raises(DefinitionRefusedError) as caught:
        w.publish(Workflow("w", root=root))
    [(path, told)] = caught.value.faults
    assert path == "root.activities[0]"
    assert "registers_none" in told
    with pytest.raises(DefinitionRefusedError, match="registers_none"):
        put_draft("default", "w", {"root": root.to_json()})


def test_c30_a_start_point_that_says_so_is_published_without_a_row(api, w):
    root = HttpEndpoint("a", methods=[], starts=True, registers_none=True)
    before = len(trigger_rows())
    w.publish(Workflow("w", root=root))
    assert len(trigger_rows()) == before
    assert find_pointer(SHARED_TENANT, "w") == 1
    error_of(api.get("/endpoints/a"), 404, "not_found", "path")


def test_c30_the_flag_does_not_excuse_what_is_given_all_the_same(w):
    with pytest.raises(DefinitionRefusedError, match="root: says registers_none, and gives something"):
        w.publish(Workflow("w", root=HttpEndpoint("a", starts=True, registers_none=True)))
