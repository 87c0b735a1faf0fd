"""Endings: however a child ends, or fails to begin, a parent that waits is told which way, exactly once."""

import json

import pytest

from aftercommit import DispatchWorkflow, Event, Fault, Sequence, SetVariable, Step, Workflow, var
from aftercommit.cancel import cancel
from aftercommit.definitions import load_definition
from aftercommit.delete import delete
from aftercommit.errors import ConflictError
from aftercommit.operations import send_event
from aftercommit.paging import Page
from aftercommit.publish import retract
from aftercommit.tables import DefinitionRow, HeadRow, ItemRow, SnapshotRow
from aftercommit.views import list_incidents
from tests.integration.world import effects

OUTCOMES = ("Completed", "Faulted", "Cancelled", "DispatchFailed")
quick = Workflow("quick", root=Step("act", name="quick"), output="made")
faulty = Workflow("faulty", root=Fault("went wrong", code="Wrong"))
waiter = Workflow("waiter", root=Event("go"), output="heard")


def asking(workflow_id):
    """A parent that says which ending it was told."""
    told = {each: SetVariable("told", each) for each in OUTCOMES}
    root = Sequence(
        DispatchWorkflow(workflow_id, wait=True, result="result", on=told), Step("act", name="on")
    )
    return Workflow("asking", root=root, output={"told": var.told, "result": var.result})


def begin(world, workflow_id="waiter", *more):
    world.publish(quick, faulty, waiter, *more, asking(workflow_id))
    return world.dispatch("asking")


def child_of(world):
    return next(head for head in world.heads() if head.definition_id != "asking")


def told(world, parent_id):
    """Return what the parent was told, which it was once, whatever is delivered again."""
    world.settle(7_200)
    for item in world.items():
        world.handle_item(item)
    shown = world.show(parent_id)
    assert shown["status"] == "completed"
    resumes = [
        each["command"]["kind"]
        for row in world.revisions(parent_id)
        for each in json.loads(row.commands)
        if each["command"]["kind"] == "resume"
    ]
    assert len(resumes) == 1
    assert [name for name, _, _ in effects].count("on") == 1
    return shown["output"]["told"], shown["output"]["result"]


def test_r08_a_completed_child_is_told_with_its_output(world):
    assert told(world, begin(world, "quick")) == ("Completed", "made")


def test_r08_a_faulted_child_is_told_with_its_message(world):
    outcome, result = told(world, begin(world, "faulty"))
    assert (outcome, result["error"]) == ("Faulted", {"type": "Wrong", "message": "went wrong"})


def test_r08_a_dispatch_that_failed_is_told_with_its_reason(world):
    outcome, result = told(world, begin(world, "no-such"))
    assert outcome == "DispatchFailed"
    assert "no published workflow 'no-such'" in result["error"]["message"]


def test_r09_a_suspended_child_that_is_cancelled_from_outside_is_told(world):
    parent_id = begin(world)
    world.settle(60)
    assert cancel("default", child_of(world).instance_id, "by hand")
    outcome, result = told(world, parent_id)
    assert (outcome, result["error"]["message"]) == ("Cancelled", "by hand")


def test_r09_a_child_is_not_deleted_before_its_ending_was_told(world):
    parent_id = begin(world)
    world.settle(60)
    child_id = child_of(world).instance_id
    with pytest.raises(ConflictError, match="cancel it first"):
        delete("default", child_id)
    cancel("default", child_id, "by hand")
    with pytest.raises(ConflictError, match="is undone"):
        delete("default", child_id)
    world.settle(60)
    delete("default", child_id)
    world.clock.at += 90_000
    assert told(world, parent_id)[0] == "Cancelled"


def test_a_child_whose_definition_is_retracted_while_it_waits_goes_on_to_its_end(world):
    parent_id = begin(world)
    world.settle(60)
    retract("*", "waiter")
    load_definition.cache_clear()
    send_event("default", "go", payload={}, value=None, correlation_id=None, instance_id=None)
    assert told(world, parent_id) == ("Completed", "heard")


def test_a_child_whose_definition_is_retracted_before_it_begins_is_told_as_failed(world):
    parent_id = begin(world)
    world.run(parent_id)
    retract("*", "waiter")
    assert told(world, parent_id)[0] == "DispatchFailed"


# --- a start whose row cannot be read ---


@pytest.mark.parametrize(
    "damage",
    [
        {"body": {"S": "{"}},
        {"body": None},
        {"body": {"N": "5"}, "wait": {"S": "yes"}},
        {"sends": {"S": "many"}},
        {"attempts": {"S": "many"}, "command": None},
        {"generation": {"S": "x"}, "body": {"S": "{}"}},
    ],
    ids=str,
)
def test_c14_a_start_that_cannot_be_read_is_set_aside_and_the_parent_is_told(world, damage):
    parent_id = begin(world)
    world.run(parent_id)
    item = world.item("start")
    world.set_raw(ItemRow, {"owner_key": item.owner_key, "item_id": item.item_id}, **damage)
    outcome, result = told_unread(world, parent_id)
    assert (outcome, result["error"]["type"]) == ("DispatchFailed", "MalformedRowError")
    [incident] = list_incidents("default", Page())["incidents"]
    assert (incident["instance_id"], incident["item_id"]) == (parent_id, item.item_id)


