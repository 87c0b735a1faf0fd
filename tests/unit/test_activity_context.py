"""What an activity queues: the same on every attempt, bounded, and in direct execution."""

import pytest

from aftercommit import Event, Fork, RunTask, Sequence, Step, Workflow, activity, direct, var
from aftercommit.errors import ResultTooLargeError
from aftercommit.functions import find_function
from aftercommit.intentions import begin_stimulus_id
from aftercommit.limits import COMMIT_INTENTIONS_MAX, RESULT_BYTES_MAX
from aftercommit.model import Finish as StepFinished
from aftercommit.model import Intention, command_from_json, command_to_json
from aftercommit.statuses import ItemCommand
from tests.unit.engine_runs import AT, Run
from tests.unit.test_functions import context


def queue_all(given):
    given.publish("paid", {"order": 7}, {"by": "card"}, correlation_id="c", local=True)
    given.resume("token", {"ok": True})
    given.run("other")
    given.dispatch("child")
    return given.intentions


def test_what_is_queued_says_what_it_is():
    published, resumed, run, dispatched = queue_all(context())
    assert (published.command, published.body) == (
        ItemCommand.STIMULUS,
        {
            "stimulus": {"name": "event:paid", "payload": {"order": 7}},
            "value": {"by": "card"},
            "correlation_id": "c",
            "instance_id": "i",
        },
    )
    assert (resumed.command, resumed.body) == (
        ItemCommand.RESUME,
        {"token": "token", "value": {"ok": True}},
    )
    assert (run.command, run.body) == (ItemCommand.RUN, {"instance_id": "other"})
    assert dispatched.command == ItemCommand.START


def test_an_event_is_for_all_unless_it_is_narrowed_down():
    given = context()
    given.publish("paid")
    assert given.intentions[0].body == {"stimulus": {"name": "event:paid", "payload": {}}}


def test_ids_are_the_same_on_every_attempt_and_others_in_another_execution():
    first, again, other = (
        [each.item_id for each in queue_all(context(**more))]
        for more in ({}, {"attempt": 2}, {"idempotency_key": "execution-2"})
    )
    assert first == again
    assert len(set(first) | set(other)) == 8


def test_values_are_taken_as_they_are_when_they_are_queued():
    given, payload, value = context(), {"a": [1]}, {"b": (1, 2)}
    given.publish("e", payload, value)
    given.resume("token", value)
    payload["a"].append(2)
    value["b"] = None
    assert given.intentions[0].body["stimulus"]["payload"] == {"a": [1]}
    assert [each.body["value"] for each in given.intentions] == [{"b": [1, 2]}] * 2


@pytest.mark.parametrize(
    ("method", "arguments", "told"),
    [
        ("publish", ("",), "an event's name"),
        ("publish", ("e", ["no object"]), "a payload"),
        ("publish", ("e", {"a": float("nan")}), "not JSON compliant"),
        ("publish", ("e", {}, object()), "not JSON serializable"),
        ("resume", ("",), "a token"),
        ("resume", (5,), "a token"),
        ("resume", ("t" * 1_001,), "a token"),
        ("resume", ("token", {1, 2}), "not JSON serializable"),
        ("run", ("",), "an instance id"),
        ("run", ("i" * 201,), "an instance id"),
    ],
)
def test_what_nothing_could_deliver_raises_where_it_is_queued(method, arguments, told):
    given = context()
    with pytest.raises((TypeError, ValueError), match=told):
        getattr(given, method)(*arguments)
    assert given.intentions == []


def test_an_event_for_a_correlation_id_that_is_none_raises():
    with pytest.raises(ValueError, match="a correlation id"):
        context().publish("e", correlation_id="")


@activity(name="queue-many")
def queue_many(count: int, size: int, context) -> None:
    for _ in range(count):
        context.publish("e", input="x" * size)


@pytest.mark.parametrize(("count", "size"), [(COMMIT_INTENTIONS_MAX + 1, 1), (3, RESULT_BYTES_MAX // 3)])
def test_as_much_as_no_commit_can_hold_fails_the_activity(count, size):
    with pytest.raises(ResultTooLargeError, match="published"):
        find_function("queue-many").run({"count": count, "size": size}, context())


def test_events_of_one_activity_bear_the_instant_of_its_result_in_their_order():
    run = Run(Step("a"))
    given = context()
    given.publish("e", input=1)
    given.publish("e", input=2)
    run.give(StepFinished(run.state.ready[0], None, given.intentions))
    ids = [each.item_id for each in run.intentions]
    assert ids == sorted(ids)
    assert all(each.startswith(f"{begin_stimulus_id(AT)}-") for each in ids)
    assert [each.item_id[:4] for each in given.intentions] == ["0000", "0001"]  # what is stored is left alone


def test_what_was_queued_survives_its_revision_row():
    queued = queue_all(context())
    stored = command_from_json(command_to_json(StepFinished("x", 1, queued)))
    assert stored.intentions == queued
    assert all(isinstance(each, Intention) for each in stored.intentions)


# --- direct execution ---


@activity(name="act-on-others")
def act_on_others(context) -> None:
    context.publish("paid", {"n": 1}, "by card")
    context.publish("mine", local=True)
    context.resume("approve", "yes")
    context.resume("no such task")
    context.run("nobody")
    context.dispatch("child")


def test_direct_execution_does_what_an_activity_has_queued():
    root = Sequence(
        Fork(
            Step(act_on_others),
            Event("paid", payload={"n": 1}, result="paid"),
            Event("mine"),
            RunTask("approve", result="answer"),
        )
    )
    workflow = Workflow("w", root=root, output=[var.paid, var.answer])
    child = Workflow("child", root=Event("mine"))
    result = direct.run(workflow, workflows=[child])
    assert (result.status, result.output) == ("completed", ["by card", "yes"])
    assert [each.status for each in result.children] == ["suspended"]
