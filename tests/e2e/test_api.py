"""The flow over HTTP: every route, signed and not, with good and bad requests."""

import json

import pytest

ORDER = {
    "order_id": "api-1",
    "customer": "Zoë",
    "amount": 4200,
    "address": "Main Street 1",
    "items": [{"sku": "a", "quantity": 2}],
}


@pytest.fixture(scope="module")
def order(api, deadly_instance):
    instance_id = api.dispatch("place-order", **ORDER)
    api.await_end(instance_id)
    api.await_dispatches(instance_id)
    return instance_id


def test_an_order_ends_with_its_awaited_child_and_starts_the_other(api, order, effects):
    shown = api.show(order)
    assert shown["status"] == "completed"
    assert shown["input"] == ORDER
    assert shown["output"]["tracking"].startswith("T-")
    assert shown["variables"]["shipment"]["carrier"] == "Snail & Sons"
    assert sorted(each["definition_id"] for each in shown["dispatches"]) == ["send-receipt", "ship-order"]
    assert {each["status"] for each in shown["dispatches"]} == {"done"}
    for dispatch in shown["dispatches"]:
        child = api.await_end(dispatch["instance_id"])
        assert child["status"] == "completed"
        assert child["parent"] == {"instance_id": order, "item_id": dispatch["item_id"]}
    assert sorted(activity for activity, _ in effects("api-1")) == [
        "book_carrier",
        "charge_card",
        "hand_over",
        "mail_receipt",
        "reserve_stock",
    ]


def test_the_journal_tells_steps_and_dispatches_in_order(api, order):
    lines = api.journal(order)
    steps = [(each["activity_id"], each["status"]) for each in lines if each["type"] == "Step"]
    assert steps == [("root.activities[0]", "completed")]
    intended = [each["instance_id"] for each in lines if each["status"] == "intended"]
    assert intended == [
        each["instance_id"]
        for each in sorted(api.show(order)["dispatches"], key=lambda each: each["definition_id"])
    ]


def test_lists_page_through_instances(api, order):
    others = [api.dispatch("noted", order_id="api-page", name=f"n{number}") for number in range(3)]
    found, cursor = [], ""
    while True:
        page = api.get(f"/instances?definition_id=noted&limit=2{cursor}").json()
        assert len(page["instances"]) <= 2
        found += [each["instance_id"] for each in page["instances"]]
        if "cursor" not in page:
            break
        cursor = f"&cursor={page['cursor']}"
    assert len(found) == len(set(found))
    assert [each for each in found if each in others] == others[::-1]


def test_correlation_ids_reach_children_and_find_all(api):
    answer = api.post(
        "/workflows/two-generations/dispatch", {"input": {"order_id": "api-c"}, "correlation_id": "corr-1"}
    )
    instance_id = answer.json()["instance_id"]
    api.await_end(instance_id)
    found = api.get("/instances?correlation_id=corr-1").json()["instances"]
    assert sorted(each["definition_id"] for each in found) == ["noted", "two-generations"]


def test_dispatches_are_listed_by_owner_and_shown_alone(api, order):
    listed = api.get(f"/dispatches?owner_id={order}").json()["dispatches"]
    assert len(listed) == 2
    for each in listed:
        shown = api.get(f"/dispatches/{order}/{each['item_id']}")
        assert shown.status == 200
        assert shown.json() == each
        assert "input" not in each


def test_execute_answers_with_the_state_at_which_it_rests(api):
    ended = api.post("/workflows/noted/execute", {"input": {"order_id": "api-x", "name": "n"}})
    assert ended.status == 200
    assert ended.json()["status"] == "completed"
    waiting = api.post("/workflows/two-generations/execute", {"input": {"order_id": "api-x2"}})
    assert waiting.status == 200
    # Its child may have resumed it already, by the time it is shown.
    assert waiting.json()["status"] in ("suspended", "running", "completed")
    assert api.await_end(waiting.json()["instance_id"])["status"] == "completed"


