"""Activations: one live instance where a definition wants one, whoever starts it, and whoever dies."""

import json

import pytest

from aftercommit import (
    Delay,
    DispatchWorkflow,
    Event,
    Sequence,
    Step,
    Timer,
    Workflow,
    activations,
    clock,
    var,
)
from aftercommit.cancel import cancel
from aftercommit.client import StartRequest, execute
from aftercommit.definitions import find_owner_and_version, load_definition
from aftercommit.delete import delete
from aftercommit.errors import (
    ActivationRefusedError,
    ConditionFailedError,
    ContentionError,
    KeyReusedError,
)
from aftercommit.instances import Birth, birth_writes, lease
from aftercommit.tables import ActivationRow
from tests.integration.faults import Crash, no_answer
from tests.integration.waits import send, stimuli
from tests.integration.world import effects

one = Workflow("one", activation="singleton", root=Sequence(Event("go"), Step("act", name="went")))
each = Workflow("each", activation="correlation", root=Event("go"))
parent = Workflow(
    "parent",
    root=DispatchWorkflow("one", wait=True, result="x", on={"DispatchFailed": Step("act", name="told")}),
    output=var.x,
)
leaving = Workflow("leaving", root=DispatchWorkflow("one"))
beginning = Workflow(
    "beginning", activation="singleton", root=Sequence(Event("begin", starts=True), Event("end"))
)


@pytest.fixture
def w(world):
    world.publish(one, each, parent, leaving, beginning)
    return world


def rows():
    return list(ActivationRow.scan(ActivationRow.row == "activation"))


def holders():
    return [row.holder for row in rows()]


def refused(world, workflow="one", **more):
    with pytest.raises(ActivationRefusedError) as caught:
        world.dispatch(workflow, **more)
    return caught.value.holder


def ended_with_its_row(world, faults, workflow="one", **more):
    """Return an instance whose worker died between its ending and the removal of its row."""
    first = world.dispatch(workflow, **more)
    faults.before("DeleteItem", Crash(), match="activation#")
    with pytest.raises(Crash):
        cancel("default", first, "enough")
    assert (world.head(first).status, first in holders()) == ("cancelled", True)
    return first


def writes_of(instance_id, workflow="one"):
    owner, version = find_owner_and_version("default", workflow)
    birth = Birth("default", instance_id, owner, load_definition(owner, workflow, version), {})
    return [*birth_writes(birth, clock.now())]


# --- one live instance ---


def test_a_second_start_is_refused_naming_the_holder_and_writes_nothing(w):
    first = w.dispatch("one")
    before = w.everything()
    assert refused(w) == first
    assert w.everything() == before
    assert w.head(first).activation_key == rows()[0].instance_key


def test_an_execution_is_refused_like_a_dispatch(w):
    first = execute(StartRequest("default", "one", {}), deadline=clock.now() + 25)
    with pytest.raises(ActivationRefusedError) as caught:
        execute(StartRequest("default", "one", {}), deadline=clock.now() + 25)
    assert caught.value.holder == first


def test_the_next_start_is_let_in_once_the_holder_has_ended(w):
    first = w.dispatch("one")
    w.run(first)
    send("go")
    w.settle(seconds=5)
    assert (w.head(first).status, rows()) == ("completed", [])
    second = w.dispatch("one")
    assert holders() == [second]


def test_every_ending_removes_the_row(w):
    w.publish(Workflow("short", activation="singleton", root=Step("act", name="x")))
    w.publish(Workflow("faulty", activation="singleton", root=Delay("never")))
    for workflow in ("short", "faulty"):
        w.run(w.dispatch(workflow))
    cancel("default", w.dispatch("one"), "enough")
    assert rows() == []


def test_a_suspended_and_a_leased_instance_hold_what_they_hold(w):
    first = w.dispatch("one")
    w.run(first)
    assert (w.head(first).status, refused(w)) == ("suspended", first)
    lease("default", first, clock.now() + 125, waiting=True)
    assert refused(w) == first


def test_what_may_always_start_has_no_row(w):
    w.dispatch("parent")
    instance_id = w.dispatch("parent")
    assert (rows(), w.head(instance_id).activation_key) == ([], None)


# --- what is apart ---


