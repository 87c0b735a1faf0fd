"""Branches: Fork and Switch under the engine."""

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercommit import (
    DispatchWorkflow,
    Event,
    Fault,
    ForEach,
    Fork,
    If,
    ParallelForEach,
    RunTask,
    Sequence,
    SetVariable,
    Step,
    Switch,
    expr,
    var,
)
from aftercommit import inputs as given_inputs
from aftercommit.jsons import dumps
from aftercommit.limits import COMMIT_INTENTIONS_MAX
from aftercommit.model import Finish as StepFinished
from aftercommit.model import Resume, State
from aftercommit.statuses import ExecutionStatus, InstanceStatus
from tests.unit.engine_runs import (
    LATER,
    Run,
    append,
    assert_sizes_are_exact,
    children,
    failure_of,
    finish_all,
    happen,
    play,
    waiting,
    withdrawn,
)

# --- Fork ---


def test_a_fork_runs_its_branches_side_by_side_and_ends_with_the_last():
    run = Run(Sequence(Fork(Step("a"), Step("b")), Step("after")))
    assert run.ready == ["root.activities[0].branches[0]", "root.activities[0].branches[1]"]
    run.finish()
    assert run.ready == ["root.activities[0].branches[1]"]
    run.finish()
    assert run.ready == ["root.activities[1]"]


@pytest.mark.parametrize("wait", ["all", "any", None])
def test_a_fork_without_branches_goes_on(wait):
    assert Run(Sequence(Fork(wait=wait), Step("a"))).ready == ["root.activities[1]"]


def test_a_fork_any_ends_with_the_first_and_drops_what_the_others_run_or_wait_for():
    run = Run(
        Sequence(
            Fork(
                Event("late"),
                Sequence(Step("slow"), Step("never")),
                Sequence(RunTask("ask"), Step("never")),
                Step("quick"),
                wait="any",
            ),
            Step("after"),
        )
    )
    quick = next(
        each for each in run.state.ready if run.state.executions[each].activity_id.endswith("branches[3]")
    )
    run.give(StepFinished(quick, 1))
    assert run.ready == ["root.activities[1]"]
    assert run.state.bookmarks == {}
    cancelled = [each["activity_id"] for each in run.journal if each["status"] == "cancelled"]
    assert cancelled == [
        "root.activities[0].branches[0]",
        "root.activities[0].branches[1].activities[0]",
        "root.activities[0].branches[2].activities[0]",
    ]
    assert not happen(run, "late")


def test_a_fork_any_drops_a_step_that_waits_for_its_retry():
    run = Run(Sequence(Fork(Step("flaky"), Step("quick"), wait="any"), Step("after")))
    run.fail(retry_at=LATER)
    [bookmark_id] = run.state.bookmarks
    run.finish()
    assert run.ready == ["root.activities[1]"]
    assert not run.give(Resume(bookmark_id, "Done"))


def test_a_fork_any_whose_first_branch_takes_no_time_starts_no_other():
    run = Run(Fork(SetVariable("x", 1), DispatchWorkflow("child", wait=True), Step("a"), wait="any"))
    assert run.state.status == InstanceStatus.COMPLETED
    assert run.intentions == []


def test_a_fork_any_withdraws_the_children_that_its_losing_branches_wait_for():
    run = Run(
        Fork(
            DispatchWorkflow("child", wait=True),
            DispatchWorkflow("kept"),
            Sequence(Fork(DispatchWorkflow("child", wait=True), Event("never"))),
            wait="any",
        )
    )
    # The branch that does not wait is over at once, before the third begins.
    assert run.state.status == InstanceStatus.COMPLETED
    assert withdrawn(run) == children(run)[:1]


def test_a_result_that_comes_after_its_branch_has_lost_finds_nothing():
    run = Run(Sequence(Fork(Step("a", result="x"), Step("b", result="x"), wait="any"), Step("after")))
    first, second = run.state.ready
    run.give(StepFinished(second, 2))
    assert not run.give(StepFinished(first, 1))
    assert run.state.variables == {"x": 2}