def test_workflows_are_listed_and_shown(api):
    listed = {each["id"]: each["version"] for each in api.get("/workflows").json()["workflows"]}
    assert listed["place-order"] == 1
    assert {"ship-order", "send-receipt", "noted"} <= listed.keys()
    shown = api.get("/workflows/place-order").json()
    assert shown["root"]["type"] == "Sequence"
    assert shown["published_version"] == 1
    assert shown["versions"] == [1]


def test_health_answers(api):
    answer = api.get("/health")
    assert (answer.status, answer.json()) == (200, {"status": "ok"})


def test_an_existing_instance_can_be_dispatched_again_until_it_has_ended(api, order):
    assert api.post(f"/instances/{order}/dispatch").status == 409
    assert api.post("/instances/nobody/dispatch").status == 404


def test_one_idempotency_key_starts_one_instance(api):
    body = {"input": {"order_id": "api-k", "name": "once"}}
    ids = {
        api.post("/workflows/noted/dispatch", body, **{"Idempotency-Key": "key-1"}).json()["instance_id"]
        for _ in range(3)
    }
    assert len(ids) == 1
    other = api.post(
        "/workflows/noted/dispatch",
        {"input": {"order_id": "api-k", "name": "other"}},
        **{"Idempotency-Key": "key-1"},
    )
    assert other.status == 422
    assert other.json()["error"]["code"] == "idempotency_key_reused"


def test_tenants_see_nothing_of_each_other(api, order):
    assert api.get(f"/instances/{order}", **{"X-Tenant-Id": "other"}).status == 404
    assert api.get("/instances?definition_id=place-order", **{"X-Tenant-Id": "other"}).json() == {
        "instances": []
    }
    theirs = api.post(
        "/workflows/noted/dispatch", {"input": {"order_id": "api-t", "name": "n"}}, **{"X-Tenant-Id": "other"}
    )
    assert theirs.status == 202
    assert api.get(f"/instances/{theirs.json()['instance_id']}").status == 404
    assert api.get("/health", **{"X-Tenant-Id": "No!"}).status in (200, 400)
    assert api.get("/workflows", **{"X-Tenant-Id": "No!"}).status == 400


ROUTES = [
    ("GET", "/health"),
    ("GET", "/workflows"),
    ("GET", "/workflows/place-order"),
    ("POST", "/workflows/place-order/execute"),
    ("POST", "/workflows/place-order/dispatch"),
    ("GET", "/instances?definition_id=place-order"),
    ("GET", "/instances/x"),
    ("GET", "/instances/x/journal"),
    ("POST", "/instances/x/dispatch"),
    ("GET", "/dispatches?owner_id=x"),
    ("GET", "/dispatches/x/y"),
    ("POST", "/dispatches/x/y/redrive"),
    ("GET", "/outbox?status=pending"),
]


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_an_unsigned_request_is_forbidden(stack, method, path):
    body = {"input": ORDER} if method == "POST" else None
    assert stack.request(method, path, body, signed=False).status == 403


def test_a_route_that_does_not_exist_is_not_found(api):
    answer = api.get("/nothing")
    assert answer.status == 404
    assert b"Traceback" not in answer.body


REFUSED = [
    ("/workflows/no-such/dispatch", {"input": {}}, 404, "not_found", "workflow"),
    ("/workflows/no-such/execute", {"input": {}}, 404, "not_found", "workflow"),
    ("/workflows/place-order/dispatch", b"{", 400, "malformed", "body"),
    ("/workflows/place-order/dispatch", b"[1]", 400, "malformed", "body"),
    ("/workflows/place-order/dispatch", b"\xff\xfe", 400, "malformed", "body"),
    ("/workflows/place-order/dispatch", {"inputs": {}}, 400, "malformed", "inputs"),
    ("/workflows/place-order/dispatch", {"input": 5}, 400, "malformed", "input"),
    ("/workflows/place-order/dispatch", {}, 422, "input_refused", "input.order_id"),
    (
        "/workflows/place-order/dispatch",
        {"input": {**ORDER, "amount": "much"}},
        422,
        "input_refused",
        "input.amount",
    ),
    (
        "/workflows/place-order/dispatch",
        {"input": {**ORDER, "colour": 1}},
        422,
        "input_refused",
        "input.colour",
    ),
    (
        "/workflows/place-order/dispatch",
        {"input": {**ORDER, "customer": "x" * 2_100_000}},
        413,
        "too_large",
        "input",
    ),
    (
        "/workflows/place-order/dispatch",
        {"input": ORDER, "instance_id": "a#b"},
        400,
        "malformed",
        "instance_id",
    ),
    ("/workflows/place-order/dispatch", {"input": ORDER, "channel": "fast"}, 400, "refused", "channel"),
]