def test_correlation_ids_are_apart_and_a_start_without_one_is_not_limited(w):
    first = w.dispatch("each", correlation_id="a")
    w.dispatch("each", correlation_id="b")
    for _ in range(2):
        w.dispatch("each")
    assert refused(w, "each", correlation_id="a") == first
    assert len(rows()) == 2


def test_a_singleton_has_one_whatever_the_correlation_id(w):
    first = w.dispatch("one", correlation_id="a")
    assert refused(w, correlation_id="b") == first


def test_i11_tenants_are_apart(w):
    w.dispatch("one", tenant="a")
    w.dispatch("one", tenant="b")
    assert len(rows()) == 2
    refused(w, tenant="a")


def test_definitions_are_apart(w):
    w.publish(Workflow("other", activation="singleton", root=Event("go")))
    w.dispatch("one")
    w.dispatch("other")
    assert len(rows()) == 2


def test_a_new_version_waits_for_the_end_of_what_runs_on_the_old_one(w):
    first = w.dispatch("one")
    w.publish(Workflow("one", version=2, activation="singleton", root=Event("go")))
    assert refused(w) == first


# --- the known start comes first ---


def test_the_same_request_again_is_answered_with_the_holder(w):
    first = w.dispatch("one", idempotency_key="k")
    assert w.dispatch("one", idempotency_key="k") == first
    named = w.dispatch("each", correlation_id="a", instance_id="mine")
    assert w.dispatch("each", correlation_id="a", instance_id="mine") == named


def test_the_same_request_again_is_answered_with_its_own_even_while_another_holds(w):
    first = w.dispatch("one", idempotency_key="k")
    cancel("default", first, "enough")
    second = w.dispatch("one")
    assert w.dispatch("one", idempotency_key="k") == first
    assert holders() == [second]


def test_another_body_under_the_holders_key_is_told_as_that(w):
    w.dispatch("one", idempotency_key="k")
    with pytest.raises(KeyReusedError):
        w.dispatch("one", idempotency_key="k", correlation_id="other")


def test_a_start_whose_answer_was_lost_knows_itself(w, faults):
    plan = faults.after("TransactWriteItems", no_answer(), match="activation#")
    first = w.dispatch("one")
    assert (plan.struck, holders()) == (1, [first])


# --- takeover ---


def test_the_row_of_one_that_ended_is_taken_over(w, faults):
    ended_with_its_row(w, faults)
    second = w.dispatch("one")
    assert holders() == [second]
    assert refused(w) == second


def test_the_row_of_one_that_is_hidden_or_gone_is_taken_over(w, faults):
    hidden = ended_with_its_row(w, faults)
    delete("default", hidden)
    second = w.dispatch("one")
    assert holders() == [second]
    cancel("default", second, "enough")
    gone = ActivationRow(w.head(hidden).activation_key, "activation", holder="nobody")
    gone.save()
    assert w.dispatch("one") == holders()[0]


def test_an_id_that_begins_again_takes_over_from_its_earlier_life(w, faults):
    first = ended_with_its_row(w, faults, instance_id="again")
    w.head(first).delete()  # as a day after it was deleted, had its row stayed
    assert w.dispatch("one", instance_id="again") == "again"
    assert (w.head("again").status, holders()) == ("pending", ["again"])


def test_removing_an_instance_removes_the_row_that_its_ending_left(w, faults):
    first = ended_with_its_row(w, faults)
    delete("default", first)
    w.settle(seconds=2 * 86_400)
    assert (rows(), w.heads()) == ([], [])


def test_of_two_that_take_over_at_once_one_wins_and_the_other_is_refused(w, faults, monkeypatch):
    ended_with_its_row(w, faults)
    real, raced = activations.commit, []

    def commit(writes):
        # Right before the takeover's commit another one takes over.
        if any(each.purpose == "holder" for each in writes) and not raced:
            raced.append(None)
            raced[0] = w.dispatch("one")
        return real(writes)

    monkeypatch.setattr(activations, "commit", commit)
    assert refused(w) == raced[0]
    assert holders() == raced


def test_a_takeover_is_refused_by_a_holder_that_has_come_to_life_since_it_was_read(w, faults):
    first = ended_with_its_row(w, faults)
    writes = activations._take_over(writes_of("late"))
    w.set_raw(
        ActivationRow, {"instance_key": w.head(first).instance_key, "row": "head"}, status={"S": "running"}
    )
    with pytest.raises(ConditionFailedError) as caught:
        activations.commit(writes)
    assert caught.value.purposes == {"holder"}
    with pytest.raises(ActivationRefusedError):
        activations.commit_birth(writes)