def test_one_event_that_two_branches_wait_for_lets_the_first_win():
    run = Run(Fork(Event("e", result="first"), Event("e", result="second"), wait="any"))
    assert happen(run, "e", 7)
    assert run.state.status == InstanceStatus.COMPLETED
    assert run.state.variables == {"first": 7}


def test_one_event_resumes_all_branches_that_wait_for_it():
    run = Run(Fork(Event("e", result="first"), Event("other"), Event("e", result="second")))
    assert happen(run, "e", 7)
    assert run.state.variables == {"first": 7, "second": 7}
    assert waiting(run) == ["root.branches[1]"]


def test_a_fork_of_fifty_waits_ends_with_the_last():
    run = play(Run(Sequence(Fork(*[Event("e", payload={"n": each}) for each in range(50)]), Step("after"))))
    assert len(run.state.bookmarks) == 50
    for number in reversed(range(50)):
        assert run.state.status == InstanceStatus.SUSPENDED
        assert happen(run, "e", n=number)
    assert run.ready == ["root.activities[1]"]


def test_a_fork_with_more_waits_than_a_commit_has_room_for_commits_in_parts():
    run = Run(Fork(*[Event("e", payload={"n": each}) for each in range(COMMIT_INTENTIONS_MAX + 10)]))
    assert len(run.state.bookmarks) == COMMIT_INTENTIONS_MAX
    play(run)
    assert len(run.state.bookmarks) == COMMIT_INTENTIONS_MAX + 10


def test_a_fork_in_a_branch_that_loses_goes_with_it():
    run = Run(Fork(Fork(Fork(Event("e"), Event("f")), Step("slow")), Event("stop"), wait="any"))
    assert happen(run, "stop")
    assert run.state.status == InstanceStatus.COMPLETED


@given(st.permutations(range(6)))
def test_any_order_of_results_and_resumes_ends_in_the_same_variables(order):
    def branch(number):
        wait = [
            Step("a", result="got"),
            Event("e", payload={"n": number}, result="got"),
            DispatchWorkflow("c", wait=True, result="got"),
        ][number % 3]
        wait.result = f"got{number}"
        return Sequence(wait, SetVariable(f"then{number}", expr(f"var.got{number} * 2")))

    run = Run(Fork(*[branch(number) for number in range(6)]))
    by_branch = {}
    for each in run.state.ready:
        by_branch[run.state.executions[each].activity_id] = lambda n, each=each: StepFinished(each, n)
    for each in run.state.bookmarks.values():
        by_branch[run.state.executions[each.execution_id].activity_id] = lambda n, each=each: Resume(
            each.bookmark_id, "Completed", n
        )
    for number in order:
        assert run.give(by_branch[f"root.branches[{number}].activities[0]"](number))
    assert run.state.status == InstanceStatus.COMPLETED
    expected = {f"got{n}": n for n in range(6)} | {f"then{n}": n * 2 for n in range(6)}
    assert run.state.variables == expected


# --- incidents in branches ---


def test_c34_under_fault_a_branch_that_faults_stops_its_siblings():
    run = Run(Fork(Step("a"), Event("e"), DispatchWorkflow("child", wait=True), Step("b")))
    run.fail()
    assert (run.state.status, run.state.failure.type) == (InstanceStatus.FAULTED, "OSError")
    assert len(run.incidents) == 1
    assert withdrawn(run) == children(run)


def test_c34_under_continue_the_sibling_runs_on_and_the_instance_ends_faulted():
    run = Run(
        Sequence(Fork(Sequence(Step("a"), Step("never")), Sequence(Step("b"), Step("c"))), Step("never")),
        incidents="continue",
    )
    run.fail()
    assert run.state.status == InstanceStatus.RUNNING
    assert [each.status for each in run.state.executions.values()].count(ExecutionStatus.FAULTED) == 1
    finish_all(run)
    done = [each["activity_id"] for each in run.journal if each["status"] == "completed"]
    assert done == [f"root.activities[0].branches[1].activities[{n}]" for n in range(2)]
    assert (run.state.status, run.state.failure.type) == (InstanceStatus.FAULTED, "OSError")
    assert len(run.incidents) == 1


