"""What reaches the queue and by which way; and what never should have."""

import json

from aftercommit.clock import from_text
from tests.e2e.conftest import HEAD_START_SECONDS, await_that

BROKEN = [
    "no JSON at all",
    "[]",
    json.dumps({"tenant": "default"}),
    json.dumps({"tenant": "default", "instance_id": 5}),
    json.dumps({"tenant": "default", "instance_id": "x", "surprise": "y"}),
]


def read_dead_letters(stack, seen):
    """Add to `seen` what is in the dead-letter queue, by body, with the reason."""
    answer = stack.client("sqs").receive_message(
        QueueUrl=stack.outputs["CommandDeadLetterQueueUrl"],
        MaxNumberOfMessages=10,
        MessageAttributeNames=["All"],
        VisibilityTimeout=60,
    )
    for message in answer.get("Messages", []):
        attributes = message.get("MessageAttributes", {})
        seen[message["Body"]] = attributes.get("reason", {}).get("StringValue", "")
    return seen


def test_the_stream_delivers_before_the_sweep_may(api):
    waits = []
    for number in range(3):
        instance_id = api.dispatch("two-generations", order_id=f"eager-{number}")
        api.await_end(instance_id)
        [start] = api.show(instance_id)["dispatches"]
        assert start["sends"] == 1
        waits.append(from_text(start["settled_at"]) - from_text(start["created_at"]))
    # Until its head start is over, an item is not due, so no sweep can have sent it.
    assert min(waits) < HEAD_START_SECONDS


def test_malformed_messages_end_as_dead_letters_while_others_are_served(api, stack):
    for body in BROKEN:
        stack.client("sqs").send_message(QueueUrl=stack.outputs["CommandQueueUrl"], MessageBody=body)
    good = [api.dispatch("noted", order_id=f"message-{number}", name="n") for number in range(3)]
    for instance_id in good:
        assert api.await_end(instance_id)["status"] == "completed"
    seen = {}
    await_that(lambda: set(BROKEN) <= read_dead_letters(stack, seen).keys(), explain=lambda: str(seen))
    assert all(seen[body] for body in BROKEN), "each bears its reason"
    logged = stack.logs("run", "message set aside")
    assert len(logged) >= len(BROKEN)
    assert all("message_id" in line for line in logged)


def test_a_message_without_its_item_does_nothing(api, stack):
    body = json.dumps({"tenant": "default", "owner_id": "nobody", "item_id": "nothing"})
    stack.client("sqs").send_message(QueueUrl=stack.outputs["CommandQueueUrl"], MessageBody=body)
    await_that(lambda: stack.logs("run", '"item_id":"nothing"'))
    assert api.get("/dispatches?owner_id=nobody").json() == {"dispatches": []}


def test_an_outbox_item_that_cannot_be_read_is_set_aside_and_holds_nobody(api, stack):
    row = {
        "owner_key": {"S": "default#broken-owner"},
        "item_id": {"S": "broken-item"},
        "tenant": {"S": "default"},
        "owner_id": {"S": "broken-owner"},
        "command": {"S": "start"},
        "status": {"S": "undone"},
        "instance_id": {"S": "broken-child"},
        "body": {"S": "{"},
        "due_shard": {"N": "0"},
        "due_at": {"S": "2026-01-01T00:00:00.000Z"},
        "created_at": {"S": "2026-01-01T00:00:00.000Z"},
    }
    table = stack.outputs["OutboxTable"]
    unreadable = {**row, "item_id": {"S": "unreadable-item"}, "sends": {"S": "many"}}
    for each in (row, unreadable):
        stack.client("dynamodb").put_item(TableName=table, Item=each)
    good = api.dispatch("two-generations", order_id="beside-broken")

    def set_aside():
        found = [
            stack.client("dynamodb").get_item(
                TableName=table, Key={"owner_key": each["owner_key"], "item_id": each["item_id"]}
            )["Item"]
            for each in (row, unreadable)
        ]
        return found if all(each["status"]["S"] == "failed" for each in found) else None

    for each in await_that(set_aside, explain=stack.describe_failures):
        assert each["last_error"]["S"]
        assert each["attention_at"]["S"]
        assert "due_at" not in each
    assert api.await_end(good)["status"] == "completed"
    assert api.get("/instances/broken-child").status == 404
