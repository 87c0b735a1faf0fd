"""Golden rows with rarer marks: channels, traces, calls that count once, deletions, a bulk midway, events."""

import itertools
import json
import os
import re

import pytest

from aftercommit import (
    BulkDispatchWorkflows,
    Delay,
    DispatchWorkflow,
    Event,
    Fault,
    If,
    Sequence,
    Step,
    Workflow,
    aws,
    clock,
    stimulate,
    var,
)
from aftercommit import inputs as given_inputs
from aftercommit.cancel import cancel
from aftercommit.delete import KEPT_SECONDS, delete
from aftercommit.errors import ConflictError, KeyReusedError, NotFoundError
from aftercommit.ids import derive_child_id
from aftercommit.instances import lease, load, release
from aftercommit.operations import call_back, name_stimulus, read_stimulus_id, replay
from aftercommit.settings import settings
from aftercommit.sinks.sink import refused
from aftercommit.sweep import sweep
from tests.integration.events import DOWN, Listener, failing, order, row, run, save, state
from tests.integration.faults import Crash
from tests.integration.golden import (
    NEWEST,
    VERSIONS,
    masked,
    put_rows,
    read_golden,
    take_rows,
    write_golden_if_asked,
)
from tests.integration.http_flows import called_back
from tests.integration.waits import send, waiter
from tests.integration.world import STARTED_AT, effects

LOADED_AT = STARTED_AT + 1_000
TRACED = "Root=1-6b0d9a33-0123456789abcdef01234567;Parent=0123456789abcdef;Sampled=1"
KEY = "golden-key"

short = Workflow("short", root=Step("act", name="short"))
pausing = Workflow("pausing", root=Delay(3_600))
reporting = Workflow("reporting", root=DispatchWorkflow("pausing", channel="reports", wait=True))
part = Workflow(
    "part",
    inputs={"item": str, "index": int},
    root=Sequence(
        If(given_inputs.item == "bad", then=Fault("bad item", code="Bad")),
        If(given_inputs.item == "waits", then=Event("never")),
        Step("act", name="part"),
    ),
)
bulk = Workflow(
    "bulk",
    root=BulkDispatchWorkflows(
        "part",
        ["a", "bad", "waits", 3, "e", "f", "g", "h", "i"],  # the fourth is no text: its start is refused
        wait=True,
        concurrent_max=4,
        tolerated_failures=9,
        result="x",
    ),
    output=var.x,
)

# What becomes of each instance once its rows are loaded.
ENDINGS = {
    "pending": "completed",
    "given-back": "completed",
    "sending": "completed",
    "reporting": "completed",
    "withdrawn": "cancelled",
    "called": "completed",
    "keyed": "completed",
    "split-1": "completed",
    "split-2": "completed",
    "bulk": "completed",
}


@pytest.fixture(autouse=True)
def _deployed_settings(world, set_environment):
    set_environment(
        DUE_SHARDS="8",
        TRACING="true",
        CHANNELS=f"reports={os.environ['COMMAND_QUEUE_URL']}",
        _X_AMZN_TRACE_ID="",
    )


def write_rows(world, faults, monkeypatch, set_environment):
    """Bring a deployment into the middle of what comes seldom; returns its rows."""
    world.publish(short, pausing, reporting, part, bulk, called_back, waiter)
    set_environment(_X_AMZN_TRACE_ID=TRACED)

    def start(definition_id, instance_id, *, running=True, correlation_id=None, **given):
        world.dispatch(definition_id, given, instance_id=instance_id, correlation_id=correlation_id)
        if running:
            world.run(instance_id)

    send("nobody-listens")
    world.clock.at += settings().stimulus_open_seconds + 1
    dead = world.item("stimulus")
    world.handle_item(dead)
    replay("default", dead.owner_id, dead.item_id)
    start("short", "pending", running=False)
    world.clock.at += settings().ack_timeout_seconds + 1
    sweep()
    start("short", "given-back", running=False)
    release(lease("default", "given-back", clock.now() + 60, waiting=False))
    start("reporting", "sending")
    start("reporting", "reporting")
    world.handle_item(start_of(world, "reporting"))
    start("reporting", "withdrawn")
    cancel("default", "withdrawn", "not wanted")
    world.handle_item(world.item("cancel"))
    start("called-back", "called")
    call_back("default", token_of(world), request_of(1))
    start("waiter", "keyed", correlation_id="of-keyed", order="K")
    send_once()
    start("short", "deleted")
    delete("default", "deleted")
    start_bulk(world, start)
    save_events(world)
    start("waiter", "split-1", order="S")
    start("waiter", "split-2", order="S")
    split_midway(world, faults, monkeypatch)
    return take_rows()


