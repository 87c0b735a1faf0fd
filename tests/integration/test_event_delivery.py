"""Delivery of events: claims, requests, and records, each by its own answer."""

import json

import pytest

from aftercommit import clock
from aftercommit.deliver_events import deliver_events
from aftercommit.errors import ContentRefusedError
from aftercommit.event_items import claim_events, read_events, record_events
from aftercommit.settings import settings
from aftercommit.sinks.sink import refused
from aftercommit.tables import ItemRow
from tests.integration.events import Listener, keys, order, row, run, save, undone
from tests.integration.faults import Crash, no_answer, refusal
from tests.integration.world import raw_rows

DOWN = ConnectionError("no answer")


def failing(error):
    def answer(ids):
        raise error

    return answer


def refusing(*guilty):
    """Refuse a request for its content as long as one of these is in it, without saying which."""

    def answer(ids):
        if set(guilty) & set(ids):
            raise ContentRefusedError("422")

    return answer


def state(name, sink="queue"):
    return json.loads(row(name).sinks)[sink]


def save_some(world, *names):
    """Store events one after the other, a second apart."""
    for name in names:
        save(order(name))
        world.clock.at += 1


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


# --- claims: winner and loser ---


def test_of_two_that_read_the_same_event_one_claims_it(world):
    save_some(world, "a", "b")
    first, second = read_events(keys()), read_events(keys())
    assert len(claim_events(first)) == 2
    assert claim_events(second) == []
    assert [row(name).sends for name in "ab"] == [1, 1]


def test_a_batch_claims_those_that_are_free_and_leaves_the_others(world):
    save_some(world, "a", "b", "c")
    stale = read_events(keys())
    claim_events([each for each in read_events(keys()) if each.event_id == "b"])
    assert sorted(each.event_id for each in claim_events(stale)) == ["a", "c"]


def test_an_overtaken_deliverer_records_nothing(world):
    save(order("a"), order("b"))
    slow = claim_events(read_events(keys()))
    world.clock.at += settings().event_claim_seconds
    fast = claim_events(read_events(keys()))
    assert len(fast) == 2
    for each in slow:
        each.sinks["queue"] = {"sent_at": "x"}
    assert record_events(slow, ["queue"]) == []
    assert undone() == ["a", "b"]


def test_a_claim_is_not_taken_over_before_its_end(world):
    save(order("a"))
    claim_events(read_events(keys()))
    listener = Listener()
    world.clock.at += settings().event_claim_seconds - 0.001
    run(listener)
    assert listener.requests == []
    world.clock.at += 0.001
    run(listener)
    assert listener.requests == [["a"]]


@pytest.mark.parametrize(("ahead", "sends"), [(40, 1), (40.001, 2)])
def test_clocks_that_differ_by_the_claim_less_the_send_timeout_claim_nothing_twice(world, ahead, sends):
    """The request of the first takes all its time; just then another comes whose clock is ahead."""
    save(order("a"))
    other = Listener()

    def answer(ids):
        world.clock.at += listener.seconds[-1] + ahead - 0.0005
        run(other)
        world.clock.at -= listener.seconds[-1] + ahead - 0.0005

    listener = Listener(answer=answer)
    assert settings().event_claim_seconds - settings().event_send_timeout_seconds == 40
    run(listener)
    assert len(listener.requests) + len(other.requests) == sends


def test_a_claim_that_grew_old_is_renewed_before_the_next_request(world):
    save_some(world, "a", "b", "c")

    def answer(ids):
        world.clock.at += 15
        if len(ids) > 1:
            raise ContentRefusedError("413")

    listener = Listener(answer=answer)
    assert run(listener) == 3
    assert min(listener.seconds) >= settings().event_send_timeout_seconds * 3 / 4
    assert undone() == []


def test_who_has_lost_a_claim_meanwhile_does_not_send(world):
    save_some(world, "a", "b")
    other = Listener()

    def answer(ids):
        if len(ids) > 1:
            world.clock.at += settings().event_claim_seconds
            run(other)
            raise ContentRefusedError("413")

    listener = Listener(answer=answer)
    run(listener)
    assert listener.requests == [["a", "b"]]
    assert other.requests == [["a", "b"]]


