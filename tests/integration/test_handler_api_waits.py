"""The api function's routes for waits: stimuli, tokens, the bookmark queue, drafts, cancel and delete."""

import base64
import json

import pytest

from aftercommit.limits import BODY_BYTES_MAX, INPUT_BYTES_MAX
from tests.integration.handlers import error_of
from tests.integration.waits import sleeper, starter, tasker, waiter

OTHER = {"x-tenant-id": "other"}
DRAFT = {"root": {"type": "Event", "name": "go", "starts": True, "result": "got"}}
SECRET = "s3cr3t"


@pytest.fixture
def w(example):
    example.publish(waiter, starter, tasker, sleeper)
    return example


def started(api, world, workflow, **given):
    _, body = api.post(f"/workflows/{workflow}/execute", {"input": given})
    world.messages.clear()
    return body["instance_id"]


def token_of(api, instance_id):
    [bookmark] = api.get(f"/instances/{instance_id}")[1]["bookmarks"]
    return bookmark["token"]


def dead_letter(api, world):
    _, body = api.post("/stimuli", {"name": "nobody", "input": SECRET})
    world.settle(seconds=700)
    return body["stimulus_id"]


# --- stimuli ---


@pytest.mark.parametrize("path", ["/events/paid", "/stimuli"])
def test_a_stimulus_is_accepted_once_it_is_stored_and_applied(api, w, path):
    instance_id = started(api, w, "waiter", order="A")
    body = {"payload": {"order": "A"}, "input": {"amount": 5}}
    if path == "/stimuli":
        body["name"] = "event:paid"
    status, answer = api.post(path, body)
    assert status == 202
    [item] = w.items("stimulus")
    assert answer == {"stimulus_id": f"{item.owner_id}.{item.item_id}"}
    w.settle(seconds=5)
    assert api.get(f"/instances/{instance_id}")[1]["output"] == {"amount": 5}


