"""What operators see: lines that bear the ids of what they speak of, and how late things are."""

import io
import json
import logging

import pytest

from aftercommit import DispatchWorkflow, Sequence, Step, Workflow, activity
from aftercommit.log import logger
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


def oldest_due(capsys):
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines() if "OldestDueSeconds" in line]
    return told[-1]["OldestDueSeconds"]


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
