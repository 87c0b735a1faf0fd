"""Traces follow parent to child: what is stored and sent bears the trace of the commit that decided it."""

import pytest

from aftercommit import (
    DispatchWorkflow,
    Event,
    Retry,
    Sequence,
    Step,
    Timer,
    Workflow,
    clock,
    var,
)
from aftercommit import inputs as given_inputs
from aftercommit.attempts import give_up
from aftercommit.client import dispatch_existing
from aftercommit.deliver import deliver
from aftercommit.deliver_events import deliver_events
from aftercommit.instances import lease
from aftercommit.limits import TRACED_CHILDREN_MAX
from aftercommit.model import Failure
from aftercommit.operations import send_event
from aftercommit.redrive import redrive
from aftercommit.set_aside import set_aside
from aftercommit.sweep import sweep
from aftercommit.tables import HeadRow, ItemRow
from tests.integration.bulks import parent_of
from tests.integration.events import keys, order, save
from tests.integration.world import behaviours

child = Workflow("child", root=Step("act", name="child"))
parent = Workflow("parent", root=DispatchWorkflow("child", wait=True))
forgetting = Workflow("forgetting", root=DispatchWorkflow("nobody"))
ticking = Workflow("ticking", root=Sequence(Timer(60, starts=True), DispatchWorkflow("child")))
one = Workflow("one", inputs={"item": int, "index": int}, root=Sequence(), output=given_inputs.item)
waiting = Workflow("waiting", root=Event("go"))
placed = Workflow("placed", root=Event("order/placed", starts=True, result="order"), output=var.order)


def trace(number):
    """Return the trace of an invocation, as rows keep it."""
    return f"1-{number:08x}-{number:024x}:{number:016x}"


def header(number, sampled=1):
    root, parent_id = trace(number).split(":")
    return f"Root={root};Parent={parent_id};Sampled={sampled}"


@pytest.fixture
def invoke(world, set_environment, environment):
    """Begin another invocation: the header that Lambda gives it names the trace of that number."""
    set_environment(TRACING="true")

    def invoke(number, sampled=1):
        environment.setenv("_X_AMZN_TRACE_ID", header(number, sampled) + ";Lineage=1:a87bd80c:0")

    return invoke


@pytest.fixture
def sent(world, invoke):
    """Return a function that takes the headers of what was sent since the last time."""

    def take():
        found = [each.trace_header for each in world.messages]
        world.messages.clear()
        return found

    return take


def deliver_it(item):
    assert deliver([(item.owner_key, item.item_id)]) == 1


# --- from step to step ---


def test_a_pending_instance_and_the_message_that_hurries_it_bear_the_trace_of_the_call(world, invoke, sent):
    world.publish(child)
    invoke(1)
    instance_id = world.dispatch("child")
    assert world.head(instance_id).trace == trace(1)
    assert sent() == [header(1)]


def test_a_head_keeps_its_trace_for_the_sweep_until_it_rests(world, invoke):
    world.publish(Workflow("two", root=Sequence(Step("act", name="a"), Step("act", name="b"), Event("go"))))
    invoke(1)
    instance_id = world.dispatch("two")

    def use_up_the_time(context, value):
        world.clock.at += 110

    behaviours["a"] = use_up_the_time
    world.run(instance_id, seconds=111)  # goes on in another invocation
    assert world.head(instance_id).trace == trace(1)
    world.run(instance_id)
    assert world.head(instance_id).status == "suspended"
    assert world.head(instance_id).trace is None


def test_each_step_of_an_order_goes_behind_the_one_that_decided_it(world, invoke, sent):
    world.publish(child, parent)
    invoke(1)
    instance_id = world.dispatch("parent")
    invoke(2)  # Lambda gives each run a trace of its own, with a link to that of its message
    world.run(instance_id)
    start = world.item("start")
    assert start.trace == trace(2)
    sent()
    invoke(3, sampled=0)  # deliver is not traced
    deliver_it(start)
    assert sent() == [header(2)]
    invoke(4)
    world.handle_item(start)
    resume = world.item("resume")
    assert resume.trace == trace(4)
    invoke(5, sampled=0)
    deliver_it(resume)
    assert sent() == [header(4)]


