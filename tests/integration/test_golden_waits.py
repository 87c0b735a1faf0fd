"""Golden rows of what waits: bookmarks, triggers, stimuli, timers, tasks, cancels, all midway."""

import pytest

from aftercommit import (
    BulkDispatchWorkflows,
    DispatchWorkflow,
    Event,
    Fork,
    Sequence,
    Step,
    Timer,
    Workflow,
    aws,
    moves,
    var,
)
from aftercommit.cancel import cancel
from aftercommit.deliver_events import deliver_events
from aftercommit.events import Event as Event_
from aftercommit.events import event_put
from aftercommit.operations import name_stimulus, read_stimulus_id, replay, resume_by_token
from aftercommit.publish import put_draft
from aftercommit.settings import settings
from aftercommit.tables import HeadRow
from tests.integration.golden import (
    NEWEST,
    masked,
    of_every_version,
    put_rows,
    read_golden,
    take_rows,
    write_golden_if_asked,
)
from tests.integration.waits import looper, racer, send, sleeper, starter, tasker, teller, waiter
from tests.integration.world import STARTED_AT, behaviours, effects

LOADED_AT = STARTED_AT + 700

stepper = Workflow("stepper", root=Sequence(Step("act", name="one"), Step("act", name="two")))
wide = Workflow("wide", root=Fork(*[DispatchWorkflow("stepper") for _ in range(4)]))
ticking = Workflow(
    "ticking", root=Sequence(Timer(3_600, starts=True, result="due"), Step("act", name="ticked"))
)
running = Workflow("running", root=Step("act", name="run another"))
many = Workflow(
    "many",
    root=BulkDispatchWorkflows("numbered", ["a", "b", "c"], wait=True, concurrent_max=2, result="x"),
    output=var.x.outputs,
)
numbered = Workflow("numbered", inputs={"item": str, "index": int}, root=Step("act", name="one of many"))
single = Workflow("single", activation="singleton", root=Event("paid", payload={"order": "single"}))

# What becomes of each instance once its rows are loaded, and what it waits for has come.
ENDINGS = {
    "waiting": "completed",
    "looping": "completed",
    "asking": "completed",
    "sleeping": "completed",
    "racing": "completed",
    "telling": "completed",
    "cancelled": "cancelled",
    "aborted": "faulted",
    "wide": "completed",
    "running": "completed",
    "single": "completed",
    "many": "completed",
}


def write_rows(world, monkeypatch):
    """Bring a deployment that waits into the middle of its work; returns its rows by table."""
    world.publish(waiter, looper, starter, tasker, sleeper, racer, teller, stepper, wide, ticking)
    world.publish(running, single, many, numbered)
    put_draft("default", "drafted", stepper.definition.data | {"id": "drafted"})

    def start(definition_id, instance_id, **given):
        world.dispatch(definition_id, given, instance_id=instance_id)
        world.run(instance_id)

    send("nobody-listens")
    world.clock.at += settings().stimulus_open_seconds + 1
    world.handle_item(world.item("stimulus"))  # a dead letter now
    start("waiter", "waiting", order="A")
    start("looper", "looping")
    send("tick", value="first")
    handle_undone(world, "stimulus")
    start("tasker", "asking")
    start("sleeper", "sleeping", seconds=2_000)
    start("racer", "racing")
    handle_undone(world, "start")  # its child waits, too
    send("go")
    handle_undone(world, "stimulus")
    start("waiter", "cancelled", order="B")
    cancel("default", "cancelled", "not wanted")
    world.dispatch("stepper", {}, instance_id="aborted")
    world.set_raw(HeadRow, {"instance_key": "default#aborted", "row": "head"}, leases={"N": "10"})
    world.run("aborted")
    with monkeypatch.context() as small:
        small.setattr(moves, "COMMIT_INTENTIONS_MAX", 2)
        start("wide", "wide")
    send("begin", value="started")
    handle_undone(world, "stimulus")  # split into a start
    behaviours["run another"] = lambda context, value: context.run("wide")
    start("running", "running")
    start("single", "single")
    start("many", "many")
    first = next(item for item in world.items("start") if item.item_id.endswith("-00000"))
    world.handle_item(first)  # one has ended, and the third is woken
    told = Event_("golden-told", {"n": 1}, id="golden-event", timestamp=STARTED_AT)
    put = event_put(told, table="OutboxTable")["Put"]
    aws.client("dynamodb").put_item(TableName=put["TableName"], Item=put["Item"])
    start("teller", "telling")  # an open stimulus that one of the waiters takes
    return take_rows()


def handle_undone(world, command):
    """See the items of a command through that are undone, and not for later."""
    for item in world.items(command):
        if item.status == "undone" and not item.deliver_at:
            world.handle_item(item)


def load(world, folder):
    put_rows(read_golden(folder, "waits"))
    world.clock.at = LOADED_AT


@pytest.fixture(autouse=True)
def _deployed_settings(set_environment):
    set_environment(DUE_SHARDS="8")


def test_todays_writers_write_the_newest_golden_rows_of_waits(world, monkeypatch, derived_ids):
    rows = write_rows(world, monkeypatch)
    write_golden_if_asked(waits=rows)
    assert masked(rows) == masked(read_golden(NEWEST, "waits"))


@of_every_version
def test_a_deployment_that_waits_goes_on_from_golden_rows(world, folder):
    load(world, folder)
    for instance_id in ENDINGS:
        assert world.show(instance_id)["instance_id"] == instance_id
    [task] = world.show("asking")["bookmarks"]
    resume_by_token("default", task["token"], "approved")
    send("tick", value="second")
    send("paid", {"order": "single"})
    [dead] = [item for item in world.items("stimulus") if item.status == "failed"]
    [event] = world.items("event")
    deliver_events([(event.owner_key, event.item_id)], until=world.clock.at + 60)
    assert world.item("event").status == "done"
    world.settle(10_000)
    assert world.raised == []
    assert world.dead_letters() == []
    statuses = world.statuses()
    assert {name: statuses[name] for name in ENDINGS} == ENDINGS
    assert world.show("asking")["output"] == "approved"
    assert world.show("waiting")["output"] == {"from": "teller"}
    by_definition = {}
    for head in world.heads():
        by_definition.setdefault(head.definition_id, []).append(head.status)
    assert by_definition["waiter"].count("cancelled") == 2, "the one cancelled, and the child of the race"
    assert by_definition["starter"] == ["completed"]
    assert by_definition["stepper"].count("completed") == 4, "one for each branch of wide"
    assert len(by_definition["ticking"]) >= 2, "the schedule went on"
    done = [name for name, _, _ in effects]
    assert (done.count("one"), done.count("two"), done.count("ticked")) == (
        4,
        4,
        len(by_definition["ticking"]),
    )
    assert replay("default", *read_stimulus_id(name_stimulus(dead.owner_id, dead.item_id)))
