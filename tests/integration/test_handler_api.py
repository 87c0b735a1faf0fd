"""The api function: every route, and what a caller gets for everything that is wrong with a request."""

import base64
import json

import pytest

from aftercommit import Sequence, Workflow, clock
from aftercommit.activities import TYPES
from aftercommit.definitions import load_definition
from aftercommit.instances import lease
from aftercommit.limits import BODY_BYTES_MAX, INPUT_BYTES_MAX
from aftercommit.model import Failure
from aftercommit.outbox import give_up
from aftercommit.queue import read_message
from aftercommit.tables import DefinitionRow, ItemRow
from tests.integration.faults import no_answer, refusal

ORDER = {
    "order_id": "o-1",
    "customer": "Zoë",
    "amount": 5,
    "address": "1 Street",
    "items": [{"sku": "mug", "quantity": 2}],
}
RECEIPT = {"order_id": "o-1", "customer": "Zoë", "amount": 5}
SECRET = "s3cr3t-value"


def error_of(answer, status, code, field=None):
    assert answer[0] == status
    error = answer[1]["error"]
    assert (error["code"], error.get("field")) == (code, field)
    assert error["message"]
    return error["message"]


# --- what works ---


def test_health(api):
    assert api.get("/health") == (200, {"status": "ok"})


def test_a_dispatch_is_accepted_once_it_is_stored(api, example):
    status, body = api.post("/workflows/place-order/dispatch", {"input": ORDER, "correlation_id": "c-1"})
    assert status == 202
    assert example.head(body["instance_id"]).status == "pending"
    [message] = example.messages
    assert read_message(message.body).instance_id == body["instance_id"]


def test_an_order_runs_through_to_its_end_and_is_shown(api, example):
    _, body = api.post("/workflows/place-order/dispatch", {"input": ORDER, "correlation_id": "c-1"})
    example.settle()
    status, shown = api.get(f"/instances/{body['instance_id']}")
    assert status == 200
    assert (shown["status"], shown["correlation_id"], shown["version"]) == ("completed", "c-1", 1)
    assert set(shown["output"]) == {"tracking", "payment_id"}
    assert shown["input"] == ORDER
    assert {each["definition_id"] for each in shown["dispatches"]} == {"send-receipt", "ship-order"}
    assert {each["status"] for each in shown["dispatches"]} == {"done"}
    assert (shown["incidents"], shown["bookmarks"]) == ([], [])


def test_execute_answers_with_the_outcome(api):
    status, shown = api.post("/workflows/send-receipt/execute", {"input": RECEIPT})
    assert (status, shown["status"]) == (200, "completed")
    assert "receipt" in shown["output"]


def test_execute_answers_when_the_instance_waits(api):
    status, shown = api.post("/workflows/place-order/execute", {"input": ORDER})
    assert (status, shown["status"]) == (200, "suspended")
    assert [each["waits_for"] for each in shown["bookmarks"]] == ["child"]


def test_execute_of_an_instance_that_another_worker_runs_is_accepted(api, example):
    _, body = api.post("/workflows/send-receipt/dispatch", {"input": RECEIPT, "instance_id": "mine"})
    lease("default", "mine", clock.now() + 100, waiting=False)
    status, shown = api.post("/workflows/send-receipt/execute", {"input": RECEIPT, "instance_id": "mine"})
    assert (status, shown["status"]) == (202, "running")
    assert body["instance_id"] == "mine"


def test_the_journal_is_paged_in_order(api, example):
    _, body = api.post("/workflows/ship-order/dispatch", {"input": _shipment()})
    example.settle()
    path = f"/instances/{body['instance_id']}/journal"
    _, whole = api.get(path)
    pages, cursor = [], None
    while True:
        _, page = api.get(path, query={"limit": "1", **({"cursor": cursor} if cursor else {})})
        pages += page["revisions"]
        cursor = page.get("cursor")
        if not cursor:
            break
    assert pages == whole["revisions"]
    assert [each["revision"] for each in pages] == list(range(1, len(pages) + 1))
    told = [line["activity"] for each in pages for line in each["activities"]]
    assert told == ["reserve_stock", "book_carrier", "hand_over"]


def _shipment():
    return {"order_id": "o", "address": "1 Street", "items": [{"quantity": 1}]}


