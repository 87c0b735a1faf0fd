"""What activities queue, on the tables: it commits with their result or not at all, and is delivered once."""

import pytest

from aftercommit import Event, Sequence, Step, Workflow, clock, var
from aftercommit.cancel import cancel
from aftercommit.instances import lease
from aftercommit.operations import resume_by_token
from aftercommit.resume import resume
from aftercommit.run import run_item
from aftercommit.tables import HeadRow, ItemRow
from tests.integration.faults import Crash, no_answer
from tests.integration.waits import stimuli, tasker
from tests.integration.world import behaviours, effects

sender = Workflow("sender", root=Sequence(Step("act", name="send"), Step("act", name="after")))
hearer = Workflow("hearer", root=Event("told", payload={"n": 1}, result="x"), output=var.x)
plain = Workflow("plain", root=Step("act", name="plain"))


@pytest.fixture
def w(world):
    world.publish(sender, hearer, tasker, plain)
    return world


def sending(world, act, **more):
    """Start a sender whose activity does so, and run it; returns its id."""
    behaviours["send"] = lambda context, value: act(context)
    instance_id = world.dispatch("sender", **more)
    world.run(instance_id, tenant=more.get("tenant", "default"))
    return instance_id


def offered(world, tenant="default"):
    instance_id = world.dispatch("tasker", tenant=tenant)
    world.run(instance_id, tenant=tenant)
    [bookmark] = world.show(instance_id, tenant)["bookmarks"]
    world.messages.clear()
    return instance_id, bookmark["token"]


def own_items(world, instance_id):
    return list(ItemRow.query(world.head(instance_id).instance_key))


def ran(world, name):
    return sum(1 for each, _, _ in effects if each == name)


# --- with the result, or not at all ---


def act_on_all(token):
    def act(context):
        context.publish("told", {"n": 1}, "hello")
        context.resume(token, "yes")
        context.run("nobody")
        context.dispatch("plain")

    return act


def test_what_an_activity_queues_is_in_the_commit_of_its_result(w, faults):
    _, token = offered(w)
    sending(w, act_on_all(token))
    [commit] = [sent for _, sent in faults.writes() if "told" in str(sent)]
    assert [next(iter(each)) for each in commit["TransactItems"]] == ["Put"] * 5  # revision, and four items


def test_i1_an_activity_that_raises_has_sent_nothing(w):
    _, token = offered(w)

    def act(context):
        act_on_all(token)(context)
        raise ValueError("after all")

    instance_id = sending(w, act)
    assert (w.head(instance_id).status, own_items(w, instance_id), stimuli(w)) == ("faulted", [], [])


@pytest.mark.parametrize("moment", ["before", "after"])
def test_i3_an_activity_whose_worker_dies_at_its_commit_has_sent_once(w, faults, moment):
    task_id, token = offered(w)
    hearing = w.dispatch("hearer")
    w.run(hearing)
    behaviours["send"] = lambda context, value: act_on_all(token)(context)
    instance_id = w.dispatch("sender")
    getattr(faults, moment)("TransactWriteItems", Crash(), match="told")
    with pytest.raises(Crash):
        w.run(instance_id)
    w.settle(seconds=900)
    assert (w.show(hearing)["output"], w.show(task_id)["output"]) == ("hello", "yes")
    assert (len(stimuli(w)), ran(w, "plain"), ran(w, "after")) == (1, 1, 1)
    assert len(own_items(w, instance_id)) == 3


def test_events_of_one_activity_arrive_in_their_order(w):
    w.publish(
        Workflow("two", root=Sequence(Event("e", result="a"), Event("e", result="b")), output=[var.a, var.b])
    )
    waiting = w.dispatch("two")
    w.run(waiting)
    sending(w, lambda context: [context.publish("e", input=number) for number in (1, 2)] and None)
    w.settle(seconds=5)
    assert w.show(waiting)["output"] == [1, 2]


def test_a_local_event_reaches_its_own_instance_only(w):
    other = w.dispatch("hearer")
    w.run(other)
    sending(w, lambda context: context.publish("told", {"n": 1}, local=True))
    w.settle(seconds=5)
    assert w.head(other).status == "suspended"


# --- resume ---


def test_a_task_of_any_instance_of_the_tenant_is_completed(w):
    task_id, token = offered(w)
    instance_id = sending(w, lambda context: context.resume(token, {"ok": True}))
    w.settle(seconds=5)
    assert w.show(task_id)["output"] == {"ok": True}
    assert (w.head(instance_id).status, w.incidents()) == ("completed", [])


def test_i6_a_token_delivered_twice_completes_once(w):
    task_id, token = offered(w)
    instance_id = sending(w, lambda context: context.resume(token, 1))
    [item] = own_items(w, instance_id)
    for _ in range(2):
        w.handle_item(item)
    resume(item, w.worker())  # read before the first had committed
    assert [each.item_id[:9] for each in own_items(w, task_id)] == ["callback-"]
    assert w.incidents() == []


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_token_whose_worker_dies_at_its_commit_completes_once(w, faults, moment):
    task_id, token = offered(w)
    sending(w, lambda context: context.resume(token, 1))
    getattr(faults, moment)("TransactWriteItems", Crash(), match="callback-")
    w.deliver_new()
    with pytest.raises(Crash):
        w.serve()
    w.settle(seconds=900)
    assert (w.show(task_id)["output"], w.incidents()) == (1, [])


