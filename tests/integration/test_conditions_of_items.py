"""Each conditional write on outbox items, as winner and as loser."""

import pytest

from aftercommit import DispatchWorkflow, Workflow, clock
from aftercommit.attempts import give_up, refuse
from aftercommit.deliver import deliver
from aftercommit.errors import ConditionFailedError
from aftercommit.model import Failure
from aftercommit.outbox import ack, claim, find_item, settle
from aftercommit.set_aside import set_aside
from aftercommit.statuses import ItemStatus
from aftercommit.tables import ItemRow
from aftercommit.writes import commit

FAILURE = Failure("OSError", "gone")
SETTLED = [ItemStatus.DONE, ItemStatus.FAILED, ItemStatus.CANCELLED]

child = Workflow("child", root=DispatchWorkflow("grandchild"))
waiting = Workflow("waiting", root=DispatchWorkflow("child", wait=True))
forgetting = Workflow("forgetting", root=DispatchWorkflow("child"))


def born_item(world, workflow):
    world.publish(child, workflow)
    world.run(world.dispatch(workflow.id))
    world.messages.clear()
    return world.item()


@pytest.fixture
def item(world):
    return born_item(world, waiting)


@pytest.fixture
def forgotten(world):
    return born_item(world, forgetting)


def again(item):
    return find_item(item.tenant, item.owner_id, item.item_id)


def settle_as(world, item, status):
    key = {"owner_key": item.owner_key, "item_id": item.item_id}
    world.set_raw(ItemRow, key, status={"S": status.value}, due_at=None)


# --- birth ---


def test_an_item_is_born_undone_and_due_after_the_eager_head_start(item):
    assert (item.status, int(item.sends), int(item.attempts), int(item.generation)) == ("undone", 0, 0, 1)
    assert item.due_at == clock.to_text(clock.now() + 10)
    assert item.wait is True


def test_without_eager_delivery_an_item_is_born_due(world, set_environment):
    set_environment(EAGER_DELIVERY="false")
    assert born_item(world, waiting).due_at == clock.to_text(clock.now())


# --- ack ---


def test_an_undone_item_is_acked(item):
    commit([ack(item, clock.now())])
    found = again(item)
    assert (found.status, found.due_at) == ("done", None)
    assert found.settled_at == clock.to_text(clock.now())
    assert found.ttl is None  # a dispatch lives as long as its owner


def test_an_acked_resume_expires_after_the_retention(world, item):
    settle(item)
    world.handle_item(item)
    give_up_free = born_resume(world, item)
    commit([ack(give_up_free, clock.now())])
    assert int(again(give_up_free).ttl) == int(clock.now()) + 86_400


def born_resume(world, item):
    settle_undone(world, item)
    give_up(again(item), FAILURE)
    return world.item("resume")


def settle_undone(world, item):
    key = {"owner_key": item.owner_key, "item_id": item.item_id}
    world.set_raw(ItemRow, key, status={"S": "undone"})


@pytest.mark.parametrize("status", SETTLED)
def test_an_item_that_is_settled_cannot_be_acked(world, item, status):
    settle_as(world, item, status)
    before = world.everything()
    with pytest.raises(ConditionFailedError) as caught:
        commit([ack(item, clock.now())])
    assert caught.value.purposes == {"ack"}
    settle(item)  # the same, for when there is nothing to do about it
    assert world.everything() == before


def test_an_item_that_is_gone_cannot_be_acked_and_is_not_made(world, item):
    item.delete()
    with pytest.raises(ConditionFailedError):
        commit([ack(item, clock.now())])
    assert world.items() == []


# --- claim ---


def test_c01_of_two_deliverers_that_read_the_same_row_one_sends(item):
    first, second = again(item), again(item)
    assert claim(first, clock.now())
    assert not claim(second, clock.now())
    assert (int(again(item).sends), int(again(item).attempts)) == (1, 0)


def test_the_first_claim_leaves_the_due_time_and_later_ones_move_it(world, item):
    assert claim(item, clock.now())
    assert again(item).due_at == item.due_at
    delays = []
    for _ in range(9):
        world.clock.at = clock.from_text(again(item).due_at)
        assert claim(again(item), clock.now())
        delays.append(round(clock.from_text(again(item).due_at) - clock.now()))
    assert delays == [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]


def test_a_first_claim_by_the_sweep_moves_the_due_time(world, item):
    world.clock.at += 10
    assert claim(item, clock.now())
    assert again(item).due_at == clock.to_text(clock.now() + 60)


@pytest.mark.parametrize("status", SETTLED)
def test_an_item_that_was_settled_since_it_was_read_is_not_claimed(world, item, status):
    settle_as(world, item, status)
    before = world.everything()
    assert not claim(item, clock.now())
    assert world.everything() == before


def test_an_item_that_is_gone_is_not_claimed_and_not_made(world, item):
    item.delete()
    assert not claim(item, clock.now())
    assert world.items() == []


# --- attempts ---


def test_c08_a_refused_attempt_is_counted_and_the_item_stays(item):
    assert not refuse(item, FAILURE)
    found = again(item)
    assert (found.status, int(found.attempts), found.last_error) == ("undone", 1, "OSError: gone")
    assert 1 <= clock.from_text(found.due_at) - clock.now() <= 2  # the delay, and jitter


def test_one_attempt_is_not_counted_twice(world, item):
    first, second = again(item), again(item)
    refuse(first, FAILURE)
    before = world.everything()
    with pytest.raises(ConditionFailedError):
        refuse(second, FAILURE)
    assert world.everything() == before


@pytest.mark.parametrize("status", SETTLED)
def test_a_settled_item_counts_no_attempt(world, item, status):
    settle_as(world, item, status)
    before = world.everything()
    with pytest.raises(ConditionFailedError):
        refuse(item, FAILURE)
    assert world.everything() == before


