"""Each conditional write of a bulk dispatch, as winner and as loser; what comes twice, late, or at once."""

import json

import pytest

from aftercommit import clock
from aftercommit.attempts import give_up
from aftercommit.cancel import cancel
from aftercommit.delete import delete
from aftercommit.errors import ConditionFailedError, ConflictError
from aftercommit.ids import derive_child_id
from aftercommit.instances import lease
from aftercommit.join import join
from aftercommit.limits import JOIN_LOOK_SECONDS_MAX
from aftercommit.model import Failure
from aftercommit.outbox import claim, find_item
from aftercommit.places import Join, Mark
from aftercommit.queue import Message
from aftercommit.tables import ItemRow, TallyRow, key_of, tally_name
from aftercommit.tallies import ending_writes, wake_update
from aftercommit.writes import commit
from tests.integration.bulks import admit, begin, parent_of, resumes, starts, tally, waiting
from tests.integration.faults import Crash, no_answer, refusal

FAILURE = Failure("OSError", "gone")


@pytest.fixture
def parent_id(world):
    return begin(world, waiting)


def lanes(world, **more):
    return begin(world, parent_of(["a", "b", "c"], wait=True, concurrent_max=1, **more))


def set_item(world, item, **values):
    world.set_raw(ItemRow, {"owner_key": item.owner_key, "item_id": item.item_id}, **values)


def hints(world):
    """Return the items that messages name."""
    return [json.loads(each.body)["item_id"] for each in world.messages]


def the_join(world):
    return world.item("join")


# --- birth ---


def test_a_start_whose_turn_has_not_come_is_stored_asleep_and_not_due(world):
    lanes(world)
    first, second, third = starts(world)
    assert (first.asleep, second.asleep, third.asleep) == (None, True, True)
    assert (second.status, second.due_at, second.wait) == ("undone", None, True)


def test_a_sleeping_start_is_neither_sent_nor_admitted(world):
    lanes(world)
    assert world.deliver_new() == 2  # the first, and the join
    world.handle_item(starts(world)[1])
    assert len(world.heads()) == 1


# --- a child's ending: mark, tally, wake, all in its last commit ---


def test_i7_the_last_commit_of_a_child_marks_its_dispatch_and_counts_it(world, parent_id, faults):
    faults.sent.clear()
    admit(world, 1)
    assert starts(world)[1].outcome == "Completed"
    assert json.loads(starts(world)[1].output) == {"was": "b"}
    assert tally(world, parent_id) == {"completed": [1]}
    [last] = [body for name, body in faults.sent if name == "TransactWriteItems" and "count#" in str(body)]
    assert len(last["TransactItems"]) == 4  # revision, head, mark, tally


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_child_that_dies_at_its_last_commit_has_told_all_or_nothing(world, parent_id, faults, moment):
    getattr(faults, moment)("TransactWriteItems", Crash(), match="count#")
    with pytest.raises(Crash):
        admit(world, 0)
    assert tally(world, parent_id) == ({} if moment == "before" else {"completed": [0]})
    world.settle(seconds=900)
    assert tally(world, parent_id) == {"completed": [0, 1, 2]}
    assert world.show(parent_id)["status"] == "completed"


def test_c22_an_ending_whose_answer_was_lost_is_counted_once(world, parent_id, faults):
    faults.after("TransactWriteItems", no_answer(), match="count#")
    admit(world, 0)
    assert tally(world, parent_id) == {"completed": [0]}


def test_r12_a_contended_row_of_the_tally_is_tried_again(world, parent_id, faults):
    reasons = ["None", "None", "None", "TransactionConflict"]
    plan = faults.before(
        "TransactWriteItems",
        refusal("TransactionCanceledException", reasons=reasons),
        match="count#",
        times=3,
    )
    admit(world, 0)
    assert plan.struck == 3
    assert tally(world, parent_id) == {"completed": [0]}


def test_a_child_whose_dispatch_is_gone_ends_all_the_same_and_makes_no_rows(world):
    parent_id = begin(world, parent_of(["wait"], wait=True, workflow_id="other"))
    [item] = [row for row in starts(world) if row.owner_id == parent_id]
    world.handle_item(item)
    item.delete()
    child_id = derive_child_id(item.item_id)
    assert cancel("default", child_id, "enough")
    assert world.statuses()[child_id] == "cancelled"
    assert tally(world, parent_id) == {}
    assert find_item("default", parent_id, item.item_id) is None


