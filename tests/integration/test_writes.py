"""The one place where conditional writes are made, under contention, throttling and lost answers."""

import pytest

from aftercommit import DispatchWorkflow, Sequence, Step, Workflow, clock
from aftercommit.errors import ConditionFailedError, ContentionError, OvertakenError, TryLaterError
from aftercommit.ids import new_token
from aftercommit.tables import HeadRow, ItemRow, RevisionRow
from aftercommit.writes import TRIES_MAX, Check, Put, Update, commit, in_sent_order
from tests.integration.faults import no_answer, refusal
from tests.integration.world import behaviours, effects

stepping = Workflow("stepping", root=Sequence(Step("act", name="a"), Step("act", name="b")))
dispatching = Workflow(
    "dispatching", root=Sequence(Step("act", name="a"), DispatchWorkflow("child", wait=True))
)
child = Workflow("child", root=Sequence())

CONFLICT = refusal("TransactionCanceledException", reasons=["None", "TransactionConflict", "None"])
THROTTLES = [
    "ThrottlingException",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "InternalServerError",
]


def revision(number=1, *, key="t#i"):
    return RevisionRow(
        key,
        f"revision#{number:010}",
        revision=number,
        commands="[]",
        journal="[]",
        leases=1,
        nonce=new_token(),
        committed_at=clock.to_text(clock.now()),
    )


def put(number=1, purpose="revision"):
    return Put(purpose, revision(number), RevisionRow.instance_key.does_not_exist())


def update(purpose, row, condition):
    return Update(purpose, row, [RevisionRow.leases.set(9)], condition)


# --- one write ---


def test_one_write_is_a_plain_request(world, faults):
    commit([put()])
    assert [name for name, _ in faults.sent] == ["PutItem"]


def test_many_writes_are_one_transaction(world, faults):
    commit([put(1), put(2)])
    assert [name for name, _ in faults.sent] == ["TransactWriteItems"]


@pytest.mark.parametrize("code", ["TransactionConflictException", *THROTTLES])
def test_r12_a_write_that_met_contention_or_a_limit_is_tried_again(world, faults, code):
    faults.before("PutItem", refusal(code), times=TRIES_MAX - 1)
    before = clock.now()
    commit([put()])
    assert faults.count("PutItem") == TRIES_MAX
    assert len(list(RevisionRow.scan())) == 1
    assert 0.7 < clock.now() - before < 2.4  # 50 ms, doubling, with jitter


def test_throttling_without_end_is_told_as_try_later(world, faults):
    faults.before("PutItem", refusal("ThrottlingException"), times=99)
    with pytest.raises(TryLaterError):
        commit([put()])
    assert faults.count("PutItem") == TRIES_MAX
    assert list(RevisionRow.scan()) == []


def test_a_write_that_can_never_succeed_is_not_tried_again(world, faults):
    faults.before("PutItem", refusal("ValidationException"))
    with pytest.raises(Exception, match="ValidationException") as caught:
        commit([put()])
    assert not isinstance(caught.value, TryLaterError | OvertakenError)
    assert faults.count("PutItem") == 1


def test_two_writers_do_not_wait_in_step(world, faults):
    waits = set()
    for number in range(5):
        faults.before("PutItem", refusal("ThrottlingException"))
        before = clock.now()
        commit([put(number)])
        waits.add(clock.now() - before)
    assert len(waits) == 5


# --- transactions ---


def test_r12_a_transaction_conflict_is_tried_again(world, faults):
    faults.before("TransactWriteItems", CONFLICT, times=TRIES_MAX - 1)
    commit([put(1), put(2), put(3)])
    assert len(list(RevisionRow.scan())) == 3


def test_r12_a_conflict_without_end_is_contention_and_nothing_else(world, faults):
    faults.before("TransactWriteItems", CONFLICT, times=99)
    with pytest.raises(ContentionError):
        commit([put(1), put(2), put(3)])


