"""Ended instances go by themselves when their days are over, and only if nothing of them is still needed."""

import json
from math import inf

import pytest

from aftercommit import (
    Delay,
    Event,
    Fault,
    Fork,
    HttpEndpoint,
    RunTask,
    Sequence,
    Step,
    Workflow,
    clock,
)
from aftercommit.cancel import cancel
from aftercommit.delete import KEPT_SECONDS, delete, delete_if_over, remove_rows
from aftercommit.errors import NotFoundError, TryLaterError
from aftercommit.instances import lease
from aftercommit.limits import REMOVAL_SHARDS
from aftercommit.operations import call_back
from aftercommit.sweep import _claim_instance, sweep
from aftercommit.tables import HeadRow
from tests.integration import bulks
from tests.integration.ended import (
    DAY,
    DAYS,
    WORKFLOWS,
    end,
    in_days,
    is_shown,
    pass_days,
    rows,
)
from tests.integration.faults import Crash
from tests.integration.world import behaviours, raw_rows


@pytest.fixture
def w(world, set_environment):
    set_environment(ENDED_INSTANCE_DAYS=str(DAYS))
    world.publish(*WORKFLOWS)
    return world


@pytest.fixture
def ended(w):
    """An instance that has completed just now."""
    return end(w)


# --- the ending: when an instance is to be looked at again ---


def complete(world):
    return end(world)


def fault(world):
    return end(world, "faulty")


def cancel_pending(world):
    return cancelled(world.dispatch("waiter"))


def cancel_suspended(world):
    return cancelled(end(world, "waiter"))


def cancel_leased(world):
    instance_id = world.dispatch("waiter")
    lease("default", instance_id, clock.now() + 125, waiting=False)
    return cancelled(instance_id)


def cancelled(instance_id):
    assert cancel("default", instance_id, "x")
    return instance_id


ENDINGS = [complete, fault, cancel_pending, cancel_suspended, cancel_leased]


@pytest.mark.parametrize("way", ENDINGS)
def test_whatever_ends_an_instance_says_when_its_days_are_over(w, way):
    head = w.head(way(w))
    assert head.due_at == in_days(DAYS)
    assert head.due_shard in REMOVAL_SHARDS


@pytest.mark.parametrize("way", ENDINGS)
def test_by_default_an_ended_instance_is_in_no_index_of_the_sweep(w, set_environment, way):
    set_environment(ENDED_INSTANCE_DAYS="0")
    assert w.head(way(w)).due_at is None


def test_what_stops_for_want_of_time_is_due_soon_as_ever(w):
    w.publish(Workflow("two", root=Sequence(Step("act", name="a"), Step("act", name="b"))))
    behaviours["a"] = lambda *_: setattr(w.clock, "at", w.clock.at + 119)
    instance_id = w.dispatch("two")
    w.run(instance_id)
    head = w.head(instance_id)
    assert (head.status, head.due_at) == ("running", clock.to_text(clock.now() + 10))
    assert head.due_shard not in REMOVAL_SHARDS


# --- going ---


def test_an_ended_instance_is_hidden_when_its_days_are_over_and_its_rows_go_a_day_later(w, ended):
    stored = len(rows(ended))
    w.clock.at -= 0.001
    pass_days(w, DAYS)
    assert is_shown(w, ended)
    w.clock.at += 0.001
    sweep()
    assert not is_shown(w, ended)
    w.clock.at += KEPT_SECONDS - 0.001
    sweep()
    assert len(rows(ended)) == stored
    w.clock.at += 0.001
    sweep()
    assert rows(ended) == []


def test_it_comes_up_for_its_time_however_its_milliseconds_fall(w):
    for number in range(20):
        w.clock.at += 0.0371 * number
        instance_id = end(w)
        w.clock.at = clock.from_text(w.head(instance_id).due_at)
        sweep()
        assert not is_shown(w, instance_id)


def test_a_deletion_and_a_removal_are_a_line_with_a_reason_and_a_metric(w, ended, log_lines, capsys):
    pass_days(w, DAYS)
    pass_days(w, 1)
    lines = [json.loads(each) for each in log_lines]
    told = {line["message"]: line["reason"] for line in lines if line.get("instance_id") == ended}
    assert told["instance deleted"] == "its 30 days are over"
    assert told["instance removed"].startswith("it was deleted at 20")
    metrics = capsys.readouterr().out
    assert (metrics.count("InstancesDeleted"), metrics.count("InstancesRemoved")) == (2, 2)  # name and value


