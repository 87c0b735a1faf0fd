"""What each activity of the catalogue does; the instances run under the engine, without AWS."""

import pytest

from aftercommit import DispatchWorkflow, Fault, Finish, If, Sequence, SetVariable, Step, expr, var
from aftercommit import inputs as given_inputs
from aftercommit.activities import TYPES
from aftercommit.statuses import InstanceStatus
from tests.unit.engine_runs import Run, failure_of

GIVEN = given_inputs


# --- Sequence ---


def test_a_sequence_runs_its_activities_one_after_the_other():
    run = Run(Sequence(Step("a"), Step("b")))
    assert run.ready == ["root.activities[0]"]
    run.finish()
    assert run.ready == ["root.activities[1]"]
    run.finish()
    assert run.state.status == InstanceStatus.COMPLETED


# --- Step ---


def test_a_step_puts_its_result_into_its_variable():
    run = Run(Step("a", result="x"), output=var.x)
    run.finish({"deep": [1]})
    assert run.state.output == {"deep": [1]}


def test_a_step_without_a_result_leaves_variables_alone():
    run = Run(Step("a"))
    run.finish("ignored")
    assert run.state.variables == {}


def test_a_step_evaluates_its_inputs():
    run = Run(Step("a", b=GIVEN.n, c=[GIVEN.n, 2], d="text"), inputs={"n": 1})
    assert run.state.executions[run.state.ready[0]].memory["inputs"] == {"b": 1, "c": [1, 2], "d": "text"}


def test_an_input_that_cannot_be_evaluated_faults_naming_the_expression():
    failure = failure_of(Run(Step("a", b=expr("$number('x')"))))
    assert failure.type == "ExpressionError"
    assert "$number('x')" in failure.message


# --- If ---


@pytest.mark.parametrize(("go", "ready"), [(True, "root.then"), (False, "root.otherwise")])
def test_an_if_chooses_by_its_condition(go, ready):
    assert Run(If(GIVEN.go, then=Step("a"), otherwise=Step("b")), inputs={"go": go}).ready == [ready]


def test_an_if_without_otherwise_goes_on():
    assert Run(Sequence(If(expr("false"), then=Step("a")), Step("b"))).ready == ["root.activities[1]"]


@pytest.mark.parametrize(("value", "kind"), [(1, "int"), ("yes", "str"), (None, "nothing"), ([], "list")])
def test_only_true_and_false_choose(value, kind):
    failure = failure_of(Run(If(GIVEN.go, then=Step("a")), inputs={"go": value}))
    assert f"expected true or false, got {kind}" in failure.message


# --- SetVariable, Fault, Finish ---


def test_a_variable_is_set_and_can_be_read_by_what_follows():
    run = Run(Sequence(SetVariable("x", 1), SetVariable("x", var.x + 1)), output=var.x)
    assert run.state.output == 2


def test_a_fault_bears_its_message_and_code():
    failure = failure_of(Run(Fault(expr("'order ' & inputs.id"), code="OutOfStock"), inputs={"id": "7"}))
    assert (failure.type, failure.message) == ("OutOfStock", "order 7")
    assert failure_of(Run(Fault("x"))).type == "Fault"
    assert len(failure_of(Run(Fault("x" * 5000))).message) == 1000


def test_finish_completes_with_its_output_or_the_definitions():
    assert Run(Finish({"a": GIVEN.n}), inputs={"n": 3}, output="other").state.output == {"a": 3}
    assert Run(Finish(), output="the definition's").state.output == "the definition's"


# --- DispatchWorkflow ---


def test_c18_not_waiting_the_parent_goes_on_at_once():
    run = Run(DispatchWorkflow("child", result="x"), output=var.x)
    [intention] = run.intentions
    assert run.state.status == InstanceStatus.COMPLETED
    assert run.state.output == {"instance_id": intention.body["instance_id"]}
    assert "bookmark_id" not in intention.body


