"""The api function: every route, and what callers get from it."""

import json

from aftercommit import Sequence, Workflow, clock
from aftercommit.attempts import give_up
from aftercommit.instances import lease
from aftercommit.model import Failure
from aftercommit.queue import read_message
from aftercommit.tables import ItemRow
from tests.integration.handlers import ORDER, RECEIPT, error_of

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


def test_what_a_parent_was_told_of_is_failed_and_on_no_operators_list(api, example):
    api.post("/workflows/place-order/dispatch", {"input": ORDER})
    example.serve()
    shipment = next(row for row in example.items("start") if row.wait)
    give_up(shipment, Failure("Why", "so"))
    for path in ("/dispatches", "/outbox"):
        [rows] = api.get(path, query={"status": "failed"})[1].values()
        assert rows == []
    query = {"owner_id": shipment.owner_id, "status": "failed"}
    [shown] = api.get("/dispatches", query=query)[1]["dispatches"]
    assert (shown["item_id"], shown["last_error"]) == (shipment.item_id, "Why: so")


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