def test_a_row_that_was_removed_between_two_looks_is_put_anew(w, monkeypatch):
    first = w.dispatch("one")
    real = activations.commit

    def commit(writes):
        try:
            return real(writes)
        except ConditionFailedError:
            if w.head(first).status == "pending":
                cancel("default", first, "enough")
            raise

    monkeypatch.setattr(activations, "commit", commit)
    second = w.dispatch("one")
    assert holders() == [second]


def test_a_start_that_is_overtaken_again_and_again_is_asked_to_come_later(w, monkeypatch):
    tries = []

    def commit(writes):
        tries.append(writes)
        raise ConditionFailedError(frozenset({"activation"}))

    monkeypatch.setattr(activations, "commit", commit)
    with pytest.raises(ContentionError):
        activations.commit_birth(writes_of("late"))
    assert len(tries) == 10


def test_a_late_removal_leaves_the_row_of_the_next_holder(w, faults):
    first = ended_with_its_row(w, faults)
    second = w.dispatch("one")
    activations.release_activation(w.head(first))
    assert holders() == [second]
    activations.release_activation(w.head(second))
    assert rows() == []


def test_a_removal_that_fails_does_not_fail_the_ending(w, faults):
    first = w.dispatch("one")
    faults.before("DeleteItem", no_answer(), match="activation#")
    assert cancel("default", first, "enough")
    assert holders() == [first]


# --- dispatches and triggers ---


def test_a_dispatch_that_is_refused_tells_the_waiting_parent_at_once(w):
    first = w.dispatch("one")
    parent_id = w.dispatch("parent")
    w.settle(seconds=5)
    [item] = w.items("start")
    assert (item.status, int(item.attempts)) == ("failed", 0)
    error = w.show(parent_id)["output"]["error"]
    assert error["type"] == "ActivationRefusedError"
    assert first in error["message"]
    assert [name for name, _, _ in effects] == ["told"]
    assert w.incidents() == []


def test_a_dispatch_that_is_refused_and_not_awaited_is_an_incident(w):
    w.dispatch("one")
    w.dispatch("leaving")
    w.settle(seconds=5)
    [incident] = w.incidents()
    assert (incident.error_type, w.item("start").status) == ("ActivationRefusedError", "failed")


def test_a_dispatch_is_let_in_when_nothing_is_live(w):
    w.dispatch("leaving")
    w.settle(seconds=5)
    [item] = w.items("start")
    assert (item.status, holders()) == ("done", [item.instance_id])


def test_a_second_delivery_of_the_holders_own_dispatch_converges(w):
    w.run(w.dispatch("leaving"))
    [item] = w.items("start")
    w.handle_item(item)
    w.set_raw(type(item), {"owner_key": item.owner_key, "item_id": item.item_id}, status={"S": "undone"})
    w.handle_item(item)
    assert (w.item("start").status, w.incidents()) == ("done", [])


def test_a_start_by_a_trigger_that_is_refused_is_done_without_an_incident(w, log_lines):
    for _ in range(2):
        send("begin")
        w.settle(seconds=5)
    starts = w.items("start")
    assert [item.status for item in starts] == ["done", "done"]
    assert [item.status for item in stimuli(w)] == ["done", "done"]
    [head] = [head for head in w.heads() if head.definition_id == "beginning"]
    assert (holders(), w.incidents()) == ([head.instance_id], [])
    [told] = [line for line in map(json.loads, log_lines) if line["message"] == "start refused"]
    assert head.instance_id in told["reason"]


def test_a_time_that_meets_a_live_instance_is_passed_over_and_the_next_is_armed(w):
    hourly = Sequence(Timer(3_600, starts=True), Event("end"))
    w.publish(Workflow("hourly", activation="singleton", root=hourly))
    w.settle(seconds=2.5 * 3_600)
    [head] = [head for head in w.heads() if head.definition_id == "hourly"]
    assert (head.status, w.incidents()) == ("suspended", [])
    [armed] = w.items("start")
    assert clock.from_text(armed.deliver_at) > clock.now()
    cancel("default", head.instance_id, "enough")
    w.settle(seconds=3_600)
    assert len([head for head in w.heads() if head.definition_id == "hourly"]) == 2