def test_a_mark_that_is_there_is_not_written_over(world, parent_id):
    admit(world, 0)
    item = starts(world)[0]
    place = Join(**json.loads(item.body)["join"])
    before = world.everything()
    with pytest.raises(ConditionFailedError) as caught:
        commit(ending_writes("default", Mark(parent_id, place, "Faulted", None), clock.now()))
    assert caught.value.purposes == {"mark"}
    assert world.everything() == before


def test_an_ending_wakes_the_next_of_its_lane_in_the_same_commit(world, faults):
    lanes(world)
    faults.sent.clear()
    admit(world, 0)
    second, third = starts(world)[1:]
    assert (second.asleep, second.due_at) == (None, clock.to_text(clock.now() + 10))
    assert third.asleep
    [last] = [body for name, body in faults.sent if name == "TransactWriteItems" and "count#" in str(body)]
    assert len(last["TransactItems"]) == 5
    assert hints(world) == [second.item_id]


def test_without_its_hint_a_woken_start_is_found_by_the_sweep(world):
    parent_id = lanes(world)
    admit(world, 0)
    world.messages.clear()
    world.forget_stream()
    world.settle(seconds=60)
    assert world.show(parent_id)["status"] == "completed"


@pytest.mark.parametrize(
    "damage", [{"status": {"S": "cancelled"}}, {"asleep": None}, {"status": {"S": "failed"}}], ids=str
)
def test_a_start_that_cannot_be_woken_does_not_hold_up_the_ending(world, damage):
    parent_id = lanes(world)
    set_item(world, starts(world)[1], **damage)
    before = starts(world)[1]
    child_id = admit(world, 0)
    assert world.statuses()[child_id] == "completed"
    assert tally(world, parent_id) == {"completed": [0]}
    assert (starts(world)[1].status, starts(world)[1].due_at) == (before.status, before.due_at)


def test_waking_one_that_is_awake_changes_nothing(world):
    parent_id = lanes(world)
    item = starts(world)[0]
    before = world.everything()
    with pytest.raises(ConditionFailedError):
        commit([wake_update("default", parent_id, item.item_id, clock.now())])
    assert world.everything() == before


# --- giving up ---


def test_c10_giving_up_a_start_marks_counts_and_wakes_in_one_commit(world, faults):
    parent_id = lanes(world)
    faults.sent.clear()
    give_up(starts(world)[0], FAILURE)
    first, second, _ = starts(world)
    assert (first.status, first.outcome) == ("failed", "DispatchFailed")
    assert json.loads(first.output) == {"type": "OSError", "message": "gone"}
    assert tally(world, parent_id) == {"dispatch_failed": [0]}
    assert second.asleep is None
    assert len(faults.writes()) == 1
    assert world.incidents() == []
    assert world.items("resume") == []


def test_giving_up_twice_counts_once(world, parent_id):
    give_up(starts(world)[0], FAILURE)
    with pytest.raises(ConditionFailedError):
        give_up(starts(world)[0], FAILURE)
    assert tally(world, parent_id) == {"dispatch_failed": [0]}


def test_a_start_that_was_admitted_is_not_given_up_nor_counted(world, parent_id):
    stale = starts(world)[0]
    admit(world, 0)
    with pytest.raises(ConditionFailedError) as caught:
        give_up(stale, FAILURE)
    assert caught.value.purposes == {"failed"}
    assert tally(world, parent_id) == {"completed": [0]}


def test_a_give_up_whose_next_is_withdrawn_happens_without_waking_it(world):
    parent_id = lanes(world)
    set_item(world, starts(world)[1], status={"S": "cancelled"})
    give_up(starts(world)[0], FAILURE)
    assert tally(world, parent_id) == {"dispatch_failed": [0]}
    assert starts(world)[1].due_at is None


def test_not_awaited_a_give_up_in_a_lane_is_an_incident_too(world):
    parent_id = begin(world, parent_of(["a", "b"], concurrent_max=1))
    give_up(starts(world)[0], FAILURE)
    assert len(world.incidents()) == 1
    assert tally(world, parent_id) == {"dispatch_failed": [0]}


# --- hurry ---


def test_only_the_last_of_its_row_hurries_the_join(world, parent_id):
    for index in (0, 1):
        admit(world, index)
        assert hints(world) == []
    admit(world, 2)
    assert hints(world) == [the_join(world).item_id]


def test_a_failure_that_is_one_too_many_hurries_the_join(world):
    begin(world, parent_of(["bad", "bad", "c"], wait=True, tolerated_failures=1))
    admit(world, 0)
    assert hints(world) == []
    admit(world, 1)
    assert hints(world) == [the_join(world).item_id]