def test_what_is_not_recorded_costs_no_byte_and_asks_for_no_recording(world, invoke, sent):
    world.publish(child, parent)
    invoke(1, sampled=0)
    instance_id = world.dispatch("parent")
    world.run(instance_id)
    start = world.item("start")
    deliver_it(start)
    world.handle_item(start)
    assert all('"trace"' not in row for rows in world.everything().values() for row in rows)
    assert set(sent()) == {None}


def test_without_tracing_nothing_is_stored_or_sent(world, invoke, sent, set_environment):
    set_environment(TRACING="false")
    world.publish(child, parent)
    invoke(1)
    world.run(world.dispatch("parent"))
    deliver_it(world.item("start"))
    assert all('"trace"' not in row for rows in world.everything().values() for row in rows)
    assert set(sent()) == {None}


# --- whichever way it is delivered ---


@pytest.fixture
def start(world, invoke, sent):
    """A dispatch that a recorded run has decided; from here on nothing is recorded by itself."""
    world.publish(child, parent)
    invoke(1)
    world.run(world.dispatch("parent"))
    world.forget_stream()
    sent()
    invoke(9, sampled=0)
    return world.item("start")


def test_the_sweep_sends_an_item_behind_its_trace_also_again(world, start, sent):
    world.clock.at += 11
    sweep()
    assert sent() == [header(1)]
    world.clock.at += 70
    sweep()
    assert sent() == [header(1)]


def test_the_sweep_sends_a_pending_instance_behind_its_trace(world, invoke, sent):
    world.publish(child)
    invoke(1)
    world.dispatch("child")
    sent()
    invoke(9, sampled=0)
    world.clock.at += 11
    sweep()
    assert sent() == [header(1)]


def test_a_copy_for_a_held_lease_goes_behind_the_same_trace(world, start, invoke, sent):
    deliver_it(start)
    world.serve()
    resume = world.item("resume")
    assert resume.trace is None  # an untraced run decided it
    world.set_raw(ItemRow, {"owner_key": resume.owner_key, "item_id": resume.item_id}, trace={"S": trace(7)})
    lease("default", resume.instance_id, clock.now() + 60, waiting=True)
    world.handle_item(resume)
    assert sent() == [header(7)]


def test_a_copy_of_a_message_that_came_early_goes_behind_the_same_trace(world, invoke, sent):
    def fail(context, value):
        raise OSError

    behaviours["late"] = fail
    retry = Retry(attempts_max=2, first_delay_seconds=60)
    world.publish(Workflow("late", root=Step("act", name="late", retry=retry)))
    invoke(1)
    world.run(world.dispatch("late"))
    sent()
    invoke(9, sampled=0)
    world.handle_item(world.item("resume"))
    assert sent() == [header(1)]


def test_a_refused_start_is_tried_again_behind_the_same_trace(world, invoke, sent):
    world.publish(forgetting)
    invoke(1)
    world.run(world.dispatch("forgetting"))
    sent()
    invoke(9, sampled=0)
    world.handle_item(world.item("start"))
    assert sent() == [header(1)]


def test_a_redrive_sends_a_dispatch_behind_its_trace(world, invoke, sent):
    world.publish(forgetting)
    invoke(1)
    world.run(world.dispatch("forgetting"))
    invoke(9, sampled=0)
    for _ in range(4):
        world.handle_item(world.item("start"))
    failed = world.item("start")
    assert failed.status == "failed"
    sent()
    redrive(failed.tenant, failed.owner_id, failed.item_id)
    assert sent() == [header(1)]


