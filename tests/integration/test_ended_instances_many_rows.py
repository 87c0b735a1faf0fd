"""An ended instance with very many rows: a pass does what it has time for, and no other pass is at it."""

import json
from math import ceil

import pytest

from aftercommit import DispatchWorkflow, Workflow, aws, clock
from aftercommit.delete import KEPT_SECONDS, delete
from aftercommit.sweep import sweep
from aftercommit.tables import ItemRow
from aftercommit.writes import TRIES_MAX
from tests.integration.ended import (
    DAY,
    DAYS,
    WORKFLOWS,
    end,
    in_days,
    is_shown,
    multiply_items,
    pass_days,
)
from tests.integration.faults import Crash
from tests.integration.world import raw_rows

MANY = 60
BATCH = 25  # what DynamoDB writes in one request


@pytest.fixture
def w(world, set_environment):
    set_environment(ENDED_INSTANCE_DAYS=str(DAYS))
    world.publish(*WORKFLOWS, Workflow("asking", root=DispatchWorkflow("step", wait=True)))
    return world


@pytest.fixture
def parent(w):
    """An instance that has ended, as its child has, with as many dispatches as there could be children."""
    instance_id = end(w, "asking")
    w.settle()
    assert w.head(instance_id).status == "completed"
    multiply_items(w, MANY)
    return instance_id


def rows(instance_id):
    found = raw_rows("InstancesTable") + raw_rows("OutboxTable")
    return [row for row in found if f"#{instance_id}" in str(row.get("instance_key") or row["owner_key"])]


def changes_of_head(faults, instance_id):
    return len([1 for name, body in faults.sent if name == "UpdateItem" and instance_id in str(body["Key"])])


def test_one_whose_items_are_all_over_goes(w, parent, faults):
    pass_days(w, DAYS)
    assert not is_shown(w, parent)
    assert changes_of_head(faults, parent) == 2  # claimed, as the look takes long, then deleted
    pass_days(w, 1)
    assert rows(parent) == []


def test_its_rows_go_many_in_a_request(w, parent, faults):
    delete("default", parent)
    all_rows = len(rows(parent))
    items = len([row for row in rows(parent) if "item_id" in row])
    w.clock.at += KEPT_SECONDS
    sweep()
    assert rows(parent) == []
    assert faults.count("BatchWriteItem") == ceil(items / BATCH) + ceil((all_rows - items - 1) / BATCH)
    assert faults.count("DeleteItem") == 1  # the head


def test_a_removal_for_which_time_is_too_short_goes_on_when_it_is_due_again(w, parent, faults, log_lines):
    delete("default", parent)
    before = len(rows(parent))
    w.clock.at += KEPT_SECONDS
    faults.right_after("BatchWriteItem", lambda: w.clock.sleep(60))
    sweep(seconds_left=55)
    assert len(rows(parent)) == before - BATCH
    assert "instance removed in part" in [json.loads(line)["message"] for line in log_lines]
    w.clock.at += 3_600
    sweep()
    assert rows(parent) == []


def test_one_that_cannot_be_looked_at_in_time_is_kept_and_that_is_told(w, parent, faults, log_lines, capsys):
    w.clock.at += DAYS * DAY
    faults.right_after("UpdateItem", lambda: w.clock.sleep(60), match=parent)  # the claim
    sweep(seconds_left=55)
    assert w.head(parent).due_at == clock.to_text(clock.now() + DAYS * DAY - 60)
    assert "InstancesKept" in capsys.readouterr().out
    [line] = [line for line in map(json.loads, log_lines) if line["message"] == "instance kept"]
    assert line["reason"] == "its items are too many to be looked at in one pass"
    pass_days(w, DAYS + 1)
    assert not is_shown(w, parent)


def test_one_that_a_pass_comes_to_late_is_looked_at_again_within_the_hour(w, parent, faults):
    w.clock.at += DAYS * DAY
    faults.right_after("UpdateItem", lambda: w.clock.sleep(60), match=parent)
    sweep(seconds_left=20)
    assert is_shown(w, parent)
    w.clock.at += 3_600
    sweep()
    assert not is_shown(w, parent)


@pytest.fixture
def unprocessed():
    """Let DynamoDB say of so many batches that it has not come to their last row."""
    client, left = aws.client("dynamodb"), []

    def answer(parsed, context, **_):
        if left:
            left.pop()
            parsed["UnprocessedItems"] = {table: some[-1:] for table, some in context["asked"].items()}

    def remember(params, context, **_):
        context["asked"] = params["RequestItems"]

    events = {"before-parameter-build": remember, "after-call": answer}
    for name, handler in events.items():
        client.meta.events.register(f"{name}.dynamodb.BatchWriteItem", handler)
    yield left
    for name, handler in events.items():
        client.meta.events.unregister(f"{name}.dynamodb.BatchWriteItem", handler)


def test_rows_that_dynamodb_had_no_room_for_are_removed_after_a_pause(w, parent, faults, unprocessed):
    delete("default", parent)
    w.clock.at += KEPT_SECONDS
    unprocessed += [1, 2]
    at = w.clock.at
    sweep()
    assert rows(parent) == []
    assert w.clock.at > at
    again = [body for name, body in faults.sent if name == "BatchWriteItem"][1:3]
    assert [len(each["RequestItems"]["OutboxTable"]) for each in again] == [1, 1]


def test_a_removal_that_dynamodb_has_no_room_for_goes_on_when_it_is_due_again(
    w, parent, unprocessed, log_lines
):
    delete("default", parent)
    w.clock.at += KEPT_SECONDS
    unprocessed += [1] * TRIES_MAX
    sweep()
    assert w.head(parent)
    told = [
        line["reason"] for line in map(json.loads, log_lines) if line["message"] == "instance removed in part"
    ]
    assert told == ["TryLaterError: DynamoDB left 1 rows of OutboxTable where they were"]
    w.clock.at += 3_600
    sweep()
    assert rows(parent) == []


def test_a_sweep_that_dies_on_a_long_look_leaves_it_to_a_later_one(w, parent, faults):
    w.clock.at += DAYS * DAY
    faults.after("UpdateItem", Crash(), match=parent)
    with pytest.raises(Crash):
        sweep()
    w.clock.at += 3_599
    sweep()
    assert is_shown(w, parent)
    w.clock.at += 1
    sweep()
    assert not is_shown(w, parent)


def test_of_two_sweeps_that_look_at_the_same_one_the_first_goes_on(w, parent, faults):
    w.clock.at += DAYS * DAY
    faults.meanwhile("UpdateItem", sweep, match=parent)  # another one, from its claim to its end
    sweep()
    assert not is_shown(w, parent)
    deleted_at = w.head(parent).deleted_at
    assert deleted_at
    assert changes_of_head(faults, parent) == 3  # of the second, its claim only, which is refused


def test_the_last_of_very_many_items_keeps_its_owner(w, parent):
    owner_key = w.head(parent).instance_key
    last = max(item.item_id for item in w.items() if item.owner_key == owner_key)
    key = {"owner_key": owner_key, "item_id": last}
    w.set_raw(ItemRow, key, status={"S": "undone"}, due_at={"S": in_days(400)})
    pass_days(w, DAYS)
    assert w.head(parent).due_at == in_days(DAYS)
    assert is_shown(w, parent)
