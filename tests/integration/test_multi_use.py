"""Waits that stay, on the tables: each stimulus applies once, in order, whoever dies; and their scope."""

import pytest

from aftercommit import Break, Delay, Event, If, Sequence, Step, Workflow, var
from aftercommit.cancel import cancel
from aftercommit.stimulate import stimulate
from tests.integration.faults import Crash
from tests.integration.waits import bookmark_rows, send, stimuli
from tests.integration.world import effects

listener = Workflow(
    "listener",
    root=Event("e", each=If(var.x == "stop", then=Break(), otherwise=Step("act", name=var.x)), result="x"),
)
slow = Workflow("slow", root=Event("e", each=Sequence(Delay(60), Step("act", name=var.x)), result="x"))
starter = Workflow("starter", root=Event("e", starts=True, each=Step("act", name=var.x), result="x"))
private = Workflow("private", root=Event("e", scope="activity", starts=True, result="x"), output=var.x)


@pytest.fixture
def w(world):
    world.publish(listener, slow)
    return world


def listening(world, workflow="listener", **more):
    instance_id = world.dispatch(workflow, **more)
    world.run(instance_id)
    world.messages.clear()
    return instance_id


def send_in_turn(world, *values, name="e", **more):
    """Send one after the other, each at an instant of its own; returns the items."""
    for value in values:
        send(name, value=value, **more)
        world.clock.at += 0.01
    return stimuli(world)[-len(values) :]


def names():
    return [name for name, _, _ in effects]


def test_a_stimulus_delivered_twice_runs_one_round(w):
    instance_id = listening(w)
    [item] = send_in_turn(w, "once")
    for _ in range(2):
        w.handle_item(item)
    stimulate(item, w.worker())  # read before the first had committed
    assert names() == ["once"]
    assert (w.show(instance_id)["status"], len(bookmark_rows())) == ("suspended", 1)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_i6_a_stimulus_whose_worker_dies_at_its_commit_runs_one_round(w, faults, moment):
    instance_id = listening(w, "slow")
    [item] = send_in_turn(w, "once")
    getattr(faults, moment)("TransactWriteItems", Crash(), match="stimulate")
    with pytest.raises(Crash):
        w.handle_item(item)
    w.settle(seconds=900)
    w.handle_item(item)
    w.settle(seconds=900)
    assert names() == ["once"]
    assert [each["waits_for"] for each in w.show(instance_id)["bookmarks"]] == ["stimulus"]


def test_two_stimuli_run_a_round_each_in_order_of_arrival_whichever_message_comes_first(w):
    listening(w)
    items = send_in_turn(w, "first", "second")
    w.handle_item(items[-1])
    w.handle_item(items[0])
    assert names() == ["first", "second"]
    assert [item.status for item in stimuli(w)] == ["done", "done"]


def test_rounds_overlap_and_each_goes_on_with_its_own_input(w):
    instance_id = listening(w, "slow")
    for item in send_in_turn(w, "first", "second"):
        w.handle_item(item)
    kinds = [each["waits_for"] for each in w.show(instance_id)["bookmarks"]]
    assert kinds == ["stimulus", "timer", "timer"]
    w.settle(seconds=900)
    assert sorted(names()) == ["first", "second"]
    assert w.show(instance_id)["status"] == "suspended"


def test_stimuli_that_came_before_the_wait_run_a_round_each(w):
    send_in_turn(w, "first", "second", "third")
    w.dispatch("listener")
    w.settle(seconds=5)
    assert names() == ["first", "second", "third"]


def test_after_the_break_the_row_is_gone_and_what_comes_stays_open(w):
    instance_id = listening(w)
    items = send_in_turn(w, "go", "stop", "late")
    w.handle_item(items[-1])
    assert (w.show(instance_id)["status"], names(), bookmark_rows()) == ("completed", ["go"], [])
    assert [item.status for item in stimuli(w)] == ["done", "done", "undone"]


def test_a_cancel_ends_the_wait(w):
    instance_id = listening(w)
    cancel("default", instance_id, "enough")
    [item] = send_in_turn(w, "late")
    w.handle_item(item)
    assert (names(), stimuli(w)[0].status, bookmark_rows()) == ([], "undone", [])


def test_one_stimulus_runs_a_round_in_each_instance_that_waits(w):
    for _ in range(2):
        listening(w)
    send_in_turn(w, "all")
    w.settle(seconds=5)
    assert names() == ["all", "all"]


def test_the_event_that_starts_is_round_0_and_later_ones_both_start_and_reach(world):
    world.publish(starter)
    send("e", value="begin")
    world.settle(seconds=5)
    [head] = world.heads()
    assert (names(), head.status) == (["begin"], "suspended")
    send("e", value="mine", instance_id=head.instance_id)
    world.settle(seconds=5)
    assert (names(), len(world.heads())) == (["begin", "mine"], 1)
    send("e", value="more")
    world.settle(seconds=5)
    assert (sorted(names()), len(world.heads())) == (["begin", "mine", "more", "more"], 2)


# --- scope ---


def test_a_stimulus_reaches_a_wait_of_the_activity_only_if_it_names_it(world):
    world.publish(private)
    instance_id = listening(world, "private")
    [bookmark] = world.show(instance_id)["bookmarks"]
    send("e", value=1, instance_id=instance_id)
    send("e", value=2, execution_id="another")
    world.settle(seconds=5)
    assert world.show(instance_id)["status"] == "suspended"
    send("e", value=3, execution_id=bookmark["execution_id"])
    world.settle(seconds=5)
    assert world.show(instance_id)["output"] == 3


def test_a_start_is_reached_whatever_the_scope_and_never_by_naming_an_execution(world):
    world.publish(private)
    send("e", value=1, execution_id="any")
    world.settle(seconds=5)
    assert world.heads() == []
    send("e", value=2)
    world.settle(seconds=5)
    [head] = world.heads()
    assert world.show(head.instance_id)["output"] == 2


def test_a_named_execution_is_told_early_and_kept_until_it_waits(world):
    world.publish(private)
    first = listening(world, "private", instance_id="named")
    [bookmark] = world.show(first)["bookmarks"]
    cancel("default", first, "enough")
    world.head(first).delete()  # the same id again has the same executions
    for row in world.revisions(first):
        row.delete()
    send("e", value="early", execution_id=bookmark["execution_id"])
    world.settle(seconds=5)
    world.dispatch("private", instance_id="named")
    world.settle(seconds=120)
    assert world.show("named")["output"] == "early"
