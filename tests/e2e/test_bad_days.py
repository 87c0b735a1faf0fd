"""What functions do on bad days only, or when a day has passed: on rows that these tests plant or age."""

import json

import pytest

from aftercommit import clock
from aftercommit.events import Event, event_put
from tests.e2e.conftest import await_that

HOUR_SECONDS = 3_600


@pytest.fixture(scope="module")
def rows(stack):
    """Return a function that reads the rows of a partition of a table."""
    keys = {"OutboxTable": "owner_key", "InstancesTable": "instance_key"}

    def read(table, key):
        answer = stack.client("dynamodb").query(
            TableName=stack.outputs[table],
            KeyConditionExpression=f"{keys[table]} = :key",
            ExpressionAttributeValues={":key": {"S": key}},
            ConsistentRead=True,
        )
        return [{name: next(iter(value.values())) for name, value in row.items()} for row in answer["Items"]]

    return read


# --- starts whose channel is lost, at their last attempt ---

JOIN = {"join_id": "j", "index": 0, "total": 1, "rows": 1, "awaited": True}


def lost_start(owner_id, **more):
    """Return the item of a start whose channel is gone, due in an hour."""
    body = {
        "instance_id": f"{owner_id}-child",
        "definition_id": "noted",
        "input": {"order_id": owner_id, "name": "lost"},
        "channel": "gone",
        "depth": 1,
        **more,
    }
    return {
        "owner_key": {"S": f"default#{owner_id}"},
        "item_id": {"S": "lost"},
        "tenant": {"S": "default"},
        "owner_id": {"S": owner_id},
        "command": {"S": "start"},
        "status": {"S": "undone"},
        "instance_id": {"S": body["instance_id"]},
        "definition_id": {"S": "noted"},
        "channel": {"S": "gone"},
        "wait": {"BOOL": "bookmark_id" in more},
        "body": {"S": json.dumps(body)},
        "attempts": {"N": "3"},
        "sends": {"N": "0"},
        "due_shard": {"N": "1"},
        "due_at": {"S": clock.to_text(clock.now() + HOUR_SECONDS)},
        "created_at": {"S": clock.to_text(clock.now())},
    }


def by_stream(stack, item):
    """Have `deliver` meet an item: as a new one, not yet due."""
    stack.client("dynamodb").put_item(TableName=stack.outputs["OutboxTable"], Item=item)


def by_sweep(stack, item):
    """Have `sweep` meet an item: as one that is due, and that the stream told nobody of."""
    asleep = {**item, "asleep": {"BOOL": True}, "status": {"S": "cancelled"}}
    due = {**item, "due_at": {"S": clock.to_text(clock.now())}}
    for each in (asleep, due):
        stack.client("dynamodb").put_item(TableName=stack.outputs["OutboxTable"], Item=each)


@pytest.mark.parametrize("meet", [by_stream, by_sweep])
@pytest.mark.parametrize(
    ("waits", "more"), [("not", {}), ("alone", {"bookmark_id": "b"}), ("for-many", {"join": JOIN})]
)
def test_a_start_whose_channel_is_lost_is_given_up_with_its_consequence(stack, api, rows, meet, waits, more):
    owner_id = f"lost-{meet.__name__.replace('_', '-')}-{waits}"
    meet(stack, lost_start(owner_id, **more))
    path = f"/dispatches/{owner_id}/lost"
    await_that(lambda: api.get(path).json()["status"] == "failed", explain=lambda: api.get(path).body)
    key = f"default#{owner_id}"
    told = [each["command"] for each in rows("OutboxTable", key) if each["item_id"] != "lost"]
    left = {each["row"].partition("#")[0] for each in rows("InstancesTable", key)}
    assert told == (["resume"] if waits == "alone" else [])
    if waits == "for-many":
        assert left == {"count"}
    elif waits == "not":
        assert left == {"incident"}


# --- what is damaged, and what is over ---


def test_a_damaged_event_is_set_aside_with_an_incident(stack, rows):
    table = stack.outputs["OutboxTable"]
    item = event_put(Event("bad/days", {}, id="damaged"), table=table)["Put"]["Item"]
    stack.client("dynamodb").put_item(TableName=table, Item={**item, "sinks": {"S": "["}})
    key = item["owner_key"]["S"]
    await_that(lambda: rows("OutboxTable", key)[0]["status"] == "failed", explain=stack.describe_failures)
    assert [each["row"].partition("#")[0] for each in rows("InstancesTable", key)] == ["incident"]


