"""Stimuli: applied once to each wait, in order of arrival, whoever dies; and early ones are kept."""

import pytest

from aftercommit import Event, Fork, PublishEvent, Sequence, Step, Workflow, clock
from aftercommit.errors import TryLaterError
from aftercommit.instances import lease
from aftercommit.limits import COMMIT_INTENTIONS_MAX
from aftercommit.statuses import ItemCommand
from aftercommit.stimulate import stimulate
from aftercommit.tables import BookmarkRow, HeadRow, ItemRow, key_of
from aftercommit.writes import TRIES_MAX
from tests.integration.faults import Crash, no_answer, refusal
from tests.integration.waits import (
    bookmark_rows,
    looper,
    send,
    starter,
    stimuli,
    teller,
    waiter,
    waiting,
)
from tests.integration.world import behaviours, effects


@pytest.fixture
def w(world):
    world.publish(waiter)
    return world


def statuses(world, *instance_ids):
    return [world.show(each)["status"] for each in instance_ids]


# --- early and late ---


def test_a_stimulus_sent_before_its_bookmark_is_applied_when_that_is_committed(w):
    send("paid", {"order": "A"}, {"amount": 5})
    w.deliver_new()
    w.serve()
    assert [item.status for item in stimuli(w)] == ["undone"]
    instance_id = w.dispatch("waiter", {"order": "A"})
    w.serve()  # the burst that commits the bookmark sends the hint
    w.serve()
    assert w.show(instance_id)["output"] == {"amount": 5}
    assert clock.now() == clock.from_text(stimuli(w)[0].created_at)  # no timer was needed


@pytest.mark.parametrize("fault", [Crash(), RuntimeError("queue away")], ids=["dies", "lost"])
def test_an_early_stimulus_is_applied_by_the_sweep_when_the_hint_is_lost(w, faults, fault):
    send("paid", {"order": "A"}, 1)
    w.deliver_new()
    w.serve()
    instance_id = w.dispatch("waiter", {"order": "A"})
    w.messages.clear()
    faults.before("SendMessageBatch", fault)
    if isinstance(fault, Crash):
        with pytest.raises(Crash):
            w.run(instance_id)
    else:
        w.run(instance_id)
    assert w.show(instance_id)["status"] == "suspended"
    w.settle(seconds=120)
    assert w.show(instance_id)["output"] == 1


def test_looking_for_early_stimuli_never_fails_what_was_committed(w, faults):
    instance_id = w.dispatch("waiter", {"order": "A"})
    faults.before("Query", no_answer(), times=9, match="OutboxTable")
    w.run(instance_id)
    assert w.head(instance_id).status == "suspended"
    assert w.head(instance_id).lease_token is None


# --- once ---


def test_a_stimulus_delivered_twice_applies_once_to_a_wait(world):
    world.publish(looper)
    instance_id = world.dispatch("looper")
    world.run(instance_id)
    send("tick", value="one")
    [item] = stimuli(world)
    world.handle_item(item)
    world.handle_item(item)
    assert world.show(instance_id)["variables"]["n"] == 1


def test_a_worker_that_read_a_stimulus_before_another_applied_it_runs_no_step_on_it(world):
    world.publish(looper)
    instance_id = world.dispatch("looper")
    world.run(instance_id)
    send("tick", value="one")
    [item] = stimuli(world)
    stimulate(item, world.worker())
    stimulate(item, world.worker())  # as it was read before; the next wait of that name is there by now
    assert [name for name, _, _ in effects] == ["one"]
    shown = world.show(instance_id)
    assert (shown["status"], shown["variables"]["n"]) == ("suspended", 1)
    assert world.head(instance_id).lease_token is None


def test_a_resume_whose_worker_dies_after_the_commit_does_not_resume_the_next_wait(world, faults):
    world.publish(looper)
    instance_id = world.dispatch("looper")
    world.run(instance_id)
    world.messages.clear()
    send("tick", value="one")
    [item] = stimuli(world)
    faults.after("TransactWriteItems", Crash())
    with pytest.raises(Crash):
        world.handle_item(item)
    world.settle(seconds=300)
    world.handle_item(item)
    shown = world.show(instance_id)
    assert (shown["status"], shown["variables"]["n"]) == ("suspended", 1)


