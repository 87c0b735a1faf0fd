"""Every removal and every give-up is a log line with its reason, and a metric."""

import json

import pytest

from aftercommit import DispatchWorkflow, Event, Fault, Fork, Sequence, Step, Timer, Workflow
from aftercommit.cancel import cancel
from aftercommit.delete import KEPT_SECONDS, delete
from aftercommit.errors import ConflictError, NotFoundError
from aftercommit.operations import delete_dead_letter, replay, send_event
from aftercommit.outbox import settle
from aftercommit.publish import publish_draft, put_draft, retract
from aftercommit.settings import settings
from aftercommit.sweep import sweep
from aftercommit.tables import BookmarkRow, HeadRow
from tests.integration.bulks import parent_of
from tests.integration.faults import Crash
from tests.integration.world import behaviours

SECRET = "secret-4711"
child = Workflow("child", root=Step("act", name="child"))
parent = Workflow("parent", root=DispatchWorkflow("child", wait=True))
waiting = Workflow("waiting", root=Event("go"))
ticking = Workflow("ticking", root=Sequence(Timer(60, starts=True)))


@pytest.fixture
def told(world, log_lines, capsys):
    """Return a function that checks what was told since the last time: one line, one metric, a reason."""

    def told(message, metric, reason, *, number=1):
        found = [each for each in map(json.loads, log_lines) if each["message"] == message]
        assert [reason in str(each["reason"]) for each in found] == [True]
        printed = [json.loads(line) for line in capsys.readouterr().out.splitlines() if f'"{metric}"' in line]
        assert [each[metric] for each in printed] == [[number]]
        log_lines.clear()

    return told


def raise_secret(context, value):
    raise LookupError(SECRET)


def send(world, name="go", value=1):
    return send_event("default", name, payload={}, value=value, correlation_id=None, instance_id=None)


@pytest.fixture
def dead_letter(world):
    name = send(world)
    world.settle(settings().stimulus_open_seconds + 120)
    assert world.item("stimulus").status == "failed"
    return name.split(".")


def test_a_dead_letter_that_is_removed(told, dead_letter):
    delete_dead_letter("default", *dead_letter)
    told("dead letter removed", "DeadLettersRemoved", "a caller")


def test_a_dead_letter_that_was_removed_before_is_not_told_again(log_lines, dead_letter):
    delete_dead_letter("default", *dead_letter)
    log_lines.clear()
    with pytest.raises(NotFoundError):
        delete_dead_letter("default", *dead_letter)
    assert log_lines == []


def test_a_dead_letter_that_is_replayed_names_the_new_one(told, log_lines, dead_letter):
    new_id = replay("default", *dead_letter)
    told("dead letter replayed", "DeadLettersReplayed", new_id)
    with pytest.raises(ConflictError):
        replay("default", *dead_letter)
    assert log_lines == []


def test_an_instance_that_is_deleted_and_its_rows_a_day_later(world, told):
    world.publish(child)
    instance_id = world.dispatch("child")
    world.run(instance_id)
    delete("default", instance_id)
    told("instance deleted", "InstancesDeleted", "asked for over the API")
    world.clock.at += KEPT_SECONDS + 1
    sweep()
    told("instance removed", "InstancesRemoved", "deleted at")


def test_an_item_whose_instance_has_ended(world, told):
    world.publish(child, parent)
    instance_id = world.dispatch("parent")
    world.run(instance_id)
    world.handle_item(world.item("start"))
    resume = world.item("resume")
    cancel("default", instance_id, "enough")
    world.handle_item(resume)
    told("item dropped", "ItemsDropped", "is cancelled")
    world.handle_item(resume)  # settled by now: nothing more is told
    assert world.item("resume").status == "done"


def test_an_item_that_was_settled_meanwhile_is_not_told(world, log_lines):
    world.publish(child, parent)
    world.run(world.dispatch("parent"))
    item = world.item("start")
    assert settle(item)
    assert not settle(item)


def test_a_timer_that_stood_against_a_delete(world, told):
    world.publish(Workflow("racing", root=Fork(Event("go"), Timer(3_600), wait="any")))
    instance_id = world.dispatch("racing")
    world.run(instance_id)
    send(world)
    world.settle(60)
    delete("default", instance_id)
    told("item dropped", "ItemsDropped", "is completed")


