"""Starts by the clock: once per time, whatever dies, as the published version says."""

import pytest

from aftercommit import Cron, Fork, Sequence, StartAt, Step, Timer, Workflow, clock, var
from aftercommit.attempts import give_up_if_undone, refuse
from aftercommit.definition import read_definition
from aftercommit.definitions import load_definition, store
from aftercommit.errors import ConditionFailedError, DefinitionRefusedError
from aftercommit.model import Failure
from aftercommit.occurrences import next_times
from aftercommit.publish import publish, publish_draft, put_draft, retract
from aftercommit.sweep import sweep
from aftercommit.tables import SHARED_TENANT, DefinitionRow, ItemRow
from tests.integration.faults import Crash
from tests.integration.world import STARTED_AT


def ticking(version=1, start=None, name="act"):
    return Workflow(
        "ticking",
        version=version,
        root=Sequence(start or Timer(60, starts=True, result="due"), Step(name, name="tick")),
        output={"at": var.due.at},
    )


def times(world, name="ticking"):
    """Return how long after the beginning each instance was due and began, oldest first."""
    heads = [head for head in world.heads() if head.definition_id == name]
    due = [world.show(head.instance_id, head.tenant)["output"]["at"] for head in heads]
    return [
        (clock.from_text(each) - STARTED_AT, clock.from_text(head.created_at) - STARTED_AT)
        for each, head in zip(due, heads, strict=True)
    ]


def whole(world, name="ticking"):
    return [round(due) for due, _ in times(world, name)]


def armed():
    return [
        clock.from_text(item.deliver_at) - STARTED_AT for item in ItemRow.scan() if item.status == "undone"
    ]


def pass_time(world, seconds):
    """Let time pass step by step, as long as things happen by themselves."""
    until = clock.now() + seconds
    while clock.now() < until:
        world.settle(seconds=min(30, until - clock.now()))
        world.clock.at = min(until, max(clock.now(), world.clock.at + 1))


def test_a_timer_starts_its_workflow_at_its_interval_never_early_and_within_a_second(world):
    world.publish(ticking())
    pass_time(world, 200)
    assert whole(world) == [60, 120, 180]
    assert all(due <= begun < due + 1 for due, begun in times(world))
    assert [head.status for head in world.heads()] == ["completed"] * 3
    assert armed() == [240]


def test_c37_a_cron_start_completes_at_once_and_comes_at_each_time_of_its_zone(world):
    world.publish(ticking(start=Cron("*/2 * * * *", time_zone="Asia/Kolkata", starts=True, result="due")))
    pass_time(world, 500)
    instants = [STARTED_AT + due for due, _ in times(world)]
    assert len(instants) == 4
    assert all(instant % 120 == 0 for instant in instants)


def test_c37_a_start_time_in_the_past_fires_once_and_never_again(world):
    past = StartAt(clock.to_text(STARTED_AT - 1_000), starts=True, result="due")
    world.publish(ticking(start=past))
    world.settle()
    assert whole(world) == [-1000]
    world.publish(ticking(start=past))
    world.publish(ticking(2, start=past))
    world.settle()
    retract(SHARED_TENANT, "ticking")
    world.publish(ticking(3, start=past))
    world.settle()
    assert whole(world) == [-1000]
    assert armed() == []


def test_times_missed_while_the_stack_was_down_collapse_into_one_that_comes_at_once(world):
    world.publish(ticking())
    world.clock.at += 86_400.5
    sweep()
    world.settle(seconds=5)
    assert whole(world) == [60]
    assert armed() == [86_460]


def test_a_time_delivered_twice_starts_one_instance_and_arms_one_next(world):
    world.publish(ticking())
    [item] = ItemRow.scan()
    world.clock.at += 61
    world.handle_item(item)
    world.handle_item(item)
    assert whole(world) == [60]
    assert armed() == [120]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_worker_that_dies_at_a_start_loses_and_doubles_none(world, faults, moment):
    world.publish(ticking())
    [item] = ItemRow.scan()
    world.clock.at += 61
    getattr(faults, moment)("TransactWriteItems", Crash())
    with pytest.raises(Crash):
        world.handle_item(item)
    pass_time(world, 360)
    assert whole(world)[:2] == [60, 120]
    assert len(set(whole(world))) == len(whole(world))
    assert len(armed()) == 1


def test_a_new_version_takes_over_the_next_time_even_one_that_is_due_just_now(world):
    world.publish(ticking())
    world.clock.at += 60
    world.publish(ticking(2))
    pass_time(world, 70)
    assert whole(world) == [60, 120]
    assert {int(head.version) for head in world.heads()} == {2}


def test_a_worker_that_still_holds_the_version_before_starts_nothing(world, faults):
    world.publish(ticking())
    [item] = ItemRow.scan()
    world.clock.at += 60
    store(SHARED_TENANT, ticking(2).definition)
    faults.meanwhile("TransactWriteItems", lambda: publish(SHARED_TENANT, ticking(2).definition))
    world.handle_item(item)
    assert world.heads() == []
    [taken_over] = ItemRow.scan()
    assert (taken_over.item_id, int(taken_over.version)) == (item.item_id, 2)
    world.settle(seconds=20)
    assert [int(head.version) for head in world.heads()] == [2]


