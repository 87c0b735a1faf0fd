"""Dispatches on bad days: given up, listed, redriven when mended; and the children of cancelled parents."""

from tests.e2e.conftest import await_that

LATE = {
    "inputs": {"order_id": {"type": "string"}},
    "root": {
        "type": "Step",
        "activity": "note",
        "inputs": {"order_id": "{% inputs.order_id %}", "name": "late"},
    },
}


def listed(api, path, item_id):
    """Return the row of a dispatch in a list, whatever else is in it."""
    cursor = ""
    while True:
        answer = api.get(f"{path}limit=100{cursor}")
        assert answer.status == 200, answer.body
        page = answer.json()
        rows = page.get("items", page.get("incidents"))
        found = next((each for each in rows if each.get("item_id") == item_id), None)
        if found or "cursor" not in page:
            return found
        cursor = f"&cursor={page['cursor']}"


def test_a_start_that_fails_is_listed_and_redriven_after_its_workflow_is_published(api, effects):
    owner_id = api.dispatch("forgetting-late", order_id="late-1")
    assert api.await_end(owner_id)["status"] == "completed"  # it waits for nobody
    [dispatch] = api.await_dispatches(owner_id)
    item_id = dispatch["item_id"]
    assert (dispatch["status"], dispatch["attempts"]) == ("failed", 4)
    failed = listed(api, "/outbox?status=failed&", item_id)
    assert "no published workflow 'published-late'" in failed["last_error"]
    assert (failed["owner_id"], failed["command"]) == (owner_id, "start")
    assert failed["age"] >= 0
    assert listed(api, "/incidents?", item_id)["instance_id"] == owner_id

    path = f"/dispatches/{owner_id}/{item_id}"
    assert api.stack.request("PUT", "/workflows/published-late", LATE).status == 200
    assert api.post("/workflows/published-late/publish").status == 200
    answers = [api.post(f"{path}/redrive").status for _ in range(2)]
    assert answers == [202, 409]
    await_that(lambda: api.get(path).json()["status"] == "done", explain=lambda: api.get(path).body)
    child = api.await_end(dispatch["instance_id"])
    assert (child["status"], child["parent"]["instance_id"]) == ("completed", owner_id)
    assert [activity for activity, _ in effects("late-1")] == ["late"]
    assert api.get(path).json()["generation"] == 2
    assert listed(api, "/incidents?", item_id) is None
    refused = api.post(f"{path}/redrive")
    assert (refused.status, "has started" in refused.json()["error"]["message"]) == (409, True)


def test_a_dispatch_whose_parent_was_told_is_not_redriven(api):
    owner_id = api.dispatch("awaiting-never")
    assert api.await_end(owner_id)["status"] == "faulted"
    [dispatch] = api.show(owner_id)["dispatches"]
    refused = api.post(f"/dispatches/{owner_id}/{dispatch['item_id']}/redrive")
    assert refused.status == 409
    assert "was told" in refused.json()["error"]["message"]


def test_children_go_with_a_cancelled_parent_as_their_dispatches_say(api):
    parent_id = api.dispatch("idling")

    def all_wait():
        dispatches = api.show(parent_id)["dispatches"]
        ids = [each["instance_id"] for each in dispatches if each["status"] == "done"]
        return ids if len(ids) == 3 and all(api.show(each)["status"] == "suspended" for each in ids) else None

    children = await_that(all_wait, explain=lambda: api.show(parent_id))
    assert api.post(f"/instances/{parent_id}/cancel").json()["cancelled"]

    def statuses():
        return sorted(api.show(each)["status"] for each in children)

    await_that(lambda: statuses() == ["cancelled", "cancelled", "suspended"], explain=statuses)
    for each in children:
        api.post(f"/instances/{each}/cancel")
