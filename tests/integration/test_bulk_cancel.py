"""Cancelling a bulk: in pages, by one intention, whatever has become of its children so far."""

import json

import pytest

from aftercommit import cancel as cancelling
from aftercommit import moves
from aftercommit.cancel import cancel
from aftercommit.ids import derive_child_id
from aftercommit.statuses import ItemStatus
from aftercommit.tables import HeadRow
from tests.integration.bulks import admit, begin, parent_of, racing, starts, tally
from tests.integration.faults import Crash
from tests.integration.waits import send


def bulk(world, items=("wait", "a", "wait", "wait"), **more):
    return begin(world, parent_of(list(items), wait=True, **more))


def the_cancel(world):
    return world.item("cancel")


def test_c33_cancelling_the_parent_withdraws_and_cancels_by_one_intention(world):
    parent_id = bulk(world)
    admit(world, 0)
    admit(world, 1)
    assert cancel("default", parent_id, "enough")
    world.handle_item(the_cancel(world))  # before the stream brings the other starts
    world.settle(seconds=60)
    assert [row.status for row in starts(world)] == ["done", "done", "cancelled", "cancelled"]
    assert [row.outcome for row in starts(world)] == ["Cancelled", "Completed", "Cancelled", "Cancelled"]
    statuses = world.statuses()
    assert statuses[derive_child_id(starts(world)[0].item_id)] == "cancelled"
    assert statuses[derive_child_id(starts(world)[1].item_id)] == "completed"
    assert [row.status for row in world.items() if row.status == ItemStatus.UNDONE] == []
    assert world.item("join").status == "cancelled"


def test_a_withdrawn_start_is_not_counted_as_an_ending(world):
    parent_id = bulk(world)
    cancel("default", parent_id, "enough")
    world.handle_item(the_cancel(world))
    world.settle(seconds=60)
    assert tally(world, parent_id) == {}


def test_children_that_are_not_waited_for_are_left_alone(world):
    parent_id = begin(world, parent_of(["a", "b"], concurrent_max=1, workflow_id="forgetting"))
    assert not cancel("default", parent_id, "enough")  # it has ended
    assert world.items("cancel") == []
    world.settle(seconds=60)
    assert len(tally(world, parent_id)["completed"]) == 2


@pytest.mark.parametrize("admitted", [0, 1, 2])
def test_a_losing_branch_cancels_its_children_and_wakes_none(world, admitted):
    parent_id = begin(world, racing)
    for index in range(admitted):
        admit(world, index)
    send("go")
    world.handle_item(world.item("stimulus"))
    world.handle_item(the_cancel(world))
    world.settle(seconds=60)
    assert world.show(parent_id)["status"] == "completed"
    assert len(world.heads()) == 1 + admitted
    assert [row.status for row in starts(world)] == ["done"] * admitted + ["cancelled"] * (3 - admitted)


def test_pages_go_from_the_last_to_the_first_so_that_no_lane_is_woken(world, monkeypatch):
    parent_id = bulk(world, ["wait"] * 5, concurrent_max=1)
    admit(world, 0)
    monkeypatch.setattr(cancelling, "COMMIT_INTENTIONS_MAX", 2)
    cancel("default", parent_id, "enough")
    world.handle_item(the_cancel(world))
    assert len(world.heads()) == 2
    assert [row.status for row in starts(world)] == ["done"] + ["cancelled"] * 4


@pytest.mark.parametrize("skip", range(3))  # a page, a child, the end
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_canceller_that_dies_midway_is_followed_by_one_that_goes_on(
    world, faults, monkeypatch, moment, skip
):
    monkeypatch.setattr(cancelling, "COMMIT_INTENTIONS_MAX", 2)
    parent_id = bulk(world, ["wait"] * 4)
    admit(world, 0)
    cancel("default", parent_id, "enough")
    getattr(faults, moment)("TransactWriteItems", Crash(), skip=skip)
    with pytest.raises(Crash):
        world.handle_item(the_cancel(world))
    assert the_cancel(world).status == ("done" if (moment, skip) == ("after", 2) else "undone")
    world.settle(seconds=900)
    assert {row.status for row in starts(world)} <= {"done", "cancelled"}
    assert the_cancel(world).status == "done"
    assert set(world.statuses().values()) == {"cancelled"}


