"""The function that tells the sinks, by stream and by sweep, and what the other functions leave to it."""

import json

import pytest

from aftercommit import PublishEvent, Workflow, aws, clock
from aftercommit.deliver import deliver
from aftercommit.sweep import sweep
from aftercommit.tables import ItemRow
from tests.integration.events import keys, order, row, save, undone
from tests.integration.faults import refusal
from tests.integration.handlers import Context, load_handler, sample, stream_event

NONE_FAILED = {"batchItemFailures": []}


@pytest.fixture
def queue(world, set_environment):
    url = aws.client("sqs").create_queue(QueueName="heard")["QueueUrl"]
    set_environment(EVENT_STIMULI="false", EVENT_QUEUE_ARN="arn:aws:sqs:us-east-1:123456789012:heard")
    return url


@pytest.fixture
def handed_over(world, set_environment):
    """Take down what the sweep hands to the function of events, in place of Lambda."""
    set_environment(EVENTS_FUNCTION="events-function")
    events = aws.client("lambda").meta.events
    taken = []

    def answer(params, **_):
        taken.append((params["url_path"], params["headers"], json.loads(params["body"])))
        return type("Http", (), {"status_code": 202, "headers": {}})(), {"StatusCode": 202}

    events.register("before-call.lambda.Invoke", answer)
    yield taken
    events.unregister("before-call.lambda.Invoke", answer)


@pytest.fixture
def handler():
    return load_handler("events")


def heard(url):
    answer = aws.client("sqs").receive_message(QueueUrl=url, MaxNumberOfMessages=10)
    return sorted(json.loads(each["Body"])["id"] for each in answer.get("Messages", []))


def be_away(**_):
    raise ConnectionError("away")


def gauged(text, metric):
    lines = [json.loads(each) for each in text.splitlines() if metric in each]
    return [each[metric][0] for each in lines]


def test_new_events_of_the_stream_are_told(handler, queue, world):
    save(order("a"), order("b"))
    assert handler(stream_event(*keys()), Context()) == NONE_FAILED
    assert heard(queue) == ["a", "b"]
    assert undone() == []


def test_the_sample_event_of_the_stream_is_read(handler, queue):
    assert handler(sample("events-new-event"), Context()) == NONE_FAILED


def test_a_record_that_cannot_be_read_stops_no_other(handler, queue, world, log_lines):
    save(order("a"))
    event = stream_event(*keys())
    event["Records"].insert(0, {"eventID": "broken"})
    assert handler(event, Context()) == NONE_FAILED
    assert heard(queue) == ["a"]
    assert any("stream record without keys" in line for line in log_lines)


def test_trouble_blocks_no_shard(handler, queue, world, faults, log_lines):
    save(order("a"))
    faults.before("BatchGetItem", refusal("AccessDeniedException"))
    assert handler(stream_event(*keys()), Context()) == NONE_FAILED
    assert any("events left to the sweep" in line for line in log_lines)
    assert undone() == ["a"]


def test_an_invocation_that_is_about_to_end_claims_nothing(handler, queue, world):
    save(order("a"))
    handler(stream_event(*keys()), Context(20))
    assert row("a").sends == 0


# --- the sweep ---


def test_the_sweep_hands_overdue_events_over_in_batches_without_claiming_them(
    handed_over, set_environment, world
):
    set_environment(EVENT_BATCH="3")
    save(*(order(f"e-{number}") for number in range(10)))
    sweep()
    assert handed_over == [], "they are not due before the eager path's head start is over"
    world.clock.at += 10
    sweep()
    found = [tuple(key) for _, _, payload in handed_over for key in payload["keys"]]
    assert sorted(found) == keys()
    assert max(len(payload["keys"]) for _, _, payload in handed_over) <= 3
    path, headers, _ = handed_over[0]
    assert "events-function" in path
    assert headers["X-Amz-Invocation-Type"] == "Event"
    assert all(each.sends == 0 for each in ItemRow.scan())


