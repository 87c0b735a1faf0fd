"""Whatever is sent to whichever route: no 5xx, and every refusal has the documented form."""

import base64
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aftercommit import aws
from aftercommit.http_parts import METHODS
from tests.integration.http_flows import answering
from tests.integration.strict import refuse_what_no_key_holds
from tests.integration.template import load_template
from tests.integration.waits import tasker

ROUTES = sorted(
    {
        each["Properties"]["RouteKey"]
        for each in load_template()["Resources"].values()
        if each["Type"] == "AWS::ApiGatewayV2::Route"
    }
)
LONG = 3_000  # API Gateway takes 10,240 bytes of path and headers
ODD = [
    *[
        "",
        " ",
        "\x00",
        "\n",
        "a\r\nb",
        ".",
        "..",
        "a.b",
        "a#b",
        "#",
        "*",
        "-",
        "%2F",
        "%00",
        "é",
        "😀",
        "\ud800",
    ],
    *["²", "٣", "0", "-1", "1.5", "1e9", "true", "null", "9" * 5_000, "x" * 1_100, "x" * LONG, "é" * LONG],
]
PLACES = [
    *[[], [""], ["x"], ["0"], ["9" * 10], ["9" * 11], ["99999999990"], ["9" * 5_000], ["²"], [1], {"a": "b"}],
    *[["x"] * 2, ["x"] * 3, ["1", "2", "3"], ["1", "9" * 5_000, "3"], ["1", "²", "3"], ["a#b"] * 3],
    *[["x" * LONG] * count for count in (1, 2, 3)],
    *[["\ud800"] * count for count in (1, 2, 3)],
]
CURSORS = [
    *[base64.urlsafe_b64encode(json.dumps(each).encode()).decode() for each in PLACES],
    base64.urlsafe_b64encode(b"[" * 6_000).decode(),
    base64.urlsafe_b64encode(b"\xff\xfe").decode(),
]
NUMBERS = [0, -1, 10**15, 10**50, 10**4_000, 1e308, -0.0, 2**63, True]
MEMBERS = (
    *("input", "payload", "name", "correlation_id", "instance_id", "execution_id", "channel"),
    *("id", "version", "inputs", "root", "output", "options", "items"),
)
PARAMETERS = (
    *("limit", "status", "command", "definition_id", "correlation_id", "owner_id", "version", "export", "x"),
)
HEADERS = ("idempotency-key", "x-tenant-id", "content-type", "authorization", "host", "x")

texts = st.sampled_from(ODD) | st.text(max_size=20)
values = st.recursive(
    st.none() | st.sampled_from(NUMBERS) | texts | st.integers() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
trees = st.fixed_dictionaries(
    {"type": st.sampled_from(["Finish", "Event", "Delay", "HttpEndpoint", "DispatchWorkflow", "Nothing"])},
    optional=dict.fromkeys(("name", "seconds", "path", "workflow", "version", "output", "starts"), values),
)
bodies = st.dictionaries(st.sampled_from(MEMBERS), values, max_size=4) | st.fixed_dictionaries(
    {"root": trees}, optional={"version": st.sampled_from(NUMBERS), "inputs": values, "output": values}
)
broken = st.sampled_from(
    ["", "{", "null", "[]", '"a"', "NaN", '{"input":NaN}', "[" * 9_000, "\ud800", "\x00"]
)


@pytest.fixture
def known(api, world):
    """Texts that name something there, so that calls get past the first look-up."""
    world.publish(tasker, answering)
    stop = refuse_what_no_key_holds(aws.client("dynamodb"))
    instance_id = world.dispatch("tasker")
    world.run(instance_id)
    [bookmark] = world.show(instance_id)["bookmarks"]
    api.post("/events/nobody", {})
    world.settle()
    [dead] = api.get("/bookmark-queue/dead-letters")[1]["dead_letters"]
    workflows = ["tasker", "answering", "place-order", "orders/new"]
    yield [*workflows, instance_id, bookmark["token"], dead["stimulus_id"]]
    stop()


def requests(route, known):
    """Draw what is sent to a route, some of it well formed."""
    method, path = route.split(" ")
    parts = path.split("/")
    named = st.sampled_from(known) | texts
    fill = [named if part.startswith("{") else st.just(part) for part in parts]
    return st.fixed_dictionaries(
        {
            "method": st.sampled_from([*METHODS, "TRACE", "x"]) if method == "ANY" else st.just(method),
            "path": st.tuples(*fill).map("/".join),
            "body": st.none() | bodies | broken | texts,
            "query": st.none()
            | st.fixed_dictionaries(
                {},
                optional={"cursor": st.sampled_from(CURSORS) | texts, **dict.fromkeys(PARAMETERS, named)},
            )
            | st.sampled_from([{"status": "pending"}, {"status": "failed"}]).flatmap(
                lambda some: st.sampled_from(CURSORS).map(lambda cursor: {**some, "cursor": cursor})
            ),
            "headers": st.none() | st.dictionaries(st.sampled_from(HEADERS), texts, max_size=2),
            "base64_encoded": st.booleans(),
        }
    )


def check(answer):
    """Check the form of an answer: a refusal has {"error": {code, message, field?}} and no more."""
    assert 200 <= answer["statusCode"] < 500, answer
    if answer["statusCode"] >= 400:
        [(name, error)] = json.loads(answer["body"]).items()
        assert name == "error"
        assert {"code", "message"} <= set(error) <= {"code", "message", "field", "faults"}
        assert all(isinstance(error[each], str) for each in ("code", "message"))
        assert "Traceback" not in answer["body"]


@pytest.mark.parametrize("route", ROUTES)
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_no_request_leads_to_a_5xx(api, known, route, data):
    request = data.draw(requests(route, known))
    check(api.raw(request.pop("method"), request.pop("path"), request.pop("body"), **request))


def test_what_no_route_serves_is_refused_in_the_same_form(api):
    for path in ("", "/", "//", "/nope", "/health/", "/endpoints/", "/endpoints/a\nb", "/callbacks/"):
        for method in (*METHODS, "TRACE"):
            check(api.raw(method, path))


LISTS = [
    ("/instances", {"definition_id": "tasker"}),
    ("/instances", {"correlation_id": "c"}),
    ("/dispatches", {"owner_id": "o"}),
    ("/dispatches", {"status": "failed"}),
    ("/outbox", {"status": "pending"}),
    ("/outbox", {"status": "failed"}),
    ("/bookmark-queue", {}),
    ("/bookmark-queue/dead-letters", {}),
    ("/incidents", {}),
]


def test_any_cursor_is_taken_or_refused(api, known):
    for path, query in [*LISTS, (f"/instances/{known[4]}/journal", {})]:
        for cursor in CURSORS:
            check(api.raw("GET", path, query={**query, "cursor": cursor}))


def test_names_that_no_row_can_have_are_refused(api, known):
    for method, path in (route.split(" ") for route in ROUTES):
        for each in ("x" * LONG, "é" * LONG, "a." + "x" * LONG, "x" * LONG + ".a"):
            parts = [each if part.startswith("{") else part for part in path.split("/")]
            check(api.raw("POST" if method == "ANY" else method, "/".join(parts)))


@pytest.mark.parametrize(
    ("path", "name"),
    [("/instances", "definition_id"), ("/instances", "correlation_id"), ("/dispatches", "owner_id")],
)
def test_a_query_for_names_that_no_row_can_have_is_refused(api, known, path, name):
    status, answer = api.get(path, query={name: "x" * LONG})
    assert (status, answer["error"]["code"], answer["error"]["field"]) == (400, "malformed", name)
