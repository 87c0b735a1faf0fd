"""Many at once, many in a row, many deep: all of it goes through, and each round costs what the first did."""

from math import ceil

from aftercommit import (
    Event,
    Fork,
    If,
    ParallelForEach,
    Sequence,
    SetVariable,
    Step,
    While,
    Workflow,
    expr,
    var,
)
from aftercommit.operations import replay, send_event
from aftercommit.paging import Page
from aftercommit.tables import ItemRow
from aftercommit.views import list_dead_letters
from tests.integration.waits import bookmark_rows, send, stimuli, waiter, waiting
from tests.integration.world import behaviours, effects
from tests.simulation.dynamodb import item_size

WRITES = ("PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems")


def test_a_fork_of_fifty_branches_that_each_wait_ends_with_the_last(world):
    branches = [Event("go", payload={"n": n}, result=f"v{n}") for n in range(50)]
    world.publish(Workflow("wide", root=Fork(*branches)))
    instance_id = world.dispatch("wide")
    world.run(instance_id)
    assert len(bookmark_rows()) == 50
    for number in reversed(range(50)):
        send_event(
            "default", "go", payload={"n": number}, value=number, correlation_id=None, instance_id=None
        )
        world.handle_item(stimuli(world)[-1])
        if number < 2:
            assert world.show(instance_id)["status"] == ("suspended" if number else "completed")
    assert world.show(instance_id)["variables"] == {f"v{number}": number for number in range(50)}
    assert bookmark_rows() == []


def test_waits_that_come_before_a_step_take_no_room_in_its_commit(world):
    """Sixty waits and sixty dispatches are more than one transaction has room for."""

    def dispatch(context, value):
        return [context.dispatch("nobody") for _ in range(60)]

    behaviours["many"] = dispatch
    waits = [Event(f"e{number}") for number in range(60)]
    world.publish(Workflow("crowded", root=Fork(*waits, Step("act", name="many"), wait="all")))
    instance_id = world.dispatch("crowded")
    world.run(instance_id)
    assert [name for name, _, _ in effects] == ["many"]
    assert (len(bookmark_rows()), len(world.items("start"))) == (60, 60)
    assert world.show(instance_id)["status"] == "suspended"


def test_a_parallel_loop_over_two_hundred_items_runs_each_once_and_waits_for_all(world):
    body = Sequence(Step("act", name=var.item), Event("go"), Step("act", name=var.item))
    world.publish(Workflow("wide", root=ParallelForEach(expr("[1..200].('i' & $)"), body)))
    instance_id = world.dispatch("wide")
    world.run(instance_id)
    assert sorted(name for name, _, _ in effects) == sorted(f"i{number}" for number in range(1, 201))
    assert len(bookmark_rows()) == 200
    send("go")  # one stimulus for all waits of an instance
    world.settle(seconds=5)
    assert world.show(instance_id)["status"] == "completed"
    assert sorted(name for name, _, _ in effects) == sorted(
        f"i{number}" for number in range(1, 201) for _ in range(2)
    )


def test_r18_a_thousand_rounds_cost_the_same_each_in_requests_and_units(world, faults):
    world.publish(
        Workflow(
            "long",
            root=Sequence(
                SetVariable("n", 0),
                While(var.n < 1_000, Sequence(Step("act", name="x"), SetVariable("n", var.n + 1))),
            ),
        )
    )
    instance_id = world.dispatch("long")
    faults.sent.clear()
    world.run(instance_id)
    assert world.show(instance_id)["variables"] == {"n": 1_000}
    assert len(effects) == 1_000
    rounds = [sent for name, sent in faults.sent if name == "PutItem"]
    assert len(rounds) == 999  # the last one ends with its burst
    assert {ceil(item_size(sent["Item"]) / 1024) for sent in rounds} == {1}
    others = [name for name, _ in faults.sent if name in WRITES and name != "PutItem"]
    assert others == ["UpdateItem", "TransactWriteItems"]  # the lease, and the end


def test_twenty_levels_of_activities_wait_and_go_on_through_all_of_them(world):
    root = Sequence(Step("act", name="deepest"), Event("go"), Step("act", name="after"))
    for number in range(20):
        root = [
            Sequence(root),
            If(var.once == number, then=root),
            Fork(root),
            While(var.once == number, root),
        ][number % 4]
        root = Sequence(SetVariable("once", number), root, SetVariable("once", None))
    world.publish(Workflow("deep", root=root))
    instance_id = world.dispatch("deep")
    world.run(instance_id)
    assert world.show(instance_id)["status"] == "suspended"
    send("go")
    world.settle(seconds=5)
    assert world.show(instance_id)["status"] == "completed"
    assert [name for name, _, _ in effects] == ["deepest", "after"]


def test_i9_a_page_of_stimuli_that_fail_does_not_hide_the_next_page(world, set_environment):
    set_environment(SWEEP_BATCH="5", EAGER_DELIVERY="false", DUE_SHARDS="1")
    world.publish(waiter)
    for _ in range(6):
        send("paid", {"order": "B"})
        bad = stimuli(world)[-1]
        world.set_raw(ItemRow, {"owner_key": bad.owner_key, "item_id": bad.item_id}, body={"S": "{"})
        world.clock.at += 0.01
    instance_id = waiting(world)
    send("paid", {"order": "A"}, 1)
    world.settle(seconds=60)
    assert world.show(instance_id)["output"] == 1


def test_i9_a_page_of_dead_letters_that_cannot_be_read_does_not_hide_the_next_page(world):
    world.publish(waiter)
    names = []
    for number in range(5):
        names.append(send("paid", {"order": "A"}))
        world.clock.at += 1
        last = stimuli(world)[-1]
        if number < 3:
            world.set_raw(ItemRow, {"owner_key": last.owner_key, "item_id": last.item_id}, body={"S": "{"})
    world.settle(seconds=900)
    found, cursor = [], None
    while True:
        page = list_dead_letters("default", Page(2, cursor))
        found += [each["stimulus_id"] for each in page["dead_letters"]]
        cursor = page.get("cursor")
        if not cursor:
            break
    assert sorted(found) == sorted(names)
    replay("default", *names[-1].split("."))
    instance_id = waiting(world)
    world.settle(seconds=60)
    assert world.show(instance_id)["status"] == "completed"
