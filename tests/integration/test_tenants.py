"""I11: whatever the route and the id, nothing of one tenant is seen or changed by another.

A stranger calls each route of the template, once with ids that exist for a tenant and once with ids that
nobody has: both answers must be the same, and the tenant's rows stay as they are.
"""

import json
import re

import pytest

from aftercommit import DispatchWorkflow, Event, Fork, HttpEndpoint, RunTask, Sequence, Step, Workflow
from aftercommit.attempts import give_up
from aftercommit.model import Failure
from aftercommit.settings import settings
from aftercommit.tables import key_of
from tests.integration.template import load_template
from tests.integration.waits import send
from tests.integration.world import raw_rows

OWNER, STRANGER = "acme", "other"
SECRET = "acme-s3cr3t"
NOBODY = "no-such-instance"
ROUTES = sorted(
    each["Properties"]["RouteKey"]
    for each in load_template()["Resources"].values()
    if each["Type"] == "AWS::ApiGatewayV2::Route"
)
# Of no tenant: what the deployment is, to whoever may call it.
UNOWNED = {"GET /health", "GET /activities"}

busy = Workflow(
    "acme-busy",
    inputs={"secret": str},
    root=Sequence(
        Step("act", name="acme-begun"),
        Step("act", name="acme-waiting"),
        Fork(
            DispatchWorkflow("acme-quiet"),
            DispatchWorkflow("acme-quiet"),
            DispatchWorkflow("acme-quiet"),
            RunTask("approve"),
            Event("acme-waits"),
            HttpEndpoint(name="acme-called"),
        ),
    ),
)


class Ids:
    """What stands in the paths, queries and bodies of calls; by default, what nobody has."""

    def __init__(self, **known):
        self.workflow = known.get("workflow", "no-workflow")
        self.instance = known.get("instance", NOBODY)
        self.dispatch = known.get("dispatch", "no-dispatch")
        self.dead_letter = known.get("dead_letter", "no.letter")
        self.token = known.get("token", "bm9uZQ")
        self.endpoint = known.get("endpoint", "no-endpoint")
        self.callback = known.get("callback", "bm9vbmU")
        self.correlation = known.get("correlation", "no-correlation")

    def all(self):
        return sorted(vars(self).values(), key=len, reverse=True)


@pytest.fixture
def owned(api, example):
    """Everything a tenant can have; returns its ids, and the cursors of its lists."""
    headers = {"X-Tenant-Id": OWNER}
    hook = Workflow("acme-hook", root=HttpEndpoint("acme-hook", methods=["POST"], starts=True))
    example.publish(busy, hook, Workflow("acme-quiet", root=Sequence()), owner=OWNER)
    body = {"input": {"secret": SECRET}, "correlation_id": "acme-correlation"}
    instances = [
        api.post("/workflows/acme-busy/dispatch", body, headers=headers)[1]["instance_id"] for _ in range(2)
    ]
    for instance_id in instances:
        example.run(instance_id, tenant=OWNER)
    for number in range(4):
        send(f"acme-early-{number}", value=SECRET, tenant=OWNER)
    mine = [item for item in example.items("start") if item.owner_id == instances[0]]
    for item in (*mine[:2], *example.items("stimulus")[:2]):
        give_up(item, Failure("OSError", "acme-reason"))
    _, shown = api.get(f"/instances/{instances[0]}", headers=headers)
    failed = next(each for each in shown["dispatches"] if each["status"] == "failed")
    _, dead = api.get("/bookmark-queue/dead-letters", headers=headers)
    ids = Ids(
        workflow="acme-busy",
        instance=instances[0],
        dispatch=failed["item_id"],
        dead_letter=dead["dead_letters"][0]["stimulus_id"],
        token=next(each["token"] for each in shown["bookmarks"] if "token" in each),
        endpoint="acme-hook",
        callback=callback_of(shown),
        correlation="acme-correlation",
    )
    return ids, cursors(api, ids, headers)


def callback_of(shown):
    found = next(each for each in shown["bookmarks"] if "callback_path" in each)
    return found["callback_path"].rpartition("/")[2]


LISTS = [
    ("/instances", {"definition_id": "workflow"}),
    ("/instances", {"correlation_id": "correlation"}),
    ("/instances/{instance}/journal", {}),
    ("/dispatches", {"owner_id": "instance"}),
    ("/dispatches", {"status": "=failed"}),
    ("/outbox", {"status": "=pending"}),
    ("/outbox", {"status": "=failed"}),
    ("/bookmark-queue", {}),
    ("/bookmark-queue/dead-letters", {}),
    ("/incidents", {}),
]


def queried(query, ids):
    return {
        name: value[1:] if value.startswith("=") else getattr(ids, value) for name, value in query.items()
    }


def cursors(api, ids, headers):
    """Return the cursor that each list gives its own tenant after one row."""
    found = []
    for path, query in LISTS:
        asked = {**queried(query, ids), "limit": "1"}
        status, page = api.get(path.format(**vars(ids)), query=asked, headers=headers)
        assert status == 200, (path, page)
        assert "cursor" in page, path
        found.append(page["cursor"])
    return found


