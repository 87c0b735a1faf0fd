"""Direct execution: how those who write workflows test them."""

from functools import partial

import pytest

from aftercommit import (
    BulkDispatchWorkflows,
    Correlate,
    Delay,
    DispatchWorkflow,
    Event,
    Fault,
    ForEach,
    Fork,
    If,
    PublishEvent,
    Retry,
    RunTask,
    Sequence,
    SetVariable,
    Step,
    Workflow,
    activity,
    direct,
    expr,
    inputs,
    var,
)
from aftercommit import inputs as given_inputs
from aftercommit.errors import InputRefusedError
from aftercommit.statuses import InstanceStatus

attempts = []


@activity(retry=Retry(attempts_max=3, first_delay_seconds=3600))
def flaky(needed: int, context) -> int:
    attempts.append((context.attempt, context.idempotency_key))
    if context.attempt < needed:
        raise OSError("not yet")
    return context.attempt


@activity
def fan_out(context) -> list:
    return [context.dispatch("child", {"n": number}) for number in range(2)]


child = Workflow("child", inputs={"n": int}, root=Sequence(), output={"n": given_inputs.n})


@pytest.fixture(autouse=True)
def _no_attempts():
    attempts.clear()


def test_a_workflow_runs_to_its_end_without_aws():
    result = direct.run(Workflow("w", inputs={"n": int}, root=Sequence(), output=given_inputs.n), {"n": 5})
    assert (result.status, result.output, result.failure) == (InstanceStatus.COMPLETED, 5, None)
    assert (result.inputs, result.definition_id) == ({"n": 5}, "w")


def test_retries_skip_the_time_between():
    result = direct.run(Workflow("w", root=Step(flaky, needed=3, result="x"), output=var.x))
    assert result.output == 3
    assert [number for number, _ in attempts] == [1, 2, 3]
    assert len({key for _, key in attempts}) == 1
    assert [line["status"] for line in result.journal] == ["retrying", "retrying", "completed"]


def test_retries_end_with_the_policy():
    result = direct.run(Workflow("w", root=Step(flaky, needed=4)))
    assert (result.status, result.failure.type) == (InstanceStatus.FAULTED, "OSError")
    assert len(attempts) == 3


def test_the_retry_of_the_step_comes_before_that_of_the_function():
    direct.run(Workflow("w", root=Step(flaky, needed=9, retry=Retry(attempts_max=2))))
    assert len(attempts) == 2


def test_children_run_and_are_shown_with_their_parent():
    parent = Workflow(
        "parent",
        root=Sequence(
            DispatchWorkflow("child", input={"n": 1}, wait=True, result="x"),
            DispatchWorkflow("child", input={"n": 2}),
        ),
        output=var.x,
    )
    result = direct.run(parent, workflows=[child])
    assert result.output == {"n": 1}
    assert [each.output for each in result.children] == [{"n": 1}, {"n": 2}]


def test_an_activity_dispatches_with_its_result():
    result = direct.run(Workflow("w", root=Step(fan_out, result="ids"), output=var.ids), workflows=[child])
    assert [each.inputs for each in result.children] == [{"n": 0}, {"n": 1}]
    assert len(set(result.output)) == 2


@pytest.mark.parametrize(
    ("workflow_id", "given", "kind"),
    [("nobody", {}, "NotFoundError"), ("child", {"n": "x"}, "InputRefusedError")],
)
def test_a_dispatch_that_cannot_start_is_told_to_the_parent(workflow_id, given, kind):
    parent = Workflow(
        "parent",
        root=DispatchWorkflow(
            workflow_id, input=given, wait=True, result="x", on={"DispatchFailed": Sequence()}
        ),
        output=var.x.error.type,
    )
    assert direct.run(parent, workflows=[child]).output.removesuffix("Error") == kind.removesuffix("Error")


def test_activities_are_replaced_by_name():
    workflow = Workflow(
        "w", root=Sequence(Step(flaky, needed=9, result="x"), Step("unwritten")), output=var.x
    )
    result = direct.run(workflow, activities={"flaky": lambda needed: needed * 2, "unwritten": lambda: None})
    assert result.output == 18
    assert attempts == []


