"""Delivery of events: requests and records, each by its own answer, for each sink by itself."""

from aftercommit import clock
from aftercommit.deliver_events import deliver_events
from aftercommit.errors import ContentRefusedError
from aftercommit.settings import settings
from aftercommit.sinks.sink import refused
from aftercommit.tables import ItemRow
from tests.integration.events import (
    DOWN,
    Listener,
    failing,
    keys,
    order,
    refusing,
    row,
    run,
    save,
    save_some,
    state,
    undone,
)

# --- the common case ---


def test_events_are_sent_in_one_request_oldest_first_and_recorded(world):
    save_some(world, "c", "a", "b")
    listener = Listener()
    assert run(listener) == 3
    assert listener.requests == [["c", "a", "b"]]
    for name in "abc":
        found = row(name)
        assert (found.status, found.attempts, found.due_at, found.claimed_until) == ("done", 0, None, None)
        assert state(name) == {"sent_at": clock.to_text(world.clock.at)}
        assert found.ttl == int(world.clock.at) + settings().event_retention_days * 86_400


def test_a_hundred_events_are_claimed_and_recorded_in_eight_requests(world, faults):
    for first in range(0, 100, 50):
        save(*(order(f"e-{number:03}") for number in range(first, first + 50)))
    listener = Listener()
    wanted = keys()
    faults.sent.clear()
    assert deliver_events(wanted, until=clock.now() + 180, sinks=[listener]) == 100
    assert len(listener.requests) == 1
    assert faults.count("BatchExecuteStatement") == 8
    assert faults.count("BatchGetItem") == 1


def test_what_was_sent_is_not_sent_again(world):
    save(order("a"))
    listener = Listener()
    run(listener)
    assert run(listener) == 0
    assert listener.requests == [["a"]]


def test_an_event_named_twice_is_sent_once(world):
    save(order("a"))
    listener = Listener()
    deliver_events(keys() * 2, until=clock.now() + 180, sinks=[listener])
    assert listener.requests == [["a"]]


def test_a_batch_holds_no_more_than_the_settings_say(world, set_environment):
    set_environment(EVENT_BATCH="2")
    save_some(world, "a", "b", "c")
    listener = Listener()
    run(listener)
    assert sorted(map(len, listener.requests)) == [1, 2]


def test_requests_keep_to_the_limits_of_the_sink(world):
    save_some(world, "a", "b", "c")
    few = Listener(events_max=2)
    run(few)
    assert few.requests == [["a", "b"], ["c"]]
    large = [order(name, user={"x": "y" * 1_000}) for name in "def"]
    save(*large)
    small = Listener(bytes_max=3_500)
    run(small)
    assert [len(each) for each in small.requests] == [2, 1]


def test_a_writer_whose_clock_runs_ahead_delays_nothing(world):
    world.clock.at += 3_600
    save(order("a"))
    world.clock.at -= 3_600
    listener = Listener()
    run(listener)
    assert listener.requests == [["a"]]


# --- each by its own answer ---


def test_a_refused_event_waits_alone(world):
    save_some(world, "a", "b", "c")
    listener = Listener(
        answer=lambda ids: [
            refused("Bad", "malformed", content=True) if each == "b" else None for each in ids
        ]
    )
    assert run(listener) == 2
    assert undone() == ["b"]
    found = row("b")
    assert (found.attempts, found.last_error, found.claimed_until) == (1, "queue: Bad: malformed", None)
    assert found.due_at == clock.to_text(world.clock.at + 5)


def test_a_batch_refused_for_its_content_is_sent_again_one_by_one(world):
    save_some(world, "a", "b", "c")
    listener = Listener(answer=refusing("b"))
    assert run(listener) == 2
    assert listener.requests == [["a", "b", "c"], ["a"], ["b"], ["c"]]
    assert undone() == ["b"]
    assert row("b").attempts == 1


def test_an_outage_is_not_split_and_fails_as_one(world):
    save_some(world, "a", "b", "c", "d")
    listener = Listener(answer=failing(DOWN), events_max=2)
    assert run(listener) == 0
    assert listener.requests == [["a", "b"]], "what was claimed fails as one"
    assert [row(name).attempts for name in "abcd"] == [1, 1, 1, 1]
    assert world.incidents() == []


def test_an_outage_amid_the_single_sends_fails_the_rest_as_one(world):
    save_some(world, "a", "b", "c")

    def answer(ids):
        if len(ids) > 1:
            raise ContentRefusedError("422")
        if ids == ["b"]:
            raise DOWN

    listener = Listener(answer=answer)
    assert run(listener) == 1
    assert listener.requests == [["a", "b", "c"], ["a"], ["b"]]
    assert undone() == ["b", "c"]