def test_instances_are_listed_newest_first_by_cursor(api, example):
    ids = []
    for _ in range(5):
        example.clock.at += 1
        ids.append(api.post("/workflows/send-receipt/dispatch", {"input": RECEIPT})[1]["instance_id"])
    listed, cursor = [], None
    while True:
        query = {"definition_id": "send-receipt", "limit": "2", **({"cursor": cursor} if cursor else {})}
        _, page = api.get("/instances", query=query)
        listed += [each["instance_id"] for each in page["instances"]]
        cursor = page.get("cursor")
        if not cursor:
            break
    assert listed == ids[::-1]


def test_r04_a_cursor_skips_nothing_when_rows_before_it_go(api, example):
    ids = []
    for _ in range(4):
        example.clock.at += 1
        ids.append(api.post("/workflows/send-receipt/dispatch", {"input": RECEIPT})[1]["instance_id"])
    query = {"definition_id": "send-receipt", "limit": "2"}
    _, page = api.get("/instances", query=query)
    example.head(ids[3]).delete()
    _, rest = api.get("/instances", query={**query, "cursor": page["cursor"]})
    assert [each["instance_id"] for each in rest["instances"]] == ids[1::-1]


def test_instances_are_found_by_correlation_and_status(api, example):
    _, body = api.post("/workflows/place-order/dispatch", {"input": ORDER, "correlation_id": "c-1"})
    api.post("/workflows/place-order/dispatch", {"input": ORDER, "correlation_id": "c-2"})
    _, found = api.get("/instances", query={"correlation_id": "c-1"})
    assert [each["instance_id"] for each in found["instances"]] == [body["instance_id"]]
    example.settle()
    query = {"definition_id": "place-order", "status": "completed"}
    assert len(api.get("/instances", query=query)[1]["instances"]) == 2
    assert api.get("/instances", query={**query, "status": "faulted"})[1]["instances"] == []


def test_an_existing_instance_is_run_in_the_background(api, example):
    _, body = api.post("/workflows/send-receipt/dispatch", {"input": RECEIPT})
    example.messages.clear()
    assert api.post(f"/instances/{body['instance_id']}/dispatch")[0] == 202
    example.serve()
    assert example.head(body["instance_id"]).status == "completed"
    error_of(api.post(f"/instances/{body['instance_id']}/dispatch"), 409, "conflict", "id")


def test_dispatches_are_listed_by_owner_and_shown_one_by_one(api, example):
    _, body = api.post("/workflows/place-order/dispatch", {"input": ORDER})
    example.settle()
    query = {"owner_id": body["instance_id"]}
    _, found = api.get("/dispatches", query=query)
    assert len(found["dispatches"]) == 2
    _, first = api.get("/dispatches", query={**query, "limit": "1"})
    _, second = api.get("/dispatches", query={**query, "limit": "1", "cursor": first["cursor"]})
    assert first["dispatches"] + second["dispatches"] == found["dispatches"]
    item_id = found["dispatches"][0]["item_id"]
    status, shown = api.get(f"/dispatches/{body['instance_id']}/{item_id}")
    assert (status, shown["item_id"]) == (200, item_id)
    assert "input" not in json.dumps(shown)


def test_failed_dispatches_are_listed_also_those_that_cannot_be_read(api, example):
    _, body = api.post("/workflows/place-order/dispatch", {"input": ORDER})
    example.serve()
    receipt, shipment = sorted(example.items("start"), key=lambda row: row.definition_id)
    give_up(receipt, Failure("Why", "so"))
    key = {"owner_key": shipment.owner_key, "item_id": shipment.item_id}
    example.set_raw(ItemRow, key, body={"S": "{"})
    example.handle_item(shipment)
    status, found = api.get("/dispatches", query={"status": "failed"})
    assert status == 200
    assert {each["item_id"] for each in found["dispatches"]} == {receipt.item_id, shipment.item_id}
    assert api.get(f"/instances/{body['instance_id']}")[0] == 200


def test_workflows_are_listed_and_shown(api):
    status, found = api.get("/workflows")
    assert status == 200
    assert [(each["id"], each["version"]) for each in found["workflows"]] == [
        ("place-order", 1),
        ("send-receipt", 1),
        ("ship-order", 1),
    ]
    _, shown = api.get("/workflows/send-receipt")
    assert (shown["id"], shown["published_version"], shown["versions"]) == ("send-receipt", 1, [1])
    assert shown["root"]["type"] == "Step"
    assert api.get("/workflows/send-receipt", query={"version": "1"})[1] == shown