@pytest.mark.parametrize(("path", "body", "status", "code", "field"), REFUSED)
def test_a_bad_request_is_refused_with_the_field_to_change(api, path, body, status, code, field):
    answer = api.post(path, body)
    assert answer.status == status, answer.body
    error = answer.json()["error"]
    assert (error["code"], error["field"]) == (code, field)
    assert error["message"]
    assert b"Traceback" not in answer.body
    assert json.loads(answer.body).keys() == {"error"}


@pytest.mark.parametrize(
    ("path", "status", "field"),
    [
        ("/instances/nobody", 404, "id"),
        ("/instances/nobody/journal", 404, "id"),
        ("/instances", 400, "definition_id"),
        ("/instances?definition_id=a&correlation_id=b", 400, "definition_id"),
        ("/instances?definition_id=a&limit=0", 400, "limit"),
        ("/instances?definition_id=place-order&cursor=x", 400, "cursor"),
        ("/dispatches", 400, "owner_id"),
        ("/dispatches/x/y", 404, "id"),
        ("/workflows/no-such", 404, "id"),
        ("/workflows/place-order?version=7", 404, "version"),
        ("/workflows/place-order?version=x", 400, "version"),
    ],
)
def test_a_question_that_cannot_be_answered_names_the_field(api, path, status, field):
    answer = api.get(path)
    assert answer.status == status, answer.body
    assert answer.json()["error"]["field"] == field


def test_an_instance_id_of_another_workflow_is_a_conflict(api):
    body = {"instance_id": "api-own-id", "input": {"order_id": "api-o", "name": "n"}}
    assert api.post("/workflows/noted/dispatch", body).json() == {"instance_id": "api-own-id"}
    assert api.post("/workflows/noted/dispatch", body).status == 202
    other = {"instance_id": "api-own-id", "input": {"order_id": "api-o"}}
    answer = api.post("/workflows/two-generations/dispatch", other)
    assert answer.status == 409
    assert answer.json()["error"]["field"] == "instance_id"


def test_a_step_that_keeps_raising_faults_after_its_durable_retries(api, effects):
    shown = api.await_end(api.dispatch("faulty", order_id="api-f"))
    assert shown["status"] == "faulted"
    assert shown["failure"]["type"] == "ValueError"
    assert [each["error"]["type"] for each in shown["incidents"]] == ["ValueError"]
    assert [activity for activity, _ in effects("api-f")] == ["fail_twice"]
    retries = [each for each in api.journal(shown["instance_id"]) if each["status"] == "retrying"]
    assert len(retries) == 2


def test_dispatches_nest_and_every_ending_reaches_its_parent(api, effects):
    shown = api.await_end(api.dispatch("nested", order_id="api-n"))
    assert shown["status"] == "completed"
    assert shown["output"] == {"child": {"child": {"child": {"noted": "middle"}}}}
    assert sorted(activity for activity, _ in effects("api-n")) == ["first", "last", "middle"]


def test_dispatches_of_an_activity_start_with_its_result(api, effects):
    shown = api.await_end(api.dispatch("forking", order_id="api-d", children=12))
    dispatches = api.await_dispatches(shown["instance_id"])
    assert sorted(each["instance_id"] for each in dispatches) == sorted(shown["output"]["ids"])
    for instance_id in shown["output"]["ids"]:
        assert api.await_end(instance_id)["status"] == "completed"
    assert len(effects("api-d")) == 12


def test_a_large_order_is_kept_whole(api):
    items = [{"sku": f"größe-{number}", "quantity": 1, "note": "x" * 100} for number in range(400)]
    shown = api.await_end(api.dispatch("place-order", **{**ORDER, "order_id": "api-l", "items": items}))
    assert shown["status"] == "completed"
    assert shown["input"]["items"] == items