def test_a_time_of_a_schedule_that_is_not_published_any_more(world, told):
    world.publish(ticking)
    [item] = world.items("start")
    hidden = {"id": "ticking", "root": {"type": "Sequence", "activities": []}}
    put_draft("default", "ticking", hidden)
    publish_draft("default", "ticking")
    world.clock.at += 61
    world.handle_item(item)
    told("item dropped", "ItemsDropped", "not published")


def test_an_instance_that_is_cancelled(world, told):
    world.publish(waiting)
    instance_id = world.dispatch("waiting")
    world.run(instance_id)
    cancel("default", instance_id, "nobody wants it")
    told("instance cancelled", "InstancesCancelled", "nobody wants it")
    assert not cancel("default", instance_id, "again")  # the second one changes nothing, and tells nothing


def test_a_dispatch_that_is_withdrawn(world, told):
    world.publish(child, parent)
    instance_id = world.dispatch("parent")
    world.run(instance_id)
    cancel("default", instance_id, "enough")
    world.handle_item(world.item("cancel"))
    told("dispatches withdrawn", "ItemsWithdrawn", "waits no more")


def test_the_dispatches_of_a_bulk_are_withdrawn_together(world, told):
    world.publish(parent_of(["a", "b", "c"], wait=True))
    instance_id = world.dispatch("parent")
    world.run(instance_id)
    cancel("default", instance_id, "enough")
    world.handle_item(world.item("cancel"))
    told("dispatches withdrawn", "ItemsWithdrawn", "waits no more", number=3)


def test_a_step_and_its_instance_given_up_are_told_without_what_was_in_them(world, told, log_lines):
    behaviours["failing"] = raise_secret
    world.publish(Workflow("failing", root=Step("act", name="failing")))
    world.run(world.dispatch("failing"))
    assert not any(SECRET in line for line in log_lines)
    lines = list(log_lines)
    told("step given up", "StepsGivenUp", "LookupError")
    assert any('"instance faulted"' in line for line in lines)


def test_an_instance_that_faults(world, told):
    world.publish(Workflow("faulting", root=Fault("no stock", code="Stock")))
    world.run(world.dispatch("faulting"))
    told("instance faulted", "InstancesFaulted", "Stock")


def test_a_step_that_keeps_ending_its_workers(world, told):
    def die(context, value):
        raise Crash

    behaviours["killer"] = die
    world.publish(Workflow("killing", root=Step("act", name="killer")))
    instance_id = world.dispatch("killing")
    for _ in range(settings().leases_max):
        with pytest.raises(Crash):
            world.run(instance_id)
        world.clock.at += 200
    world.run(instance_id)
    told("stopped, as its workers end", "StalledStopped", f"{settings().leases_max} in a row")


@pytest.mark.parametrize("kept", [True, False])
def test_times_of_schedules_that_go_with_their_version(world, told, log_lines, kept):
    world.publish(ticking)
    changed = Workflow("ticking", version=2, root=Sequence(Timer(60 if kept else 90, starts=True)))
    world.publish(changed)
    if kept:
        assert not any("times of schedules" in line for line in log_lines)
    else:
        told("times of schedules removed", "OccurrencesRemoved", "version 2")


def test_a_definition_that_is_retracted(world, told, log_lines):
    put_draft("default", "ticking", ticking.data)
    publish_draft("default", "ticking")
    retract("default", "ticking")
    assert any('"times of schedules removed"' in line for line in log_lines)
    told("retracted", "DefinitionsRetracted", "a caller")


def test_the_row_of_a_bookmark_that_its_instance_has_not(world, told):
    world.publish(waiting)
    instance_id = world.dispatch("waiting")
    world.run(instance_id)
    [row] = BookmarkRow.scan()
    cancel("default", instance_id, "enough")
    row.save()  # as if the worker had died before it removed the row
    send(world)
    world.handle_item(world.item("stimulus"))
    told("rows of bookmarks removed", "BookmarkRowsRemoved", "nothing there waits")
    assert list(BookmarkRow.scan()) == []
    assert HeadRow.get(f"default#{instance_id}", "head").status == "cancelled"