def test_an_own_definition_hides_the_shared_one_and_other_tenants_do_not_see_it(api, example):
    example.publish(Workflow("send-receipt", version=3, root=Sequence(), output="own"), owner="acme")
    example.publish(Workflow("acme-only", root=Sequence()), owner="acme")
    own, other = {"X-Tenant-Id": "acme"}, {"X-Tenant-Id": "other"}
    assert api.post("/workflows/send-receipt/execute", headers=own)[1]["output"] == "own"
    assert "acme-only" in str(api.get("/workflows", headers=own))
    assert "acme-only" not in str(api.get("/workflows", headers=other))
    error_of(api.post("/workflows/acme-only/dispatch", headers=other), 404, "not_found", "workflow")


def test_i11_an_instance_of_another_tenant_looks_as_if_it_were_not_there(api):
    other = {"X-Tenant-Id": "other"}
    _, body = api.post(
        "/workflows/send-receipt/dispatch", {"input": RECEIPT}, headers={"X-Tenant-Id": "acme"}
    )
    path = f"/instances/{body['instance_id']}"
    for answer in (
        api.get(path, headers=other),
        api.get(f"{path}/journal", headers=other),
        api.post(f"{path}/dispatch", headers=other),
    ):
        error_of(answer, 404, "not_found", "id")
    query = {"definition_id": "send-receipt"}
    assert api.get("/instances", query=query, headers=other)[1]["instances"] == []


# --- Idempotency-Key and instance ids ---


def test_the_same_request_under_one_key_starts_once(api, example):
    answers = [
        api.post("/workflows/send-receipt/dispatch", {"input": RECEIPT}, headers={"Idempotency-Key": "k"})
        for _ in range(3)
    ]
    assert len({json.dumps(each) for each in answers}) == 1
    assert len(example.heads()) == 1


def test_another_body_under_a_used_key_is_refused(api):
    headers = {"Idempotency-Key": "k"}
    api.post("/workflows/send-receipt/dispatch", {"input": RECEIPT}, headers=headers)
    answer = api.post(
        "/workflows/send-receipt/dispatch", {"input": {**RECEIPT, "amount": 6}}, headers=headers
    )
    error_of(answer, 422, "idempotency_key_reused", "Idempotency-Key")


def test_a_key_means_nothing_to_another_tenant_or_workflow(api, example):
    for tenant in ("a", "b"):
        headers = {"Idempotency-Key": "k", "X-Tenant-Id": tenant}
        api.post("/workflows/send-receipt/dispatch", {"input": RECEIPT}, headers=headers)
        api.post("/workflows/place-order/dispatch", {"input": ORDER}, headers=headers)
    assert len({head.instance_id for head in example.heads()}) == 4


def test_an_instance_id_of_another_definition_is_a_conflict(api):
    api.post("/workflows/send-receipt/dispatch", {"input": RECEIPT, "instance_id": "mine"})
    answer = api.post("/workflows/place-order/dispatch", {"input": ORDER, "instance_id": "mine"})
    message = error_of(answer, 409, "conflict", "instance_id")
    assert "send-receipt" in message


def test_c15_the_same_start_under_an_instance_id_is_skipped_and_an_empty_id_refused(api, example):
    for _ in range(2):
        body = {"input": RECEIPT, "instance_id": "mine"}
        assert api.post("/workflows/send-receipt/dispatch", body) == (202, {"instance_id": "mine"})
    assert len(example.heads()) == 1
    answer = api.post("/workflows/send-receipt/dispatch", {"input": RECEIPT, "instance_id": ""})
    error_of(answer, 400, "malformed", "instance_id")


def test_a_key_and_an_instance_id_together_are_refused(api):
    body = {"input": RECEIPT, "instance_id": "mine"}
    answer = api.post("/workflows/send-receipt/dispatch", body, headers={"Idempotency-Key": "k"})
    error_of(answer, 400, "malformed", "instance_id")


# --- bad input ---


@pytest.mark.parametrize("way", ["dispatch", "execute"])
def test_an_unknown_workflow_is_not_found(api, way):
    assert "nobody" in error_of(api.post(f"/workflows/nobody/{way}", {}), 404, "not_found", "workflow")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"amount": "5"}, "input.amount"),
        ({"amount": 5.5}, "input.amount"),
        ({"amount": None}, "input.amount"),
        ({"colour": "red"}, "input.colour"),
        ({"customer": ["x"]}, "input.customer"),
    ],
)
def test_an_input_that_does_not_fit_names_its_field(api, example, change, field):
    body = {"input": {**RECEIPT, **change}}
    message = error_of(api.post("/workflows/send-receipt/dispatch", body), 422, "input_refused", field)
    assert "5.5" not in message
    assert example.heads() == []