def test_two_stimuli_for_two_rounds_apply_to_one_round_each_in_order_of_arrival(world):
    world.publish(looper)
    instance_id = world.dispatch("looper")
    world.run(instance_id)
    send("tick", value="first")
    world.clock.at += 0.01
    send("tick", value="second")
    last = stimuli(world)[-1]
    world.handle_item(last)  # whichever message comes first
    assert [name for name, _, _ in effects] == ["first", "second"]
    assert world.show(instance_id)["status"] == "completed"


def test_a_wait_committed_while_nothing_is_found_is_not_given_to_the_last_to_come(world, faults):
    world.publish(looper)
    instance_id = world.dispatch("looper")
    send("tick", value="first")
    world.clock.at += 0.01
    send("tick", value="second")
    faults.right_after("Query", lambda: world.run(instance_id), match="BookmarksTable")
    world.handle_item(stimuli(world)[-1])
    assert effects == []
    world.settle(seconds=5)
    assert [name for name, _, _ in effects] == ["first", "second"]


def test_a_wait_committed_after_an_earlier_one_found_none_is_not_given_to_a_later_one(world, faults):
    world.publish(looper)
    instance_id = world.dispatch("looper")
    send("tick", value="first")
    world.clock.at += 0.01
    send("tick", value="second")
    [first, last] = stimuli(world)
    BookmarkRow(
        first.owner_key, "left", instance_id="gone", created_at=clock.to_text(clock.now())
    ).save()  # left behind: so those before are looked for
    faults.right_after("Query", lambda: world.run(instance_id), match="BookmarksTable", skip=1)
    world.handle_item(last)
    assert effects == []
    world.settle(seconds=5)
    assert [name for name, _, _ in effects] == ["first", "second"]


def test_one_that_cannot_be_applied_now_is_not_overtaken_by_the_next(world, faults):
    world.publish(looper)
    instance_id = world.dispatch("looper")
    world.run(instance_id)
    send("tick", value="first")
    world.clock.at += 0.01
    send("tick", value="second")
    faults.before("UpdateItem", refusal("ThrottlingException"), times=TRIES_MAX, match="lease_token")
    with pytest.raises(TryLaterError):
        world.handle_item(stimuli(world)[-1])
    assert effects == []
    world.settle(seconds=200)
    assert [name for name, _, _ in effects] == ["first", "second"]


def test_several_waits_of_one_instance_for_one_stimulus_are_resumed_by_one_commit(world):
    world.publish(Workflow("two", root=Fork(Event("e", result="a"), Event("e", result="b"))))
    instance_id = world.dispatch("two")
    world.run(instance_id)
    send("e", value=7)
    world.settle(seconds=5)
    assert world.show(instance_id)["variables"] == {"a": 7, "b": 7}
    assert bookmark_rows() == []


# --- matching ---


def test_another_payload_correlation_id_or_instance_is_not_touched(w):
    instance_id = waiting(w, correlation_id="c-1")
    send("paid", {"order": "B"})
    send("paid", {"order": "A"}, correlation_id="c-2")
    send("paid", {"order": "A"}, instance_id="another")
    send("unpaid", {"order": "A"})
    send("paid", {"order": "A", "more": None})
    w.settle(seconds=100)
    assert w.show(instance_id)["status"] == "suspended"
    assert len(bookmark_rows()) == 1
    send("paid", {"order": "A"}, correlation_id="c-1", instance_id=instance_id)
    w.settle(seconds=5)
    assert w.show(instance_id)["status"] == "completed"


def test_the_order_of_members_and_the_way_a_number_is_written_do_not_matter(world):
    payload = {"a": 1, "b": {"x": 2, "y": [3.5]}}
    world.publish(Workflow("w", root=Event("e", payload=payload)))
    instance_id = world.dispatch("w")
    world.run(instance_id)
    send("e", {"b": {"y": [3.5], "x": 2.0}, "a": 1.0})
    world.settle(seconds=5)
    assert world.show(instance_id)["status"] == "completed"


def test_true_is_not_one(world):
    both = Fork(Event("e", payload={"n": 1}, result="one"), Event("e", payload={"n": True}, result="true"))
    world.publish(Workflow("w", root=both))
    instance_id = world.dispatch("w")
    world.run(instance_id)
    send("e", {"n": 1}, "it")
    world.settle(seconds=5)
    assert world.show(instance_id)["variables"] == {"one": "it"}