def told_unread(world, parent_id):
    """As `told`, where not all rows can be read."""
    world.settle(600)
    shown = world.show(parent_id)
    assert shown["status"] == "completed"
    assert [name for name, _, _ in effects].count("on") == 1
    return shown["output"]["told"], shown["output"]["result"]


def test_c14_a_start_that_cannot_be_read_and_nobody_waits_for_is_an_incident_alone(world):
    world.publish(quick, Workflow("forgetting", root=DispatchWorkflow("quick")))
    parent_id = world.dispatch("forgetting")
    world.run(parent_id)
    item = world.item("start")
    world.set_raw(ItemRow, {"owner_key": item.owner_key, "item_id": item.item_id}, body={"S": "{"})
    world.settle(600)
    assert [each["item_id"] for each in world.show(parent_id)["incidents"]] == [item.item_id]
    assert world.items("resume") == []


# --- a child that cannot be read stays, visibly, and goes on once it can ---


def damage_snapshot(world, child):
    snapshot = {"instance_key": child.instance_key, "row": "head"}
    world.set_raw(HeadRow, snapshot, snapshot={"S": "{"})
    return lambda: world.set_raw(HeadRow, snapshot, snapshot={"S": child.snapshot})


def lose_snapshot(world, child):
    """As a large one, whose row is gone."""
    world.set_raw(HeadRow, {"instance_key": child.instance_key, "row": "head"}, snapshot=None)
    row = SnapshotRow(child.instance_key, f"snapshot#{int(child.revision):010}", snapshot=child.snapshot)
    return row.save


def damage_definition(world, child):
    row = DefinitionRow.get("*#waiter", "version#000001")
    key = {"definition_key": row.definition_key, "row": row.row}
    world.set_raw(DefinitionRow, key, data={"S": "{"})
    load_definition.cache_clear()

    def repair():
        world.set_raw(DefinitionRow, key, data={"S": row.data})
        load_definition.cache_clear()

    return repair


def lose_definition(world, child):
    row = DefinitionRow.get("*#waiter", "version#000001")
    DefinitionRow(row.definition_key, row.row).delete()
    load_definition.cache_clear()

    def repair():
        row.save()
        load_definition.cache_clear()

    return repair


@pytest.mark.parametrize("lose", [damage_snapshot, lose_snapshot, damage_definition, lose_definition])
def test_a_suspended_child_that_cannot_be_read_is_one_incident_and_goes_on_when_it_can(world, lose):
    parent_id = begin(world)
    world.settle(60)
    child = child_of(world)
    repair = lose(world, child)
    for _ in range(15):  # more often than leases without progress may be: it is not the step that fails
        world.clock.at += 3_700
        world.run(child.instance_id)
        world.set_raw(HeadRow, {"instance_key": child.instance_key, "row": "head"}, status={"S": "running"})
        world.run(child.instance_id)
    [incident] = list_incidents("default", Page())["incidents"]
    assert incident["instance_id"] == child.instance_id
    assert incident["error"]["type"] == "UnreadableInstanceError"
    assert incident["age"] > 3_600  # the time at which it was met first
    assert world.show(parent_id)["status"] == "suspended"
    assert world.dead_letters() == []
    repair()
    send_event("default", "go", payload={}, value=None, correlation_id=None, instance_id=None)
    assert told(world, parent_id) == ("Completed", "heard")


def test_a_resume_that_meets_an_unreadable_instance_stays_undone_and_is_applied_later(world):
    parent_id = begin(world)
    world.settle(60)
    parent = world.head(parent_id)
    repair = damage_snapshot(world, parent)
    cancel("default", child_of(world).instance_id, "by hand")
    world.settle(600)
    resume = next(row for row in world.items("resume") if row.instance_id == parent_id)
    assert resume.status == "undone"
    assert len(world.incidents()) == 1
    repair()
    assert told(world, parent_id)[0] == "Cancelled"


def test_a_head_that_cannot_be_read_is_an_incident_once(world):
    world.publish(quick)
    instance_id = world.dispatch("quick")
    world.messages.clear()
    key = {"instance_key": f"default#{instance_id}", "row": "head"}
    world.set_raw(HeadRow, key, revision={"S": "many"})
    world.settle(20_000)
    [incident] = list_incidents("default", Page())["incidents"]
    assert incident["instance_id"] == instance_id
    world.set_raw(HeadRow, key, revision={"N": "0"})
    world.settle(7_200)
    assert world.show(instance_id)["status"] == "completed"