def test_a_missing_input_is_named(api):
    answer = api.post("/workflows/send-receipt/dispatch", {"input": {"order_id": "o", "amount": 5}})
    assert "missing" in error_of(answer, 422, "input_refused", "input.customer")


@pytest.mark.parametrize("value", ['"\\ud800"', '{"a": ["\\udfff"]}', "1e999"])
def test_an_input_that_nothing_could_store_is_refused(api, example, value):
    body = json.dumps({"input": {**RECEIPT, "order_id": "HERE"}}).replace('"HERE"', value)
    status, answer = api.post("/workflows/send-receipt/dispatch", body)
    assert (status, answer["error"]["code"]) == (422, "input_refused")
    assert answer["error"]["field"].startswith("input.order_id")


@pytest.mark.parametrize("body", ["{", "[]", "nonsense", "5", '{"input": NaN}'])
def test_a_body_that_is_no_json_object_is_refused(api, body):
    error_of(api.post("/workflows/send-receipt/dispatch", body), 400, "malformed", "body")


def test_an_unknown_member_is_refused(api):
    answer = api.post("/workflows/send-receipt/dispatch", {"inputs": RECEIPT})
    assert "input" in error_of(answer, 400, "malformed", "inputs")


def test_an_input_over_its_limit_is_refused_with_it(api):
    body = {"input": {**RECEIPT, "customer": "x" * INPUT_BYTES_MAX}}
    answer = api.post("/workflows/send-receipt/dispatch", body)
    assert str(INPUT_BYTES_MAX) in error_of(answer, 413, "too_large", "input")


def test_a_body_over_its_limit_is_refused_with_it(api):
    body = {"input": {**RECEIPT, "customer": "x" * BODY_BYTES_MAX}}
    answer = api.post("/workflows/send-receipt/dispatch", body)
    assert str(BODY_BYTES_MAX) in error_of(answer, 413, "too_large", "body")


def test_an_unknown_channel_is_refused_where_it_is_written(api, example):
    for way in ("dispatch", "execute"):
        answer = api.post(f"/workflows/send-receipt/{way}", {"input": RECEIPT, "channel": "slow"})
        error_of(answer, 400, "refused", "channel")
    assert example.heads() == []


@pytest.mark.parametrize("tenant", ["Acme", "a b", "*", "", "x" * 65, "a#b"])
def test_a_bad_tenant_is_refused(api, tenant):
    for answer in (
        api.get("/workflows", headers={"X-Tenant-Id": tenant}),
        api.post("/workflows/send-receipt/dispatch", {"input": RECEIPT}, headers={"X-Tenant-Id": tenant}),
    ):
        error_of(answer, 400, "malformed", "X-Tenant-Id")


def _cursor(place):
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode()


@pytest.mark.parametrize(
    "cursor", ["x", "%%%", "é", "", _cursor({}), _cursor([1, 2]), _cursor(["a"] * 9), _cursor(["", ""])]
)
def test_a_cursor_that_no_list_gave_is_refused(api, example, cursor):
    _, body = api.post("/workflows/send-receipt/dispatch", {"input": RECEIPT})
    instance_id = body["instance_id"]
    for path, query in (
        ("/instances", {"definition_id": "send-receipt"}),
        (f"/instances/{instance_id}/journal", {}),
        ("/dispatches", {"owner_id": instance_id}),
        ("/dispatches", {"status": "failed"}),
    ):
        answer = api.get(path, query={**query, "cursor": cursor})
        error_of(answer, 400, "malformed", "cursor")


def test_a_cursor_cannot_lead_into_another_tenant(api, example):
    for _ in range(2):
        example.clock.at += 1
        api.post("/workflows/send-receipt/dispatch", {"input": RECEIPT}, headers={"X-Tenant-Id": "acme"})
    query = {"definition_id": "send-receipt", "limit": "1"}
    _, page = api.get("/instances", query=query, headers={"X-Tenant-Id": "acme"})
    answer = api.get(
        "/instances", query={**query, "cursor": page["cursor"]}, headers={"X-Tenant-Id": "other"}
    )
    assert answer[1].get("instances", []) == []


