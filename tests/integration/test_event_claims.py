"""Claims of events: one deliverer wins each, whoever overlaps, runs out of time, dies or cannot write."""

import pytest

from aftercommit import clock
from aftercommit.errors import ContentRefusedError
from aftercommit.event_items import claim_events, read_events, record_events
from aftercommit.settings import settings
from aftercommit.tables import ItemRow
from tests.integration.events import Listener, keys, order, row, run, save, save_some, undone
from tests.integration.faults import Crash, no_answer, refusal
from tests.integration.world import raw_rows

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
