"""What is damaged does not leave a parent waiting for ever: its join finds it."""

import json

import pytest

from aftercommit.instances import find_whole
from aftercommit.tables import ItemRow
from tests.integration.bulks import admit, begin, parent_of, starts, tally


def bulk(world, **more):
    return begin(world, parent_of(["a", "b", "c"], wait=True, tolerated_failures=2, **more))


def set_item(world, item, **values):
    world.set_raw(ItemRow, {"owner_key": item.owner_key, "item_id": item.item_id}, **values)


def test_a_start_that_overslept_is_woken_by_the_join(world, log_lines):
    parent_id = bulk(world, concurrent_max=1)
    admit(world, 0)
    set_item(world, starts(world)[1], asleep={"BOOL": True}, due_at=None)
    world.messages.clear()
    world.settle(seconds=600)
    assert world.show(parent_id)["output"]["completed"] == 3
    told = [line for line in map(json.loads, log_lines) if line["message"] == "dispatch overslept"]
    assert [line["index"] for line in told] == [1]


def test_a_start_whose_turn_has_not_come_is_left_asleep(world):
    begin(world, parent_of(["wait", "b", "c"], wait=True, concurrent_max=1))
    world.settle(seconds=1_800)
    assert [row.asleep for row in starts(world)] == [None, True, True]


@pytest.mark.parametrize(
    "damage",
    [{"body": {"S": "{"}}, {"sends": {"S": "many"}}, {"attempts": {"S": "many"}}, {"tenant": None}],
    ids=str,
)
def test_c14_a_start_that_cannot_be_read_is_counted_as_failed(world, damage):
    parent_id = bulk(world)
    set_item(world, starts(world)[1], **damage)
    world.settle(seconds=900)
    told = find_whole("default", parent_id)[1].output
    assert (told["completed"], told["dispatch_failed"]) == (2, 1)
    assert told["failures"][0]["error"]["type"] == "MalformedRowError"
    assert tally(world, parent_id) == {"completed": [0, 2], "dispatch_failed": [1]}


def test_a_start_that_cannot_be_read_does_not_hold_up_its_lane(world):
    parent_id = bulk(world, concurrent_max=1)
    set_item(world, starts(world)[0], body={"S": "{"})
    world.settle(seconds=900)
    assert world.show(parent_id)["output"]["completed"] == 2


def test_a_sleeping_start_that_cannot_be_read_is_seen_once_it_is_woken(world):
    parent_id = bulk(world, concurrent_max=1)
    set_item(world, starts(world)[1], body={"S": "{"})
    world.settle(seconds=900)
    told = world.show(parent_id)["output"]
    assert (told["completed"], told["dispatch_failed"]) == (2, 1)


@pytest.mark.parametrize("lanes", [None, 1])
def test_a_start_that_is_gone_is_counted_as_failed(world, lanes):
    parent_id = bulk(world, concurrent_max=lanes)
    starts(world)[1].delete()
    world.settle(seconds=900)
    told = world.show(parent_id)["output"]
    assert (told["completed"], told["dispatch_failed"]) == (2, 1)
    assert told["failures"][0]["error"] is None


def test_a_join_that_cannot_be_read_is_set_aside_visibly(world):
    bulk(world)
    set_item(world, world.item("join"), body={"S": '{"instance_id":"x","join_id":"y"}'})
    world.settle(seconds=900)
    join = world.item("join")
    assert (join.status, bool(join.attention_at)) == ("failed", True)
    assert "total" in join.last_error


def test_a_child_that_runs_on_for_long_is_not_taken_for_damage(world):
    parent_id = begin(world, parent_of(["wait", "a"], wait=True))
    world.settle(seconds=3_600)
    assert world.show(parent_id)["status"] == "suspended"
    assert tally(world, parent_id) == {"completed": [1]}


@pytest.mark.parametrize("lost", ["total", "bookmark_id", "all"])
def test_i2_a_join_that_cannot_be_read_faults_its_parent_and_cancels_the_children(world, lost):
    parent_id = begin(world, parent_of(["wait", "b"], wait=True))
    item = world.item("join")
    body = {name: value for name, value in json.loads(item.body).items() if name != lost}
    set_item(world, item, body={"S": "{" if lost == "all" else json.dumps(body)})
    world.settle(seconds=900)
    assert find_whole("default", parent_id)[1].failure.type == "JoinFailedError"
    statuses = [world.statuses()[row.instance_id] for row in starts(world)]
    assert sorted(statuses) == ["cancelled", "completed"]


@pytest.mark.parametrize("place", [{"rows": None}, {"rows": "2"}, {"index": "x"}], ids=str)
def test_c14_a_start_whose_place_cannot_be_read_is_counted_as_failed(world, place):
    parent_id = bulk(world)
    _set_place(world, place)
    world.settle(seconds=900)
    assert world.raised == []
    assert tally(world, parent_id) == {"completed": [0, 2], "dispatch_failed": [1]}


def test_a_start_whose_place_has_a_part_of_newer_code_is_left_to_that(world):
    bulk(world)
    _set_place(world, {"colour": "red"})
    world.settle(seconds=900)
    start = starts(world)[1]
    assert (world.raised, start.status, int(start.attempts)) == ([], "undone", 0)
    assert "'colour'" in start.last_error


def _set_place(world, place):
    item = starts(world)[1]
    body = json.loads(item.body)
    body["join"] = {name: each for name, each in {**body["join"], **place}.items() if each is not None}
    set_item(world, item, body={"S": json.dumps(body)})