def start_of(world, owner_id):
    return next(item for item in world.items("start") if item.owner_id == owner_id)


def token_of(world):
    return world.show("called")["variables"]["path"].rpartition("/")[2]


def request_of(body):
    return {"method": "POST", "path": "callbacks", "query": {}, "headers": {}, "body": body}


def send_once(value="remembered"):
    return send("paid", {"order": "K"}, value, idempotency_key=KEY)


def start_bulk(world, start):
    """Bring four parts of a bulk to the four ways to end; the last one still sleeps behind another."""
    start("bulk", "bulk")
    parts = parts_of(world)
    for each in parts[:3]:
        world.handle_item(each)
    cancel("default", derive_child_id(parts[2].item_id), "not wanted")
    for _ in range(settings().start_attempts_max):
        world.handle_item(parts[3])


def parts_of(world):
    return sorted(
        (item for item in world.items("start") if item.owner_id == "bulk"), key=lambda item: item.item_id
    )


def save_events(world):
    """Leave events that a sink has refused, was away for, and whose deliverer has died."""

    def answer(ids):
        return [refused("Bad", "malformed", content=True) for _ in ids]

    save(order("refused"))
    run(Listener(answer=answer))
    save(order("unsent"))
    run(Listener(answer=failing(DOWN)))
    save(order("claimed"))
    with pytest.raises(Crash):
        run(Listener(answer=failing(Crash())))


def split_midway(world, faults, monkeypatch):
    """Let a worker die amid making an item for each of two instances."""
    send("paid", {"order": "S"}, "split")
    [item] = [each for each in world.items("stimulus") if '"S"' in each.body]
    with monkeypatch.context() as small:
        small.setattr(stimulate, "COMMIT_INTENTIONS_MAX", 1)
        faults.before("TransactWriteItems", Crash())
        with pytest.raises(Crash):
            world.handle_item(item)


def test_todays_writers_write_the_newest_golden_rows_of_marks(
    world, faults, monkeypatch, set_environment, derived_ids
):
    rows = write_rows(world, faults, monkeypatch, set_environment)
    write_golden_if_asked(marks=rows)
    assert without_tokens(rows) == without_tokens(read_golden(NEWEST, "marks"))


def without_tokens(rows):
    """Return rows without what is random, also in the address that an instance has given out."""
    return masked(json.loads(re.sub(r"callbacks/[\w-]+", "callbacks/random", json.dumps(rows))))


@pytest.fixture(params=VERSIONS, ids=lambda folder: folder.name)
def loaded(request, world):
    """The world with the rows of each version, and its events told already."""
    put_rows(read_golden(request.param, "marks"))
    world.clock.at = LOADED_AT
    return world


@pytest.fixture
def listener(loaded):
    """A sink that has taken all events."""
    found = Listener()
    run(found)
    return found


def test_a_deployment_with_golden_marks_goes_on(loaded, listener):
    for instance_id in ENDINGS:
        assert loaded.show(instance_id)["instance_id"] == instance_id
    loaded.settle(10_000)
    assert (loaded.raised, loaded.dead_letters()) == ([], [])
    statuses = loaded.statuses()
    assert {instance_id: statuses[instance_id] for instance_id in ENDINGS} == ENDINGS
    assert sorted(name for name, _, _ in effects) == ["part"] * 5 + ["short"] * 2