def test_a_token_whose_answer_was_lost_is_no_incident(w, faults):
    task_id, token = offered(w)
    sending(w, lambda context: context.resume(token, 1))
    plan = faults.after("TransactWriteItems", no_answer(), match="callback-")
    w.settle(seconds=5)
    assert (plan.struck, w.show(task_id)["output"], w.incidents()) == (1, 1, [])


def test_c04_a_token_that_is_good_for_nothing_is_an_incident_of_its_sender(w):
    task_id, token = offered(w)
    resume_by_token("default", token, "first")
    used = sending(w, lambda context: context.resume(token, "second"))
    forged = sending(w, lambda context: context.resume("no token"))
    _, foreign = offered(w, "other")
    abroad = sending(w, lambda context: context.resume(foreign))
    w.settle(seconds=5)
    assert w.show(task_id)["output"] == "first"
    assert sorted(each.instance_id for each in w.incidents()) == sorted([used, forged, abroad])
    assert {each.error_type for each in w.incidents()} == {"NotFoundError"}
    assert {w.head(each).status for each in (used, forged, abroad)} == {"completed"}


def test_a_token_of_a_task_that_was_cancelled_is_an_incident(w):
    task_id, token = offered(w)
    sending(w, lambda context: context.resume(token))
    cancel("default", task_id, "enough")
    w.settle(seconds=5)
    assert len(w.incidents()) == 1


def test_i9_a_bad_token_holds_nothing_back(w):
    task_id, token = offered(w)

    def act(context):
        context.resume("bad")
        context.resume(token, 1)

    sending(w, act)
    w.settle(seconds=5)
    assert w.show(task_id)["output"] == 1


# --- run ---


def test_a_pending_instance_is_run(w):
    pending = w.dispatch("plain")
    w.messages.clear()
    instance_id = sending(w, lambda context: context.run(pending))
    [item] = own_items(w, instance_id)
    w.handle_item(item)
    assert (w.head(pending).status, own_items(w, instance_id)[0].status) == ("completed", "done")
    w.handle_item(item)
    run_item(item, w.worker())  # read before the first had committed
    assert ran(w, "plain") == 1


def test_a_stranded_instance_is_run(w):
    stranded = w.dispatch("plain")
    lease("default", stranded, clock.now() + 1, waiting=False)
    w.messages.clear()
    w.clock.at += 2
    instance_id = sending(w, lambda context: context.run(stranded))
    w.handle_item(own_items(w, instance_id)[0])
    assert w.head(stranded).status == "completed"


def test_the_item_is_done_in_the_first_commit_of_the_run(w, faults):
    w.publish(Workflow("two-steps", root=Sequence(Step("act", name="one"), Step("act", name="two"))))
    pending = w.dispatch("two-steps")
    instance_id = sending(w, lambda context: context.run(pending))
    [item] = own_items(w, instance_id)
    w.messages.clear()
    faults.before("TransactWriteItems", Crash(), match="revision#0000000002")
    with pytest.raises(Crash):
        w.handle_item(item)
    assert own_items(w, instance_id)[0].status == "done"
    w.settle(seconds=900)
    assert w.head(pending).status == "completed"


def waits(world):
    instance_id = world.dispatch("hearer")
    world.run(instance_id)
    return instance_id


def ended(world):
    instance_id = world.dispatch("plain")
    world.run(instance_id)
    return instance_id


def busy(world):
    instance_id = world.dispatch("plain")
    lease("default", instance_id, clock.now() + 125, waiting=False)
    return instance_id


@pytest.mark.parametrize(
    "make", [waits, ended, busy, lambda world: "nobody"], ids=["waits", "ended", "busy", "none"]
)
def test_what_is_not_to_be_run_is_left_alone_and_the_item_is_done(w, log_lines, make):
    target = make(w)
    before = [row.revision for row in HeadRow.scan(HeadRow.instance_id == target)]
    instance_id = sending(w, lambda context: context.run(target))
    w.messages.clear()
    w.handle_item(own_items(w, instance_id)[0])
    assert own_items(w, instance_id)[0].status == "done"
    assert [row.revision for row in HeadRow.scan(HeadRow.instance_id == target)] == before
    assert (any("nothing to run" in line for line in log_lines), w.incidents()) == (True, [])


def test_i11_an_instance_of_another_tenant_is_not_there(w):
    theirs = w.dispatch("plain", tenant="other")
    instance_id = sending(w, lambda context: context.run(theirs))
    w.messages.clear()
    w.handle_item(own_items(w, instance_id)[0])
    assert w.head(theirs, "other").status == "pending"
