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


def test_a_line_names_the_trace_of_the_commit_that_its_message_followed_from(logged):
    """The header has come through stored row, stream, deliver, queue and event source."""
    lines = [json.loads(line) for line in logged["run"] if '"instance faulted"' in line]
    children = [line for line in lines if line.get("parent_instance_id")]
    assert children
    for child in children:
        [parent] = [line for line in lines if line["instance_id"] == child["parent_instance_id"]]
        assert parent["upstream_trace_id"] == child["xray_trace_id"]
        assert parent["xray_trace_id"] != child["xray_trace_id"]
