"""What waits and what is sent: Delay, StartAt, Event, PublishEvent, RunTask, Correlate; under the engine."""

import pytest

from aftercommit import (
    Correlate,
    Delay,
    Event,
    Fork,
    PublishEvent,
    RunTask,
    Sequence,
    StartAt,
    Step,
    While,
    Workflow,
    clock,
    engine,
    expr,
    var,
)
from aftercommit import inputs as given_inputs
from aftercommit.limits import INPUT_BYTES_MAX
from aftercommit.model import Resume, Start, State, Stimulate
from aftercommit.statuses import InstanceStatus, ItemCommand
from tests.unit.engine_runs import AT, Run, failure_of, happen, waiting

YEARS_11 = 11 * 365 * 86_400


# --- Delay and StartAt ---


@pytest.mark.parametrize("seconds", [0, 0.5, 1, 86_400, 10 * 365 * 86_400])
def test_a_delay_is_a_wait_with_a_timer_in_the_outbox(seconds):
    run = Run(Sequence(Delay(given_inputs.s), Step("after")), inputs={"s": seconds})
    assert run.state.status == InstanceStatus.SUSPENDED
    [timer] = run.intentions
    [bookmark] = run.state.bookmarks.values()
    assert (timer.command, timer.deliver_at) == (ItemCommand.RESUME, AT + seconds)
    assert timer.body == {"instance_id": "i", "bookmark_id": bookmark.bookmark_id, "outcome": "Done"}
    assert (bookmark.waits_for, bookmark.until) == ("timer", clock.to_text(AT + seconds))
    assert run.resume("Done")
    assert run.ready == ["root.activities[1]"]


@pytest.mark.parametrize("seconds", [-1, -0.001, True, False, "5", None, [], {}, YEARS_11, 1e300])
def test_a_delay_that_is_none_faults(seconds):
    failure = failure_of(Run(Delay(given_inputs.s), inputs={"s": seconds}))
    assert failure.type == "ExpressionError"
    assert "seconds" in failure.message


def test_each_round_of_a_loop_has_a_timer_of_its_own():
    run = Run(While(expr("true"), Delay(1)))
    for _ in range(3):
        run.resume("Done")
    assert len({each.item_id for each in run.intentions}) == 4


@pytest.mark.parametrize("ahead", [0.5, 3600, 86_400 * 365])
@pytest.mark.parametrize("offset", ["Z", "+00:00"])
def test_a_start_at_waits_until_its_instant(ahead, offset):
    text = clock.to_text(AT + ahead).replace("Z", offset)
    run = Run(Sequence(StartAt(text), Step("after")))
    [timer] = run.intentions
    assert timer.deliver_at == pytest.approx(AT + ahead, abs=0.001)
    run.resume("Done")
    assert run.ready == ["root.activities[1]"]


@pytest.mark.parametrize("text", [clock.to_text(AT), clock.to_text(AT - 1), "2001-01-01T00:00:00+02:00"])
def test_a_start_at_in_the_past_goes_on_at_once(text):
    run = Run(Sequence(StartAt(text), Step("after")))
    assert run.ready == ["root.activities[1]"]
    assert run.intentions == []


@pytest.mark.parametrize(
    ("at", "told"),
    [
        ("tomorrow", "is no ISO 8601 instant"),
        ("", "is no ISO 8601 instant"),
        ("2026-13-01T00:00:00Z", "is no ISO 8601 instant"),
        ("2026-12-01T00:00:00", "has no offset"),
        ("2026-12-01", "has no offset"),
        (5, "expected an instant"),
        (None, "expected an instant"),
        ("9999-12-31T23:59:59Z", "seconds ahead"),
    ],
)
def test_a_start_at_that_is_no_instant_faults(at, told):
    assert told in failure_of(Run(StartAt(given_inputs.at), inputs={"at": at})).message


# --- Event ---


def test_an_event_waits_for_its_name_and_payload():
    run = Run(
        Event("paid", payload={"order": given_inputs.id, "paid": True}, result="x"),
        inputs={"id": 7},
        output=var.x,
    )
    [bookmark] = run.state.bookmarks.values()
    assert bookmark.stimulus == {"name": "event:paid", "payload": {"order": 7, "paid": True}}
    assert happen(run, "paid", {"by": "card"}, paid=True, order=7)
    assert run.state.output == {"by": "card"}


@pytest.mark.parametrize(
    ("name", "payload"),
    [
        ("paid", {}),
        ("paid", {"order": 8}),
        ("paid", {"order": "7"}),
        ("paid", {"order": 7, "more": 1}),
        ("other", {"order": 7}),
    ],
)
def test_an_event_of_another_name_or_payload_finds_nothing(name, payload):
    run = Run(Event("paid", payload={"order": 7}))
    assert not happen(run, name, **payload)
    assert run.state.status == InstanceStatus.SUSPENDED


def test_true_is_not_one_to_an_event():
    run = Run(Fork(Event("e", payload={"n": 1}), Event("e", payload={"n": True})))
    assert happen(run, "e", n=1)
    assert waiting(run) == ["root.branches[1]"]


def test_i6_an_event_that_comes_twice_applies_once():
    run = Run(Sequence(Event("e"), Step("a")))
    assert happen(run, "e")
    assert not happen(run, "e")


def test_two_events_for_two_rounds_apply_to_one_round_each():
    run = Run(While(expr("true"), Sequence(Event("e", result="x"), Step("a", x=var.x))))
    for value in ("first", "second"):
        assert happen(run, "e", value)
        assert run.state.executions[run.state.ready[0]].memory["inputs"] == {"x": value}
        run.finish()