def test_c18_waiting_the_parent_goes_on_after_the_child():
    run = Run(DispatchWorkflow("child", wait=True, result="x"), output=var.x)
    [intention] = run.intentions
    [bookmark] = run.state.bookmarks.values()
    assert run.state.status == InstanceStatus.SUSPENDED
    assert intention.body["bookmark_id"] == bookmark.bookmark_id
    run.resume("Completed", {"made": True})
    assert run.state.output == {"made": True}


def test_r06_everything_of_a_dispatch_is_stored_with_its_intention():
    run = Run(
        DispatchWorkflow(
            "child",
            input={"a": GIVEN.n},
            version=4,
            correlation_id=expr("'order-' & inputs.n"),
            channel="slow",
        ),
        inputs={"n": "1"},
    )
    body = run.intentions[0].body
    expected = {
        "definition_id": "child",
        "version": 4,
        "input": {"a": "1"},
        "correlation_id": "order-1",
        "channel": "slow",
        "depth": 1,
    }
    assert {**body, **expected} == body


def test_a_correlation_id_that_is_no_text_faults():
    assert (
        "is a text of"
        in failure_of(Run(DispatchWorkflow("c", correlation_id=GIVEN.n), inputs={"n": 1})).message
    )


@pytest.mark.parametrize("outcome", ["Faulted", "Cancelled", "DispatchFailed"])
def test_r08_a_bad_ending_that_nobody_handles_faults_the_parent(outcome):
    run = Run(DispatchWorkflow("child", wait=True))
    run.resume(outcome, {"type": "E", "message": "because"})
    failure = failure_of(run)
    assert failure.type == f"Child{outcome}Error"
    assert failure.message == f"child child ended {outcome}: because"


@pytest.mark.parametrize("outcome", ["Faulted", "Cancelled", "DispatchFailed"])
def test_r08_a_branch_handles_its_outcome_and_can_read_why(outcome):
    run = Run(
        DispatchWorkflow(
            "child", wait=True, result="x", on={outcome: SetVariable("why", var.x.error.message)}
        ),
        output={"why": var.why, "id": var.x.instance_id},
    )
    child_id = run.intentions[0].body["instance_id"]
    run.resume(outcome, {"type": "E", "message": "because"})
    assert run.state.status == InstanceStatus.COMPLETED
    assert run.state.output == {"why": "because", "id": child_id}


@pytest.mark.parametrize(("outcome", "wait"), [("Dispatched", False), ("Completed", True)])
def test_a_branch_may_follow_a_good_outcome_too(outcome, wait):
    run = Run(DispatchWorkflow("child", wait=wait, on={outcome: Step("after")}))
    if wait:
        run.resume("Completed")
    assert run.ready == [f"root.on.{outcome}"]


def test_a_branch_for_another_outcome_is_passed_by():
    run = Run(Sequence(DispatchWorkflow("child", wait=True, on={"Faulted": Step("a")}), Step("b")))
    run.resume("Completed")
    assert run.ready == ["root.activities[1]"]


def test_the_catalogue_is_what_a_tree_may_name():
    assert sorted(TYPES) == [
        "Break",
        "BulkDispatchWorkflows",
        "Correlate",
        "Cron",
        "Delay",
        "DispatchWorkflow",
        "Event",
        "Fault",
        "Finish",
        "Flowchart",
        "ForEach",
        "Fork",
        "HttpEndpoint",
        "If",
        "ParallelForEach",
        "PublishEvent",
        "RunTask",
        "SendHttpRequest",
        "Sequence",
        "SetVariable",
        "StartAt",
        "Step",
        "Switch",
        "Timer",
        "Try",
        "While",
        "WriteHttpResponse",
    ]


def test_only_what_gives_something_has_a_result():
    giving = {name for name, each in TYPES.items() if "result" in each.properties}
    times = {"Cron", "StartAt", "Timer"}
    assert giving == times | {
        "BulkDispatchWorkflows",
        "DispatchWorkflow",
        "Event",
        "HttpEndpoint",
        "RunTask",
        "SendHttpRequest",
        "Step",
    }


def test_a_property_that_an_activity_lacks_is_refused():
    with pytest.raises(TypeError, match="has no property colour"):
        TYPES["Finish"].__mro__[1].__init__(Finish(), colour="red")