def test_i11_a_stimulus_of_one_tenant_reaches_none_of_another(w):
    mine = waiting(w, tenant="a")
    theirs = waiting(w, tenant="b")
    send("paid", {"order": "A"}, tenant="a")
    w.settle(seconds=100)
    assert w.show(mine, "a")["status"] == "completed"
    assert w.show(theirs, "b")["status"] == "suspended"


# --- many at once ---


def test_several_instances_and_start_points_are_reached_at_once(w):
    w.publish(Workflow("starter", root=Event("paid", payload={"order": "A"}, starts=True, result="got")))
    ids = [waiting(w) for _ in range(3)]
    send("paid", {"order": "A"}, 1)
    w.settle(seconds=60)
    assert statuses(w, *ids) == ["completed"] * 3
    [started] = [head for head in w.heads() if head.definition_id == "starter"]
    assert w.show(started.instance_id)["variables"] == {"got": 1}


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_split_whose_worker_dies_is_made_once_by_the_next(w, faults, moment):
    ids = [waiting(w) for _ in range(2)]
    send("paid", {"order": "A"}, 1)
    [item] = stimuli(w)
    getattr(faults, moment)("TransactWriteItems", Crash())
    with pytest.raises(Crash):
        w.handle_item(item)
    w.handle_item(item)
    assert sorted(each.status for each in stimuli(w)) == ["done", "undone", "undone"]
    w.settle(seconds=60)
    assert statuses(w, *ids) == ["completed"] * 2


def test_a_stimulus_that_two_workers_split_at_once_makes_one_item_for_each(w):
    ids = [waiting(w) for _ in range(2)]
    send("paid", {"order": "A"}, 1)
    [item] = stimuli(w)
    stimulate(item, w.worker())
    stimulate(item, w.worker())  # as it was read before the first had split it
    assert len(stimuli(w)) == 3
    w.settle(seconds=60)
    assert statuses(w, *ids) == ["completed"] * 2


def test_a_split_that_takes_several_commits_applies_once_to_each_though_it_dies_midway(w, faults):
    ids = [waiting(w) for _ in range(2)]
    for number in range(COMMIT_INTENTIONS_MAX):  # rows left behind by others, which are reached all the same
        BookmarkRow(
            key_of("default", bookmark_rows()[0].stimulus_key.partition("#")[2]),
            f"left-{number}",
            instance_id=f"left-{number}",
            created_at=clock.to_text(clock.now()),
        ).save()
    send("paid", {"order": "A"}, 1)
    [item] = stimuli(w)
    faults.before("TransactWriteItems", Crash())
    with pytest.raises(Crash):
        w.handle_item(item)
    assert ItemRow.get(item.owner_key, item.item_id).split
    for row in bookmark_rows():
        row.delete()  # what was reached is over; what is left must not be taken for the whole
    w.handle_item(item)
    assert ItemRow.get(item.owner_key, item.item_id).status == "done"
    assert statuses(w, *ids) == ["suspended"] * 2


# --- rows in excess, and what cannot be done now ---


def test_a_bookmark_row_left_behind_is_removed_and_the_stimulus_stays_open(w, faults):
    instance_id = waiting(w)
    send("paid", {"order": "A"}, 1)
    [item] = stimuli(w)
    faults.before("DeleteItem", Crash(), match="BookmarksTable")
    with pytest.raises(Crash):
        w.handle_item(item)
    assert w.show(instance_id)["status"] == "completed"
    assert len(bookmark_rows()) == 1
    w.clock.at += 1
    send("paid", {"order": "A"}, 2)
    w.handle_item(stimuli(w)[-1])
    assert bookmark_rows() == []
    assert [each.status for each in stimuli(w)] == ["done", "undone"]


def test_a_row_of_an_instance_that_goes_on_is_kept_when_its_definition_cannot_be_read(w, faults):
    waiting(w)
    send("paid", {"order": "A"}, 1)
    [item] = stimuli(w)
    w.set_raw(HeadRow, {"instance_key": w.heads()[0].instance_key, "row": "head"}, definition_id={"S": "x"})
    w.handle_item(item)
    assert len(bookmark_rows()) == 1
    assert int(stimuli(w)[0].attempts) == 1


