"""The api function's routes for definitions: exported, shown with where they start, started one at a time."""

import pytest

from aftercommit import Cron, Event, Sequence, Step, Workflow, clock, inputs, var
from aftercommit.activities import TYPES
from aftercommit.functions import descriptors
from aftercommit.paging import to_cursor
from tests.integration.handlers import error_of

OTHER = {"x-tenant-id": "other"}
whole = Workflow(
    "whole",
    version=4,
    inputs={"name": {"type": "string", "default": "x"}},
    root=Sequence(Event("go", payload={"n": 1}, starts=True), Step("act", name=inputs.name, result="x")),
    output={"x": var.x},
    commit="burst",
    activation="correlation",
)
MEMBERS = ["id", "inputs", "root", "output", "options"]


def test_an_export_is_just_what_a_put_takes(api, example):
    example.publish(whole)
    status, exported = api.get("/workflows/whole", query={"export": "true"})
    assert status == 200
    assert sorted(exported) == sorted(MEMBERS)
    assert exported == {name: value for name, value in whole.data.items() if name != "version"}
    status, put = api.call("PUT", "/workflows/whole", exported, headers=OTHER)
    assert (status, put["fingerprint"]) == (200, whole.definition.fingerprint)
    api.post("/workflows/whole/publish", headers=OTHER)
    assert api.get("/workflows/whole", query={"export": "true"}, headers=OTHER)[1] == exported


@pytest.mark.parametrize("limit", ["1", "2", "3", "100"])
def test_workflows_come_in_pages_each_once_whoever_has_published_it(api, example, limit):
    """Those of the deployment and a tenant's own in one order; one that both have is the tenant's."""
    for owner, name in (("acme", "a"), ("acme", "send-receipt"), ("acme", "z"), ("*", "m"), ("other", "o")):
        example.publish(Workflow(name, version=3, root=Sequence()), owner=owner)
    listed, cursor = [], None
    while True:
        query = {"limit": limit} | ({"cursor": cursor} if cursor else {})
        status, page = api.get("/workflows", query=query, headers={"x-tenant-id": "acme"})
        assert (status, len(page["workflows"]) <= int(limit)) == (200, True)
        listed += [(each["id"], each["version"]) for each in page["workflows"]]
        if (cursor := page.get("cursor")) is None:
            break
    assert listed == [
        ("a", 3),
        ("m", 3),
        ("place-order", 1),
        ("send-receipt", 3),
        ("ship-order", 1),
        ("z", 3),
    ]


def test_a_cursor_of_another_list_is_refused(api, example):
    cursor = to_cursor(["a", "b"])
    error_of(api.get("/workflows", query={"cursor": cursor}), 400, "malformed", "cursor")


def test_any_version_is_exported(api, example):
    example.publish(whole, Workflow("whole", version=5, root=Sequence()))
    of = {"export": "true", "version": "4"}
    assert api.get("/workflows/whole", query=of)[1]["options"] == whole.data["options"]
    assert api.get("/workflows/whole", query={"export": "true"})[1] == {
        "id": "whole",
        "root": Sequence().to_json(),
    }


@pytest.mark.parametrize(
    ("query", "status", "code", "field"),
    [
        ({"export": "yes"}, 400, "malformed", "export"),
        ({"export": "true", "version": "x"}, 400, "malformed", "version"),
        ({"export": "true", "version": "9"}, 404, "not_found", "version"),
    ],
)
def test_an_export_that_makes_no_sense_is_refused(api, example, query, status, code, field):
    example.publish(whole)
    error_of(api.get("/workflows/whole", query=query), status, code, field)


def test_what_is_not_there_is_not_exported(api):
    error_of(api.get("/workflows/none", query={"export": "true"}), 404, "not_found", "id")


def test_export_false_shows_it_as_ever(api, example):
    example.publish(whole)
    assert api.get("/workflows/whole", query={"export": "false"}) == api.get("/workflows/whole")


def test_a_workflow_is_shown_with_where_its_published_version_starts(api, example):
    example.publish(whole)
    api_shown = api.get("/workflows/whole")[1]
    assert api_shown["triggers"] == [
        {"activity_id": "root.activities[0]", "name": "event:go", "payload": {"n": 1}}
    ]
    example.publish(Workflow("whole", version=5, root=Event("other", starts=True)))
    for query in ({}, {"version": "4"}):
        [trigger] = api.get("/workflows/whole", query=query)[1]["triggers"]
        assert trigger == {"activity_id": "root", "name": "event:other", "payload": {}}


def test_a_start_by_the_clock_is_shown_with_its_next_time(api, example):
    example.publish(Workflow("nightly", root=Cron("0 3 * * *", starts=True)))
    [trigger] = api.get("/workflows/nightly")[1]["triggers"]
    assert (trigger["activity_id"], trigger["schedule"]["cron"]) == ("root", "0 3 * * *")
    assert clock.from_text(trigger["next_at"]) > clock.now()


def test_what_starts_at_nothing_has_no_triggers_and_neither_has_what_is_retracted(api, example):
    assert api.get("/workflows/send-receipt")[1]["triggers"] == []
    example.publish(whole, owner="default")
    api.post("/workflows/whole/retract")
    assert api.get("/workflows/whole", query={"version": "4"})[1]["triggers"] == []


def test_activities_are_listed_with_the_types_of_trees(api):
    status, found = api.get("/activities")
    assert (status, found["activities"]) == (200, descriptors())
    types = {each["type"]: each["schema"] for each in found["types"]}
    assert sorted(types) == sorted(TYPES)
    assert types["Event"]["required"] == ["type", "name"]
    assert types["Fork"]["properties"]["wait"] == {"enum": ["all", "any"]}


# --- activations ---


@pytest.mark.parametrize("way", ["dispatch", "execute"])
def test_a_start_beside_a_live_instance_is_a_conflict_that_names_it(api, example, way):
    example.publish(Workflow("one", activation="singleton", root=Event("go")))
    _, first = api.post("/workflows/one/dispatch", {}, headers={"Idempotency-Key": "k"})
    message = error_of(api.post(f"/workflows/one/{way}", {}), 409, "activation_refused", "id")
    assert first["instance_id"] in message
    again = api.post("/workflows/one/dispatch", {}, headers={"Idempotency-Key": "k"})
    assert again == (202, first)
