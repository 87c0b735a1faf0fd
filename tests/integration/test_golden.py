"""Stored rows and messages of every released form still load, and today's writers write the newest form.

How the files are made anew: golden.py.
"""

import pytest

from aftercommit import (
    DispatchWorkflow,
    Fault,
    Finish,
    If,
    Retry,
    Sequence,
    SetVariable,
    Step,
    Workflow,
    var,
)
from aftercommit import inputs as given_inputs
from aftercommit.queue import Message, read_message
from tests.integration.faults import Crash
from tests.integration.golden import (
    NEWEST,
    masked,
    of_every_version,
    put_rows,
    read_golden,
    take_rows,
    write_golden_if_asked,
)
from tests.integration.world import behaviours, effects

TABLES = ("DefinitionsTable", "InstancesTable", "OutboxTable")

child = Workflow("golden-child", inputs={"n": int}, root=Sequence(), output={"n": given_inputs.n})
faulty = Workflow("golden-faulty", root=Sequence(SetVariable("x", 1), Fault("no stock", code="Stock")))
parent = Workflow(
    "golden-parent",
    version=3,
    inputs={"text": str, "n": int},
    root=Sequence(
        Step("act", name="first", value=given_inputs.n, result="first"),
        If(
            given_inputs.n == 0,
            then=Finish("nothing to do"),
            otherwise=DispatchWorkflow("golden-child", input={"n": var.first}, wait=True, result="made"),
        ),
        Step("act", name="second", value=var.made.n, retry=Retry(attempts_max=2, first_delay_seconds=60)),
    ),
    output=var.made,
)
forgetting = Workflow("golden-forgetting", root=DispatchWorkflow("golden-nobody"))

# What becomes of each instance once its rows are loaded.
ENDINGS = {
    "born": "completed",
    "leased": "completed",
    "waiting": "completed",
    "told": "completed",
    "retrying": "completed",
    "large": "completed",
    "faulted": "faulted",
    "forgetting": "completed",
}
MESSAGES = [
    Message("default", owner_id="waiting", item_id="5dcef1fe9e5bd7b6d1a0af4c73d04ac57e5b1d35"),
    Message("default", instance_id="born"),
    Message("acme-1", instance_id="born", postponed=3),
]


def write_rows(world):
    """Bring a deployment into the middle of its work; returns its rows by table."""
    world.publish(child, faulty, parent, forgetting)

    def start(definition_id, instance_id, *, run=True, **given):
        world.dispatch(definition_id, given, instance_id=instance_id, correlation_id=f"of-{instance_id}")
        if run:
            world.run(instance_id)

    def fail(context, value):
        raise OSError("not yet")

    def die(context, value):
        raise Crash

    start("golden-parent", "waiting", n=1, text="short")
    start("golden-parent", "large", n=2, text="é" * 3_000)
    start("golden-parent", "told", n=3, text="short")
    world.handle_item(_dispatch_of(world, "told"))
    start("golden-parent", "retrying", n=4, text="short")
    world.handle_item(_dispatch_of(world, "retrying"))
    behaviours["second"] = fail
    world.handle_item(_dispatch_of(world, "retrying", "resume"))
    behaviours["first"] = die
    with pytest.raises(Crash):
        start("golden-parent", "leased", n=5, text="short")
    behaviours.clear()
    start("golden-faulty", "faulted")
    start("golden-forgetting", "forgetting")
    for _ in range(4):
        world.handle_item(_dispatch_of(world, "forgetting"))
    start("golden-parent", "born", run=False, n=6, text="short")
    return take_rows(TABLES)


def _dispatch_of(world, owner_id, command="start"):
    return next(row for row in world.items(command) if owner_id in (row.owner_id, row.instance_id))


@pytest.fixture(autouse=True)
def _deployed_settings(set_environment):
    set_environment(DUE_SHARDS="8")


def test_todays_writers_write_the_newest_golden_rows(world):
    rows = write_rows(world)
    write_golden_if_asked(rows=rows, messages=[each.to_text() for each in MESSAGES])
    assert masked(rows) == masked(read_golden(NEWEST, "rows"))


def test_todays_messages_are_the_newest_golden_ones():
    assert [each.to_text() for each in MESSAGES] == read_golden(NEWEST, "messages")


@of_every_version
def test_golden_messages_still_read(folder):
    for text in read_golden(folder, "messages"):
        message = read_message(text)
        assert message.tenant
        assert message.instance_id or (message.owner_id and message.item_id)


@of_every_version
def test_a_deployment_of_golden_rows_goes_on(world, folder):
    put_rows(read_golden(folder, "rows"))
    for instance_id in ENDINGS:
        assert world.show(instance_id)["instance_id"] == instance_id
    world.settle(1_000)
    assert world.raised == []
    assert world.dead_letters() == []
    statuses = world.statuses()
    assert {instance_id: statuses[instance_id] for instance_id in ENDINGS} == ENDINGS
    assert sorted(name for name, _, _ in effects) == ["first"] * 2 + ["second"] * 6
    assert world.show("large")["output"] == {"n": 2}
    [failed] = world.show("forgetting")["dispatches"]
    assert (failed["status"], failed["attempts"]) == ("failed", 4)