def test_a_replacement_may_ask_for_the_context_and_is_retried_as_the_original():
    seen = []

    def replacement(needed, context):
        seen.append(context.attempt)
        raise OSError

    direct.run(Workflow("w", root=Step(flaky, needed=1)), activities={"flaky": replacement})
    assert seen == [1, 2, 3]


def test_a_replacement_may_be_any_callable():
    def priced(needed, currency, context):
        return f"{needed} {currency}, attempt {context.attempt}"

    given = partial(priced, currency="EUR")
    root = Sequence(Step(flaky, needed=1, result="price"), Step("pairs", a=1, result="pairs"))
    # dict is written in C, and has no signature to look at.
    result = direct.run(Workflow("w", root=root), activities={"flaky": given, "pairs": dict})
    assert result.variables == {"price": "1 EUR, attempt 1", "pairs": {"a": 1}}


def test_what_is_neither_written_nor_replaced_faults():
    assert direct.run(Workflow("w", root=Step("unwritten"))).failure.type == "UnknownActivityError"


def test_a_result_that_is_no_json_faults():
    result = direct.run(Workflow("w", root=Step("a")), activities={"a": lambda: {1, 2}})
    assert result.failure.type == "TypeError"


def test_a_result_is_what_json_makes_of_it_as_when_deployed():
    workflow = Workflow("w", root=Step("a", result="x"), output=var.x)
    assert direct.run(workflow, activities={"a": lambda: {1: (2, 3)}}).output == {"1": [2, 3]}


def test_an_activity_cannot_change_its_inputs_for_the_next_attempt():
    seen = []

    def spoil(needed):
        seen.append(list(needed))
        needed.append("spoilt")
        raise OSError

    direct.run(Workflow("w", root=Step(flaky, needed=["x"])), activities={"flaky": spoil})
    assert seen == [["x"]] * 3


def test_input_that_does_not_fit_is_refused():
    with pytest.raises(InputRefusedError, match="is missing"):
        direct.run(child, {})


def test_a_workflow_that_dispatches_itself_ends_at_the_deepest_level():
    endless = Workflow(
        "endless",
        root=If(given_inputs.go, then=DispatchWorkflow("endless", input={"go": True}, wait=True)),
        inputs={"go": bool},
    )
    result = direct.run(endless, {"go": True})
    depth = 0
    while result.children:
        [result] = result.children
        depth += 1
    assert depth == 32
    assert "deeper than 32" in result.failure.message


def test_a_fault_in_a_child_reaches_the_parent():
    bad = Workflow("bad", root=Fault("no", code="No"))
    parent = Workflow("parent", root=DispatchWorkflow("bad", wait=True))
    result = direct.run(parent, workflows=[bad])
    assert result.failure.type == "ChildFaultedError"
    assert result.children[0].failure.type == "No"


# --- waits ---

paid = Event("paid", payload={"order": given_inputs.id}, result="payment")
pay_or_remind = Workflow(
    "pay-or-remind",
    inputs={"id": str},
    root=Fork(paid, Sequence(Delay(86_400), SetVariable("late", value=True)), wait="any"),
    output={"by": var.payment.by, "late": var.late},
)


def test_an_event_comes_before_any_time_is_skipped():
    sent = [PublishEvent("paid", payload={"order": "o-1"}, input={"by": "card"})]
    result = direct.run(pay_or_remind, {"id": "o-1"}, events=sent)
    assert result.output == {"by": "card", "late": None}


@pytest.mark.parametrize("payload", [None, {"order": "o-2"}])
def test_an_event_of_another_payload_does_not_keep_the_timer_from_being_due(payload):
    result = direct.run(pay_or_remind, {"id": "o-1"}, events=[PublishEvent("paid", payload=payload)])
    assert result.output == {"by": None, "late": True}


def test_a_wait_that_nothing_ends_leaves_the_workflow_suspended():
    assert direct.run(Workflow("w", root=paid, inputs={"id": str}), {"id": "o-1"}).status == "suspended"


def test_events_of_one_name_apply_to_one_wait_each_in_their_order():
    root = ForEach([1, 2], Sequence(Event("e", result="x"), SetVariable("seen", expr("[var.seen, var.x]"))))
    workflow = Workflow("w", root=root, output=var.seen)
    events = [PublishEvent("e", input="first"), PublishEvent("e", input="second")]
    assert direct.run(workflow, events=events).output[-2:] == ["first", "second"]