def test_under_continue_a_wait_goes_on_after_its_sibling_has_faulted():
    run = Run(Fork(Fault("no"), Sequence(Event("e"), Step("after"))), incidents="continue")
    assert run.state.status == InstanceStatus.SUSPENDED
    assert happen(run, "e")
    assert run.ready == ["root.branches[1].activities[1]"]


def test_under_continue_a_fork_any_is_saved_by_the_branch_that_ends():
    run = Run(Sequence(Fork(Fault("no"), Step("b"), wait="any")), output="fine", incidents="continue")
    run.finish()
    assert (run.state.status, run.state.output, run.state.failure) == (
        InstanceStatus.COMPLETED,
        "fine",
        None,
    )
    assert len(run.incidents) == 1


def test_under_continue_a_variable_that_is_too_large_stops_its_branch():
    big = "x" * 200_000
    run = Run(
        Fork(Sequence(SetVariable("a", given_inputs.big), Step("never")), Event("e")),
        inputs={"big": big},
        incidents="continue",
    )
    assert run.ready == []
    assert waiting(run) == ["root.branches[1]"]
    assert run.incidents[0].failure.type == "StateTooLargeError"
    assert "a" not in run.state.variables
    assert_sizes_are_exact(run.state)


def test_under_continue_many_faults_at_once_commit_in_parts():
    number = COMMIT_INTENTIONS_MAX + 20
    run = Run(Fork(*[Fault("no") for _ in range(number)]), incidents="continue")
    assert len(run.incidents) <= COMMIT_INTENTIONS_MAX
    play(run)
    assert len(run.incidents) == number
    assert run.state.status == InstanceStatus.FAULTED


# --- Switch ---


@pytest.mark.parametrize(
    ("value", "case"),
    [
        ("DE", "DE"),
        ("1", "1"),
        (1, "1"),
        (1.0, "1"),
        (-0.0, "0"),
        (2.5, "2.5"),
        (-3, "-3"),
        (True, "true"),
        (False, "false"),
        ("true", "true"),
        ("", ""),
    ],
)
def test_a_switch_chooses_by_text_number_or_truth(value, case):
    cases = {each: Step("a") for each in ("DE", "1", "0", "2.5", "-3", "true", "false", "")}
    run = Run(Switch(given_inputs.x, cases, otherwise=Step("b")), inputs={"x": value})
    assert run.ready == [f"root.cases.{case}"]


@pytest.mark.parametrize("value", ["XX", "True", None, 7, 1.5])
def test_a_switch_without_a_fitting_case_goes_otherwise_or_on(value):
    cases = {"a": Step("a"), "true": Step("b")}
    assert Run(Switch(given_inputs.x, cases, Step("c")), inputs={"x": value}).ready == ["root.otherwise"]
    assert Run(Switch(given_inputs.x, cases), inputs={"x": value}).state.status == InstanceStatus.COMPLETED


@pytest.mark.parametrize("value", [[], {}, ["a"]])
def test_a_switch_by_a_list_or_an_object_faults(value):
    failure = failure_of(Run(Switch(given_inputs.x, {"a": Step("a")}), inputs={"x": value}))
    assert "a case is named by a text or number" in failure.message


# --- depth ---


def test_nesting_twenty_deep_works_and_is_undone():
    makers = itertools.cycle(
        [
            Sequence,
            lambda inner: Fork(inner, Event("never"), wait="any"),
            lambda inner: ForEach([1], inner),
            lambda inner: ParallelForEach([1], inner),
            lambda inner: If(expr("true"), then=inner),
        ]
    )
    root = Sequence(Step("deep", n=var.item), append("var.item"))
    for _, make in zip(range(20), makers, strict=False):
        root = make(root)
    run = Run(root)
    assert len(run.state.executions) == 26  # with four waits, and the step and its sequence
    loaded = State.from_json(json.loads(dumps(run.state.to_json())), instance_id="i", status="running")
    run.state = loaded
    run.finish()
    assert run.state.status == InstanceStatus.COMPLETED
    assert run.state.variables == {"seen": [1]}
