"""The bookmark queue: open stimuli, dead letters with their reason, replayed once, and removed."""

import pytest

from aftercommit import clock
from aftercommit.backlog import list_open_stimuli
from aftercommit.deliver import deliver
from aftercommit.errors import ConflictError, NotFoundError, TryLaterError
from aftercommit.operations import delete_dead_letter, find_dead_letter, read_stimulus_id, replay
from aftercommit.paging import Page
from aftercommit.stimulate import stimulate
from aftercommit.tables import HeadRow, ItemRow
from aftercommit.views import list_dead_letters
from tests.integration.faults import Crash, no_answer
from tests.integration.waits import send, stimuli, waiter, waiting

SECRET = "s3cr3t"


@pytest.fixture
def w(world):
    world.publish(waiter)
    return world


@pytest.fixture
def dead(w):
    """The (key, item id) of a stimulus that nothing took in time."""
    name = send("paid", {"order": "A"}, SECRET)
    w.settle(seconds=700)
    return read_stimulus_id(name)


def dead_letters(tenant="default"):
    return list_dead_letters(tenant, Page())["dead_letters"]


def break_instance(world, instance_id):
    world.set_raw(
        HeadRow,
        {"instance_key": f"default#{instance_id}", "row": "head"},
        definition_id={"S": "no-such-workflow"},
    )


def test_an_open_stimulus_is_listed_without_its_input(w):
    name = send("paid", {"order": "A"}, SECRET, correlation_id="c-1")
    [shown] = list_open_stimuli("default", Page())["stimuli"]
    assert (shown["stimulus_id"], shown["name"], shown["status"]) == (name, "event:paid", "open")
    assert SECRET not in str(shown)
    assert list_open_stimuli("other", Page()) == {"stimuli": []}


def test_c23_one_that_nothing_takes_in_time_becomes_a_dead_letter(w, dead):
    [item] = stimuli(w)
    assert (item.status, item.due_at) == ("failed", None)
    assert item.last_error == "ExpiredError: nothing took it within 600 seconds"
    assert clock.from_text(item.settled_at) >= clock.from_text(item.created_at) + 600
    assert int(item.ttl) >= int(clock.now()) + 6 * 86_400
    instance_id = waiting(w)  # it is over: nothing is applied any more
    w.handle_item(item)
    assert w.show(instance_id)["status"] == "suspended"


@pytest.mark.parametrize("moment", ["before", "after"])
def test_c23_a_worker_that_dies_while_burying_one_loses_nothing(w, faults, moment):
    send("paid", {"order": "A"})
    [item] = stimuli(w)
    w.clock.at += 601
    getattr(faults, moment)("UpdateItem", Crash(), match="ExpiredError")
    with pytest.raises(Crash):
        w.handle_item(item)
    w.settle(seconds=200)
    assert [each.status for each in stimuli(w)] == ["failed"]
    assert len(dead_letters()) == 1


def test_c25_three_failures_make_a_dead_letter_with_the_errors_type_and_message(w):
    send("paid", {"order": "A"})
    [item] = stimuli(w)
    w.set_raw(ItemRow, {"owner_key": item.owner_key, "item_id": item.item_id}, body={"S": "{}"})
    w.settle(seconds=550)
    [item] = stimuli(w)
    assert (item.status, int(item.attempts)) == ("failed", 3)
    assert item.last_error.startswith("MalformedRowError: the body of outbox item")


def test_c24_what_another_worker_applied_while_it_expired_leaves_no_dead_letter(w):
    """The item is its own dead letter, so there is no audit record: it is either applied or buried."""
    send("paid", {"order": "A"}, 1)
    [stale] = stimuli(w)
    instance_id = waiting(w)
    w.handle_item(stale)
    w.clock.at += 601
    stimulate(stale, w.worker())  # as it was read before: nothing waits any more, and its time is over
    assert w.show(instance_id)["output"] == 1
    assert [item.status for item in stimuli(w)] == ["done"]
    assert dead_letters() == []
    with pytest.raises(NotFoundError):
        replay("default", stale.owner_id, stale.item_id)