@pytest.mark.parametrize("limit", ["0", "-1", "101", "x", "1.5", ""])
def test_a_bad_limit_is_refused(api, limit):
    answer = api.get("/instances", query={"definition_id": "send-receipt", "limit": limit})
    error_of(answer, 400, "malformed", "limit")


@pytest.mark.parametrize("version", ["0", "x", "-1", "1.0"])
def test_a_bad_version_is_refused(api, version):
    error_of(api.get("/workflows/send-receipt", query={"version": version}), 400, "malformed", "version")


@pytest.mark.parametrize(
    "query", [{}, {"definition_id": "a", "correlation_id": "b"}, {"status": "completed"}]
)
def test_a_list_needs_one_of_definition_and_correlation(api, query):
    error_of(api.get("/instances", query=query), 400, "malformed", "definition_id")


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/instances/nobody", "id"),
        ("/instances/nobody/journal", "id"),
        ("/dispatches/nobody/nothing", "id"),
        ("/workflows/nobody", "id"),
        ("/workflows/send-receipt?version=9", "version"),
        ("/instances/" + "x" * 3000, "path"),
    ],
)
def test_what_is_not_there_is_not_found(api, path, field):
    path, _, version = path.partition("?version=")
    error_of(api.get(path, query={"version": version} if version else None), 404, "not_found", field)


def test_a_route_that_is_not_there_is_not_found(api):
    error_of(api.get("/nowhere"), 404, "not_found")
    error_of(api.call("DELETE", "/health"), 404, "not_found")


def test_a_busy_database_asks_to_come_again(api, faults):
    faults.before("TransactWriteItems", refusal("ThrottlingException"), times=99)
    faults.before("PutItem", refusal("ThrottlingException"), times=99)
    told = error_of(api.post("/workflows/send-receipt/dispatch", {"input": RECEIPT}), 503, "try_later")
    assert "database is busy" in told


def test_what_only_newer_code_can_read_is_told_as_that(api, example, monkeypatch):
    _, body = api.post("/workflows/place-order/dispatch", {"input": ORDER})
    with monkeypatch.context() as older:
        older.delitem(TYPES, "Step")
        load_definition.cache_clear()
        example.settle(200)
        told = error_of(api.get(f"/instances/{body['instance_id']}"), 503, "try_later")
    load_definition.cache_clear()
    assert "newer code" in told


@pytest.mark.parametrize("error", [RuntimeError(SECRET), refusal("AccessDeniedException"), no_answer()])
def test_no_failure_shows_its_inside(api, faults, error):
    faults.before("GetItem", error, times=99)
    status, body = api.get("/instances/i")
    assert status in (500, 503)
    assert SECRET not in json.dumps(body)
    assert "Traceback" not in json.dumps(body)
    assert set(body) == {"error"}


def test_c11_a_message_that_cannot_be_sent_is_no_error_of_a_dispatch_that_is_stored(api, example, faults):
    faults.before("SendMessageBatch", RuntimeError("away"), times=99)
    status, body = api.post("/workflows/send-receipt/dispatch", {"input": RECEIPT})
    assert status == 202
    faults.close()
    example.settle()
    assert example.head(body["instance_id"]).status == "completed"


def test_inputs_never_reach_the_log(api, example, log_lines, capsys):
    """Of a request that runs, one that is refused, and one whose step raises."""
    secret = {**ORDER, "customer": SECRET, "address": " ", "order_id": SECRET}
    api.post("/workflows/place-order/dispatch", {"input": secret})
    api.post("/workflows/place-order/dispatch", {"input": {**secret, "amount": SECRET}})
    api.post("/workflows/place-order/dispatch", '{"input": {"customer": "' + SECRET)
    example.handle('{"tenant": "default", "input": "' + SECRET + '"}')
    example.settle()
    assert "faulted" in example.statuses().values()
    assert log_lines != []
    assert SECRET not in "\n".join(log_lines)
    output = capsys.readouterr()
    assert SECRET not in output.out + output.err


def test_an_unpublished_definition_row_is_no_workflow(api, example):
    DefinitionRow.get("*#send-receipt", "published").delete()
    error_of(api.get("/workflows/send-receipt"), 404, "not_found", "id")
    assert "send-receipt" not in str(api.get("/workflows"))