def test_i8_an_event_that_comes_early_is_kept():
    workflow = Workflow("w", root=Sequence(Delay(3600), Event("e", result="x")), output=var.x)
    assert direct.run(workflow, events=[PublishEvent("e", input=1)]).output == 1


def test_an_event_for_another_correlation_id_is_not_taken():
    workflow = Workflow("w", root=Sequence(Correlate("mine"), Event("e")))
    assert direct.run(workflow, events=[PublishEvent("e", correlation_id="other")]).status == "suspended"
    result = direct.run(workflow, events=[PublishEvent("e", correlation_id="mine")])
    assert (result.status, result.correlation_id) == ("completed", "mine")


def test_a_published_event_resumes_a_child_and_starts_a_workflow():
    waiting = Workflow("waiting", root=Event("go", result="x"), output=var.x)
    started = Workflow("started", root=Event("go", starts=True, result="x"), output=var.x)
    parent = Workflow(
        "parent",
        root=Fork(
            DispatchWorkflow("waiting", wait=True, result="x"),
            Sequence(Delay(1), PublishEvent("go", input=7)),
        ),
        output=var.x,
    )
    result = direct.run(parent, workflows=[waiting, started])
    assert result.output == 7
    assert [(each.definition_id, each.output) for each in result.children] == [("waiting", 7), ("started", 7)]


def test_a_local_event_resumes_the_instance_that_publishes_it_only():
    workflow = Workflow("w", root=Fork(Event("e"), PublishEvent("e", local=True)))
    started = Workflow("started", root=Event("e", starts=True))
    result = direct.run(workflow, workflows=[started])
    assert (result.status, result.children) == ("completed", [])


def test_a_task_is_completed_by_the_function_of_its_name():
    workflow = Workflow(
        "w",
        inputs={"id": str},
        root=RunTask("approve", inputs={"order": given_inputs.id}, result="x"),
        output=var.x,
    )
    result = direct.run(workflow, {"id": "o-1"}, tasks={"approve": lambda order: {"approved": order}})
    assert result.output == {"approved": "o-1"}
    assert direct.run(workflow, {"id": "o-1"}).status == "suspended"


def test_a_child_that_is_not_wanted_any_more_is_cancelled():
    slow = Workflow("slow", root=Event("never"))
    workflow = Workflow("w", root=Fork(DispatchWorkflow("slow", wait=True), Delay(60), wait="any"))
    result = direct.run(workflow, workflows=[slow])
    assert result.status == "completed"
    assert [each.status for each in result.children] == ["cancelled"]


def test_a_child_that_goes_along_is_cancelled_with_its_parent_though_that_does_not_wait():
    slow = Workflow("slow", root=Event("never"))
    middle = Workflow(
        "middle", root=Sequence(DispatchWorkflow("slow", cancel_with_parent=True), Event("never"))
    )
    workflow = Workflow("w", root=Fork(DispatchWorkflow("middle", wait=True), Delay(60), wait="any"))
    result = direct.run(workflow, workflows=[slow, middle])
    [child] = result.children
    assert [child.status, *(each.status for each in child.children)] == ["cancelled", "cancelled"]


def test_many_bulks_that_are_not_wanted_any_more_are_cancelled():
    slow = Workflow("slow", inputs={"item": {}, "index": int}, root=Event("never"))
    bulks = [BulkDispatchWorkflows("slow", [1], wait=True) for _ in range(3)]
    result = direct.run(Workflow("w", root=Fork(*bulks, Delay(60), wait="any")), workflows=[slow])
    assert [each.status for each in result.children] == ["cancelled"] * 3


def test_large_payloads_are_a_matter_of_the_deployment_here_too():
    child = Workflow("heavy-child", inputs={"text": str}, root=Sequence(), output=inputs.text)
    heavy = Workflow(
        "heavy",
        root=Sequence(
            Step("make", result="made"),
            DispatchWorkflow("heavy-child", input={"text": var.made}, wait=True, result="child"),
        ),
        output=var.child,
    )
    given = {"workflows": [child], "activities": {"make": lambda: "x" * 500_000}}
    assert direct.run(heavy, **given).failure.type == "ResultTooLargeError"
    assert direct.run(heavy, **given, large_payloads=True).output == "x" * 500_000