def test_c26_a_held_lease_is_no_attempt(w):
    instance_id = waiting(w)
    lease("default", instance_id, clock.now() + 100, waiting=True)
    send("paid", {"order": "A"}, 1)
    w.settle(seconds=90)
    assert int(stimuli(w)[0].attempts) == 0
    assert w.show(instance_id)["status"] != "completed"
    w.settle(seconds=300)
    assert w.show(instance_id)["output"] == 1


def test_i9_one_that_meets_a_held_lease_holds_back_no_other_instance(w):
    busy, idle = waiting(w), waiting(w)
    lease("default", busy, clock.now() + 60, waiting=True)
    send("paid", {"order": "A"}, "first", instance_id=busy)
    w.clock.at += 0.01
    send("paid", {"order": "A"}, "second", instance_id=busy)
    w.clock.at += 0.01
    send("paid", {"order": "A"}, "third", instance_id=idle)
    w.handle_item(stimuli(w)[-1])
    assert w.show(idle)["output"] == "third"
    w.settle(seconds=200)
    assert w.show(busy)["output"] == "first"


def test_i9_one_that_cannot_be_read_holds_back_no_other(w):
    instance_id = waiting(w)
    send("paid", {"order": "A"}, "first")
    w.clock.at += 0.01
    [bad] = stimuli(w)
    w.set_raw(ItemRow, {"owner_key": bad.owner_key, "item_id": bad.item_id}, body={"S": "{"})
    send("paid", {"order": "A"}, "second")
    w.handle_item(stimuli(w)[-1])
    assert w.show(instance_id)["output"] == "second"


# --- from inside a workflow ---


@pytest.mark.parametrize("moment", ["before", "after"])
def test_c29_an_event_published_inside_is_there_exactly_if_its_commit_is(w, faults, moment):
    w.publish(teller)
    receiver = waiting(w)
    instance_id = w.dispatch("teller")
    getattr(faults, moment)("TransactWriteItems", Crash(), match=ItemCommand.STIMULUS)
    with pytest.raises(Crash):
        w.run(instance_id)
    assert len(stimuli(w)) == (moment == "after")
    w.settle(seconds=600)
    assert w.show(receiver)["output"] == {"from": "teller"}
    assert len(stimuli(w)) == 1
    assert w.show(instance_id)["status"] == "completed"


def test_c38_a_local_event_reaches_its_own_instance_only(world):
    both = Fork(
        Event("e", result="got"),
        Sequence(Step("act", name="x"), PublishEvent("e", input="mine", local=True)),
    )
    world.publish(Workflow("w", root=both), Workflow("other", root=Event("e", result="got")))
    other = world.dispatch("other")
    instance_id = world.dispatch("w")
    world.settle(seconds=100)
    assert world.show(instance_id)["variables"] == {"got": "mine"}
    assert world.show(other)["status"] == "suspended"


def test_c38_an_event_published_inside_reaches_all_that_wait_for_it_with_its_input(w):
    w.publish(teller)
    ids = [waiting(w), waiting(w)]
    w.dispatch("teller")
    w.settle(seconds=60)
    assert [w.show(each)["output"] for each in ids] == [{"from": "teller"}] * 2


def test_an_event_that_starts_and_resumes_brings_its_input_to_both(w):
    w.publish(starter)
    send("begin", {}, {"hello": 1}, correlation_id="c-9")
    w.settle(seconds=5)
    [head] = w.heads()
    assert (head.correlation_id, head.status) == ("c-9", "completed")
    assert w.show(head.instance_id)["output"] == {"hello": 1}


def test_what_a_stimulus_has_started_leaves_no_item_for_ever(w):
    w.publish(starter)
    send("begin")
    w.settle(seconds=5)
    assert [item.command for item in w.items() if item.ttl is None] == []


def test_the_order_of_arrival_holds_whichever_message_comes_first_and_while_steps_run(world):
    world.publish(looper)
    instance_id = world.dispatch("looper")
    behaviours["first"] = lambda context, value: send("tick", value="third") and None
    world.run(instance_id)
    send("tick", value="first")
    world.clock.at += 0.01
    send("tick", value="second")
    world.settle(seconds=5)
    assert [name for name, _, _ in effects] == ["first", "second"]
    assert [item.status for item in stimuli(world)].count("undone") == 1