def calls(route, ids):
    """Return the calls of a route with ids: (method, path, query, body)."""
    method, path = route.split(" ")
    names = {"owner_id": ids.instance, "token": ids.token, "name": "acme-waits", "path": ids.endpoint}
    method = "POST" if method == "ANY" else method
    if path.startswith("/callbacks"):
        names["token"] = ids.callback
    if path.startswith("/workflows"):
        names["id"] = ids.workflow
    elif path.startswith("/dispatches"):
        names["id"] = ids.dispatch
    elif path.startswith("/bookmark-queue"):
        names["id"] = ids.dead_letter
    else:
        names["id"] = ids.instance
    path = re.sub(r"{(\w+)\+?}", lambda found: names[found[1]], path)
    if route == "POST /stimuli":
        yield method, path, None, {"name": "event:acme-waits", "instance_id": ids.instance}
    elif route == "POST /events/{name}":
        yield method, path, None, {"instance_id": ids.instance}
        yield method, path, None, {"correlation_id": ids.correlation}
    elif route == "PUT /workflows/{id}":
        yield method, path, None, {"root": {"type": "Sequence", "activities": []}}
    elif route.startswith("POST /workflows") and route.endswith(("dispatch", "execute")):
        yield method, path, None, {"input": {"secret": "x"}}
    else:
        yield method, path, None, None
    for template, query in LISTS:
        if template.format(**vars(ids)) == path and method == "GET":
            yield method, path, queried(query, ids), None


def rows_of(tenant):
    of = settings()
    tables = (
        of.definitions_table,
        of.instances_table,
        of.outbox_table,
        of.bookmarks_table,
        of.triggers_table,
    )
    return sorted(
        json.dumps(row, sort_keys=True)
        for table in (*tables, of.bookmarks_table, of.triggers_table)
        for row in raw_rows(table)
        if any(str(value.get("S", "")).startswith(key_of(tenant, "")) for value in row.values())
    )


def plain(answer, ids):
    """Return an answer without the ids that were asked for, and without new ones."""
    status, body = answer
    text = json.dumps(body)
    for each in ids.all():
        text = text.replace(each, "<id>")
    return status, re.sub(r"[0-9a-f]{32}\.\d{13}-[0-9A-Z]{26}|[0-9a-f]{64}", "<new>", text)


def test_i11_a_stranger_sees_and_changes_nothing_and_cannot_tell_foreign_from_unknown(api, owned):
    ids, _ = owned
    before = rows_of(OWNER)
    for route in ROUTES:
        for foreign, unknown in zip(calls(route, ids), calls(route, Ids()), strict=True):
            api.texts.clear()
            answers = [plain(ask(api, foreign), ids), plain(ask(api, unknown), Ids())]
            assert answers[0] == answers[1], route
            told = "".join(api.texts)
            for each in (SECRET, "acme-reason", *ids.all()):
                assert each not in told or each in str(foreign) or route in UNOWNED, (route, each)
            assert rows_of(OWNER) == before, route


def ask(api, call):
    method, path, query, body = call
    return api.call(method, path, body, query=query, headers={"X-Tenant-Id": STRANGER})


def test_i11_what_a_stranger_has_sent_comes_to_nothing_with_the_owner(api, example, owned):
    ids, _ = owned
    for path in ("/stimuli", "/events/acme-waits"):
        body = {"instance_id": ids.instance} | ({"name": "event:acme-waits"} if path == "/stimuli" else {})
        assert ask(api, ("POST", path, None, body))[0] == 202
    for item in example.items("stimulus"):
        if item.tenant == STRANGER:
            example.handle_item(item)
    assert example.head(ids.instance, OWNER).status == "suspended"
    shown = api.get(f"/instances/{ids.instance}", headers={"X-Tenant-Id": OWNER})[1]
    assert {each["waits_for"] for each in shown["bookmarks"]} == {"task", "stimulus", "callback"}


def test_i11_a_cursor_of_another_tenant_leads_nowhere(api, owned):
    ids, given = owned
    for (path, query), cursor in zip(LISTS, given, strict=True):
        api.texts.clear()
        status, page = ask(
            api, ("GET", path.format(**vars(ids)), {**queried(query, ids), "cursor": cursor}, None)
        )
        assert status == (404 if "journal" in path else 200), path
        assert all(value == [] for value in page.values() if isinstance(value, list)), path
        assert SECRET not in "".join(api.texts)


def test_i11_each_route_is_tried_and_each_list_is_one_of_them():
    assert len(ROUTES) >= 29
    for path, _ in LISTS:
        assert f"GET {path.replace('{instance}', '{id}')}" in ROUTES


def test_i11_the_owner_gets_what_the_stranger_does_not(api, example, owned):
    """The same calls work for the tenant itself: what the others found was not just broken."""
    ids, _ = owned
    headers = {"X-Tenant-Id": OWNER}
    works = [
        ("GET", f"/instances/{ids.instance}", 200),
        ("GET", f"/instances/{ids.instance}/journal", 200),
        ("GET", f"/workflows/{ids.workflow}", 200),
        ("GET", f"/dispatches/{ids.instance}/{ids.dispatch}", 200),
        ("POST", f"/dispatches/{ids.instance}/{ids.dispatch}/redrive", 202),
        ("GET", f"/bookmark-queue/dead-letters/{ids.dead_letter}", 200),
        ("POST", f"/bookmark-queue/dead-letters/{ids.dead_letter}/replay", 202),
        ("POST", f"/tasks/{ids.token}/complete", 202),
        ("POST", f"/endpoints/{ids.endpoint}", 202),
        ("POST", f"/callbacks/{ids.callback}", 202),
        ("POST", f"/instances/{ids.instance}/cancel", 200),
    ]
    for method, path, status in works:
        assert api.call(method, path, headers=headers)[0] == status, path
