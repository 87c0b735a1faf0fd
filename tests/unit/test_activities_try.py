"""Try: who handles a fault, and what is done either way; under the engine."""

import itertools

import pytest

from aftercommit import (
    Break,
    DispatchWorkflow,
    Event,
    Fault,
    Finish,
    ForEach,
    Fork,
    Sequence,
    SetVariable,
    Step,
    Try,
    While,
    expr,
    var,
)
from aftercommit import inputs as given_inputs
from aftercommit.model import Cancel, Failure
from aftercommit.statuses import InstanceStatus
from tests.unit.engine_runs import (
    LATER,
    Run,
    append,
    assert_sizes_are_exact,
    children,
    failure_of,
    happen,
    waiting,
    withdrawn,
)


def seen(run):
    return run.state.variables.get("seen", [])


BODIES = {"ends": append("'body'"), "faults": Sequence(append("'body'"), Fault("b", code="Body"))}
HANDLERS = {
    "none": None,
    "ends": append("'handler'"),
    "faults": Sequence(append("'handler'"), Fault("h", code="Handler")),
}
FINALLIES = {
    "none": None,
    "ends": append("'finally'"),
    "faults": Sequence(append("'finally'"), Fault("f", code="Finally")),
}


@pytest.mark.parametrize(
    ("body", "handler", "finally_"), list(itertools.product(BODIES, HANDLERS, FINALLIES))
)
def test_c35_every_combination_of_a_body_a_handler_and_a_finally(body, handler, finally_):
    run = Run(
        Sequence(
            Try(BODIES[body], handler=HANDLERS[handler], finally_=FINALLIES[finally_]), append("'after'")
        )
    )
    expected = ["body"]
    failure = None
    if body == "faults":
        if handler != "none":
            expected.append("handler")
        if handler != "ends":  # a handler that faults counts as none
            failure = "Body"
    if finally_ != "none":
        expected.append("finally")
    if finally_ == "faults":
        failure = "Finally"
    if failure is None:
        expected.append("after")
    assert seen(run) == expected
    assert (run.state.failure.type if run.state.failure else None) == failure
    assert len(run.incidents) == (failure is not None)


def test_c35_a_handler_sees_the_fault_as_error():
    run = Run(Try(Step("a"), handler=SetVariable("told", var.error)))
    run.fail()
    assert run.state.variables == {"told": {"type": "OSError", "message": "gone"}}
    assert run.state.status == InstanceStatus.COMPLETED


def test_the_error_is_seen_by_the_handler_only():
    run = Run(
        Sequence(
            SetVariable("error", "mine"),
            Try(
                Fault("x"),
                handler=append("var.error.type"),
                finally_=append("var.error"),
            ),
        )
    )
    assert run.state.variables == {"error": "mine", "seen": ["Fault", "mine"]}


def test_c35_a_handled_fault_is_told_by_the_journal_and_is_no_incident():
    run = Run(Try(Fault("no", code="No"), handler=Step("fix")))
    run.finish()
    assert [(each["activity_id"], each["status"]) for each in run.journal] == [
        ("root.body", "faulted"),
        ("root.handler", "completed"),
    ]
    assert run.journal[0]["error"] == {"type": "No", "message": "no"}
    assert run.incidents == []


def test_c35_a_fault_is_offered_to_the_nearest_first_and_then_outwards():
    inner = Try(Step("a"), handler=append("'inner'"), errors=["OSError"])
    run = Run(Try(inner, handler=append("'outer'")))
    run.fail(kind="OSError")
    assert seen(run) == ["inner"]
    run = Run(Try(inner, handler=append("'outer'")))
    run.fail(kind="ValueError")
    assert seen(run) == ["outer"]


def test_c35_when_a_handler_faults_the_outer_one_gets_the_first_fault():
    inner = Try(Fault("first", code="First"), handler=Fault("second", code="Second"))
    run = Run(Try(inner, handler=append("var.error.type")))
    assert seen(run) == ["First"]


@pytest.mark.parametrize(
    ("errors", "handled"),
    [(None, True), (["No"], True), (["Other", "No"], True), (["no"], False), ([], False)],
)
def test_errors_say_which_faults_are_handled(errors, handled):
    run = Run(
        Try(Fault("x", code="No"), handler=append("'handler'"), finally_=append("'finally'"), errors=errors)
    )
    assert seen(run) == [*(["handler"] if handled else []), "finally"]
    assert run.state.status == (InstanceStatus.COMPLETED if handled else InstanceStatus.FAULTED)


def test_a_step_is_retried_within_the_try_before_it_faults():
    run = Run(Try(Step("a"), handler=Step("fix")))
    run.fail(retry_at=LATER)
    assert run.state.status == InstanceStatus.SUSPENDED
    run.resume("Done")
    assert run.ready == ["root.body"]
    run.fail()
    assert run.ready == ["root.handler"]


def test_an_expression_that_cannot_be_evaluated_is_handled_too():
    run = Run(Try(SetVariable("x", expr("$number('x')")), handler=append("var.error.type")))
    assert seen(run) == ["ExpressionError"]


def test_a_variable_that_is_too_large_is_handled_too():
    big = "x" * 200_000
    run = Run(
        Sequence(
            Try(Step("a", result="y"), handler=append("var.error.type"), finally_=append("'finally'")),
            Step("b"),
        ),
        inputs={"big": big},
    )
    run.finish(big)
    assert seen(run) == ["StateTooLargeError", "finally"]
    assert "y" not in run.state.variables
    assert_sizes_are_exact(run.state)


