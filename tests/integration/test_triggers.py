"""Start points: indexed by the commit that publishes, found only while they are published."""

import pytest

from aftercommit import Event, Fork, Sequence, Workflow, inputs
from aftercommit.definitions import find_pointer, load_definition, store
from aftercommit.errors import DefinitionRefusedError, NotFoundError
from aftercommit.limits import START_POINTS_MAX
from aftercommit.publish import publish, publish_draft, put_draft, retract
from aftercommit.tables import SHARED_TENANT, DefinitionRow, TriggerRow
from tests.integration.faults import Crash
from tests.integration.waits import send, starter, stimuli, trigger_rows


def version_of(number, **payload):
    return Workflow(
        "starter", version=number, root=Event("begin", payload=payload, starts=True, result="got")
    )


def started(world):
    return [head for head in world.heads() if head.definition_id == "starter"]


def fire(world, name="begin", **payload):
    send(name, payload)
    world.settle(seconds=5)
    return started(world)


def test_c30_each_start_point_has_one_row_however_often_it_is_published(world):
    both = Fork(Event("a", starts=True), Sequence(Event("b", starts=True), Event("c")))
    for _ in range(2):
        world.publish(Workflow("w", root=both))
    assert [row.activity_id for row in trigger_rows()] == [
        "root.branches[0]",
        "root.branches[1].activities[0]",
    ]


def test_c30_a_start_point_whose_payload_is_not_known_is_refused_naming_the_activity(world):
    faulty = Workflow(
        "w",
        inputs={"x": str},
        root=Sequence(Event("a", payload={"x": inputs.x}, starts=True), Event("b")),
    )
    with pytest.raises(DefinitionRefusedError) as caught:
        world.publish(faulty)
    assert [path for path, _ in caught.value.faults] == ["root.activities[0]"]
    assert (trigger_rows(), find_pointer(SHARED_TENANT, "w")) == ([], None)


def test_too_many_start_points_are_refused(world):
    many = Fork(*(Event(f"e{number}", starts=True) for number in range(START_POINTS_MAX + 1)))
    with pytest.raises(DefinitionRefusedError, match="at most 40"):
        world.publish(Workflow("w", root=many))


def test_a_new_version_takes_the_start_points_over_in_one_commit(world, faults):
    world.publish(version_of(1, a=1))
    store(SHARED_TENANT, version_of(2, a=2).definition)
    faults.sent.clear()
    publish(SHARED_TENANT, version_of(2, a=2).definition)
    assert [name for name, _ in faults.writes()] == ["TransactWriteItems"]
    assert [int(row.version) for row in trigger_rows()] == [2]
    assert fire(world, a=1) == []
    [head] = fire(world, a=2)
    assert int(head.version) == 2


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_publisher_that_dies_leaves_the_old_version_or_the_new_one_whole(world, faults, moment):
    world.publish(version_of(1))
    store(SHARED_TENANT, version_of(2).definition)
    getattr(faults, moment)("TransactWriteItems", Crash())
    with pytest.raises(Crash):
        publish(SHARED_TENANT, version_of(2).definition)
    whole = 1 if moment == "before" else 2
    assert [int(row.version) for row in trigger_rows()] == [whole]
    assert [int(head.version) for head in fire(world)] == [whole]


def test_c30_of_two_publishers_at_once_the_loser_goes_on_from_what_the_winner_left(world, monkeypatch):
    world.publish(version_of(1, a=1))
    for number in (2, 3):
        store(SHARED_TENANT, version_of(number, a=number).definition)
    publish(SHARED_TENANT, version_of(2, a=2).definition)
    seen = [1]  # what the second had read before
    monkeypatch.setattr(
        "aftercommit.publish.find_pointer", lambda *key: seen.pop() if seen else find_pointer(*key)
    )
    assert publish(SHARED_TENANT, version_of(3, a=3).definition)
    assert [int(row.version) for row in trigger_rows()] == [3]
    assert find_pointer(SHARED_TENANT, "starter") == 3


def test_a_retraction_that_meets_another_version_takes_back_that_one(world, monkeypatch):
    for number in (1, 2):
        world.publish(version_of(number), owner="t")
    seen = [1]
    monkeypatch.setattr(
        "aftercommit.publish.find_pointer", lambda *key: seen.pop() if seen else find_pointer(*key)
    )
    retract("t", "starter")
    assert (trigger_rows(), find_pointer("t", "starter")) == ([], None)


def test_a_retracted_workflow_starts_no_more_and_what_runs_goes_on(world):
    root = Sequence(Event("begin", starts=True), Event("more"))
    put_draft("default", "w", {"root": root.to_json()})
    publish_draft("default", "w")
    send("begin")
    world.settle(seconds=5)
    retract("default", "w")
    with pytest.raises(NotFoundError):
        retract("default", "w")
    with pytest.raises(NotFoundError):
        world.dispatch("w")
    send("begin")
    send("more")
    world.settle(seconds=30)
    assert list(world.statuses().values()) == ["completed"]


def test_rows_of_a_version_that_is_not_published_are_passed_over(world):
    world.publish(version_of(1))
    [row] = trigger_rows()
    world.publish(Workflow("starter", version=2, root=Event("else", starts=True)))
    row.save()  # as if it had been left behind
    assert fire(world) == []


def test_c30_a_definition_that_can_no_longer_be_read_can_be_taken_back(world):
    world.publish(version_of(1), owner="t")
    world.set_raw(DefinitionRow, {"definition_key": "t#starter", "row": "version#000001"}, data={"S": "{"})
    load_definition.cache_clear()
    retract("t", "starter")
    assert find_pointer("t", "starter") is None


def test_a_stimulus_delivered_twice_starts_once(world):
    world.publish(starter)
    send("begin")
    [item] = stimuli(world)
    world.handle_item(item)
    world.handle_item(item)
    world.settle(seconds=5)
    for each in world.items("start"):
        world.handle_item(each)
    assert len(started(world)) == 1


def test_i11_a_start_point_of_a_tenant_is_none_of_anothers(world):
    world.publish(starter, owner="a")
    send("begin", tenant="b")
    world.settle(seconds=5)
    assert started(world) == []
    send("begin", tenant="a")
    world.settle(seconds=5)
    assert [head.tenant for head in started(world)] == ["a"]


def test_a_tenants_own_definition_hides_the_start_points_of_the_deployments(world):
    world.publish(starter)
    world.publish(Workflow("starter", root=Event("mine", starts=True)), owner="default")
    assert fire(world) == []
    [head] = fire(world, "mine")
    assert head.definition_owner == "default"


def test_what_a_stimulus_starts_is_the_owners_tree_whose_start_point_it_met(world):
    world.publish(starter)
    world.publish(Workflow("starter", root=Event("mine", starts=True)), owner="default")
    retract("default", "starter")  # its version 1 is stored still, beside the deployment's
    [head] = fire(world)
    assert (head.definition_owner, head.status) == (SHARED_TENANT, "completed")


def test_an_instance_finishes_on_its_version(world):
    waits = Sequence(Event("begin", starts=True), Event("more", result="x"))
    world.publish(Workflow("starter", root=waits))
    send("begin")
    world.settle(seconds=5)
    world.publish(Workflow("starter", version=2, root=Event("other", starts=True)))
    send("more")
    world.settle(seconds=30)
    assert [(int(head.version), head.status) for head in started(world)] == [(1, "completed")]


def test_a_trigger_row_names_what_it_starts(world):
    world.publish(starter)
    [row] = TriggerRow.scan()
    assert (row.owner, row.definition_id, int(row.version), row.activity_id) == ("*", "starter", 1, "root")
