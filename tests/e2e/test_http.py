"""HTTP, deployed: workflows that start at signed requests, are called back, and call others."""

import pytest

from tests.e2e.conftest import await_that
from tests.e2e.test_waits import await_suspended
from tests.unit.web import serving


def test_a_signed_request_is_answered_by_the_workflow_it_starts(api, effects):
    answer = api.post(
        "/endpoints/orders/new?a=b", {"order_id": "http-1"}, **{"X-Mine": "1", "Cookie": "s3cr3t"}
    )
    assert (answer.status, answer.json()) == (201, {"seen": {"a": "b"}})
    headers = {name.lower(): value for name, value in answer.headers.items()}
    assert (headers["x-order"], headers["content-type"]) == ("http-1", "application/json")
    assert [name for name, _ in effects("http-1")] == ["ordered"]
    [shown] = [
        shown
        for each in api.get("/instances?definition_id=ordering").json()["instances"]
        if (shown := api.show(each["instance_id"]))["variables"]["request"]["body"] == {"order_id": "http-1"}
    ]
    assert shown["output"]["x-mine"] == "1"
    assert not {"authorization", "cookie", "x-amz-security-token"} & set(shown["output"])


def test_the_same_request_under_a_key_starts_once(api, effects):
    key = {"Idempotency-Key": "http-2"}
    answers = [api.post("/endpoints/orders/new", {"order_id": "http-2"}, **key) for _ in range(2)]
    assert [each.status for each in answers] == [201, 201]
    assert len(effects("http-2")) == 1
    assert api.post("/endpoints/orders/new", {"order_id": "other"}, **key).status == 422


def test_requests_that_nothing_starts_at_are_refused(api):
    assert api.get("/endpoints/nothing/here").json()["error"]["code"] == "not_found"
    refused = api.stack.request("DELETE", "/endpoints/orders/new")
    headers = {name.lower(): value for name, value in refused.headers.items()}
    assert (refused.status, headers["allow"]) == (405, "POST")
    assert api.stack.request("POST", "/endpoints/orders/new", {}, signed=False).status == 403


@pytest.mark.parametrize("moment", ["early", "late"])
def test_a_callback_address_is_good_once(api, effects, moment):
    order_id = f"http-{moment}"
    instance_id = api.dispatch("expecting", order_id=order_id)
    if moment == "late":
        await_suspended(api, instance_id)
    path = await_that(lambda: api.show(instance_id)["variables"].get("path"))
    assert api.stack.request("POST", path, {}, signed=False).status == 403
    assert api.stack.request("POST", path, {}, {"X-Tenant-Id": "other"}).status == 404
    assert api.stack.request("POST", f"{path[:-4]}AAAA", {}).status == 404
    assert api.stack.request("PUT", path, {"by": "card"}).status == 202
    assert api.stack.request("PUT", path, {"by": "again"}).status == 404
    assert api.await_end(instance_id)["output"] == {"by": "card"}
    assert [name for name, _ in effects(order_id)] == ["called"]
    assert api.stack.request("PUT", path, {"by": "again"}).status == 404


def test_a_second_workflow_at_the_same_request_is_refused_when_it_is_published(api):
    root = {"type": "HttpEndpoint", "starts": True, "path": "orders/new", "methods": ["POST"]}
    assert api.stack.request("PUT", "/workflows/rival", {"root": root}).status == 200
    refused = api.post("/workflows/rival/publish")
    assert (refused.status, refused.json()["error"]["faults"][0]["path"]) == (422, "root")


def test_an_answer_takes_its_branch(api):
    """The API itself refuses what is not signed: a 403, whose branch is taken."""
    shown = api.await_end(api.dispatch("asking-web", url=f"{api.stack.api_url}/workflows/x/dispatch"))
    assert (shown["status"], shown["output"][:2]) == ("completed", ["403", 403])


def test_a_request_is_sent_once_under_the_executions_own_key(api):
    with serving() as web:
        web.says("/a", 200, b'{"n": 1}', Content_Type="application/json")
        instance_id = api.dispatch("asking-web", url=f"{web.url}/a?key=s3cr3t")
        shown = api.await_end(instance_id)
        assert shown["output"] == [None, 200, {"n": 1}]
        [(method, path, headers, body)] = web.got
    assert (method, path, body) == ("POST", "/a?key=s3cr3t", b'{"hello":"there"}')
    [line] = [each for each in api.journal(instance_id) if each["type"] == "SendHttpRequest"]
    assert headers["Idempotency-Key"] == line["execution_id"]
    assert api.stack.logs("run", "s3cr3t") == []
