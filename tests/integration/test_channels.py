"""Channels: a dispatch may name a queue of its own; everything about its instance travels on that."""

import json

import pytest

from aftercommit import DispatchWorkflow, Event, Retry, Sequence, Step, Workflow, aws, clock
from aftercommit.cancel import cancel
from aftercommit.client import StartRequest, dispatch_existing, execute
from aftercommit.deliver import deliver
from aftercommit.errors import DefinitionRefusedError, RefusedError, SettingError
from aftercommit.instances import lease
from aftercommit.outbox import find_item
from aftercommit.publish import put_draft
from aftercommit.queue import Message
from aftercommit.redrive import redrive
from aftercommit.settings import settings
from aftercommit.sweep import sweep
from tests.integration.world import behaviours, effects

slow = Workflow("slow", root=Step("act", name="slow"))
parent = Workflow("parent", root=DispatchWorkflow("slow", channel="reports", wait=True))


class Queue:
    """What was sent to a channel's queue."""

    def __init__(self):
        self.messages = []

    def take(self):
        """Return what came since the last time."""
        found, self.messages = self.messages, []
        return found


@pytest.fixture
def reports(world, set_environment):
    """The queue of the channel `reports`; notes what is sent there."""
    url = aws.client("sqs").create_queue(QueueName="reports")["QueueUrl"]
    set_environment(CHANNELS=f"reports={url}")
    queue = Queue()

    def note(params, **_):
        if params["QueueUrl"] == url:
            queue.messages += [json.loads(each["MessageBody"]) for each in params["Entries"]]

    events = aws.client("sqs").meta.events
    events.register("before-parameter-build.sqs.SendMessageBatch", note)
    yield queue
    events.unregister("before-parameter-build.sqs.SendMessageBatch", note)


@pytest.fixture
def item(world, reports):
    world.publish(slow, parent)
    world.run(world.dispatch("parent"))
    world.messages.clear()
    return world.item("start")


def again(item):
    return find_item(item.tenant, item.owner_id, item.item_id)


def named(item):
    return {"tenant": "default", "owner_id": item.owner_id, "item_id": item.item_id}


def test_r06_a_dispatch_is_sent_to_the_queue_of_its_channel_and_nowhere_else(world, reports, item):
    assert deliver([(item.owner_key, item.item_id)]) == 1
    assert reports.take() == [named(item)]
    assert world.messages == []


def test_r06_a_resend_of_the_sweep_goes_there_too(world, reports, item):
    deliver([(item.owner_key, item.item_id)])
    reports.take()
    world.clock.at += 100
    sweep()
    assert reports.take() == [named(item)]


def test_r06_the_hint_after_a_refused_attempt_goes_there_too(world, reports):
    world.publish(Workflow("parent", root=DispatchWorkflow("no-such", channel="reports")))
    world.run(world.dispatch("parent"))
    world.messages.clear()
    world.handle_item(world.item("start"))
    assert reports.take() == [named(world.item("start"))]
    assert world.messages == []


def test_r06_a_redriven_dispatch_goes_there_too(world, reports):
    world.publish(Workflow("parent", root=DispatchWorkflow("no-such", channel="reports")))
    world.run(world.dispatch("parent"))
    for _ in range(4):
        world.handle_item(world.item("start"))
    reports.take()
    item = world.item("start")
    redrive("default", item.owner_id, item.item_id)
    assert reports.take() == [named(item)]


def test_r06_a_worker_that_runs_out_of_time_sends_the_instance_on_there(world, reports, item):
    behaviours["slow"] = lambda context, value: world.clock.sleep(115)
    world.publish(Workflow("slow", version=2, root=Sequence(*[Step("act", name="slow") for _ in range(2)])))
    world.handle_item(item)
    assert reports.take() == [{"tenant": "default", "instance_id": item.instance_id}]


def test_r06_an_abandoned_instance_is_swept_there(world, reports, item):
    head = born(world, item)
    world.clock.at = clock.from_text(head.lease_until) + 1
    world.messages.clear()
    sweep()
    assert {"tenant": "default", "instance_id": item.instance_id} in reports.take()


def born(world, item):
    """Let the child be admitted by a worker that dies then."""

    class Died(BaseException):
        pass

    def die(context, value):
        raise Died

    behaviours["slow"] = die
    with pytest.raises(Died):
        world.handle_item(item)
    behaviours.clear()
    head = world.head(item.instance_id)
    assert head.channel == "reports"
    return head


def test_r06_a_retry_of_its_steps_goes_there(world, reports, item):
    retry = Retry(attempts_max=2, first_delay_seconds=5, jitter=0)
    world.publish(Workflow("slow", version=2, root=Step("act", name="slow", retry=retry)))
    behaviours["slow"] = lambda context, value: value if context.attempt > 1 else 1 / 0
    world.handle_item(item)
    [resume] = world.items("resume")
    assert resume.channel == "reports"
    deliver([(resume.owner_key, resume.item_id)])
    assert reports.take() == [named(resume)]


