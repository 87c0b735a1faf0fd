"""What waits and what ends it, deployed: events, tasks, timers, cancels, drafts."""

from datetime import datetime

import pytest

from tests.e2e.conftest import await_that


def await_suspended(api, instance_id):
    def suspended():
        shown = api.show(instance_id)
        return shown if shown["status"] == "suspended" else None

    return await_that(suspended, explain=lambda: api.show(instance_id))


def test_an_event_resumes_the_instance_that_waits_for_its_payload(api, effects):
    meant = api.dispatch("hearing", order_id="waits-1")
    other = api.dispatch("hearing", order_id="waits-2")
    await_suspended(api, meant)
    await_suspended(api, other)
    sent = api.post("/events/paid", {"payload": {"order": "waits-1"}, "input": {"by": "caller"}})
    assert sent.status == 202
    assert api.await_end(meant)["output"] == {"by": "caller"}
    assert api.show(other)["status"] == "suspended"
    assert [name for name, _ in effects("waits-1")] == ["heard"]
    assert api.post(f"/instances/{other}/cancel").json() == {"instance_id": other, "cancelled": True}
    assert api.post(f"/instances/{other}/cancel").json() == {"instance_id": other, "cancelled": False}
    assert api.show(other)["status"] == "cancelled"


def test_an_event_that_comes_first_is_kept_for_who_waits_later(api):
    assert api.post("/events/paid", {"payload": {"order": "waits-3"}, "input": 1}).status == 202
    open_ones = api.get("/bookmark-queue").json()["stimuli"]
    assert "event:paid" in {each["name"] for each in open_ones}
    assert all("input" not in each and "value" not in each for each in open_ones)
    assert api.await_end(api.dispatch("hearing", order_id="waits-3"))["output"] == 1


def test_a_workflow_tells_another(api):
    waiting = api.dispatch("hearing", order_id="waits-4")
    await_suspended(api, waiting)
    api.dispatch("telling", order_id="waits-4")
    assert api.await_end(waiting)["output"] == {"by": "workflow"}


def test_an_event_starts_what_starts_at_it(api, effects):
    assert api.post("/events/begin", {"input": {"order_id": "waits-5"}}).status == 202
    found = await_that(lambda: api.get("/instances?definition_id=beginning").json()["instances"])
    assert [api.await_end(each["instance_id"])["output"] for each in found] == [{"order_id": "waits-5"}]
    assert [name for name, _ in effects("waits-5")] == ["begun"]


def test_a_task_is_completed_once_by_its_token(api):
    asked = api.dispatch("asking", order_id="waits-6")
    [task] = await_suspended(api, asked)["bookmarks"]
    assert task["inputs"] == {"order": "waits-6"}
    path = f"/tasks/{task['token']}/complete"
    assert api.stack.request("POST", path, {"input": 1}, {"X-Tenant-Id": "other"}).status == 404
    assert api.post(f"/tasks/{task['token'][:-4]}AAAA/complete", {"input": 1}).status == 404
    assert api.post(path, {"input": {"approved": True}}).status == 202
    assert api.await_end(asked)["output"] == {"approved": True}
    assert api.post(path, {"input": {"approved": False}}).status == 404


@pytest.mark.parametrize("seconds", [2])
def test_a_delay_is_never_early(api, seconds):
    shown = api.await_end(api.dispatch("pausing", order_id="waits-7", seconds=seconds))
    lasted = datetime.fromisoformat(shown["ended_at"]) - datetime.fromisoformat(shown["created_at"])
    assert shown["status"] == "completed"
    assert lasted.total_seconds() >= seconds


def test_the_child_of_a_losing_branch_is_cancelled(api):
    parent = api.dispatch("deciding", order_id="waits-8")
    [dispatch] = api.await_dispatches(parent)
    await_suspended(api, dispatch["instance_id"])
    assert api.post("/events/decided", {"payload": {"order": "waits-8"}}).status == 202
    assert api.await_end(parent)["status"] == "completed"
    assert api.await_end(dispatch["instance_id"])["status"] == "cancelled"


def test_a_draft_is_published_started_retracted_and_its_instance_deleted(api):
    step = {"type": "Step", "activity": "note", "inputs": {"order_id": "waits-9", "name": "drafted"}}
    faulty = api.stack.request("PUT", "/workflows/drafted", {"root": {"type": "Stp"}})
    assert faulty.status == 422
    assert faulty.json()["error"]["faults"] == [{"path": "root", "message": 'unknown activity type "Stp"'}]
    assert api.stack.request("PUT", "/workflows/drafted", {"root": step}).status == 200
    assert api.post("/workflows/drafted/dispatch", {}).status == 404
    assert api.post("/workflows/drafted/publish").json() == {"id": "drafted", "version": 1}
    assert api.post("/workflows/drafted/publish").json() == {"id": "drafted", "version": 1}
    ended = api.dispatch("drafted")
    assert api.await_end(ended)["status"] == "completed"
    assert api.post("/workflows/drafted/retract").status == 200
    assert api.post("/workflows/drafted/dispatch", {}).status == 404
    assert api.stack.request("DELETE", f"/instances/{ended}").status == 202
    assert api.get(f"/instances/{ended}").status == 404
