"""What operators see: lines that bear the ids of what they speak of, and how late things are."""

import io
import json
import logging

import pytest

from aftercommit import DispatchWorkflow, Sequence, Step, Workflow, activity
from aftercommit.log import logger
from aftercommit.operations import send_event
from aftercommit.redrive import redrive
from aftercommit.settings import settings
from aftercommit.statuses import ItemStatus
from aftercommit.sweep import sweep
from aftercommit.tables import ItemRow, key_of


@activity
def speak(context):
    context.logger.info("spoken")


child = Workflow("child", root=Step(speak))
parent = Workflow("parent", root=Sequence(Step(speak), DispatchWorkflow("child", wait=True)))


@pytest.fixture
def lines():
    """Return a function that reads the lines logged so far."""
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(logger.registered_formatter)
    logger.addHandler(handler)
    yield lambda: [json.loads(line) for line in written.getvalue().splitlines()]
    logger.removeHandler(handler)


def test_a_line_of_an_activity_bears_the_ids_of_message_instance_and_execution(world, lines):
    world.publish(parent, child)
    instance_id = world.dispatch("parent", correlation_id="order-7")
    world.settle()
    first, second = [line for line in lines() if line["message"] == "spoken"]
    assert first["instance_id"] == instance_id
    assert (first["definition_id"], first["activity_id"]) == ("parent", "root.activities[0]")
    assert (first["correlation_id"], first["attempt"]) == ("order-7", 1)
    [dispatch] = world.items("start")
    assert (second["instance_id"], second["parent_instance_id"]) == (dispatch.instance_id, instance_id)
    assert (second["item_id"], second["tenant"]) == (dispatch.item_id, "default")
    assert second["execution_id"] != first["execution_id"]


def test_ids_end_with_what_they_speak_of(world, lines):
    world.publish(parent, child)
    world.dispatch("parent")
    world.settle()
    logger.info("afterwards")
    assert not {"instance_id", "activity_id", "item_id", "message_id"} & lines()[-1].keys()


def values(capsys):
    """Return all values told since the last time, by metric."""
    found = {}
    for line in capsys.readouterr().out.splitlines():
        told = json.loads(line)
        for directive in told.get("_aws", {}).get("CloudWatchMetrics", []):
            for metric in directive["Metrics"]:
                found.setdefault(metric["Name"], []).extend(told[metric["Name"]])
    return found


def oldest_due(capsys):
    return values(capsys)["OldestDueSeconds"][-1:]


def test_a_sweep_tells_for_how_long_something_has_been_due(world, capsys):
    world.publish(parent, child)
    sweep()
    assert oldest_due(capsys) == [0]
    world.dispatch("parent")
    world.clock.at += 10 + 75
    sweep()
    assert oldest_due(capsys) == [pytest.approx(75, abs=0.1)]
    sweep()
    assert oldest_due(capsys) == [0]


def test_a_due_time_that_cannot_be_read_hides_no_other(world, capsys):
    world.publish(parent, child)
    world.run(world.dispatch("parent"))
    world.forget_stream()
    [item] = world.items("start")
    key = {"owner_key": item.owner_key, "item_id": "damaged"}
    world.set_raw(
        ItemRow,
        key,
        due_shard={"N": str(int(item.due_shard))},
        due_at={"S": "2020-nonsense"},
        status={"S": "undone"},
        tenant={"S": "default"},
    )
    world.clock.at += 30
    sweep()
    assert 0 < oldest_due(capsys)[0] < 60
    assert ItemRow.get(key_of("default", item.owner_id), item.item_id).status == ItemStatus.UNDONE


def test_what_is_sent_and_never_run_ages_though_each_send_moves_its_due_time(world, capsys):
    world.publish(child, parent)
    world.run(world.dispatch("parent"))
    world.deliver_new()
    born = world.clock.at
    values(capsys)
    while world.clock.at < born + 2_500:
        world.clock.at += 60
        sweep()
    told = values(capsys)
    assert max(told["OldestDueSeconds"]) <= 60
    assert told["OldestResentSeconds"] == sorted(told["OldestResentSeconds"])
    assert 1_800 < told["OldestResentSeconds"][-1] <= world.clock.at - born
    assert sum(told["ItemsResent"]) == len(told["OldestResentSeconds"]) == sum(told["ItemsSent"])


def test_what_slept_in_its_bulk_has_not_been_undone_for_longer_than_it_was_sent(world, capsys):
    world.publish(child, parent)
    world.run(world.dispatch("parent"))
    [item] = world.items("start")
    world.clock.at += 86_400  # as if it had slept
    world.deliver_new()
    world.clock.at += 61
    sweep()
    assert values(capsys)["OldestResentSeconds"] == [10]
    assert item.sends == 0


def test_what_is_redriven_is_not_as_old_as_its_first_life(world, capsys):
    world.publish(Workflow("forgetting", root=DispatchWorkflow("late")))
    owner_id = world.dispatch("forgetting")
    world.settle(60)
    [item] = world.items("start")
    world.clock.at += 86_400
    redrive("default", owner_id, item.item_id)
    values(capsys)
    sweep()
    told = values(capsys)
    assert (told["ItemsResent"], "OldestResentSeconds" in told) == ([1], False)


def test_a_first_send_is_none_again_and_a_stimulus_is_looked_at_again_on_purpose(world, capsys):
    world.publish(child, parent)
    send_event("default", "go", payload={}, value=1, correlation_id=None, instance_id=None)
    world.run(world.dispatch("parent"))
    world.settle(300)
    told = values(capsys)
    assert sum(told["ItemsSent"]) > 2
    assert "ItemsResent" not in told


def test_items_are_delivered_once_however_often_they_are_sent(world, capsys):
    world.publish(child, parent)
    world.run(world.dispatch("parent"))
    item = world.item("start")
    values(capsys)
    for _ in range(3):
        world.handle_item(item)
    assert values(capsys)["ItemsDelivered"] == [1]
    world.settle(60)
    assert sum(values(capsys)["ItemsDelivered"]) == len(world.items()) - 1


def test_dead_letters_are_no_items_given_up(world, capsys):
    send_event("default", "go", payload={}, value=1, correlation_id=None, instance_id=None)
    world.settle(settings().stimulus_open_seconds + 120)
    told = values(capsys)
    assert (told["DeadLetters"], "ItemsGivenUp" in told) == ([1], False)
