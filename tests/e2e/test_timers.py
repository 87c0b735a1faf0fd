"""Timers and schedules on the deployed stack, also one that stands still past their time."""

import contextlib
import time
from datetime import datetime

import pytest

from scripts.local_stack import STACK_NAME
from tests.e2e.conftest import await_that

TENANT = {"X-Tenant-Id": "timers"}
INTERVAL_SECONDS = 2


@pytest.fixture
def standstill(stack):
    """Return a context in which none of the stack's queues and streams reaches a function."""
    client = stack.client("lambda")
    mappings = [
        each["UUID"]
        for each in client.list_event_source_mappings()["EventSourceMappings"]
        if STACK_NAME in each["FunctionArn"]
    ]
    assert len(mappings) == 4

    def switch(*, enabled):
        for each in mappings:
            client.update_event_source_mapping(UUID=each, Enabled=enabled)

    @contextlib.contextmanager
    def stopped():
        switch(enabled=False)
        try:
            yield
        finally:
            switch(enabled=True)

    return stopped


def instant(text):
    return datetime.fromisoformat(text).timestamp()


def test_a_timer_whose_time_passes_while_the_stack_stands_still_fires_once_when_it_is_back(
    api, effects, standstill
):
    paused = api.dispatch("pausing", order_id="timers-1", seconds=4)
    await_that(lambda: api.show(paused)["status"] == "suspended", explain=lambda: api.show(paused))
    with standstill():
        time.sleep(6)
        assert api.show(paused)["status"] == "suspended"
        back_at = time.time()
    assert instant(api.await_end(paused)["ended_at"]) >= back_at
    assert [name for name, _ in effects("timers-1")] == ["awake"]


def test_a_schedule_starts_once_per_time_skips_what_it_missed_and_ends_when_retracted(api, standstill):
    tree = {
        "root": {"type": "Timer", "seconds": INTERVAL_SECONDS, "starts": True, "result": "due"},
        "output": "{% var.due.at %}",
    }
    assert api.stack.request("PUT", "/workflows/ticking", tree, TENANT).status == 200
    assert api.post("/workflows/ticking/publish", **TENANT).status == 200

    def started():
        return api.get("/instances?definition_id=ticking&limit=100", **TENANT).json()["instances"]

    await_that(lambda: len(started()) >= 2, explain=started)
    with standstill():
        time.sleep(4 * INTERVAL_SECONDS)
        before = len(started())
        back_at = time.time()
    await_that(lambda: len(started()) >= before + 2, explain=started)
    assert api.post("/workflows/ticking/retract", **TENANT).status == 200
    at_retract = len(started())
    time.sleep(2 * INTERVAL_SECONDS)
    instances = started()
    # One more may have been on its way.
    assert at_retract <= len(instances) <= at_retract + 1
    shown = [api.get(f"/instances/{each['instance_id']}", **TENANT).json() for each in instances]
    due = sorted(instant(each["output"]) for each in shown)
    assert len(set(due)) == len(due)
    for each in shown:
        assert instant(each["output"]) <= instant(each["created_at"])
    # Of the times that passed while it stood still, one was made up for.
    late = [each for each in shown if instant(each["output"]) < back_at <= instant(each["created_at"])]
    assert len(late) == 1