def test_what_has_ended_makes_no_sweep_look_late(w, ended, capsys):
    pass_days(w, DAYS + 5)
    [line] = [each for each in capsys.readouterr().out.splitlines() if "OldestDueSeconds" in each]
    assert json.loads(line)["OldestDueSeconds"] == [0]


def test_i9_however_many_have_to_go_they_stand_before_nothing_that_has_to_move(w, set_environment):
    set_environment(SWEEP_BATCH="1")
    for _ in range(3):
        end(w)
    w.clock.at += DAYS * DAY
    w.dispatch("step")
    w.messages.clear()
    w.clock.at += 10
    assert sweep() is True  # there are more
    assert len(w.messages) == 1
    sweep()


def test_code_that_knows_no_such_end_never_meets_it(w, ended):
    """After a rollback, the shards that older code sweeps have none of them."""
    until = in_days(10 * DAYS)
    assert not [row for shard in range(2) for row in HeadRow.due.query(shard, HeadRow.due_at <= until)]
    delete("default", ended)
    assert not [row for shard in range(2) for row in HeadRow.due.query(shard, HeadRow.due_at <= until)]


def test_what_older_code_has_deleted_is_removed_from_the_shards_where_it_stands(w, ended):
    delete("default", ended)
    w.set_raw(HeadRow, {"instance_key": f"default#{ended}", "row": "head"}, due_shard={"N": "1"})
    pass_days(w, 1)
    assert rows(ended) == []


KINDS = {
    "a large snapshot": Workflow(
        "kind", inputs={"text": str}, root=Sequence(Step("act", name="x"), Step("act", name="y"))
    ),
    "an incident": Workflow("kind", inputs={"text": str}, root=Fault("no")),
    "an activation": Workflow(
        "kind", inputs={"text": str}, root=Step("act", name="x"), activation="singleton"
    ),
    "a timer": Workflow("kind", inputs={"text": str}, root=Fork(Delay(10**8), Sequence(), wait="any")),
    "a bookmark": Workflow("kind", inputs={"text": str}, root=Fork(Event("go"), Sequence(), wait="any")),
    "a task": Workflow("kind", inputs={"text": str}, root=Fork(RunTask("t"), Sequence(), wait="any")),
}


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_every_kind_go(w, kind):
    before = len(raw_rows("InstancesTable"))
    w.publish(KINDS[kind])
    instance_id = end(w, "kind", input={"text": "x" * 5000})
    assert w.head(instance_id).ended_at
    pass_days(w, DAYS)
    pass_days(w, 1)
    assert rows(instance_id) == []
    assert len(raw_rows("InstancesTable")) == before
    assert raw_rows("OutboxTable") == []


def test_the_rows_of_a_bulk_dispatch_go(w):
    w.publish(bulks.child, bulks.waiting)
    instance_id = w.dispatch("parent")
    w.settle(seconds=600)
    assert w.head(instance_id).status == "completed"
    w.clock.at += DAYS * DAY
    sweep()
    pass_days(w, 1)
    assert w.heads() == []
    assert rows(instance_id) == []


def test_a_callback_that_was_called_goes_with_its_instance_and_is_good_for_nothing_then(w):
    given = []
    behaviours["give"] = lambda context, _: given.append(context.callback_path("x"))
    w.publish(Workflow("called", root=Sequence(Step("act", name="give"), HttpEndpoint(name="x"))))
    instance_id = end(w, "called")
    token = given[0].removeprefix("/callbacks/")
    call_back("default", token, {"method": "POST"})
    w.settle(seconds=60)
    assert w.head(instance_id).status == "completed"
    pass_days(w, DAYS)
    pass_days(w, 1)
    assert [row for row in rows(instance_id) if "stimulus" not in str(row.get("command"))] == []
    with pytest.raises(NotFoundError):
        call_back("default", token, {"method": "POST"})


