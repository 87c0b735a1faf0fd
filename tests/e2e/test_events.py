"""Events of an application's own transactions, deployed: each is heard of, whoever is killed."""

import json
import threading

import pytest

from aftercommit.events import Event, EventExistsError, event_put, telling
from tests.e2e.conftest import EVENT_QUEUE, await_that

ORDERS = "their-orders"
MANY = 60


@pytest.fixture(scope="module")
def queue(stack):
    """The queue that the stack was deployed to tell of events."""
    url = stack.client("sqs").create_queue(QueueName=EVENT_QUEUE)["QueueUrl"]
    yield url
    stack.client("sqs").delete_queue(QueueUrl=url)


@pytest.fixture(scope="module")
def heard(stack, queue):
    """Return a function that reads the queue, and returns how often each event was heard of, by id."""
    times = {}

    def read():
        while (
            messages := stack.client("sqs")
            .receive_message(QueueUrl=queue, MaxNumberOfMessages=10)
            .get("Messages")
        ):
            for each in messages:
                event = json.loads(each["Body"])
                times[event["id"]] = times.get(event["id"], 0) + 1
                stack.client("sqs").delete_message(QueueUrl=queue, ReceiptHandle=each["ReceiptHandle"])
        return times

    return read


@pytest.fixture(scope="module")
def save(stack, queue):
    """Return a function that stores an order and its event in one transaction, as an application does."""
    stack.client("dynamodb").create_table(
        TableName=ORDERS,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": "order_id", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "order_id", "KeyType": "HASH"}],
    )

    def save(order_id, name="shop/placed", **more):
        event = Event(
            name, {"order_id": order_id}, id=more.pop("id", order_id), correlation_id=order_id, **more
        )
        put = {"TableName": ORDERS, "Item": {"order_id": {"S": order_id}}}
        with telling():
            stack.client("dynamodb").transact_write_items(
                TransactItems=[{"Put": put}, event_put(event, table=stack.outputs["OutboxTable"])]
            )

    yield save
    stack.client("dynamodb").delete_table(TableName=ORDERS)


def row_of(stack, event_id):
    event = event_put(Event("n", {}, id=event_id), table="t")["Put"]["Item"]
    key = {name: event[name] for name in ("owner_key", "item_id")}
    table = stack.outputs["OutboxTable"]
    return stack.client("dynamodb").get_item(TableName=table, Key=key, ConsistentRead=True)["Item"]


def started_by(api, order_id):
    found = api.get(f"/instances?correlation_id={order_id}").json()["instances"]
    return [each["instance_id"] for each in found]


def test_an_event_is_told_to_the_queue_and_starts_a_workflow(api, stack, save, heard, effects):
    save("events-1")
    await_that(lambda: "events-1" in heard(), explain=lambda: stack.logs("events"))
    [instance_id] = await_that(lambda: started_by(api, "events-1"))
    assert api.await_end(instance_id)["output"] == {"order_id": "events-1"}
    assert [name for name, _ in effects("events-1")] == ["placed"]
    row = await_that(lambda: row if (row := row_of(stack, "events-1"))["status"]["S"] == "done" else None)
    assert json.loads(row["sinks"]["S"]).keys() == {"queue", "stimuli"}
    assert "due_at" not in row


def test_events_of_one_transaction_are_claimed_and_recorded_together(stack, queue, heard):
    table = stack.outputs["OutboxTable"]
    names = [f"events-batch-{number}" for number in range(30)]
    items = [event_put(Event("shop/other", {}, id=name), table=table) for name in names]
    stack.client("dynamodb").transact_write_items(TransactItems=items)
    await_that(lambda: set(names) <= heard().keys())
    await_that(lambda: all(row_of(stack, name)["status"]["S"] == "done" for name in names))
    # In one batch or few: claims beyond the first are resends, of which there was no need.
    assert {row_of(stack, name)["sends"]["N"] for name in names} == {"1"}


def test_an_id_that_was_announced_fails_the_whole_transaction(stack, save):
    save("events-2", id="events-twice")
    with pytest.raises(EventExistsError):
        save("events-3", id="events-twice")
    found = stack.client("dynamodb").get_item(TableName=ORDERS, Key={"order_id": {"S": "events-3"}})
    assert "Item" not in found


def test_events_arrive_at_least_once_and_start_once_though_their_deliverers_are_killed(
    api, stack, save, heard, effects
):
    names = [f"events-killed-{number}" for number in range(MANY)]
    killed = []
    ended = threading.Event()

    def kill():
        while not ended.wait(0.2):
            killed.extend(pid for pid in stack.worker_pids("events") if stack.kill_worker("events", pid))

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        for name in names:
            save(name)
        await_that(lambda: killed)  # all may be saved before the first one is on its way
    finally:
        ended.set()
        killer.join()
    await_that(lambda: set(names) <= heard().keys(), explain=lambda: sorted(set(names) - heard().keys()))
    for name in names:
        [instance_id] = await_that(lambda name=name: started_by(api, name))
        assert api.await_end(instance_id)["status"] == "completed"
        assert len(effects(name)) == 1
    await_that(lambda: all(row_of(stack, name)["status"]["S"] == "done" for name in names))
    assert all(len(started_by(api, name)) == 1 for name in names)


def test_an_event_of_a_workflow_is_told_to_the_sinks_that_it_names(api, heard):
    shown = api.await_end(api.dispatch("announcing", order_id="events-4"))
    assert shown["status"] == "completed"
    before = set(heard())
    await_that(lambda: any(len(each) == 32 for each in heard()), explain=lambda: str(before))


def test_the_queue_that_is_away_for_a_while_gets_its_events_later(stack, save, heard, queue):
    stack.client("sqs").delete_queue(QueueUrl=queue)
    save("events-away", name="shop/away")
    row = await_that(
        lambda: (
            row
            if "attempts" in (row := row_of(stack, "events-away")) and row["attempts"]["N"] != "0"
            else None
        )
    )
    assert row["status"]["S"] == "undone"
    assert "queue:" in row["last_error"]["S"]
    stack.client("sqs").create_queue(QueueName=EVENT_QUEUE)
    await_that(lambda: "events-away" in heard())