def test_r06_a_copy_for_a_held_lease_goes_there(world, reports):
    world.publish(Workflow("slow", root=Step("act", name="slow", retry=Retry(attempts_max=2))))
    behaviours["slow"] = lambda context, value: 1 / 0
    instance_id = world.dispatch("slow", channel="reports")
    world.run(instance_id)
    reports.take()
    resume = world.item("resume")
    world.clock.at += 60
    lease("default", instance_id, clock.now() + 100, waiting=True)
    world.handle_item(resume)
    [message] = reports.take()
    assert message == {**named(resume), "postponed": 1}
    assert world.messages == []


def test_a_call_over_the_api_goes_to_the_channel_it_names(world, reports):
    world.publish(slow)
    instance_id = world.dispatch("slow", channel="reports")
    assert reports.take() == [{"tenant": "default", "instance_id": instance_id}]
    dispatch_existing("default", instance_id)
    assert len(reports.take()) == 1
    assert world.messages == []
    executed = execute(StartRequest("default", "slow", {}, channel="reports"), deadline=clock.now() + 20)
    assert world.head(executed).channel == "reports"


def test_an_instance_without_a_channel_uses_the_default_queue(world, reports):
    world.publish(slow)
    world.dispatch("slow")
    assert len(world.messages) == 1
    assert reports.take() == []


# --- unknown channels: refused where they are written ---


def test_an_unknown_channel_is_refused_at_the_call(world, reports):
    world.publish(slow)
    before = world.everything()
    with pytest.raises(RefusedError, match="unknown channel 'fast'; this deployment has reports") as caught:
        world.dispatch("slow", channel="fast")
    assert caught.value.field == "channel"
    assert world.everything() == before


def test_an_unknown_channel_is_refused_when_it_is_put_or_published_naming_its_path(world, reports):
    tree = {"root": {"type": "Sequence", "activities": [{"type": "DispatchWorkflow", "workflow": "slow"}]}}
    dispatch = tree["root"]["activities"][0]
    assert put_draft("acme", "mine", tree | {"root": {**tree["root"]}})
    dispatch["channel"] = "reports"
    assert put_draft("acme", "mine", dict(tree))
    dispatch["channel"] = "fast"
    with pytest.raises(DefinitionRefusedError) as caught:
        put_draft("acme", "mine", dict(tree))
    assert caught.value.faults == [
        ("root.activities[0].channel", 'the deployment has no channel named "fast"')
    ]


def test_an_unknown_channel_is_refused_in_an_activity_and_faults_its_step(world, reports):
    behaviours["queue"] = lambda context, _: context.dispatch("slow", channel="fast")
    world.publish(slow, Workflow("queueing", root=Step("act", name="queue")))
    instance_id = world.dispatch("queueing")
    world.settle(60)
    assert "no channel 'fast'" in world.show(instance_id)["failure"]["message"]
    assert world.items("start") == []


def test_what_is_no_list_of_channels_is_refused_by_name(world, set_environment):
    set_environment(CHANNELS="reports")
    with pytest.raises(SettingError, match="expected name=queue address"):
        settings()


# --- channels that a deployment has lost ---


def test_a_start_whose_channel_is_lost_is_given_up_with_the_reason_and_can_be_redriven(
    world, item, set_environment, reports
):
    set_environment(CHANNELS="")
    world.settle(60)
    assert again(item).status == "failed"
    assert "unknown channel 'reports'; this deployment has none" in again(item).last_error
    assert "DispatchFailed" in world.show(item.owner_id)["failure"]["message"]
    assert effects == []


def test_an_instance_whose_channel_is_lost_goes_on_over_the_default_queue(
    world, item, set_environment, reports
):
    head = born(world, item)
    set_environment(CHANNELS="")
    world.clock.at = clock.from_text(head.lease_until) + 1
    world.settle(600)
    assert world.show(item.owner_id)["status"] == "completed"
    assert [name for name, _, _ in effects] == ["slow"]


def test_a_retry_whose_channel_is_lost_comes_over_the_default_queue(world, item, set_environment, reports):
    retry = Retry(attempts_max=2, first_delay_seconds=5, jitter=0)
    world.publish(Workflow("slow", version=2, root=Step("act", name="slow", retry=retry)))
    behaviours["slow"] = lambda context, value: value if context.attempt > 1 else 1 / 0
    world.handle_item(item)
    set_environment(CHANNELS="")
    world.settle(600)
    assert world.show(item.owner_id)["status"] == "completed"


def test_a_message_of_a_channel_for_something_that_is_gone_does_nothing(world, reports):
    world.handle(Message("default", owner_id="nobody", item_id="nothing"))
    world.handle(Message("default", instance_id="nobody"))
    assert reports.take() == []


def test_a_cancelled_parent_reaches_a_child_on_a_channel(world, item, reports):
    world.publish(Workflow("slow", version=2, root=Event("never")))
    world.handle_item(item)
    cancel("default", item.owner_id, "enough")
    world.settle(60)
    assert world.head(item.instance_id).status == "cancelled"