def test_an_instance_that_an_operator_hurries_goes_behind_the_call(world, invoke, sent):
    world.publish(waiting)
    instance_id = world.dispatch("waiting")
    sent()
    invoke(3)
    dispatch_existing("default", instance_id)
    assert sent() == [header(3)]


def test_a_parent_is_told_of_a_start_given_up_behind_the_trace_of_that_start(world, start):
    give_up(start, Failure("OSError", "the queue is away"))
    assert world.item("resume").trace == trace(1)


def test_a_parent_is_told_of_a_start_set_aside_behind_the_trace_of_that_start(world, start):
    set_aside(start.owner_key, start.item_id, "damaged")
    assert world.item("resume").trace == trace(1)


def test_a_stimulus_that_waits_goes_behind_the_call_that_sent_it(world, invoke, sent):
    world.publish(waiting)
    invoke(1)
    send_event("default", "go", payload={}, value=1, correlation_id=None, instance_id=None)
    invoke(2)
    world.run(world.dispatch("waiting"))  # looks for what came early
    assert header(1) in sent()


# --- what cannot be read stops nothing ---


@pytest.mark.parametrize("stored", [{"S": "nonsense"}, {"S": "x" * 3_000}, {"N": "7"}, {"BOOL": True}])
def test_a_trace_that_cannot_be_read_stops_no_delivery(world, start, sent, stored):
    world.set_raw(ItemRow, {"owner_key": start.owner_key, "item_id": start.item_id}, trace=stored)
    head = {"instance_key": start.owner_key, "row": "head"}
    world.set_raw(HeadRow, head, trace=stored)
    deliver_it(start)
    assert [each.trace_header for each in world.messages] == [None]
    world.settle()
    assert world.show(start.owner_id)["status"] == "completed"


# --- where traces begin, and end ---


def test_a_time_of_a_schedule_begins_a_trace_of_its_own(world, invoke, sent):
    invoke(1)
    world.publish(child, ticking)
    [first] = world.items("start")
    assert first.trace is None
    invoke(9, sampled=0)
    deliver_it(first)
    [begun] = sent()
    assert begun.startswith("Root=1-")
    assert ";" not in begun  # whoever gets it decides
    world.clock.at += 60
    invoke(2)
    world.handle_item(first)
    kinds = {item.definition_id: item.trace for item in world.items("start")}
    assert kinds == {"child": trace(2), "ticking": None}


def test_a_stimulus_of_an_event_begins_a_trace_of_its_own(world, invoke, sent):
    world.publish(placed)
    save(order("o-1"))
    invoke(9, sampled=0)
    deliver_events(keys(), until=clock.now() + 180)
    stimulus = world.item("stimulus")
    deliver_it(stimulus)
    assert sent() == [f"Root={stimulus.trace}"]


def test_only_the_first_of_many_children_go_on_with_the_trace(world, invoke, sent):
    many = TRACED_CHILDREN_MAX + 2
    world.publish(one, parent_of(list(range(many)), wait=True, workflow="one"))
    invoke(1)
    world.run(world.dispatch("parent"))
    starts = sorted(world.items("start"), key=lambda row: row.item_id)
    assert [each.trace for each in starts] == [trace(1)] * TRACED_CHILDREN_MAX + [None] * 2
    assert world.item("join").trace == trace(1)


def test_one_that_is_woken_is_recorded_if_it_is_one_of_the_first(world, invoke, sent):
    many = TRACED_CHILDREN_MAX + 2
    world.publish(one, parent_of(list(range(many)), wait=True, workflow="one", concurrent_max=1))
    invoke(1)
    world.run(world.dispatch("parent"))
    starts = sorted(world.items("start"), key=lambda row: row.item_id)
    sent()
    invoke(2)
    world.handle_item(starts[0])
    assert sent() == [header(2)]
    last = starts[TRACED_CHILDREN_MAX - 1]
    world.set_raw(ItemRow, {"owner_key": last.owner_key, "item_id": last.item_id}, asleep=None)
    world.handle_item(last)
    assert sent() == [header(2, sampled=0)]