def test_throttling_inside_a_transaction_is_tried_again(world, faults):
    reasons = ["None", "ThrottlingError"]
    faults.before("TransactWriteItems", refusal("TransactionCanceledException", reasons=reasons), times=2)
    commit([put(1), put(2)])
    assert faults.count("TransactWriteItems") == 3


def test_a_transaction_in_progress_is_tried_again(world, faults):
    faults.before("TransactWriteItems", refusal("TransactionInProgressException"))
    commit([put(1), put(2)])
    assert len(list(RevisionRow.scan())) == 2


def test_a_failed_condition_is_final_even_beside_a_conflict(world, faults):
    reasons = ["ConditionalCheckFailed", "TransactionConflict"]
    faults.before("TransactWriteItems", refusal("TransactionCanceledException", reasons=reasons))
    with pytest.raises(ConditionFailedError) as caught:
        commit([put(1, "first"), put(2, "second")])
    assert caught.value.purposes == {"first"}
    assert faults.count("TransactWriteItems") == 1


def test_a_transaction_that_can_never_succeed_is_not_tried_again(world, faults):
    reasons = ["ValidationError", "None"]
    faults.before("TransactWriteItems", refusal("TransactionCanceledException", reasons=reasons))
    with pytest.raises(Exception, match="ValidationError"):
        commit([put(1), put(2)])
    assert faults.count("TransactWriteItems") == 1


def check(number, purpose):
    row = revision(number)
    absent = RevisionRow.instance_key.does_not_exist()
    return Check(purpose, RevisionRow, (row.instance_key, row.row), absent)


# PynamoDB sends checks, deletes, puts and updates in this order, whatever order they were given in.


def test_reasons_are_mapped_to_purposes_in_the_order_that_is_sent(world):
    commit([put(1), put(2), put(3)])
    exists, absent = RevisionRow.instance_key.exists(), RevisionRow.instance_key.does_not_exist()
    good = update("good update", revision(1), exists)
    bad = update("bad update", revision(2), absent)
    writes = [bad, put(4, "good put"), good, put(3, "bad put")]
    with pytest.raises(ConditionFailedError) as caught:
        commit(writes)
    assert caught.value.purposes == {"bad update", "bad put"}
    assert len(list(RevisionRow.scan())) == 3


@pytest.mark.parametrize("failing", ["put a", "put b", "update a", "update b"])
def test_each_write_of_a_mixed_transaction_is_told_by_its_own_purpose(world, failing):
    commit([put(1), put(2), put(3)])
    exists, absent = RevisionRow.instance_key.exists(), RevisionRow.instance_key.does_not_exist()
    writes = [
        update("update a", revision(1), absent if failing == "update a" else exists),
        put(3 if failing == "put a" else 11, "put a"),
        update("update b", revision(2), absent if failing == "update b" else exists),
        put(3 if failing == "put b" else 12, "put b"),
    ]
    before = world.everything()
    with pytest.raises(ConditionFailedError) as caught:
        commit(writes)
    assert caught.value.purposes == {failing}
    assert world.everything() == before


def test_the_sent_order_is_that_of_the_library(world, faults):
    exists = RevisionRow.instance_key.exists()
    commit([put(1)])
    writes = [update("u", revision(1), exists), put(2, "p"), put(3, "q"), check(9, "c")]
    faults.sent.clear()
    commit(writes)
    [(_, body)] = faults.sent
    sent = [next(iter(each)) for each in body["TransactItems"]]
    assert sent == ["ConditionCheck", "Put", "Put", "Update"]
    assert [each.purpose for each in in_sent_order(writes)] == ["c", "p", "q", "u"]


def test_a_check_that_fails_is_told_by_its_purpose_and_nothing_is_written(world):
    commit([put(1)])
    before = world.everything()
    with pytest.raises(ConditionFailedError) as caught:
        commit([put(2, "p"), check(1, "c")])
    assert caught.value.purposes == {"c"}
    assert world.everything() == before


def test_a_check_alone_is_a_mistake():
    with pytest.raises(TypeError, match="writes nothing"):
        commit([check(1, "c")])


# --- outcomes that are not known ---