def test_golden_starts_that_sleep_are_woken_and_each_golden_ending_of_a_bulk_counts(loaded, listener):
    [asleep] = [item for item in parts_of(loaded) if item.asleep]
    assert asleep.due_at is None
    loaded.settle(1_000)
    output = loaded.show("bulk")["output"]
    counts = {name: output[name] for name in ("completed", "faulted", "cancelled", "dispatch_failed")}
    assert counts == {"completed": 6, "faulted": 1, "cancelled": 1, "dispatch_failed": 1}
    assert not [item for item in parts_of(loaded) if item.asleep]


def test_a_golden_split_goes_on_and_reaches_each_once(loaded, listener):
    [begun] = [item for item in loaded.items("stimulus") if item.split]
    loaded.handle_item(begun)
    assert len([item for item in loaded.items("stimulus") if item.owner_id == begun.owner_id]) == 3
    loaded.settle(60)
    assert [loaded.show(f"split-{number}")["output"] for number in (1, 2)] == ["split", "split"]


def test_a_golden_callback_counts_and_is_refused_a_second_time(loaded, listener):
    with pytest.raises(NotFoundError, match="no such callback"):
        call_back("default", token_of(loaded), request_of(2))
    loaded.settle(60)
    assert loaded.show("called")["output"] == request_of(1)


def test_a_golden_request_is_remembered(loaded, listener):
    known = [item.item_id for item in loaded.items("stimulus")]
    stimulus_id = send_once()
    assert read_stimulus_id(stimulus_id)[1] in known
    assert [item.item_id for item in loaded.items("stimulus")] == known
    with pytest.raises(KeyReusedError):
        send_once("another")
    loaded.settle(60)
    assert loaded.show("keyed")["output"] == "remembered"


def test_a_golden_dead_letter_that_was_replayed_is_not_replayed_again(loaded):
    [dead] = [item for item in loaded.items("stimulus") if item.status == "failed"]
    with pytest.raises(ConflictError, match=name_stimulus(dead.owner_id, dead.replayed_as)):
        replay("default", dead.owner_id, dead.item_id)


def test_a_golden_deleted_instance_is_hidden_and_goes_in_time(loaded, listener):
    with pytest.raises(NotFoundError):
        loaded.show("deleted")
    loaded.settle(KEPT_SECONDS)
    assert "deleted" not in loaded.statuses()


def test_a_golden_lease_that_was_given_back_counts_as_no_death(loaded):
    held = load(lease("default", "given-back", clock.now() + 60, waiting=False))
    assert held.stalled == 0


def test_messages_of_golden_rows_go_behind_their_traces(loaded):
    sweep()
    headers = {each.trace_header for each in loaded.messages if "pending" in each.body}
    headers |= {each.trace_header for each in loaded.messages if '"bulk"' in each.body}
    assert headers == {TRACED}


def test_messages_of_golden_rows_go_on_their_channels(loaded, set_environment):
    url = aws.client("sqs").create_queue(QueueName="reports")["QueueUrl"]
    set_environment(CHANNELS=f"reports={url}")
    sweep()
    [message] = aws.client("sqs").receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
    assert json.loads(message["Body"])["owner_id"] == "sending"
    assert not [each for each in loaded.messages if "sending" in each.body]


def test_golden_events_are_told_unless_they_are_claimed_and_each_refusal_is_known(loaded, listener):
    assert sorted(itertools.chain(*listener.requests)) == ["claimed", "refused", "unsent"]
    assert {row(name).status for name in ("claimed", "refused", "unsent")} == {"done"}
    assert "refused_at" in state("refused")


def test_a_golden_incident_of_an_event_is_shown(loaded):
    assert [each.item_id for each in loaded.incidents() if each.ttl] == ["refused"]
