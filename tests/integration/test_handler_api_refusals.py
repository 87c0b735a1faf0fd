"""What a caller of the API gets for everything that is wrong with a request, or behind it."""

import base64
import json

import pytest

from aftercommit import Sequence, Workflow, inputs
from aftercommit.activities import TYPES
from aftercommit.definitions import load_definition
from aftercommit.limits import BODY_BYTES_MAX, INPUT_BYTES_MAX, STATE_BYTES_MAX
from aftercommit.tables import DefinitionRow
from tests.integration.faults import no_answer, refusal
from tests.integration.handlers import ORDER, RECEIPT, error_of

SECRET = "s3cr3t-value"


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


ROOMY = Workflow(
    "roomy",
    inputs={"text": str, "more": {"type": "string", "default": "d" * 160_000}},
    root=Sequence(),
    output=inputs.more,
)


@pytest.mark.parametrize("way", ["dispatch", "execute"])
def test_an_input_that_outgrows_an_instance_with_what_is_filled_in_is_refused(api, example, way):
    example.publish(ROOMY)
    body = {"input": {"text": "x" * 255_000}, "instance_id": "mine"}
    message = error_of(api.post(f"/workflows/roomy/{way}", body), 413, "too_large", "input")
    assert str(STATE_BYTES_MAX) in message
    assert example.heads() == []
    status, _ = api.post(f"/workflows/roomy/{way}", {"input": {"text": "x" * 180_000}})
    assert status in (200, 202)


def test_one_of_many_that_outgrows_an_instance_is_refused_alone(api, example):
    example.publish(ROOMY)
    items = [{"input": {"text": "x" * size}} for size in (255_000, 1)]
    status, body = api.post("/workflows/roomy/bulk-dispatch", {"items": items})
    assert (status, body["results"][0]["error"]["code"]) == (202, "too_large")
    assert len(example.heads()) == 1


@pytest.mark.parametrize("way", ["dispatch", "execute"])
def test_a_start_that_the_database_would_never_take_is_refused_with_its_reason(api, example, faults, way):
    faults.before("PutItem", refusal("ValidationException"))
    answer = api.post(f"/workflows/send-receipt/{way}", {"input": RECEIPT})
    assert "ValidationException" in error_of(answer, 400, "refused", None)
    assert example.heads() == []


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