def test_a_bad_ending_of_a_child_is_handled_too():
    run = Run(Try(DispatchWorkflow("c", wait=True), handler=append("var.error.type")))
    run.resume("Faulted", {"type": "E", "message": "m"})
    assert seen(run) == ["ChildFaultedError"]


def test_a_fault_in_one_branch_drops_the_others_before_the_handler_runs():
    body = Fork(Step("a"), Event("e"), DispatchWorkflow("c", wait=True), Step("b"))
    run = Run(Try(body, handler=Step("fix")))
    run.fail()
    assert run.ready == ["root.handler"]
    assert run.state.bookmarks == {}
    assert withdrawn(run) == children(run)


def test_a_fault_in_an_item_ends_the_whole_loop_in_the_try():
    run = Run(Try(ForEach([1, 2, 3], Sequence(append("var.item"), Fault("no"))), handler=append("'fixed'")))
    assert seen(run) == [1, "fixed"]


def test_a_fault_in_a_try_in_a_loop_leaves_the_loop_running():
    run = Run(ForEach([1, 2], Try(Fault("no"), handler=append("var.item"))))
    assert seen(run) == [1, 2]
    assert run.state.status == InstanceStatus.COMPLETED


def test_handlers_may_wait_and_dispatch():
    handler = Sequence(Event("ok"), DispatchWorkflow("undo", wait=True))
    run = Run(Sequence(Try(Fault("no"), handler=handler, finally_=Event("last")), Step("after")))
    assert waiting(run) == ["root.activities[0].handler.activities[0]"]
    happen(run, "ok")
    run.resume("Completed")
    assert waiting(run) == ["root.activities[0].finally"]
    happen(run, "last")
    assert run.ready == ["root.activities[1]"]


# --- Break through a Try ---


@pytest.mark.parametrize(
    ("root", "expected"),
    [
        (Try(Break(), finally_=append("'finally'")), ["finally"]),
        (Try(Break(), handler=append("'never'")), []),
        (Try(Fault("x"), handler=Break(), finally_=append("'finally'")), ["finally"]),
        (Try(append("'body'"), finally_=Break()), ["body"]),
        (Try(Fault("x"), finally_=Break()), []),
        (
            Try(Try(Break(), finally_=append("'inner'")), finally_=append("'outer'")),
            ["inner", "outer"],
        ),
    ],
)
def test_a_break_leaves_a_try_after_its_finally(root, expected):
    run = Run(Sequence(ForEach([1, 2], Sequence(root, append("'never'"))), Step("after")))
    assert seen(run) == expected
    assert run.ready == ["root.activities[1]"]
    assert run.incidents == []


def test_a_finally_that_faults_on_the_way_of_a_break_faults():
    run = Run(While(expr("true"), Try(Break(), finally_=Fault("f", code="Finally"))))
    assert failure_of(run).type == "Finally"


def test_a_finally_on_the_way_of_a_break_may_wait():
    body = Fork(Try(Break(), finally_=Event("done")), Step("slow"))
    run = Run(Sequence(While(expr("true"), body), Step("after")))
    # Until the finally is over, the loop and its other branches go on.
    assert run.ready == ["root.activities[0].body.branches[1]"]
    happen(run, "done")
    assert run.ready == ["root.activities[1]"]


def test_a_break_of_a_loop_within_the_try_leaves_the_try_alone():
    run = Run(Try(Sequence(ForEach([1], Break()), append("'body'")), finally_=append("'finally'")))
    assert seen(run) == ["body", "finally"]


# --- what runs no finally ---


def test_a_finish_in_a_try_ends_the_instance_at_once():
    run = Run(Try(Finish("out"), handler=append("'never'"), finally_=append("'never'")))
    assert (run.state.status, run.state.output, seen(run)) == (InstanceStatus.COMPLETED, "out", [])


def test_a_branch_that_is_dropped_runs_no_finally():
    run = Run(Fork(Try(Event("e"), finally_=append("'never'")), Event("stop"), wait="any"))
    happen(run, "stop")
    assert seen(run) == []


def test_a_cancel_runs_no_finally():
    run = Run(Try(Event("e"), finally_=append("'never'")))
    run.give(Cancel("enough"))
    assert (run.state.status, seen(run)) == (InstanceStatus.CANCELLED, [])


# --- strategy continue ---


def test_under_continue_a_fault_that_is_handled_is_none():
    run = Run(Fork(Try(Fault("x"), handler=Step("fix")), Step("b")), incidents="continue")
    run.finish()
    run.finish()
    assert run.state.status == InstanceStatus.COMPLETED
    assert run.incidents == []


def test_under_continue_a_try_that_handles_nothing_stays_after_its_finally():
    run = Run(
        Fork(Sequence(Try(Fault("x", code="X"), finally_=append("'finally'")), Step("never")), Step("b")),
        incidents="continue",
    )
    assert seen(run) == ["finally"]
    assert run.ready == ["root.branches[1]"]
    [incident] = run.incidents
    assert (incident.activity_id, incident.failure) == ("root.branches[0].activities[0]", Failure("X", "x"))
    run.finish()
    assert (run.state.status, run.state.failure.type) == (InstanceStatus.FAULTED, "X")


def test_a_try_within_a_large_state_accounts_for_what_it_drops():
    body = Fork(*[Step("a", text=given_inputs.text) for _ in range(5)])
    run = Run(Sequence(Try(body, handler=Step("fix")), Step("b")), inputs={"text": "x" * 10_000})
    assert run.state.bytes > 60_000
    run.fail()
    assert_sizes_are_exact(run.state)
    assert run.state.bytes < 12_000
