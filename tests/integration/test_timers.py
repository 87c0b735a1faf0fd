"""Timers: right on time, never early, and once, however long nobody looked."""

import pytest

from aftercommit import Sequence, StartAt, Step, Workflow, clock, inputs
from aftercommit.sweep import sweep
from tests.integration.faults import Crash
from tests.integration.waits import sleeper
from tests.integration.world import STARTED_AT, effects

until = Workflow("until", inputs={"at": str}, root=Sequence(StartAt(inputs.at), Step("act", name="then")))


@pytest.fixture
def w(world):
    world.publish(sleeper, until)
    return world


def ended_after(world, instance_id):
    return clock.from_text(world.head(instance_id).ended_at) - STARTED_AT


@pytest.mark.parametrize("seconds", [1, 59, 899, 900, 901, 3_600, 90_000])
def test_a_delay_ends_within_a_second_and_never_early(w, seconds):
    instance_id = w.dispatch("sleeper", {"seconds": seconds})
    w.settle(seconds=100_000)
    assert seconds <= ended_after(w, instance_id) < seconds + 1


def test_a_timer_further_ahead_than_a_message_can_wait_is_left_to_the_sweep(w):
    w.run(w.dispatch("sleeper", {"seconds": 2_000}))
    w.messages.clear()
    assert w.deliver_new() == 0
    w.clock.at += 1_099
    sweep()
    assert w.messages == []
    w.clock.at += 2
    sweep()
    [message] = w.messages
    assert message.due == pytest.approx(STARTED_AT + 2_000, abs=1)


def test_a_message_that_comes_early_waits(w):
    instance_id = w.dispatch("sleeper", {"seconds": 100})
    w.run(instance_id)
    w.messages.clear()
    w.clock.at += 99
    w.handle_item(w.item())
    assert w.show(instance_id)["status"] == "suspended"
    [again] = w.messages
    assert again.due == pytest.approx(clock.now() + 1, abs=1)


@pytest.mark.parametrize("seconds", [100, 2_000])
def test_a_timer_whose_time_passed_while_the_stack_was_down_fires_once_at_once(w, seconds):
    w.dispatch("until", {"at": clock.to_text(STARTED_AT + seconds)})
    w.serve()
    w.messages.clear()
    w.clock.at += 86_400
    sweep()
    sweep()
    w.serve()
    assert [name for name, _, _ in effects] == ["then"]
    w.settle()
    for item in w.items():
        w.handle_item(item)
    assert [name for name, _, _ in effects] == ["then"]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_timer_whose_worker_dies_fires_once(w, faults, moment):
    instance_id = w.dispatch("until", {"at": clock.to_text(STARTED_AT + 50)})
    w.run(instance_id)
    w.clock.at += 50
    getattr(faults, moment)("TransactWriteItems", Crash())
    with pytest.raises(Crash):
        w.handle_item(w.item())
    w.settle()
    assert w.show(instance_id)["status"] == "completed"
    assert len({instance for _, instance, _ in effects}) == 1


def test_c37_a_start_time_in_the_past_goes_on_at_once(w):
    instance_id = w.dispatch("until", {"at": clock.to_text(STARTED_AT - 1)})
    w.run(instance_id)
    assert w.show(instance_id)["status"] == "completed"
    assert w.items() == []