def test_a_step_whose_answer_was_lost_is_known_by_its_nonce(world, faults):
    world.publish(stepping)
    instance_id = world.dispatch("stepping")
    plan = faults.after("PutItem", no_answer(), match="revision#")
    world.run(instance_id)
    assert plan.struck == 1
    assert world.show(instance_id)["status"] == "completed"
    assert [name for name, _, _ in effects] == ["a", "b"]


def test_a_transaction_whose_answer_was_lost_is_known_by_its_nonce(world, faults):
    world.publish(dispatching, child)
    instance_id = world.dispatch("dispatching")
    plan = faults.after("TransactWriteItems", no_answer(), match="dispatching", skip=0)
    world.messages.clear()
    world.run(instance_id)
    world.settle()
    assert plan.struck <= 1
    assert world.show(instance_id)["status"] == "completed"
    assert [name for name, _, _ in effects] == ["a"]


def test_an_ending_whose_answer_was_lost_is_known_by_its_nonce(world, faults):
    world.publish(stepping)
    instance_id = world.dispatch("stepping")
    plan = faults.after("TransactWriteItems", no_answer(), match="revision#")
    world.run(instance_id)
    assert plan.struck == 1
    assert world.show(instance_id)["status"] == "completed"
    assert len(world.revisions(instance_id)) == 2


def test_a_lost_answer_to_another_writers_row_is_no_success(world, faults):
    """The row at the position is there, but its nonce is another's."""
    world.publish(stepping)
    instance_id = world.dispatch("stepping")
    stolen = revision(1, key=f"default#{instance_id}")

    def overtake(context, value):
        stolen.save()
        return value

    behaviours["a"] = overtake
    world.run(instance_id)
    assert [row.nonce for row in world.revisions(instance_id)] == [stolen.nonce]
    assert len(world.messages) > 0  # it comes again, and reloads


def test_an_admission_whose_answer_was_lost_runs_its_child_at_once(world, faults):
    world.publish(dispatching, child)
    parent_id = world.dispatch("dispatching")
    world.run(parent_id)
    plan = faults.after("TransactWriteItems", no_answer(), match='"command":"start"')
    world.handle_item(world.item("start"))
    child_head = next(head for head in world.heads() if head.definition_id == "child")
    assert plan.struck <= 1
    assert child_head.status == "completed"


def test_a_commit_that_cannot_be_made_now_leaves_the_message_to_come_again(world, faults):
    world.publish(stepping)
    instance_id = world.dispatch("stepping")
    faults.before("PutItem", refusal("ThrottlingException"), times=TRIES_MAX, match="revision#")
    with pytest.raises(TryLaterError):
        world.run(instance_id)
    assert world.revisions(instance_id) == []
    world.clock.at += 200
    world.settle()
    assert world.show(instance_id)["status"] == "completed"


def test_c29_a_failed_commit_publishes_nothing_and_clears_nothing(world, faults):
    world.publish(dispatching, child)
    instance_id = world.dispatch("dispatching")
    before = world.everything()["OutboxTable"]
    faults.before("TransactWriteItems", refusal("ValidationException"), match="revision#")
    with pytest.raises(Exception, match="ValidationException"):
        world.run(instance_id)
    assert world.everything()["OutboxTable"] == before == []
    assert world.incidents() == []
    assert HeadRow.get(f"default#{instance_id}", "head").lease_token  # still the dead worker's


def test_r05_every_effect_of_a_burst_is_in_the_commit_that_decided_it(world, faults):
    world.publish(dispatching, child)
    world.run(world.dispatch("dispatching"))
    stored = {row.item_id for row in ItemRow.scan()}
    in_transactions = {
        put["Item"]["item_id"]["S"]
        for name, body in faults.sent
        if name == "TransactWriteItems" and any("revision#" in str(each) for each in body["TransactItems"])
        for each in body["TransactItems"]
        if (put := each.get("Put")) and "item_id" in put["Item"] and "command" in put["Item"]
    }
    assert stored == in_transactions != set()
