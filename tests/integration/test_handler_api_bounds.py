"""The api function's routes are those described, and what no row can have is refused before one is read."""

import base64
import json
import re

import pytest

from aftercommit.limits import CURSOR_CHARACTERS_MAX, KEY_BYTES_MAX, NAME_CHARACTERS_MAX, VERSION_MAX
from aftercommit.openapi import describe_api
from tests.described import check_answer
from tests.integration.handlers import RECEIPT, error_of

LISTS = {
    "/instances": ({"definition_id": "send-receipt"}, 2),
    "/instances/mine/journal": ({}, 1),
    "/dispatches": ({"owner_id": "mine"}, 1),
    "/outbox": ({"status": "pending"}, 3),
    "/bookmark-queue": ({}, 3),
    "/bookmark-queue/dead-letters": ({}, 3),
    "/incidents": ({}, 3),
}
# Longer than Python reads as a number.
ENDLESS = "9" * 5_000
FULL_WIDTH_ONE = "\uff11"  # a digit, too


def cursor_of(place):
    text = place if isinstance(place, str) else json.dumps(place)
    return base64.urlsafe_b64encode(text.encode()).decode()


@pytest.fixture
def started(api):
    api.post("/workflows/send-receipt/dispatch", {"input": RECEIPT, "instance_id": "mine"})
    return api


def test_the_description_is_served(api):
    assert api.get("/openapi.json") == (200, json.loads(json.dumps(describe_api())))


def test_the_function_serves_the_routes_that_are_described_and_no_others(api):
    app = api.handler.__wrapped__.__globals__["app"]
    served = set()
    for route in (*app._static_routes, *app._dynamic_routes):
        path = re.sub(r"<(\w+)>", r"{\1}", route.path).replace("/endpoints/.+", "/endpoints/{path}")
        methods = [route.method] if isinstance(route.method, str) else route.method
        served |= {(method.upper(), path) for method in methods}
    paths = describe_api()["paths"]
    assert served == {(method.upper(), path) for path, operations in paths.items() for method in operations}


@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize(
    "part",
    ["x" * (KEY_BYTES_MAX + 1), "é" * (KEY_BYTES_MAX // 2 + 1), "\ud800", "", 1, None],
    ids=["too long", "too many bytes", "half a character", "empty", "a number", "null"],
)
def test_a_cursor_with_a_part_that_no_key_can_hold_is_refused(started, path, part):
    query, parts = LISTS[path]
    cursor = cursor_of([part] * parts)
    error_of(started.get(path, query={**query, "cursor": cursor}), 400, "malformed", "cursor")


def test_a_cursor_of_another_list_of_incidents_is_refused(started):
    for query, parts in (({}, 1), ({"instance_id": "mine"}, 3)):
        cursor = cursor_of(["x"] * parts)
        error_of(started.get("/incidents", query={**query, "cursor": cursor}), 400, "malformed", "cursor")
    assert started.get("/incidents", query={"instance_id": "mine"}) == (200, {"incidents": []})


@pytest.mark.parametrize("path", LISTS)
def test_a_cursor_that_is_longer_than_any_or_nested_too_deep_is_refused(started, path):
    query, _ = LISTS[path]
    for cursor in ("A" * (CURSOR_CHARACTERS_MAX + 1), cursor_of("[" * 2_000)):
        error_of(started.get(path, query={**query, "cursor": cursor}), 400, "malformed", "cursor")


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("/instances/mine/journal", ["9" * 30]),
        ("/instances/mine/journal", ["x"]),
        ("/outbox", ["2026-01-01T00:00:00.000Z", "9" * 900, "x"]),
        ("/bookmark-queue", ["2026-01-01T00:00:00.000Z", "-1", "x"]),
    ],
)
def test_a_cursor_with_a_number_that_no_list_has_given_is_refused(started, path, place):
    query, _ = LISTS[path]
    error_of(started.get(path, query={**query, "cursor": cursor_of(place)}), 400, "malformed", "cursor")


def test_a_journal_goes_on_behind_the_highest_number_with_nothing(started):
    cursor = cursor_of([str(10**10 - 2)])
    assert started.get("/instances/mine/journal", query={"cursor": cursor}) == (200, {"revisions": []})


@pytest.mark.parametrize("value", [ENDLESS, str(VERSION_MAX + 1), "0", "-1", FULL_WIDTH_ONE, "1.0", "", " 1"])
def test_a_version_that_is_no_number_from_one_is_refused(api, value):
    query = {"version": value}
    error_of(api.get("/workflows/place-order", query=query), 400, "malformed", "version")


def test_the_highest_version_is_looked_for(api):
    query = {"version": str(VERSION_MAX)}
    error_of(api.get("/workflows/place-order", query=query), 404, "not_found", "version")


@pytest.mark.parametrize("value", [ENDLESS, "101", "0", FULL_WIDTH_ONE])
def test_a_limit_that_is_no_number_within_bounds_is_refused(api, value):
    error_of(api.get("/incidents", query={"limit": value}), 400, "malformed", "limit")


@pytest.mark.parametrize(
    ("path", "name"),
    [("/instances", "definition_id"), ("/instances", "correlation_id"), ("/dispatches", "owner_id")],
)
def test_a_filter_as_long_as_a_name_is_taken_and_a_longer_one_refused(api, path, name):
    assert api.get(path, query={name: "x" * NAME_CHARACTERS_MAX})[0] == 200
    for value in ("x" * (NAME_CHARACTERS_MAX + 1), "\ud800"):
        error_of(api.get(path, query={name: value}), 400, "malformed", name)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/workflows/{}"),
        ("PUT", "/workflows/{}"),
        ("POST", "/workflows/{}/publish"),
        ("GET", "/instances/{}"),
        ("DELETE", "/instances/{}"),
        ("GET", "/dispatches/mine/{}"),
        ("POST", "/dispatches/{}/x/redrive"),
        ("POST", "/events/{}"),
        ("GET", "/bookmark-queue/dead-letters/a.{}"),
        ("POST", "/callbacks/{}"),
        ("GET", "/endpoints/a/{}"),
    ],
)
def test_a_path_with_a_part_longer_than_any_key_leads_nowhere(api, method, path):
    for part in ("x" * (KEY_BYTES_MAX + 1), "é" * (KEY_BYTES_MAX // 2 + 1)):
        error_of(api.call(method, path.format(part)), 404, "not_found", "path")


@pytest.mark.parametrize(
    ("path", "status", "body", "told"),
    [
        ("/health", 200, {"status": "ok", "more": 1}, "more"),
        ("/health", 200, {}, "status"),
        ("/health", 201, {"status": "ok"}, "201"),
        ("/instances/mine", 404, {"error": {"code": "new", "message": "x"}}, "new"),
        ("/workflows", 200, {"workflows": [{"id": "x", "version": 0, "published_at": "x"}]}, "version"),
        ("/nowhere", 200, {}, "nowhere"),
    ],
)
def test_an_answer_that_is_not_described_fails_its_test(path, status, body, told):
    with pytest.raises(AssertionError, match=told):
        check_answer("GET", path, {"statusCode": status, "body": json.dumps(body)})