@pytest.mark.parametrize(
    ("body", "status", "code", "field"),
    [
        ({}, 400, "malformed", "name"),
        ({"name": ""}, 400, "malformed", "name"),
        ({"name": "x", "payload": [1]}, 400, "malformed", "payload"),
        ({"name": "x", "payload": "text"}, 400, "malformed", "payload"),
        ({"name": "x", "correlation_id": 5}, 400, "malformed", "correlation_id"),
        ({"name": "x", "instance_id": {}}, 400, "malformed", "instance_id"),
        ({"name": "x", "execution_id": ""}, 400, "malformed", "execution_id"),
        ({"name": "x", "more": 1}, 400, "malformed", "more"),
        ({"name": "x", "input": "i" * INPUT_BYTES_MAX}, 413, "too_large", "input"),
        ({"name": "x", "payload": {"p": "i" * INPUT_BYTES_MAX}}, 413, "too_large", "payload"),
        ("no json", 400, "malformed", "body"),
        ("[]", 400, "malformed", "body"),
        ('{"name": "x", "payload": {"a": NaN}}', 400, "malformed", "body"),
        ('{"name": "x", "payload": {"a": "\\ud800"}}', 422, "input_refused", "payload.a"),
        ('{"name": "x", "payload": {"\\ud800": 1}}', 422, "input_refused", "payload"),
        ('{"name": "x", "input": "\\ud800"}', 422, "input_refused", "input"),
        ('{"name": "x", "input": 1e999}', 422, "input_refused", "input"),
        ('{"name": "x", "payload": {"a": ' + "[" * 900 + "]" * 900 + "}}", 422, "input_refused", None),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_malformed_stimulus_is_refused_and_stores_nothing(api, w, body, status, code, field):
    answered, answer = api.post("/stimuli", body)
    assert (answered, answer["error"]["code"]) == (status, code)
    if field:
        assert answer["error"]["field"] == field
    assert w.items() == []


def test_i11_a_stimulus_of_another_tenant_reaches_nothing_here(api, w):
    instance_id = started(api, w, "waiter", order="A")
    named = {"payload": {"order": "A"}, "instance_id": instance_id}
    assert api.post("/events/paid", named, headers=OTHER)[0] == 202
    w.settle(seconds=100)
    assert api.get(f"/instances/{instance_id}")[1]["status"] == "suspended"


# --- tokens ---


@pytest.mark.parametrize("path", ["/bookmarks/{}/resume", "/tasks/{}/complete"])
def test_a_task_is_completed_once_with_what_is_given(api, w, path):
    instance_id = started(api, w, "tasker")
    token = token_of(api, instance_id)
    error_of(api.post(path.format(token), {"input": 1}, headers=OTHER), 404, "not_found", "token")
    error_of(api.post(path.format(token), {"inputs": 1}), 400, "malformed", "inputs")
    assert api.post(path.format(token), {"input": {"yes": True}})[0] == 202
    error_of(api.post(path.format(token), {"input": 2}), 404, "not_found", "token")
    error_of(api.post(path.format(token[:-6] + "AAAAAA"), {}), 404, "not_found", "token")
    w.settle(seconds=5)
    assert api.get(f"/instances/{instance_id}")[1]["output"] == {"yes": True}


# --- the bookmark queue ---


def test_open_stimuli_are_listed_without_their_inputs_to_their_tenant_only(api, w):
    api.post("/stimuli", {"name": "x", "input": SECRET})
    _, shown = api.get("/bookmark-queue")
    assert [each["name"] for each in shown["stimuli"]] == ["x"]
    assert SECRET not in str(shown)
    assert api.get("/bookmark-queue", headers=OTHER) == (200, {"stimuli": []})


def test_a_dead_letter_is_listed_shown_replayed_once_and_removed(api, w):
    name = dead_letter(api, w)
    path = f"/bookmark-queue/dead-letters/{name}"
    _, listed = api.get("/bookmark-queue/dead-letters")
    status, shown = api.get(path)
    assert (status, listed["dead_letters"]) == (200, [shown])
    assert shown["last_error"].startswith("ExpiredError: ")
    assert SECRET not in str(shown)
    status, replayed = api.post(f"{path}/replay")
    assert status == 202
    assert replayed["stimulus_id"] in error_of(api.post(f"{path}/replay"), 409, "conflict", "id")
    assert api.get(path)[1]["replayed_as"] == replayed["stimulus_id"]
    assert api.call("DELETE", path)[0] == 200
    error_of(api.call("DELETE", path), 404, "not_found", "id")
    error_of(api.get(path), 404, "not_found", "id")


def test_i11_a_dead_letter_of_another_tenant_is_not_there(api, w):
    path = f"/bookmark-queue/dead-letters/{dead_letter(api, w)}"
    for answer in (
        api.get(path, headers=OTHER),
        api.post(f"{path}/replay", headers=OTHER),
        api.call("DELETE", path, headers=OTHER),
    ):
        error_of(answer, 404, "not_found", "id")
    assert api.get("/bookmark-queue/dead-letters", headers=OTHER)[1] == {"dead_letters": []}
    assert api.get(path)[0] == 200


@pytest.mark.parametrize("name", ["x", "x.", ".x", "x.y"])
def test_what_is_no_dead_letter_is_not_found(api, w, name):
    error_of(api.get(f"/bookmark-queue/dead-letters/{name}"), 404, "not_found", "id")


def test_dead_letters_are_paged(api, w):
    for _ in range(3):
        api.post("/stimuli", {"name": "nobody"})
        w.clock.at += 1
    w.settle(seconds=700)
    names, cursor = [], None
    while True:
        query = {"limit": "1", **({"cursor": cursor} if cursor else {})}
        _, page = api.get("/bookmark-queue/dead-letters", query=query)
        names += [each["stimulus_id"] for each in page["dead_letters"]]
        cursor = page.get("cursor")
        if not cursor:
            break
    assert len(set(names)) == len(names) == 3
    bad = {"cursor": base64.urlsafe_b64encode(json.dumps(["x"]).encode()).decode()}
    error_of(api.get("/bookmark-queue/dead-letters", query=bad), 400, "malformed", "cursor")


# --- definitions ---


def test_a_draft_is_put_published_started_and_retracted(api, w):
    assert api.call("PUT", "/workflows/mine", DRAFT)[0] == 200
    error_of(api.post("/workflows/mine/dispatch"), 404, "not_found", "workflow")
    assert api.post("/workflows/mine/publish") == (200, {"id": "mine", "version": 1})
    assert api.post("/events/go", {"input": 7})[0] == 202
    w.settle(seconds=5)
    [head] = [each for each in w.heads() if each.definition_id == "mine"]
    assert api.get(f"/instances/{head.instance_id}")[1]["variables"] == {"got": 7}
    assert api.post("/workflows/mine/retract")[0] == 200
    error_of(api.post("/workflows/mine/retract"), 404, "not_found", "id")
    error_of(api.post("/workflows/mine/dispatch"), 404, "not_found", "workflow")


def test_a_faulty_draft_is_refused_with_the_path_of_each_fault(api, w):
    activities = [{"type": "Sequence", "activities": []}, {"type": "Stp"}, {"type": "Event"}]
    root = {"type": "Sequence", "activities": activities}
    status, answer = api.call("PUT", "/workflows/mine", {"root": root})
    assert (status, answer["error"]["code"]) == (422, "definition_refused")
    paths = {each["path"] for each in answer["error"]["faults"]}
    assert {path.partition(".name")[0].partition(".type")[0] for path in paths} == {
        "root.activities[1]",
        "root.activities[2]",
    }


@pytest.mark.parametrize(
    ("body", "statuses"),
    [
        ({}, {422}),
        ({"root": []}, {422}),
        ({"root": None}, {422}),
        ({"more": 1}, {400}),
        ("x" * (BODY_BYTES_MAX + 1), {413}),
        ({"id": "another", **DRAFT}, {422}),
        ({"root": {"type": "Event", "name": "go", "payload": {"a": "{% 1 + %}"}}}, {422}),
        ({"root": {"type": "Event", "name": "\ud800"}}, {422}),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_bad_draft_is_refused(api, w, body, statuses):
    status, answer = api.call("PUT", "/workflows/mine", body)
    assert status in statuses
    assert answer["error"]["message"]
    error_of(api.post("/workflows/mine/publish"), 404, "not_found", "id")


def test_i11_a_draft_and_what_is_published_are_not_there_for_another_tenant(api, w):
    api.call("PUT", "/workflows/mine", DRAFT)
    error_of(api.post("/workflows/mine/publish", headers=OTHER), 404, "not_found", "id")
    api.post("/workflows/mine/publish")
    error_of(api.get("/workflows/mine", headers=OTHER), 404, "not_found", "id")
    error_of(api.post("/workflows/mine/retract", headers=OTHER), 404, "not_found", "id")
    error_of(api.post("/workflows/mine/dispatch", headers=OTHER), 404, "not_found", "workflow")
    assert api.get("/workflows/mine")[0] == 200


def test_what_the_deployment_publishes_cannot_be_retracted_by_a_tenant(api, w):
    error_of(api.post("/workflows/waiter/retract"), 404, "not_found", "id")


def test_a_draft_hides_nothing_that_the_deployment_publishes(api, w):
    api.call("PUT", "/workflows/waiter", DRAFT)
    status, shown = api.get("/workflows/waiter")
    assert (status, shown["published_version"], shown["versions"]) == (200, 1, [1])
    assert shown["root"]["name"] == "paid"


def test_activities_are_described_by_json_schema(api):
    status, body = api.get("/activities")
    assert status == 200
    assert "charge_card" in {each["name"] for each in body["activities"]}


# --- cancel, delete, incidents ---


def test_an_instance_is_cancelled_once_and_then_deleted(api, w):
    instance_id = started(api, w, "waiter", order="A")
    path = f"/instances/{instance_id}"
    error_of(api.call("DELETE", path), 409, "conflict", "id")
    assert api.post(f"{path}/cancel") == (200, {"instance_id": instance_id, "cancelled": True})
    assert api.post(f"{path}/cancel") == (200, {"instance_id": instance_id, "cancelled": False})
    assert api.get(path)[1]["status"] == "cancelled"
    assert api.call("DELETE", path) == (202, {"instance_id": instance_id})
    for answer in (
        api.get(path),
        api.get(f"{path}/journal"),
        api.post(f"{path}/cancel"),
        api.post(f"{path}/dispatch"),
        api.call("DELETE", path),
    ):
        error_of(answer, 404, "not_found", "id")
    query = {"definition_id": "waiter"}
    assert api.get("/instances", query=query)[1]["instances"] == []


def test_i11_another_tenants_instance_cannot_be_cancelled_or_deleted(api, w):
    instance_id = started(api, w, "waiter", order="A")
    path = f"/instances/{instance_id}"
    error_of(api.post(f"{path}/cancel", headers=OTHER), 404, "not_found", "id")
    api.post(f"{path}/cancel")
    error_of(api.call("DELETE", path, headers=OTHER), 404, "not_found", "id")
    assert api.get(path)[0] == 200


def test_incidents_are_listed_newest_first_to_their_tenant_only(api, w):
    for _ in range(3):
        w.clock.at += 1
        api.call("PUT", "/workflows/bad", {"root": {"type": "Fault", "message": "no"}})
        api.post("/workflows/bad/publish")
        api.post("/workflows/bad/execute")
    status, shown = api.get("/incidents", query={"limit": "2"})
    assert (status, len(shown["incidents"])) == (200, 2)
    times = [each["created_at"] for each in shown["incidents"]]
    assert times == sorted(times, reverse=True)
    assert api.get("/incidents", headers=OTHER) == (200, {"incidents": []})