# --- time ---


def test_without_time_for_a_send_nothing_is_claimed(world):
    save(order("a"))
    listener = Listener()
    assert run(listener, seconds=24) == 0
    assert (listener.requests, row("a").sends) == ([], 0)


def test_claims_are_given_back_uncounted_when_the_invocation_ends(world):
    save_some(world, "a", "b", "c")

    def answer(ids):
        world.clock.at += 10
        if len(ids) > 1:
            raise ContentRefusedError("413")

    listener = Listener(answer=answer)
    assert run(listener, seconds=40) == 1
    assert listener.requests == [["a", "b", "c"], ["a"]]
    for name in "bc":
        found = row(name)
        assert (found.attempts, found.claimed_until, found.sinks) == (0, None, None)
        assert found.due_at == clock.to_text(world.clock.at)
    listener.answer = lambda ids: None
    assert run(listener) == 2


# --- trouble with the table ---


def test_a_claim_that_is_throttled_is_tried_again(world, faults):
    save_some(world, "a", "b")
    faults.before("BatchExecuteStatement", refusal("ThrottlingException"), times=2)
    listener = Listener()
    assert run(listener) == 2


def test_events_whose_claim_cannot_be_written_stay_as_they_are(world, faults):
    save_some(world, "a", "b")
    faults.before("BatchExecuteStatement", refusal("ThrottlingException"), times=9)
    listener = Listener()
    assert run(listener) == 0
    assert listener.requests == []
    assert undone() == ["a", "b"]


def test_sent_but_not_recorded_is_sent_again_under_the_same_id_and_no_attempt_is_counted(world, faults):
    save_some(world, "a", "b")
    listener = Listener(
        answer=lambda ids: faults.before("BatchExecuteStatement", no_answer(), times=4) and None
    )
    run(listener)
    assert [row(name).attempts for name in "ab"] == [0, 0]
    world.clock.at += settings().event_claim_seconds
    listener.answer = lambda ids: None
    run(listener)
    assert listener.requests == [["a", "b"], ["a", "b"]]
    assert undone() == []


def test_a_record_whose_answer_was_lost_stands(world, faults):
    save_some(world, "a", "b")
    listener = Listener(answer=lambda ids: faults.after("BatchExecuteStatement", no_answer()) and None)
    run(listener)
    assert undone() == []


def test_a_deliverer_that_dies_after_the_send_leaves_its_events_undone_and_due(world, faults):
    save_some(world, "a", "b")
    faults.before("BatchExecuteStatement", Crash(), skip=1)
    listener = Listener()
    with pytest.raises(Crash):
        run(listener)
    world.clock.at += settings().event_claim_seconds
    assert all(each.due_at <= clock.to_text(world.clock.at) for each in map(row, "ab"))
    run(listener)
    assert listener.requests == [["a", "b"], ["a", "b"]]


@pytest.mark.parametrize(
    "broken",
    [
        {"body": {"S": "{"}},
        {"body": {"S": "{}"}},
        {"sends": {"S": "many"}},
        {"sinks": {"S": "[]"}},
        {"sinks": {"S": '{"queue": 1}'}},
        {"due_at": {"S": "soon"}},
        {"created_at": None},
    ],
)
def test_an_event_that_cannot_be_read_is_set_aside_and_holds_back_no_other(world, broken):
    save_some(world, "a", "b")
    [key] = [each for each in keys() if each[1] == "a"]
    world.set_raw(ItemRow, dict(zip(("owner_key", "item_id"), key, strict=True)), **broken)
    listener = Listener()
    assert run(listener) == 1
    assert listener.requests == [["b"]]
    [found] = [each for each in raw_rows(settings().outbox_table) if each["item_id"] == {"S": "a"}]
    assert found["status"] == {"S": "failed"}
    assert found["last_error"]["S"]
    assert "attention_at" in found