def test_attempts_come_at_doubling_delays_from_5_seconds_to_5_minutes_and_never_end(world):
    save(order("a"))
    listener = Listener(answer=failing(DOWN))
    waits = []
    for _ in range(12):
        run(listener)
        waits.append(round(clock.from_text(row("a").due_at) - world.clock.at, 3))
        world.clock.at += waits[-1]
    assert waits == [5, 10, 20, 40, 80, 160, 300, 300, 300, 300, 300, 300]
    assert (row("a").status, row("a").attempts, row("a").ttl) == ("undone", 12, None)
    listener.answer = lambda ids: None
    assert run(listener) == 1
    assert row("a").status == "done"


def test_an_event_is_not_sent_before_its_next_attempt(world):
    save(order("a"))
    listener = Listener(answer=failing(DOWN))
    run(listener)
    world.clock.at += 4.9
    run(listener)
    assert len(listener.requests) == 1


# --- several sinks ---


def test_each_sink_is_tracked_by_itself(world):
    save_some(world, "a", "b")
    queue, webhook = Listener("queue"), Listener("webhook", answer=failing(DOWN))
    run(queue, webhook)
    assert undone() == ["a", "b"]
    assert state("a").keys() == {"sent_at"}
    assert state("a", "webhook")["attempts"] == 1
    world.clock.at += 5
    webhook.answer = lambda ids: None
    run(queue, webhook)
    assert undone() == []
    assert (queue.requests, webhook.requests) == ([["a", "b"]], [["a", "b"], ["a", "b"]])


def test_a_sink_that_is_added_later_gets_what_is_undone_and_strands_nothing(world):
    save(order("a"))
    run(Listener("queue", answer=failing(DOWN)))
    save(order("b"))
    world.clock.at += 5
    queue, bus = Listener("queue"), Listener("bus")
    run(queue, bus)
    assert undone() == []
    assert bus.requests == [["a", "b"]]


def test_a_sink_that_is_taken_away_is_not_waited_for(world):
    save(order("a"))
    run(Listener("queue"), Listener("bus", answer=failing(DOWN)))
    world.clock.at += 5
    run(Listener("queue"), Listener("webhook"))
    assert row("a").status == "done"


def test_without_any_sink_events_wait_until_there_is_one(world, log_lines):
    save(order("a"))
    assert deliver_events(keys(), until=clock.now() + 180, sinks=[]) == 0
    assert row("a").last_error == "this deployment has no sink"
    assert row("a").due_at == clock.to_text(world.clock.at + 300)
    assert row("a").sends == 1, "or the stream would bring it at once, again and again"
    assert any("events without a sink" in line for line in log_lines)
    world.clock.at += 300
    listener = Listener()
    run(listener)
    assert listener.requests == [["a"]]


def test_an_event_for_a_sink_that_is_not_deployed_waits_visibly(world):
    from aftercommit import PublishEvent, Workflow  # noqa: PLC0415

    world.publish(Workflow("w", root=PublishEvent("n", sinks=["bus"])))
    world.run(world.dispatch("w"))
    queue, bus = Listener("queue"), Listener("bus")
    run(queue)
    [incident] = world.incidents()
    assert incident.error_type == "NoSuchSinkError"
    world.clock.at += 5
    run(queue, bus)
    assert (len(queue.requests), len(bus.requests)) == (0, 1), "it goes to those that it names only"
    assert undone() == []


# --- incidents ---


def test_a_refused_event_is_one_incident_with_its_id_and_name_however_often_it_is_refused(world, log_lines):
    save(order("order-7"))
    listener = Listener(answer=refusing("order-7"))
    for _ in range(3):
        run(listener)
        world.clock.at += 300
    [incident] = world.incidents()
    assert "'order-7' (order/placed) refused by the queue" in incident.message
    assert incident.item_id == "order-7"
    assert incident.tenant == "default"
    assert incident.ttl == int(clock.from_text(incident.created_at)) + settings().dead_letter_days * 86_400
    assert len([line for line in log_lines if '"event refused"' in line]) == 1


def test_an_incident_that_was_made_before_a_death_is_not_made_again(world):
    save(order("a"))
    first = Listener(answer=refusing("a"))
    run(first)
    [before] = world.incidents()
    # As if its deliverer had died before it recorded anything.
    world.set_raw(ItemRow, dict(zip(("owner_key", "item_id"), keys()[0], strict=True)), sinks=None)
    world.clock.at += 300
    run(first)
    [after] = world.incidents()
    assert after.created_at == before.created_at


def test_no_log_line_holds_data(world, log_lines):
    save(order("a", user={"mail": "s3cr3t@example.com"}), order("b"))
    run(Listener(answer=refusing("a")))
    run(Listener(answer=failing(DOWN)))
    assert log_lines
    assert "s3cr3t" not in "".join(log_lines)