def test_what_the_sweep_hands_over_is_told(handed_over, handler, queue, world):
    save(order("a"))
    world.clock.at += 10
    sweep()
    [(_, _, payload)] = handed_over
    assert handler(payload, Context()) == NONE_FAILED
    assert heard(queue) == ["a"]
    sweep()
    assert len(handed_over) == 1


def test_events_that_nobody_takes_hold_up_nothing_else(handed_over, set_environment, world):
    set_environment(SWEEP_BATCH="2")
    save(*(order(f"e-{number}") for number in range(20)))
    world.publish(Workflow("w", root=PublishEvent("n")))
    world.dispatch("w")
    world.messages.clear()
    world.clock.at += 10
    sweep()
    assert len(world.messages) == 1


def test_a_sweep_that_cannot_hand_over_goes_on(handed_over, world, set_environment, log_lines):
    set_environment(EVENTS_FUNCTION="")
    save(order("a"))
    world.clock.at += 10
    sweep()
    assert any("no function delivers events" in line for line in log_lines)
    assert undone() == ["a"]


def test_the_age_of_the_oldest_unsent_event_is_told_counted_from_when_it_was_stored(
    handed_over, handler, queue, world, capsys
):
    save(order("old", timestamp=1))
    world.clock.at += 30
    save(order("new"))
    world.clock.at += 70
    sweep()
    # By shard, of which there are several; the oldest counts.
    assert max(gauged(capsys.readouterr().out, "OldestUnsentEventSeconds")) == 100
    events = aws.client("sqs", seconds=20).meta.events
    events.register("before-call.sqs.SendMessageBatch", be_away)
    handler({"keys": keys()}, Context())
    events.unregister("before-call.sqs.SendMessageBatch", be_away)
    assert gauged(capsys.readouterr().out, "OldestUnsentEventSeconds") == [100]
    world.clock.at += 5
    handler({"keys": keys()}, Context())
    assert gauged(capsys.readouterr().out, "OldestUnsentEventSeconds") == []


# --- the other functions ---


def test_deliver_sends_no_event_to_the_command_queue(world):
    save(order("a"))
    assert deliver(keys()) == 0
    assert (world.messages, row("a").sends) == ([], 0)


def test_an_event_of_a_workflow_is_stored_with_its_step_and_told(handler, queue, world):
    world.publish(Workflow("w", root=PublishEvent("order/placed", input={"n": 1}, sinks=["queue"])))
    instance_id = world.dispatch("w")
    world.run(instance_id)
    assert len(keys()) == 1
    handler({"keys": keys()}, Context())
    [event_id] = heard(queue)
    assert event_id == keys()[0][1]
    assert row(event_id).created_at == world.head(instance_id).ended_at


def test_an_instance_that_published_can_be_deleted_and_its_events_stay(world):
    from aftercommit.delete import delete  # noqa: PLC0415

    world.publish(Workflow("w", root=PublishEvent("order/placed", sinks=["queue"])))
    instance_id = world.dispatch("w")
    world.run(instance_id)
    delete("default", instance_id)
    world.clock.at += 2 * 86_400
    assert undone()


def test_due_times_are_written_by_the_writers_clock(world):
    save(order("a"))
    assert clock.from_text(row("a").due_at) == pytest.approx(world.clock.at + 10, abs=0.002)


def test_operators_see_what_is_unsent_without_its_data(api, set_environment):
    set_environment(EVENT_STIMULI="false")
    save(order("o-1", user={"mail": "s3cr3t@example.com"}), order("o-2", tenant="acme"))
    status, body = api.get("/outbox", query={"status": "pending", "command": "event"})
    assert status == 200
    [shown] = body["items"]
    assert (shown["item_id"], shown["command"], shown["attempts"]) == ("o-1", "event", 0)
    assert "s3cr3t" not in str(body)
