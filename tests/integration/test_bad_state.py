"""Steps that fail, hang, grow or are missing: what becomes of the instance, and who sees it."""

import json

import pytest

from aftercommit import (
    Delay,
    DispatchWorkflow,
    Fork,
    Retry,
    Sequence,
    Step,
    Try,
    Workflow,
    clock,
    functions,
    inputs,
    var,
)
from aftercommit.limits import RESULT_BYTES_MAX, STATE_BYTES_MAX
from aftercommit.tables import RevisionRow
from tests.integration.faults import Crash
from tests.integration.world import behaviours, effects

TWICE = Retry(attempts_max=2, first_delay_seconds=1, jitter=0)


def settle(world, *workflows, **given):
    world.publish(*workflows)
    instance_id = world.dispatch(workflows[-1].id, given)
    world.settle()
    return world.show(instance_id)


def only_incident(shown):
    [incident] = shown["incidents"]
    return incident["error"]


# --- too large, or no JSON ---


def test_r13_a_state_that_outgrows_its_limit_faults_naming_the_largest_variables(world):
    third = "x" * (STATE_BYTES_MAX // 3)
    behaviours["grow"] = lambda context, value: third
    steps = [Step("act", name="grow", result=name) for name in ("first", "second", "third", "fourth")]
    shown = settle(world, Workflow("w", root=Sequence(*steps)))
    assert shown["status"] == "faulted"
    error = only_incident(shown)
    assert error["type"].startswith("StateTooLarge")
    assert all(f"{name} (" in error["message"] for name in ("first", "second"))
    assert str(STATE_BYTES_MAX) in error["message"]
    assert world.raised == []


def test_r13_a_result_over_its_limit_faults_once_with_its_size(world):
    """Not retried for ever: the size is looked at before the write."""
    behaviours["large"] = lambda context, value: "x" * (RESULT_BYTES_MAX - 1)
    shown = settle(world, Workflow("w", root=Step("act", name="large", result="x")))
    error = only_incident(shown)
    assert error["type"].startswith("ResultTooLarge")
    assert str(RESULT_BYTES_MAX + 1) in error["message"]
    assert len(effects) == 1


def test_a_result_at_its_limit_is_fine(world):
    text = "x" * (RESULT_BYTES_MAX - 2)
    behaviours["large"] = lambda context, value: text
    shown = settle(world, Workflow("w", root=Step("act", name="large", result="x")))
    assert shown["variables"] == {"x": text}


@pytest.mark.parametrize(
    ("result", "told"),
    [
        ({1, 2}, "not JSON serializable"),
        (float("nan"), "not JSON compliant"),
        (object(), "not JSON serializable"),
        (b"bytes", "not JSON serializable"),
        ("half \ud800", "surrogates not allowed"),
    ],
    ids=["set", "nan", "object", "bytes", "surrogate"],
)
def test_a_result_that_is_no_json_faults_clearly(world, result, told):
    behaviours["odd"] = lambda context, value: result
    shown = settle(world, Workflow("w", root=Step("act", name="odd", result="x")))
    assert shown["status"] == "faulted"
    assert told in only_incident(shown)["message"]


@pytest.mark.parametrize("result", ["", 0, False, [], {}, None, "é\U0001f600", 2**60, 1.5, {"a": [None]}])
def test_any_other_result_survives_the_death_of_its_worker(world, result):
    behaviours["odd"] = lambda context, value: result
    world.publish(
        w := Workflow("w", root=Sequence(Step("act", name="odd", result="x"), Step("act", name="b")))
    )
    instance_id = world.dispatch(w.id)

    def die_once(context, value):
        del behaviours["b"]
        raise Crash

    behaviours["b"] = die_once
    with pytest.raises(Crash):
        world.serve()
    world.settle()
    shown = world.show(instance_id)
    assert shown["status"] == "completed"
    assert shown["variables"] == {"x": result}
    assert type(shown["variables"]["x"]) is type(result)
    assert [name for name, _, _ in effects] == ["odd", "b"]


def test_a_large_resume_and_a_large_result_after_it_fit_their_rows(world):
    """Both would not fit one revision row."""
    behaviours["large"] = lambda context, value: "x" * 165_000
    behaviours["larger"] = lambda context, value: "x" * 255_000
    large = Workflow("large", root=Step("act", name="large", result="x"), output=var.x)
    root = Sequence(DispatchWorkflow("large", wait=True), Step("act", name="larger"))
    shown = settle(world, large, Workflow("w", root=root))
    assert shown["status"] == "completed"
    assert world.raised == []


def test_a_large_input_and_output_go_to_a_child_and_back(world):
    echo = Workflow("echo", inputs={"text": str}, root=Sequence(), output=inputs.text)
    root = DispatchWorkflow("echo", input={"text": inputs.text}, wait=True, result="x")
    text = "é" * 50_000  # three times in the state: input, variable, output
    shown = settle(world, echo, Workflow("w", inputs={"text": str}, root=root, output=var.x), text=text)
    assert shown["output"] == text


# --- time ---


def test_a_worker_stops_before_its_deadline_and_goes_on_elsewhere(world):
    def slow(context, value):
        world.clock.at += 55
        return context.remaining_seconds()

    behaviours["slow"] = slow
    world.publish(w := Workflow("w", root=Sequence(*[Step("act", name="slow") for _ in range(5)])))
    instance_id = world.dispatch(w.id)
    world.serve()
    head = world.head(instance_id)
    assert len(effects) == 2  # in the 10 seconds left, a step of up to 10 and a commit do not fit
    assert (head.status, head.lease_token) == ("running", None)
    assert head.due_at
    assert len(world.messages) == 1
    world.settle()
    assert world.show(instance_id)["status"] == "completed"
    assert len(effects) == 5


def test_if_the_message_that_goes_on_is_lost_the_sweep_goes_on(world, faults):
    behaviours["slow"] = lambda context, value: world.clock.sleep(110)
    world.publish(w := Workflow("w", root=Sequence(Step("act", name="slow"), Step("act", name="b"))))
    instance_id = world.dispatch(w.id)
    world.serve()
    world.messages.clear()
    world.settle()
    assert world.show(instance_id)["status"] == "completed"


def test_a_step_that_needs_more_than_any_invocation_has_starts_in_a_fresh_one(world):
    @functions.activity(name="very-slow", timeout_seconds=1000)
    def very_slow(context):
        effects.append(("very-slow", context.instance_id, 1))

    world.publish(w := Workflow("w", root=Sequence(Step("act", name="a"), Step(very_slow))))
    instance_id = world.dispatch(w.id)
    world.serve()
    assert [name for name, _, _ in effects] == ["a"]
    world.settle()
    assert [name for name, _, _ in effects] == ["a", "very-slow"]
    assert world.show(instance_id)["status"] == "completed"


# --- retries ---


def test_a_step_is_retried_durably_and_never_early(world):
    at = []

    def fail_once(context, value):
        at.append(clock.now())
        if context.attempt == 1:
            raise OSError("gone")
        return value

    behaviours["flaky"] = fail_once
    retry = Retry(attempts_max=3, first_delay_seconds=7, jitter=0)
    shown = settle(world, Workflow("w", root=Step("act", name="flaky", retry=retry)))
    assert shown["status"] == "completed"
    assert 7 <= at[1] - at[0] <= 9
    assert shown["incidents"] == []


def test_a_retry_further_away_than_a_message_can_wait_is_kept_by_the_sweep(world):
    behaviours["flaky"] = lambda context, value: value if context.attempt > 1 else 1 / 0
    retry = Retry(attempts_max=2, first_delay_seconds=3000, jitter=0)
    began = clock.now()
    shown = settle(world, Workflow("w", root=Step("act", name="flaky", retry=retry)))
    assert shown["status"] == "completed"
    assert 3000 <= clock.now() - began < 3100


def test_after_its_last_attempt_a_step_faults_with_one_incident(world):
    behaviours["bad"] = lambda context, value: 1 / 0
    shown = settle(world, Workflow("w", root=Step("act", name="bad", retry=TWICE)))
    assert only_incident(shown)["type"] == "ZeroDivisionError"
    statuses = [line["status"] for row in world.revisions(shown["instance_id"]) for line in _journal(row)]
    assert statuses == ["retrying", "faulted"]


def _journal(row):
    return json.loads(row.journal)


# --- steps that kill their workers ---


def kill(context, value):
    raise Crash


def lose_workers(world, times=40):
    """Serve as long as anything is due; each crash costs the message its visibility time-out."""
    lost = 0
    for _ in range(times):
        try:
            world.settle(100_000)
        except Crash:
            lost += 1
            world.clock.at += 130
        else:
            return lost
    raise AssertionError("the instance was never stopped")


def test_a_step_that_kills_its_workers_is_stopped_after_five_leases(world):
    behaviours["killer"] = kill
    world.publish(w := Workflow("w", root=Sequence(Step("act", name="a"), Step("act", name="killer"))))
    instance_id = world.dispatch(w.id)
    assert lose_workers(world) == 1 + 5  # the first has committed `a`
    shown = world.show(instance_id)
    assert shown["status"] == "faulted"
    assert only_incident(shown)["type"].startswith("WorkerDied")
    assert [name for name, _, _ in effects] == ["a"]


def test_the_retry_policy_counts_worker_deaths_as_attempts(world):
    behaviours["killer"] = kill
    world.publish(w := Workflow("w", root=Step("act", name="killer", retry=TWICE)))
    instance_id = world.dispatch(w.id)
    assert lose_workers(world) == 10
    assert only_incident(world.show(instance_id))["type"].startswith("WorkerDied")


def test_a_killer_after_a_wait_is_stopped_too(world):
    """The sweep's own visits, which find nothing to run, must not pass for progress."""
    behaviours["killer"] = kill
    world.publish(Workflow("child", root=Sequence()))
    root = Sequence(DispatchWorkflow("child", wait=True), Step("act", name="killer"))
    world.publish(w := Workflow("w", root=root))
    instance_id = world.dispatch(w.id)
    assert lose_workers(world) <= 6
    assert only_incident(world.show(instance_id))["type"].startswith("WorkerDied")


def test_a_wide_resume_that_meets_a_killer_is_committed_before_that_is_stopped(world):
    """What each of the two decides fits into a transaction; both together would not."""
    behaviours["killer"] = kill
    many = [DispatchWorkflow("child") for _ in range(55)]
    killing = Try(Step("act", name="killer"), handler=Fork(*many))
    root = Fork(killing, Sequence(Delay(1_000), Fork(*many)))
    world.publish(Workflow("child", root=Sequence()), w := Workflow("w", root=root))
    instance_id = world.dispatch(w.id)
    for _ in range(1 + 5):  # the first has committed that it waits
        with pytest.raises(Crash):
            world.run(instance_id)
        world.clock.at += 200
    world.handle_item(world.item("resume"))
    assert len(world.items("start")) == 110
    assert world.show(instance_id)["status"] == "completed"


def test_workers_that_die_now_and_then_stop_nobody(world):
    """Ten deaths, but never five without progress."""
    deaths = {}

    def die_twice(context, value):
        deaths[value] = deaths.get(value, 0) + 1
        if deaths[value] <= 2:
            raise Crash
        return value

    behaviours["shaky"] = die_twice
    steps = [Step("act", name="shaky", value=number) for number in range(5)]
    world.publish(w := Workflow("w", root=Sequence(*steps)))
    instance_id = world.dispatch(w.id)
    assert lose_workers(world) == 10
    assert world.show(instance_id)["status"] == "completed"


# --- steps that are missing ---


def test_an_unknown_activity_is_an_incident_that_is_retried_and_heals(world):
    world.publish(w := Workflow("w", root=Step("late-activity", retry=TWICE, result="x"), output=var.x))
    instance_id = world.dispatch(w.id)
    world.settle(130)
    shown = world.show(instance_id)
    assert shown["status"] == "suspended"
    error = only_incident(shown)
    assert error["type"].startswith("UnknownActivity")
    assert "late-activity" in error["message"]

    functions._registered["late-activity"] = functions.ActivityFunction(
        "late-activity", lambda context: context.attempt, functions.NO_RETRY, 10, takes_context=True
    )
    try:
        world.settle(130)
    finally:
        del functions._registered["late-activity"]
    shown = world.show(instance_id)
    assert (shown["status"], shown["output"]) == ("completed", 1)


def test_r13_an_instance_with_a_damaged_revision_has_an_incident_and_goes_on_once_that_is_repaired(
    world, faults
):
    world.publish(Workflow("two", root=Sequence(Step("act", name="a"), Step("act", name="b"))))
    instance_id = world.dispatch("two")
    faults.before("TransactWriteItems", Crash(), match="revision#0000000002")
    with pytest.raises(Crash):
        world.run(instance_id)
    [row] = world.revisions(instance_id)
    key = {"instance_key": row.instance_key, "row": row.row}
    world.set_raw(RevisionRow, key, commands={"S": "{"})
    world.messages.clear()
    world.settle(1_000)
    assert ([each.error_type for each in world.incidents()], world.raised) == (
        ["UnreadableInstanceError"],
        [],
    )
    world.set_raw(RevisionRow, key, commands={"S": row.commands})
    world.settle(7_200)
    assert world.show(instance_id)["status"] == "completed"