def test_a_resume_is_never_given_up_and_its_delay_doubles(world, item):
    resume = born_resume(world, item)
    delays = []
    for _ in range(14):
        assert not refuse(again(resume), FAILURE)
        delays.append(round(clock.from_text(again(resume).due_at) - clock.now()))
    assert delays == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3600, 3600]


# --- giving up ---


def test_c10_the_last_attempt_gives_up_and_resumes_the_waiting_parent_in_one_commit(world, item, faults):
    for _ in range(3):
        assert not refuse(again(item), FAILURE)
    faults.sent.clear()
    assert refuse(again(item), FAILURE)
    assert [name for name, _ in faults.writes()] == ["TransactWriteItems"]
    found = again(item)
    assert (found.status, int(found.attempts), found.due_at) == ("failed", 4, None)
    assert found.attention_at is None  # the parent deals with it
    resume = world.item("resume")
    assert (resume.instance_id, resume.status) == (item.owner_id, "undone")
    world.settle()
    assert "ended DispatchFailed: gone" in world.show(item.owner_id)["failure"]["message"]


def test_c10_a_give_up_that_fails_keeps_the_count_and_is_tried_again(world, item, faults):
    for _ in range(3):
        refuse(again(item), FAILURE)
    faults.before("TransactWriteItems", RuntimeError("away"))
    with pytest.raises(RuntimeError):
        refuse(again(item), FAILURE)
    assert (again(item).status, int(again(item).attempts)) == ("undone", 3)
    assert world.items("resume") == []
    assert refuse(again(item), FAILURE)


def test_c10_giving_up_what_nobody_waits_for_is_an_incident_of_the_owner(world, forgotten):
    give_up(forgotten, FAILURE)
    assert again(forgotten).attention_at == clock.to_text(clock.now())
    [incident] = world.show(forgotten.owner_id)["incidents"]
    assert incident["item_id"] == forgotten.item_id
    assert incident["error"] == {"type": "OSError", "message": "gone"}
    assert world.items("resume") == []


@pytest.mark.parametrize("status", SETTLED)
def test_an_item_that_was_settled_meanwhile_is_not_given_up(world, item, status):
    settle_as(world, item, status)
    before = world.everything()
    with pytest.raises(ConditionFailedError) as caught:
        give_up(item, FAILURE)
    assert caught.value.purposes == {"failed"}
    assert world.everything() == before


def test_giving_up_twice_has_one_consequence(world, item):
    give_up(item, FAILURE)
    with pytest.raises(ConditionFailedError):
        give_up(item, FAILURE)
    assert len(world.items("resume")) == 1


# --- setting aside ---


def test_an_item_that_cannot_be_read_is_failed_with_its_reason(world, item):
    set_aside(item.owner_key, item.item_id, "the body is no JSON")
    found = again(item)
    assert (found.status, found.last_error, found.due_at) == ("failed", "the body is no JSON", None)
    assert found.attention_at


@pytest.mark.parametrize("status", SETTLED)
def test_a_settled_item_is_not_set_aside(world, item, status):
    settle_as(world, item, status)
    before = world.everything()
    set_aside(item.owner_key, item.item_id, "whatever")
    assert world.everything() == before


def test_an_item_that_is_gone_is_not_made_by_setting_it_aside(world, item):
    item.delete()
    set_aside(item.owner_key, item.item_id, "whatever")
    assert world.items() == []


@pytest.mark.parametrize(
    "damage",
    [
        {"body": {"S": "{"}},
        {"body": {"S": "[]"}},
        {"body": {"S": '{"instance_id": "x"}'}},
        {"body": None},
        {"body": {"N": "5"}},
        {"status": None},
        {"status": {"N": "1"}},
        {"sends": {"S": "one"}},
        {"created_at": {"S": "yesterday"}},
        {"command": None},
        {"tenant": None},
        {"attempts": {"S": "many"}},
    ],
    ids=str,
)
def test_c14_a_damaged_item_is_set_aside_visibly_and_later_ones_go_on(world, item, damage):
    world.set_raw(ItemRow, {"owner_key": item.owner_key, "item_id": item.item_id}, **damage)
    world.publish(forgetting)
    world.run(world.dispatch("forgetting"))
    world.settle()
    of_item = f'"item_id": {{"S": "{item.item_id}"}}'
    raw = next(row for row in world.everything()["OutboxTable"] if of_item in row)
    assert '"status": {"S": "failed"}' in raw
    assert '"attention_at"' in raw
    assert '"last_error"' in raw
    assert '"tenant": {"S": "default"}' in raw
    assert '"due_at"' not in raw
    others = [row for row in world.everything()["OutboxTable"] if of_item not in row]
    assert any('"status": {"S": "done"}' in row for row in others)


@pytest.mark.parametrize("counter", ["sends", "attempts", "generation"])
def test_an_item_without_a_counter_reads_as_one_at_its_default_and_is_not_stuck(world, item, counter):
    world.set_raw(ItemRow, {"owner_key": item.owner_key, "item_id": item.item_id}, **{counter: None})
    assert not refuse(again(item), FAILURE)
    world.settle()
    assert again(item).status == "done"


def test_delivering_a_key_without_a_tenant_harms_no_other(world, item):
    assert deliver([("no-tenant", "x"), (item.owner_key, item.item_id), ("", "")]) == 1


def test_an_item_sent_already_is_not_claimed_again_before_its_ack_is_overdue(world, item):
    key = (item.owner_key, item.item_id)
    assert [deliver([key]), deliver([key])] == [1, 0]
    world.clock.at += 10
    assert [deliver([key]), deliver([key])] == [1, 0]
    world.clock.at += 60
    assert [deliver([key]), deliver([key])] == [1, 0]
