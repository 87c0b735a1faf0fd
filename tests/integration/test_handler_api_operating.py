"""The api function's routes for operators: redrive, the outbox, incidents and the pages of open stimuli."""

import pytest

from aftercommit import DispatchWorkflow, Sequence, Workflow
from tests.integration.waits import send


@pytest.fixture
def failed(api, example):
    """The (owner id, item id) of a dispatch that was given up."""
    example.publish(Workflow("forgetting", root=DispatchWorkflow("late")))
    owner_id = api.post("/workflows/forgetting/dispatch", {})[1]["instance_id"]
    example.settle(60)
    return owner_id, example.item("start").item_id


def test_a_failed_dispatch_is_found_redriven_and_done(api, example, failed):
    owner_id, item_id = failed
    _, found = api.get("/outbox", query={"status": "failed", "command": "start"})
    assert [(each["owner_id"], each["item_id"]) for each in found["items"]] == [failed]
    assert found["items"][0]["attempts"] == 4
    assert "no published workflow 'late'" in found["items"][0]["last_error"]
    assert [each["item_id"] for each in api.get("/incidents")[1]["incidents"]] == [item_id]
    example.publish(Workflow("late", root=Sequence()))
    status, shown = api.post(f"/dispatches/{owner_id}/{item_id}/redrive")
    assert (status, shown["status"], shown["generation"]) == (202, "undone", 2)
    [listed] = api.get("/outbox", query={"status": "pending"})[1]["items"]
    assert (listed["item_id"], listed["age"] > 0) == (item_id, True)
    example.settle(60)
    assert api.get(f"/dispatches/{owner_id}/{item_id}")[1]["status"] == "done"
    assert api.get("/incidents")[1] == {"incidents": []}


def test_a_second_redrive_is_a_conflict_that_says_why(api, failed):
    path = "/dispatches/{}/{}/redrive".format(*failed)
    assert api.post(path)[0] == 202
    status, body = api.post(path)
    assert (status, body["error"]["code"]) == (409, "conflict")
    assert "still being tried" in body["error"]["message"]


def test_an_unknown_dispatch_is_not_found(api, failed):
    status, body = api.post(f"/dispatches/{failed[0]}/nothing/redrive")
    assert (status, body["error"]["code"], body["error"]["field"]) == (404, "not_found", "id")


@pytest.mark.parametrize("query", [None, {"status": "done"}, {"status": "pending", "command": "x"}])
def test_an_outbox_that_makes_no_sense_is_refused(api, query):
    status, body = api.get("/outbox", query=query)
    assert (status, body["error"]["code"]) == (400, "malformed")
    assert body["error"]["field"] in ("status", "command")


def test_open_stimuli_are_paged(api):
    for number in range(3):
        send("early", {"n": number})
    _, first = api.get("/bookmark-queue", query={"limit": "2"})
    _, rest = api.get("/bookmark-queue", query={"limit": "2", "cursor": first["cursor"]})
    assert len({each["stimulus_id"] for each in first["stimuli"] + rest["stimuli"]}) == 3
    assert "cursor" not in rest
