"""Workers that die in the middle of a step: by a kill from outside, or by what the step does."""

import pytest

from tests.e2e.conftest import await_that

SLEEPERS = 3


@pytest.fixture
def rows(ledger):
    """Return a function that reads an order's rows of the ledger by activity."""
    return lambda order_id: {row["activity"]: row for row in ledger(order_id)}


def test_instances_whose_workers_are_killed_mid_step_still_finish(api, stack, rows, effects):
    orders = [f"death-{number}" for number in range(SLEEPERS)]
    instances = {order: api.dispatch("sleeping", order_id=order, seconds=4) for order in orders}
    killed = {}

    def kill_sleepers():
        for order in orders:
            row = rows(order).get("sleep")
            if row and order not in killed:
                pid = int(row["process_id"])
                assert stack.kill_worker("run", pid), "the worker should be asleep in its step"
                killed[order] = pid
        return len(killed) == SLEEPERS

    await_that(kill_sleepers, explain=stack.describe_failures)
    for order, instance_id in instances.items():
        shown = api.await_end(instance_id)
        assert shown["status"] == "completed"
        assert shown["output"] == {"slept": 4}
        assert sorted(activity for activity, _ in effects(order)) == ["after", "before", "sleep"]
        again = rows(order)["sleep"]
        assert int(again["process_id"]) != killed[order]
        assert again["attempt"] == "1", "a dead worker is no attempt of the step's own"
        steps = [line["activity"] for line in api.journal(instance_id) if line["status"] == "completed"]
        assert steps == ["note", "sleep", "note"]


def test_a_step_that_ends_each_of_its_workers_is_stopped_as_a_fault(api, effects, deadly_instance):
    shown = api.await_end(deadly_instance, seconds=240)
    assert shown["status"] == "faulted"
    assert shown["failure"]["type"] == "WorkerDiedError"
    assert [each["error"]["type"] for each in shown["incidents"]] == ["WorkerDiedError"]
    assert [activity for activity, _ in effects("death-deadly")] == ["die"]
