"""The sweep's claim of instances, and the writes of publishing, as winner and as loser."""

from math import inf

import pytest

from aftercommit import DispatchWorkflow, Sequence, Step, Workflow, clock
from aftercommit.definitions import find_owner_and_version, load_definition, store
from aftercommit.errors import ConflictError, MalformedRowError, NotFoundError
from aftercommit.instances import lease
from aftercommit.publish import publish
from aftercommit.sweep import _claim_instance, sweep
from aftercommit.tables import DefinitionRow, HeadRow
from tests.integration.faults import refusal
from tests.integration.world import raw_rows

step = Workflow("step", root=Step("act", name="a"))


@pytest.fixture
def born(world):
    """An instance whose message was lost."""
    world.publish(step)
    world.dispatch("step", instance_id="i")
    world.messages.clear()
    return world


# --- instances ---


def test_a_pending_instance_is_sent_once_it_is_due(born):
    born.clock.at += 9.9
    sweep()
    assert born.messages == []
    born.clock.at += 0.1
    sweep()
    assert len(born.messages) == 1
    assert born.head("i").due_at == clock.to_text(clock.now() + 60)
    born.settle()
    assert born.head("i").status == "completed"


def test_of_two_sweeps_that_read_the_same_row_one_sends(born):
    born.clock.at += 10
    row = born.head("i")
    assert _claim_instance(row, inf)
    assert not _claim_instance(row, inf)
    assert int(born.head("i").sends) == 1


def test_c36_an_instance_whose_worker_may_live_is_looked_at_when_its_lease_ends(born):
    head = lease("default", "i", clock.now() + 125, waiting=False)
    born.clock.at += 10
    sweep()
    assert born.messages == []
    assert born.head("i").due_at == head.lease_until
    assert not born.head("i").sends
    born.clock.at = clock.from_text(head.lease_until)
    sweep()
    assert len(born.messages) == 1


def test_an_instance_that_ended_since_it_was_read_is_not_sent(born):
    row = born.head("i")
    born.run("i")
    born.clock.at += 10
    before = born.everything()
    assert not _claim_instance(row, inf)
    assert born.everything() == before


def test_each_send_without_effect_doubles_the_wait(born):
    waits = []
    for _ in range(8):
        born.clock.at = clock.from_text(born.head("i").due_at)
        sweep()
        waits.append(round(clock.from_text(born.head("i").due_at) - clock.now()))
    assert waits == [60, 120, 240, 480, 960, 1920, 3600, 3600]


def test_c36_one_failure_in_a_pass_stops_no_other(born, faults):
    for number in range(6):
        born.dispatch("step", instance_id=f"other-{number}")
    born.messages.clear()
    born.clock.at += 10
    faults.before("UpdateItem", RuntimeError("away"), match="other-3")
    sweep()
    assert len(born.messages) == 6
    assert "other-3" not in str(born.messages)


def test_r11_no_index_has_one_hot_key_and_what_is_settled_stands_in_none(world):
    world.publish(
        Workflow("brief", root=DispatchWorkflow("leaf")), Workflow("leaf", root=Step("act", name="x"))
    )
    for _ in range(12):
        world.run(world.dispatch("brief"))
    undone = raw_rows("OutboxTable")
    assert {row["due_shard"]["N"] for row in undone} == {"0", "1"}  # as many as DUE_SHARDS
    assert all("due_at" in row for row in undone)
    world.settle()
    assert not [
        row
        for table in ("OutboxTable", "InstancesTable")
        for row in raw_rows(table)
        if "due_at" in row or "attention_at" in row
    ]


def test_i9_a_shard_that_cannot_be_read_holds_back_no_other(born, faults):
    for number in range(12):
        born.dispatch("step", instance_id=f"other-{number}")
    born.messages.clear()
    born.clock.at += 10
    shard = int(born.head("i").due_shard)
    others = [head for head in born.heads() if int(head.due_shard) != shard]
    faults.before("Query", refusal("AccessDeniedException"), times=99, match='{"N": "%d"}' % shard)  # noqa: UP031
    sweep()
    assert len(born.messages) == len(others) > 0


def test_c14_a_head_that_cannot_be_read_holds_back_no_other(born):
    for number in range(3):
        born.dispatch("step", instance_id=f"other-{number}")
    born.messages.clear()
    born.set_raw(HeadRow, {"instance_key": "default#i", "row": "head"}, sends={"S": "many"})
    born.clock.at += 10
    sweep()
    assert len(born.messages) == 3


def test_c13_oldest_first_and_a_limit_caps_the_pass(world, set_environment):
    set_environment(DUE_SHARDS="1", SWEEP_BATCH="2")
    world.publish(step)
    for number in range(4):
        world.clock.at += 1
        world.dispatch("step", instance_id=f"i{number}")
    world.messages.clear()
    world.clock.at += 100
    assert sweep() is True
    assert [each.body for each in world.messages] == [
        '{"tenant":"default","instance_id":"i0"}',
        '{"tenant":"default","instance_id":"i1"}',
    ]
    sweep()
    assert len(world.messages) == 4
    assert sweep() is False


# --- definitions ---


def test_a_new_version_is_stored_and_then_pointed_to(world):
    assert store("*", step.definition)
    with pytest.raises(NotFoundError):
        find_owner_and_version("default", "step")
    assert publish("*", step.definition)
    assert find_owner_and_version("default", "step") == ("*", 1)


def test_a_version_that_is_there_is_left_alone(world):
    world.publish(step)
    before = world.everything()
    world.clock.at += 10
    assert not store("*", step.definition)
    assert not publish("*", step.definition)
    assert world.everything() == before


def test_i10_a_version_never_changes_once_it_is_stored(world):
    world.publish(step)
    before = world.everything()
    with pytest.raises(ConflictError, match="give the changed tree a new version"):
        store("*", Workflow("step", root=Sequence()).definition)
    assert world.everything() == before


def test_the_pointer_moves_to_another_version_and_back(world):
    second = Workflow("step", version=2, root=Sequence())
    world.publish(step, second)
    assert find_owner_and_version("default", "step") == ("*", 2)
    assert find_owner_and_version("default", "step", 1) == ("*", 1)
    assert publish("*", step.definition)
    assert find_owner_and_version("default", "step") == ("*", 1)


def test_i10_an_instance_finishes_on_the_version_it_started_on(world):
    world.publish(step)
    instance_id = world.dispatch("step")
    world.publish(Workflow("step", version=2, root=Sequence(), output="new"))
    world.settle()
    shown = world.show(instance_id)
    assert (shown["version"], shown["output"]) == (1, None)
    assert world.show(_settled(world, world.dispatch("step")))["output"] == "new"


def _settled(world, instance_id):
    world.settle()
    return instance_id


def test_a_stored_definition_that_cannot_be_read_is_told_as_such(world):
    world.publish(step)
    key = {"definition_key": "*#step", "row": "version#000001"}
    world.set_raw(DefinitionRow, key, data={"S": '{"id": "step"}'})
    with pytest.raises(MalformedRowError, match="step"):
        load_definition("*", "step", 1)