def test_an_idempotency_key_meets_its_instance_as_long_as_that_is_there_and_begins_anew_then(w):
    def ask():
        return w.dispatch("step", idempotency_key="k")

    instance_id = ask()
    w.run(instance_id)
    w.clock.at += DAYS * DAY - 1
    assert ask() == instance_id
    assert w.head(instance_id).status == "completed"
    w.clock.at += 1
    sweep()
    assert ask() == instance_id
    assert not is_shown(w, instance_id)
    pass_days(w, 1)
    assert ask() == instance_id
    assert w.head(instance_id).status == "pending"


def test_a_start_that_meets_an_instance_just_as_its_head_goes_is_to_be_asked_for_again(w, faults):
    w.dispatch("step", instance_id="mine")
    faults.right_after("PutItem", lambda: HeadRow("default#mine", "head").delete())
    with pytest.raises(TryLaterError, match="ask again"):
        w.dispatch("step", instance_id="mine")
    w.dispatch("step", instance_id="mine")
    assert w.head("mine").status == "pending"


# --- conditions ---


def test_of_two_sweeps_that_read_the_same_head_one_deletes_it(w, ended):
    w.clock.at += DAYS * DAY
    stale = w.head(ended)
    delete_if_over(stale, inf)
    assert w.head(ended).deleted_at
    before = w.everything()
    w.clock.at += 5
    delete_if_over(stale, inf)
    assert w.everything() == before


def test_of_a_sweep_and_a_caller_that_delete_at_once_one_wins(w):
    first, second = end(w), end(w)
    w.clock.at += DAYS * DAY
    stale = w.head(first)
    delete("default", first)
    before = w.everything()
    w.clock.at += 5
    delete_if_over(stale, inf)
    assert w.everything() == before
    delete_if_over(w.head(second), inf)
    before = w.everything()
    with pytest.raises(NotFoundError):
        delete("default", second)
    assert w.everything() == before


def test_of_two_sweeps_that_read_the_same_head_one_keeps_it(w, set_environment, ended):
    w.clock.at += DAYS * DAY
    stale = w.head(ended)
    set_environment(ENDED_INSTANCE_DAYS="60")
    delete_if_over(stale, inf)
    before = w.everything()
    set_environment(ENDED_INSTANCE_DAYS="0")
    delete_if_over(stale, inf)
    assert w.everything() == before
    assert w.head(ended).due_at == in_days(30)


def test_one_that_was_removed_since_the_index_was_read_is_left(w, ended, log_lines):
    stale = w.head(ended)
    pass_days(w, DAYS)
    pass_days(w, 1)
    assert _claim_instance(stale, inf) is None
    assert not [line for line in log_lines if json.loads(line)["level"] == "WARNING"]


def test_a_removal_that_comes_late_leaves_the_head_of_a_new_life(w):
    instance_id = end(w, instance_id="mine")
    delete("default", instance_id)
    stale = w.head("mine")
    pass_days(w, 1)
    w.dispatch("step", instance_id="mine")
    remove_rows(stale, inf)
    assert w.head("mine").status == "pending"
    w.run("mine")
    assert w.show("mine")["status"] == "completed"


def test_no_other_sweep_removes_what_one_is_still_removing(w, ended, faults):
    delete("default", ended)
    faults.before("BatchWriteItem", Crash())
    with pytest.raises(Crash):
        pass_days(w, 1)
    before = w.everything()
    w.clock.at += 3_599
    sweep()
    assert w.everything() == before
    w.clock.at += 1
    sweep()
    assert rows(ended) == []


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize(
    ("operation", "skip"),
    [
        ("UpdateItem", 0),  # its days are over
        ("UpdateItem", 1),  # the sweep that removes it
        ("BatchWriteItem", 0),  # its items
        ("BatchWriteItem", 1),  # its rows
        ("DeleteItem", 0),  # its head
    ],
)
def test_a_sweep_that_dies_on_the_way_is_finished_by_another(w, faults, moment, operation, skip):
    instance_id = end(w, "told")
    w.settle(seconds=600)
    assert w.head(instance_id).status == "completed"
    plan = getattr(faults, moment)(operation, Crash(), skip=skip)
    for _ in range(3):
        w.clock.at += DAYS * DAY
        try:
            sweep()
        except Crash:
            sweep()
    assert plan.struck == 1
    assert rows(instance_id) == []
