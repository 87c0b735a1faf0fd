"""Rows of newer code, met by this code after a rollback: left as they are, visibly, and not lost."""

import json

import pytest

from aftercommit import DispatchWorkflow, Sequence, Step, Workflow, clock, commands, var
from aftercommit.activities import TYPES
from aftercommit.attempts import leave_to_newer
from aftercommit.cancel import cancel
from aftercommit.client import dispatch_existing
from aftercommit.definitions import load_definition
from aftercommit.delete import delete
from aftercommit.deliver import deliver
from aftercommit.errors import NewerFormError
from aftercommit.instances import find_whole, lease, leases_of, load_leased
from aftercommit.outbox import claim, find_item, settle
from aftercommit.queue import Message
from aftercommit.sweep import sweep
from aftercommit.tables import HeadRow, ItemRow, RevisionRow
from tests.integration.faults import Crash
from tests.integration.world import behaviours, effects

child = Workflow("child", root=Step("act", name="child"))
parent = Workflow(
    "parent",
    root=Sequence(
        Step("act", name="first", value=1, result="first"),
        DispatchWorkflow("child", wait=True),
        Step("act", name="last", value=var.first, result="last"),
        Step("act", name="end"),
    ),
    output=var.last,
)
HEAD = {"instance_key": "default#p", "row": "head"}


@pytest.fixture
def waiting(world):
    """A parent that waits for its child; its dispatch is undone."""
    world.publish(child, parent)
    world.dispatch("parent", instance_id="p")
    world.run("p")
    world.forget_stream()
    world.messages.clear()
    return world


@pytest.fixture
def told(waiting):
    """A parent that has not seen yet what became of its child."""
    waiting.handle_item(waiting.item("start"))
    waiting.messages.clear()
    return waiting


def key(item):
    return {"owner_key": item.owner_key, "item_id": item.item_id}


def again(item):
    return find_item(item.tenant, item.owner_id, item.item_id)


def set_snapshot(world, change):
    snapshot = json.loads(world.head("p").snapshot)
    change(snapshot)
    world.set_raw(HeadRow, HEAD, snapshot={"S": json.dumps(snapshot)})


# --- items ---


def test_an_item_of_an_unknown_command_is_left_undone_visibly_and_each_time_for_longer(waiting, log_lines):
    item = waiting.item("start")
    waiting.set_raw(ItemRow, key(item), command={"S": "begin"})
    waits = []
    for _ in range(4):
        waiting.handle_item(item)
        left = again(item)
        assert (left.status, left.command, left.attempts) == ("undone", "begin", 0)
        assert "'begin'" in left.last_error
        waits.append(clock.from_text(left.due_at) - clock.now())
    assert waits == sorted(waits)
    assert waits[0] < waits[-1]
    assert waiting.dead_letters() == []
    assert sum("left to newer code" in str(line) for line in log_lines) == 4


def test_an_item_of_an_unknown_command_is_served_once_the_code_knows_it(waiting, monkeypatch):
    with monkeypatch.context() as older:
        older.delitem(commands._COMMANDS, "start")
        waiting.settle(1_000)
    assert waiting.statuses() == {"p": "suspended"}
    waiting.settle()
    assert set(waiting.statuses().values()) == {"completed"}
    assert waiting.raised == []


def test_an_item_that_was_settled_or_claimed_meanwhile_is_not_left(waiting):
    item = waiting.item("start")
    assert claim(item, clock.now())
    before = waiting.everything()
    leave_to_newer(item, "whatever")
    assert waiting.everything() == before
    claimed = again(item)
    settle(claimed)
    before = waiting.everything()
    leave_to_newer(claimed, "whatever")
    assert waiting.everything() == before


def test_items_of_unknown_statuses_do_not_come_first_in_every_pass(waiting, set_environment):
    set_environment(SWEEP_BATCH="1", DUE_SHARDS="1")
    item = waiting.item("start")
    early = "2020-01-01T00:00:00.000Z"
    waiting.set_raw(ItemRow, key(item), status={"S": "asleep"}, due_at={"S": early}, due_shard={"N": "0"})
    sweep()
    left = again(item)
    assert (left.status, left.due_at > early) == ("asleep", True)
    assert "'asleep'" in left.last_error
    before = waiting.everything()
    deliver([(item.owner_key, item.item_id)])  # not due: nothing is written
    assert waiting.everything() == before
    assert waiting.messages == []
    waiting.set_raw(ItemRow, key(item), status={"S": "undone"})
    waiting.settle()
    assert set(waiting.statuses().values()) == {"completed"}


def test_attributes_that_this_code_does_not_know_stay_where_they_are(waiting):
    item = waiting.item("start")
    waiting.set_raw(ItemRow, key(item), colour={"S": "blue"})
    waiting.set_raw(HeadRow, HEAD, colour={"S": "red"})
    waiting.settle()
    assert set(waiting.statuses().values()) == {"completed"}
    rows = waiting.everything()
    assert any('"blue"' in row and '"done"' in row for row in rows["OutboxTable"])
    assert any('"red"' in row and '"completed"' in row for row in rows["InstancesTable"])


