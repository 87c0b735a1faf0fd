"""The api function serves the routes that are described, and its answers are held to the description."""

import json
import re

import pytest

from aftercommit.openapi import describe_api
from tests.described import check_answer


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