def test_the_rows_of_a_deleted_instance_go_when_their_day_has_come(stack, api, rows):
    parent_id = api.dispatch("two-generations", order_id="bad-days-deleted")
    assert api.await_end(parent_id)["status"] == "completed"
    assert api.stack.request("DELETE", f"/instances/{parent_id}").status == 202
    key = f"default#{parent_id}"
    assert {each["command"] for each in rows("OutboxTable", key)} == {"start"}
    stack.client("dynamodb").update_item(
        TableName=stack.outputs["InstancesTable"],
        Key={"instance_key": {"S": key}, "row": {"S": "head"}},
        UpdateExpression="SET due_at = :now",
        ConditionExpression="attribute_exists(deleted_at)",
        ExpressionAttributeValues={":now": {"S": clock.to_text(clock.now())}},
    )
    await_that(lambda: not rows("InstancesTable", key), explain=lambda: rows("InstancesTable", key))
    assert rows("OutboxTable", key) == []


def start_alone(api, correlation_id):
    body = {"input": {"order_id": "bad-days"}, "correlation_id": correlation_id}
    return api.post("/workflows/alone/dispatch", body)


def test_a_place_that_its_holder_has_left_is_free_and_one_that_it_left_behind_is_taken_over(stack, api):
    held = start_alone(api, "bad-days")
    assert (held.status, start_alone(api, "bad-days").status) == (202, 409)
    holder_id = held.json()["instance_id"]
    head = stack.client("dynamodb").get_item(
        TableName=stack.outputs["InstancesTable"],
        Key={"instance_key": {"S": f"default#{holder_id}"}, "row": {"S": "head"}},
    )["Item"]
    assert api.post(f"/instances/{holder_id}/cancel").json()["cancelled"]
    place = {"instance_key": head["activation_key"], "row": {"S": "activation"}}
    found = stack.client("dynamodb").get_item(TableName=stack.outputs["InstancesTable"], Key=place)
    assert "Item" not in found, "the cancel has freed it"

    left = {**place, "holder": {"S": holder_id}}  # as if it had died between its end and that
    stack.client("dynamodb").put_item(TableName=stack.outputs["InstancesTable"], Item=left)
    tree = {
        "root": {
            "type": "DispatchWorkflow",
            "workflow": "alone",
            "input": {"order_id": "bad-days"},
            "wait": True,
        }
    }
    assert api.stack.request("PUT", "/workflows/starts-alone", tree).status == 200
    assert api.post("/workflows/starts-alone/publish").status == 200
    started = api.post("/workflows/starts-alone/dispatch", {"correlation_id": "bad-days"})
    [dispatch] = api.await_dispatches(started.json()["instance_id"])
    assert dispatch["status"] == "done"
    refused = start_alone(api, "bad-days")
    assert refused.status == 409
    assert api.show(dispatch["instance_id"])["status"] in ("running", "suspended")


# --- what is asked of the API seldom ---


def test_an_execution_that_comes_to_a_wait_is_answered_and_resumed_later(api):
    body = {"input": {"order_id": "bad-days-executed"}}
    answer = api.post("/workflows/hearing/execute", body)
    assert (answer.status, answer.json()["status"]) == (200, "suspended")
    event = {"payload": {"order": "bad-days-executed"}, "input": 7}
    assert api.post("/events/paid", event).status == 202
    assert api.await_end(answer.json()["instance_id"])["output"] == 7


def test_an_event_starts_a_draft_while_it_is_published_and_not_after(api):
    tree = {
        "root": {"type": "Event", "name": "bad-days", "starts": True, "result": "given"},
        "output": "{% var.given %}",
    }
    assert api.stack.request("PUT", "/workflows/bad-days", tree).status == 200
    assert api.post("/workflows/bad-days/publish").status == 200
    assert api.post("/events/bad-days", {"input": 1}).status == 202

    def started():
        return api.get("/instances?definition_id=bad-days").json()["instances"]

    await_that(started)
    assert api.post("/workflows/bad-days/retract").status == 200
    assert api.post("/events/bad-days", {"input": 2}).status == 202
    queued = api.get("/bookmark-queue").json()["stimuli"]
    assert [each["name"] for each in queued if each["name"] == "event:bad-days"], queued
    assert [api.await_end(each["instance_id"])["output"] for each in started()] == [1]