def test_a_bookmark_that_a_stimulus_can_find_is_told_when_it_is_made_and_when_it_is_gone():
    definition = Workflow("w", root=Event("e")).definition
    state = State("i", {})
    made = engine.advance(definition, state, Start(), AT).made
    gone = engine.advance(definition, state, Stimulate({"name": "event:e", "payload": {}}), AT).gone
    assert [each.bookmark_id for each in made] == [each.bookmark_id for each in gone]


@pytest.mark.parametrize("wait", [Delay(1), RunTask("t")])
def test_a_bookmark_that_no_stimulus_can_find_has_no_row(wait):
    definition = Workflow("w", root=wait).definition
    assert engine.advance(definition, State("i", {}), Start(), AT).made == []


@pytest.mark.parametrize("payload", ["text", 5, [1], True])
def test_a_payload_that_is_no_object_faults(payload):
    run = Run(Event("e", payload=given_inputs.p), inputs={"p": payload})
    assert "a payload is an object" in failure_of(run).message


def started_at(root, activity_id, value):
    definition = Workflow("w", root=root, output=var.x).definition
    state = State("i", {}, trigger={"activity_id": activity_id, "value": value})
    engine.advance(definition, state, Start(), AT)
    return state


def test_an_event_that_started_the_instance_goes_on_with_its_input():
    state = started_at(Event("e", starts=True, result="x"), "root", {"a": 1})
    assert (state.status, state.output, state.trigger) == (InstanceStatus.COMPLETED, {"a": 1}, None)


def test_an_instance_started_by_an_event_starts_there_once():
    state = started_at(While(expr("true"), Event("e", starts=True, result="x")), "root.body", 5)
    assert state.status == InstanceStatus.SUSPENDED
    assert state.variables == {"x": 5}


def test_an_instance_started_elsewhere_waits_at_a_start_point():
    root = Fork(Event("e", starts=True), Event("f", starts=True))
    assert len(started_at(root, "root.branches[1]", None).bookmarks) == 1
    run = Run(root)
    assert waiting(run) == ["root.branches[0]", "root.branches[1]"]


def test_only_an_event_that_is_told_to_is_a_start_point():
    assert Event("e").payloads() is None
    assert Event("e", payload={"a": 1}, starts=True).payloads() == [("event:e", {"a": 1})]


# --- PublishEvent ---


def test_a_publish_is_a_stimulus_after_the_commit_and_goes_on_at_once():
    run = Run(
        Sequence(
            PublishEvent(
                "paid", payload={"order": given_inputs.id}, input={"by": "card"}, correlation_id="c-7"
            ),
            Step("after"),
        ),
        inputs={"id": 7},
    )
    [intention] = run.intentions
    assert intention.command == ItemCommand.STIMULUS
    assert intention.body == {
        "stimulus": {"name": "event:paid", "payload": {"order": 7}},
        "value": {"by": "card"},
        "correlation_id": "c-7",
    }
    assert run.ready == ["root.activities[1]"]


def test_a_local_publish_reaches_this_instance_only():
    [intention] = Run(PublishEvent("e", local=True)).intentions
    assert intention.body["instance_id"] == "i"
    [intention] = Run(PublishEvent("e")).intentions
    assert "instance_id" not in intention.body


def test_publishes_are_in_order_of_time_and_each_its_own():
    run = Run(Sequence(PublishEvent("e"), PublishEvent("e")))
    one, other = [each.item_id for each in run.intentions]
    assert one != other
    assert one[:13] == other[:13] == f"{int(AT * 1000):013}"


def test_a_publish_of_too_much_faults():
    run = Run(
        PublishEvent("e", input=[given_inputs.x, given_inputs.x]), inputs={"x": "x" * (INPUT_BYTES_MAX // 2)}
    )
    assert str(INPUT_BYTES_MAX) in failure_of(run).message
    assert run.intentions == []


# --- Correlate ---


def test_a_correlation_id_is_of_the_instance_from_then_on():
    run = Run(Sequence(Correlate(expr("'order-' & inputs.id")), Step("a")), inputs={"id": "7"})
    assert run.state.correlation_id == "order-7"


BAD_IDS = [5, True, [], "", "x" * 201]


@pytest.mark.parametrize("value", [*BAD_IDS, None])
def test_a_correlation_id_that_is_none_faults(value):
    run = Run(Correlate(given_inputs.x), inputs={"x": value})
    assert failure_of(run).type == "ExpressionError"
    assert run.state.correlation_id is None


@pytest.mark.parametrize("value", BAD_IDS)
def test_an_event_is_not_published_to_a_correlation_id_that_is_none(value):
    run = Run(PublishEvent("e", correlation_id=given_inputs.x), inputs={"x": value})
    assert "is a text of" in failure_of(run).message
    assert run.intentions == []


# --- RunTask ---


def test_a_task_waits_until_it_is_completed_from_outside():
    run = Run(
        RunTask("approve", inputs={"order": given_inputs.id}, result="x"), inputs={"id": 7}, output=var.x
    )
    [bookmark] = run.state.bookmarks.values()
    assert bookmark.waits_for == "task"
    assert run.state.executions[bookmark.execution_id].memory["inputs"] == {"order": 7}
    assert run.give(Resume(bookmark.bookmark_id, "Done", {"ok": True}))
    assert run.state.output == {"ok": True}


def test_i6_a_task_is_completed_once():
    run = Run(Sequence(RunTask("t", result="x"), Step("a")))
    [bookmark_id] = run.state.bookmarks
    assert run.give(Resume(bookmark_id, "Done", 1))
    assert not run.give(Resume(bookmark_id, "Done", 2))
    assert run.state.variables == {"x": 1}
