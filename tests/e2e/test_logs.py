"""Logs tell what happened to whom, and never what was in it."""

import json

import pytest

from scripts.local_stack import FUNCTIONS
from tests.e2e.conftest import await_that

SECRET = "secret-4711-0815"
ORDER = {"amount": 1, "address": f"{SECRET} street", "items": [{"sku": SECRET, "quantity": 1}]}


@pytest.fixture(scope="module")
def logged(api, stack):
    """Send a secret on every path that logs something."""
    instances = [
        api.dispatch("place-order", order_id="log-1", customer=SECRET, **ORDER),
        api.dispatch("place-order", order_id="log-2", customer=SECRET, **{**ORDER, "address": "  "}),
        api.dispatch("faulty", order_id=SECRET),
        api.dispatch("sleeping", order_id=SECRET, seconds=0),
    ]
    api.post("/workflows/place-order/dispatch", {"input": {**ORDER, "order_id": "log-3", "customer": 5}})
    api.post("/workflows/place-order/dispatch", SECRET.encode())
    api.post("/workflows/noted/execute", {"input": {"order_id": SECRET, "name": SECRET}})
    stack.client("sqs").send_message(
        QueueUrl=stack.outputs["CommandQueueUrl"],
        MessageBody=json.dumps({"tenant": SECRET, "secret": SECRET}),
    )
    for instance_id in instances:
        api.await_end(instance_id)
    await_that(lambda: stack.logs("run", "message set aside"))
    await_that(lambda: stack.logs("sweep"))
    return {function: stack.logs(function) for function in FUNCTIONS}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_logs_no_inputs(logged, function):
    assert logged[function], "it has logged something"
    assert [line for line in logged[function] if SECRET in line] == []


def test_lines_are_structured_and_name_the_instance(logged):
    lines = [json.loads(line) for line in logged["run"] if line.startswith("{")]
    raised = [line for line in lines if line.get("message") == "step raised"]
    assert raised
    assert all({"instance_id", "activity_id", "error_type"} <= line.keys() for line in raised)


def test_what_a_child_tells_its_parent_bears_the_trace_of_the_run_that_decided_it(logged, stack):
    """As far as the emulator goes: it hands no trace on with messages that were sent in a batch."""
    lines = [json.loads(line) for line in logged["run"] if '"instance faulted"' in line]
    children = [
        line for line in lines if (line["tenant"], line["definition_id"]) == ("default", "ship-order")
    ]
    assert children
    for child in children:
        rows = stack.client("dynamodb").query(
            TableName=stack.outputs["OutboxTable"],
            KeyConditionExpression="owner_key = :owner",
            ExpressionAttributeValues={":owner": {"S": f"default#{child['instance_id']}"}},
        )["Items"]
        [trace] = [row["trace"]["S"] for row in rows if row["command"]["S"] == "resume"]
        assert trace.startswith(f"{child['xray_trace_id']}:")