def test_out_of_time_it_goes_on_in_another_invocation(world, monkeypatch):
    monkeypatch.setattr(cancelling, "COMMIT_INTENTIONS_MAX", 2)
    parent_id = bulk(world)
    cancel("default", parent_id, "enough")
    world.messages.clear()
    world.handle_item(the_cancel(world), seconds=10)
    assert [row.status for row in starts(world)] == ["undone", "undone", "cancelled", "cancelled"]
    [message] = world.messages
    assert json.loads(message.body)["item_id"] == the_cancel(world).item_id
    world.settle(seconds=60)
    assert [row.status for row in starts(world)] == ["cancelled"] * 4


def test_a_start_that_is_admitted_while_its_page_is_withdrawn_is_cancelled(world, monkeypatch):
    parent_id = bulk(world, ["wait", "wait"])
    cancel("default", parent_id, "enough")
    pages = cancelling.walk_parts

    def admitted_meanwhile(*given):
        rows = list(pages(*given))
        admit(world, 1)
        return iter(rows)

    monkeypatch.setattr(cancelling, "walk_parts", admitted_meanwhile)
    world.handle_item(the_cancel(world))
    assert [row.status for row in starts(world)] == ["cancelled", "done"]
    assert world.statuses()[derive_child_id(starts(world)[1].item_id)] == "cancelled"
    assert the_cancel(world).status == "done"


def test_a_cancel_that_comes_twice_or_late_changes_nothing(world):
    parent_id = bulk(world)
    admit(world, 0)
    cancel("default", parent_id, "enough")
    item = the_cancel(world)
    world.handle_item(item)
    world.settle(seconds=60)
    before = world.everything()
    world.handle_item(item)
    cancelling.cancel_child(item, world.worker())  # read before it was acked
    assert world.everything() == before


def test_a_parent_cancelled_in_the_middle_of_its_fan_out_leaves_nothing_behind(world, faults, monkeypatch):
    monkeypatch.setattr(moves, "COMMIT_INTENTIONS_MAX", 2)
    workflow = parent_of(["wait"] * 6, wait=True)
    world.publish(workflow)
    faults.before("TransactWriteItems", Crash(), skip=2)
    with pytest.raises(Crash):
        begin(world, workflow)
    assert len(starts(world)) == 4
    [parent] = world.heads()
    assert cancel("default", parent.instance_id, "enough")
    world.handle_item(the_cancel(world))
    world.settle(seconds=900)
    assert [row.status for row in starts(world)] == ["cancelled"] * 4
    assert world.items("join") == []
    assert [row.status for row in world.items() if row.status == ItemStatus.UNDONE] == []


def test_cancelling_goes_down_through_generations(world):
    given = {"item": {}, "index": int}
    middle = parent_of(["wait"], wait=True, workflow_id="middle", inputs=given)
    top = begin(world, parent_of([1], "middle", wait=True, workflow_id="top"), middle)
    world.settle(seconds=30)
    assert len(world.heads()) == 3
    cancel("default", top, "enough")
    world.settle(seconds=60)
    assert set(world.statuses().values()) == {"cancelled"}


def test_i9_a_child_that_cannot_be_read_holds_back_no_other_and_is_cancelled_once_it_is_repaired(world):
    parent_id = bulk(world, items=("wait", "wait", "wait"))
    ids = [admit(world, index) for index in range(3)]
    key = {"instance_key": f"default#{ids[1]}", "row": "head"}
    good = world.head(ids[1]).snapshot
    world.set_raw(HeadRow, key, snapshot={"S": "{"})
    cancel("default", parent_id, "enough")
    world.settle(seconds=60)
    assert [world.statuses()[each] for each in ids] == ["cancelled", "suspended", "cancelled"]
    assert the_cancel(world).status == "undone"
    assert [each.error_type for each in world.incidents()] == ["UnreadableInstanceError"]
    world.set_raw(HeadRow, key, snapshot={"S": good})
    world.settle(seconds=3_600)
    assert world.statuses()[ids[1]] == "cancelled"
    assert the_cancel(world).status == "done"