def test_failures_to_send_never_count(w, faults):
    send("paid", {"order": "A"})
    faults.before("SendMessageBatch", RuntimeError("queue away"), times=9)
    [item] = stimuli(w)
    for _ in range(9):
        deliver([(item.owner_key, item.item_id)])
        w.clock.at += 30
    [found] = stimuli(w)
    assert (found.status, int(found.attempts)) == ("undone", 0)
    assert "queue away" in found.last_error


def test_an_attempt_is_counted_once_however_many_saw_it(w):
    break_instance(w, waiting(w))
    send("paid", {"order": "A"})
    [item] = stimuli(w)
    w.handle_item(item)
    [counted] = stimuli(w)
    w.clock.at += 200  # the lease of the first attempt is over
    w.handle_item(counted)
    assert int(stimuli(w)[0].attempts) == 2


def test_c27_a_replay_makes_a_new_open_stimulus_that_is_applied(w, dead):
    name = replay("default", *dead)
    assert dead_letters() == []
    assert [each["stimulus_id"] for each in list_open_stimuli("default", Page())["stimuli"]] == [name]
    instance_id = waiting(w)
    w.settle(seconds=60)
    assert w.show(instance_id)["output"] == SECRET


def test_c27_a_second_replay_is_refused_and_names_the_first(dead):
    name = replay("default", *dead)
    with pytest.raises(ConflictError, match=name):
        replay("default", *dead)


def test_c27_of_two_replays_at_once_one_makes_an_item(w, dead, monkeypatch):
    read = find_dead_letter("default", *dead)
    name = replay("default", *dead)
    reads = [read, find_dead_letter("default", *dead)]
    monkeypatch.setattr("aftercommit.operations.find_dead_letter", lambda *_: reads.pop(0))
    with pytest.raises(ConflictError, match=name):
        replay("default", *dead)
    assert len(stimuli(w)) == 2


@pytest.mark.parametrize("moment", ["before", "after"])
def test_c27_a_replay_that_dies_is_whole_or_not_at_all(w, dead, faults, moment):
    getattr(faults, moment)("TransactWriteItems", Crash())
    with pytest.raises(Crash):
        replay("default", *dead)
    marked = ItemRow.get(f"default#{dead[0]}", dead[1]).replayed_as
    assert (len(stimuli(w)), bool(marked)) == ((1, False) if moment == "before" else (2, True))


def test_a_replay_without_an_answer_asks_to_come_again(dead, faults):
    faults.before("TransactWriteItems", no_answer(), times=9)
    with pytest.raises((TryLaterError, ConflictError)):
        replay("default", *dead)


def test_a_removed_dead_letter_is_gone_and_cannot_be_replayed_or_removed_again(w, dead):
    delete_dead_letter("default", *dead)
    assert stimuli(w) == []
    for act in (replay, delete_dead_letter, find_dead_letter):
        with pytest.raises(NotFoundError):
            act("default", *dead)


def test_of_two_removals_at_once_the_second_finds_nothing(dead, monkeypatch):
    read = find_dead_letter("default", *dead)
    delete_dead_letter("default", *dead)
    monkeypatch.setattr("aftercommit.operations.find_dead_letter", lambda *_: read)
    with pytest.raises(NotFoundError):
        delete_dead_letter("default", *dead)


def test_i11_a_dead_letter_is_not_there_for_another_tenant(dead):
    for act in (replay, delete_dead_letter, find_dead_letter):
        with pytest.raises(NotFoundError):
            act("other", *dead)
    assert dead_letters("other") == []
    assert len(dead_letters()) == 1


def test_an_open_stimulus_is_no_dead_letter(w):
    name = send("paid", {"order": "A"})
    for act in (replay, delete_dead_letter):
        with pytest.raises(NotFoundError):
            act("default", *read_stimulus_id(name))


def test_c28_dead_letters_are_shown_without_inputs_even_if_one_cannot_be_read(w, dead):
    send("paid", {"order": "B"})
    bad = stimuli(w)[-1]
    w.set_raw(ItemRow, {"owner_key": bad.owner_key, "item_id": bad.item_id}, body={"S": "{"})
    w.settle(seconds=60)
    shown = dead_letters()
    assert [each.get("name") for each in shown] == ["event:paid", None]
    assert SECRET not in str(shown)