# --- instances ---


def heal_status(world):
    world.set_raw(HeadRow, HEAD, status={"S": "suspended"})


def new_member(snapshot):
    snapshot["mood"] = "new"


def new_part_of_a_bookmark(snapshot):
    next(iter(snapshot["bookmarks"].values()))["mood"] = "new"


def new_part_of_an_execution(snapshot):
    next(iter(snapshot["executions"].values()))["mood"] = "new"


def new_status_of_an_execution(snapshot):
    next(iter(snapshot["executions"].values()))["status"] = "asleep"


@pytest.mark.parametrize(
    "change", [new_member, new_part_of_a_bookmark, new_part_of_an_execution, new_status_of_an_execution]
)
def test_a_state_with_parts_that_this_code_would_lose_is_left_alone_until_newer_code_is_back(told, change):
    original = told.head("p").snapshot
    set_snapshot(told, change)
    told.settle(1_000)
    assert told.raised == []
    left = told.head("p")
    assert left.snapshot != original, "nothing of it was dropped"
    assert (left.lease_token, leases_of(left)) == (None, 0), "no lease is held, and none counts as lost"
    assert told.item("resume").status == "undone"
    assert "does not know" in told.item("resume").last_error
    told.set_raw(HeadRow, HEAD, snapshot={"S": original})
    told.settle(10_000)
    assert told.statuses()["p"] == "completed"
    assert told.show("p")["output"] == 1
    assert [name for name, _, _ in effects] == ["first", "child", "last", "end"]


def test_an_instance_of_an_unknown_status_has_not_ended(told):
    told.set_raw(HeadRow, HEAD, status={"S": "asleep"})
    told.settle(500)
    assert told.raised == []
    assert told.item("resume").status == "undone"
    for ask in (find_whole, cancel):
        with pytest.raises(NewerFormError, match="asleep"):
            ask("default", "p", *(["why"] if ask is cancel else []))
    heal_status(told)
    told.settle(10_000)
    assert told.statuses()["p"] == "completed"


def test_a_revision_with_an_unknown_command_is_not_skipped(waiting):
    def die(context, value):
        raise Crash

    behaviours["end"] = die
    waiting.handle_item(waiting.item("start"))
    with pytest.raises(Crash):
        waiting.handle_item(waiting.item("resume"))
    behaviours.clear()
    [last] = [row for row in waiting.revisions("p") if row.revision > waiting.head("p").revision]
    row = {"instance_key": last.instance_key, "row": last.row}
    waiting.set_raw(RevisionRow, row, commands={"S": last.commands.replace('"resume"', '"awake"')})
    waiting.settle(1_000)
    assert waiting.raised == []
    assert waiting.statuses()["p"] == "running"
    waiting.set_raw(RevisionRow, row, commands={"S": last.commands})
    waiting.settle(20_000)
    assert waiting.statuses()["p"] == "completed"


def test_a_lease_that_another_worker_has_taken_is_not_given_back(told):
    head = lease("default", "p", clock.now() + 10, waiting=True)
    set_snapshot(told, new_member)
    head.snapshot = told.head("p").snapshot
    told.clock.at += 20
    other = lease("default", "p", clock.now() + 10, waiting=True)
    before = told.everything()
    with pytest.raises(NewerFormError):
        load_leased(head)
    assert told.everything() == before
    assert told.head("p").lease_token == other.lease_token


def test_a_tree_with_an_unknown_activity_is_neither_given_up_nor_faulted(waiting, monkeypatch):
    with monkeypatch.context() as older:
        older.delitem(TYPES, "Step")
        load_definition.cache_clear()
        waiting.settle(2_000)
        assert waiting.raised == []
        assert waiting.item("start").status == "undone"
        assert waiting.item("start").attempts == 0
        assert waiting.statuses() == {"p": "suspended"}
        with pytest.raises(NewerFormError, match="unknown activity type"):
            waiting.dispatch("child")
    load_definition.cache_clear()
    waiting.settle(20_000)
    assert set(waiting.statuses().values()) == {"completed"}


def test_a_message_with_an_unknown_part_is_set_aside_and_its_item_is_sent_again(waiting):
    item = waiting.item("start")
    message = Message("default", owner_id=item.owner_id, item_id=item.item_id)
    waiting.handle(message.to_text().replace("{", '{"urgency":"high",', 1))
    [(_, reason)] = waiting.dead_letters()
    assert "urgency" in reason
    waiting.settle()
    assert set(waiting.statuses().values()) == {"completed"}


@pytest.mark.parametrize(
    "ask",
    [
        lambda: dispatch_existing("default", "p"),
        lambda: delete("default", "p"),
        lambda: cancel("default", "p", "enough"),
    ],
    ids=["run", "delete", "cancel"],
)
def test_a_caller_is_asked_to_come_again_for_an_instance_of_a_status_that_only_newer_code_knows(waiting, ask):
    waiting.set_raw(HeadRow, {"instance_key": "default#p", "row": "head"}, status={"S": "dormant"})
    with pytest.raises(NewerFormError):
        ask()
    assert waiting.head("p").status == "dormant"