def test_without_the_hint_the_join_is_looked_at_in_time(world, parent_id, faults):
    faults.before("SendMessageBatch", OSError("away"), times=1)
    for index in range(3):
        admit(world, index)
    assert world.messages == []
    world.settle(seconds=60)
    assert world.show(parent_id)["status"] == "completed"


def test_the_looks_at_a_join_come_at_longer_and_longer_intervals_up_to_a_bound(world, parent_id):
    waits = []
    for _ in range(9):
        item = the_join(world)
        due = clock.from_text(item.due_at)
        world.clock.at = max(world.clock.at, due)
        assert claim(item, clock.now())
        waits.append(round(clock.from_text(the_join(world).due_at) - clock.now()))
    assert waits == sorted(waits)
    assert waits[-1] == JOIN_LOOK_SECONDS_MAX


# --- the join ---


def ended(world):
    for index in range(3):
        admit(world, index)
    world.messages.clear()


def test_a_join_that_comes_early_changes_nothing(world, parent_id):
    admit(world, 0)
    before = world.everything()
    world.handle_item(the_join(world))
    assert world.everything() == before


def test_c22_a_join_that_comes_twice_or_late_resumes_once(world, parent_id):
    ended(world)
    item = the_join(world)
    for _ in range(3):
        world.handle_item(item)
    assert resumes(world, parent_id) == 1
    join(item, world.worker())  # read before it was acked
    assert resumes(world, parent_id) == 1
    assert world.show(parent_id)["status"] == "completed"


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_worker_that_dies_with_a_join_has_told_all_or_nothing(world, parent_id, faults, moment):
    ended(world)
    getattr(faults, moment)("TransactWriteItems", Crash(), match="resume")
    with pytest.raises(Crash):
        world.handle_item(the_join(world))
    assert the_join(world).status == ("undone" if moment == "before" else "done")
    world.settle(seconds=900)
    assert resumes(world, parent_id) == 1
    assert world.show(parent_id)["status"] == "completed"


def test_a_join_that_meets_a_held_lease_comes_again(world, parent_id):
    ended(world)
    lease("default", parent_id, clock.now() + 50, waiting=True)
    world.handle_item(the_join(world))
    assert the_join(world).status == "undone"
    assert world.messages[0].due > clock.now()
    world.settle(seconds=900)
    assert world.show(parent_id)["status"] == "completed"


def test_a_join_of_an_ended_parent_is_settled(world, parent_id):
    ended(world)
    assert cancel("default", parent_id, "enough")
    world.handle_item(the_join(world))
    assert the_join(world).status == "done"


def test_c04_a_join_whose_parent_is_gone_is_failed_with_an_incident(world, parent_id):
    ended(world)
    world.head(parent_id).delete()
    world.handle_item(the_join(world))
    assert the_join(world).status == "failed"
    assert len(world.incidents()) == 1


def test_not_awaited_a_join_is_settled_when_all_have_ended(world):
    parent_id = begin(world, parent_of(["a", "b"], concurrent_max=1))
    with pytest.raises(ConflictError):
        delete("default", parent_id)
    world.settle(seconds=60)
    assert the_join(world).status == "done"
    assert resumes(world, parent_id) == 0
    delete("default", parent_id)


def test_a_message_for_a_join_of_another_turn_finds_nothing(world, parent_id):
    world.handle(Message("default", owner_id=parent_id, item_id="no-such-join"))
    assert resumes(world, parent_id) == 0


# --- removal ---


def test_r07_deleting_the_parent_removes_its_tallies_too(world, parent_id):
    world.settle(seconds=60)
    delete("default", parent_id)
    world.clock.at += 90_000
    world.settle(seconds=60)
    assert list(TallyRow.query(key_of("default", parent_id))) == []


def test_a_join_that_nothing_waits_for_does_not_stand_against_deleting(world, parent_id):
    ended(world)
    assert cancel("default", parent_id, "enough")
    world.handle_item(world.item("cancel"))
    delete("default", parent_id)


def test_rows_of_a_tally_stand_under_the_parent_apart_from_its_log(world):
    parent_id = begin(world, parent_of(list("abcdefghij"), wait=True))
    admit(world, 0)
    admit(world, 1)
    join_id = starts(world)[0].item_id[:32]
    rows = [
        row.row for row in TallyRow.query(key_of("default", parent_id), TallyRow.row.startswith("count#"))
    ]
    assert rows == [tally_name(join_id, 0), tally_name(join_id, 1)]
    assert world.show(parent_id)["status"] == "suspended"