def test_a_publisher_that_meets_a_time_just_firing_takes_over_the_one_after(world, faults):
    world.publish(ticking())
    [item] = ItemRow.scan()
    world.clock.at += 60
    store(SHARED_TENANT, ticking(2).definition)
    faults.meanwhile("TransactWriteItems", lambda: world.handle_item(item))
    publish(SHARED_TENANT, ticking(2).definition)
    assert [int(head.version) for head in world.heads()] == [1]
    [following] = [row for row in ItemRow.scan() if row.status == "undone"]
    assert (int(following.version), armed()) == (2, [120])


def test_another_interval_begins_anew_and_a_start_point_that_is_gone_stops(world):
    world.publish(ticking())
    world.clock.at += 30
    world.publish(ticking(2, Timer(100, starts=True, result="due")))
    assert armed() == [130]
    world.publish(ticking(3, Sequence()))
    assert armed() == []


def test_what_is_retracted_starts_no_more_and_begins_anew_when_published_again(world):
    put_draft("acme", "ticking", ticking().data)
    publish_draft("acme", "ticking")
    world.clock.at += 30
    retract("acme", "ticking")
    pass_time(world, 100)
    assert (world.heads(), armed()) == ([], [])
    publish_draft("acme", "ticking")
    assert armed() == [pytest.approx(clock.now() + 60 - STARTED_AT, abs=0.01)]
    pass_time(world, 61)
    assert [(head.tenant, int(head.version)) for head in world.heads()] == [("acme", 1)]


def test_a_workflow_of_the_deploy_that_a_tenant_hides_does_not_start_for_it(world):
    world.publish(ticking())
    world.publish(Workflow("ticking", root=Sequence()), owner="default")
    pass_time(world, 130)
    assert world.heads() == []
    retract("default", "ticking")
    pass_time(world, 60)
    assert whole(world) == [180]


def test_a_time_whose_start_is_given_up_is_seen_and_ends_no_schedule(world):
    world.publish(ticking())
    key = {"definition_key": "*#ticking", "row": "version#000001"}
    world.set_raw(DefinitionRow, key, data={"S": "{"})
    load_definition.cache_clear()
    pass_time(world, 100)
    [incident] = world.incidents()
    assert incident.error_type == "MalformedRowError"
    failed = [row for row in ItemRow.scan() if row.status == "failed"]
    assert [bool(row.ttl) for row in failed] == [True]
    assert armed() == [120]


def test_each_schedule_of_a_workflow_has_one_next_time_that_is_shown(world):
    both = Fork(Timer(60, starts=True), Sequence(Cron("0 0 1 1 *", starts=True), Timer(5)))
    world.publish(Workflow("w", root=both))
    assert next_times(SHARED_TENANT, "w") == {
        "root.branches[0]": clock.to_text(STARTED_AT + 60),
        "root.branches[1].activities[0]": "2027-01-01T00:00:00.000Z",
    }


@pytest.mark.parametrize(
    ("start", "path", "told"),
    [
        ({"type": "Cron", "expression": "61 * * * *"}, "root.expression", "no cron expression: Bad minute"),
        ({"type": "Cron", "expression": "0 0 31 2 *"}, "root.expression", "no cron expression"),
        (
            {"type": "Cron", "expression": "* * * * *", "time_zone": "Mars"},
            "root.time_zone",
            "unknown time zone",
        ),
        ({"type": "Timer", "seconds": 0, "starts": True}, "root.seconds", "a whole number from 1"),
        ({"type": "Timer", "seconds": "{% 3 %}", "starts": True}, "root.seconds", "a whole number from 1"),
        ({"type": "StartAt", "at": "tomorrow", "starts": True}, "root.at", "no ISO 8601"),
    ],
)
def test_c31_a_schedule_that_makes_no_sense_is_refused_with_its_path(start, path, told):
    with pytest.raises(DefinitionRefusedError) as caught:
        read_definition({"id": "w", "root": start})
    [(found, message)] = caught.value.faults
    assert found == path
    assert told in message


def test_a_start_point_of_a_workflow_that_requires_an_input_is_refused_naming_it(world):
    asking = Workflow("w", inputs={"x": str}, root=Timer(60, starts=True))
    with pytest.raises(DefinitionRefusedError) as caught:
        world.publish(asking)
    assert caught.value.faults[0][0] == "input.x"


def test_cron_and_timer_wait_where_they_are_no_start_points(world):
    waiting = Workflow(
        "waits",
        root=Sequence(Timer(30), Cron("* * * * *", result="due"), Step("act", name="then")),
        output={"at": var.due.at},
    )
    world.publish(waiting)
    instance_id = world.dispatch("waits")
    world.settle()
    shown = world.show(instance_id)
    minute = clock.from_text(shown["output"]["at"])
    assert minute % 60 == 0
    assert 0 <= clock.from_text(shown["ended_at"]) - minute < 1


def test_a_worker_that_still_holds_the_version_before_cannot_give_up_what_is_taken_over(world):
    world.publish(ticking())
    [item] = ItemRow.scan()
    world.publish(ticking(2))
    assert not give_up_if_undone(item, Failure("OSError", "gone"))
    with pytest.raises(ConditionFailedError):
        refuse(item, Failure("OSError", "gone"))
    pass_time(world, 130)
    assert [int(head.version) for head in world.heads()] == [2, 2]
