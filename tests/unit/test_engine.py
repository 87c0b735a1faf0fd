"""The engine by itself: commands in, state and decisions out."""

import copy

import pytest

from aftercommit import DispatchWorkflow, Fault, Finish, If, Sequence, SetVariable, Step, expr, moves, var
from aftercommit import inputs as given_inputs
from aftercommit.limits import COMMIT_INTENTIONS_MAX, STATE_BYTES_MAX
from aftercommit.model import Abort, Cancel, Continue, Failure, Parent, Raise, Resume, Start
from aftercommit.model import Finish as StepFinished
from aftercommit.statuses import ExecutionStatus, InstanceStatus, ItemCommand
from tests.unit.engine_runs import AT, PARENT, Run

# --- endings ---


def test_an_empty_root_completes_at_once_with_the_output():
    run = Run(Sequence(), output={"sum": expr("1 + 1")})
    assert (run.state.status, run.state.output) == (InstanceStatus.COMPLETED, {"sum": 2})


@pytest.mark.parametrize(
    "command",
    [Start(), StepFinished("x"), Raise("x", Failure("a", "b")), Cancel("late"), Abort(Failure("a", "b"))],
)
def test_an_ended_instance_takes_no_command(command):
    run = Run(Sequence())
    before = copy.deepcopy(run.state)
    assert not run.give(command)
    assert run.state == before


@pytest.mark.parametrize(
    ("end", "outcome", "value"),
    [
        (lambda run: run.finish(7), "Completed", {"found": 7}),
        (lambda run: run.fail(), "Faulted", {"type": "OSError", "message": "gone"}),
        (lambda run: run.give(Cancel("no more")), "Cancelled", {"type": "Cancelled", "message": "no more"}),
        (lambda run: run.give(Abort(Failure("Why", "so"))), "Faulted", {"type": "Why", "message": "so"}),
    ],
)
def test_i7_every_ending_tells_a_waiting_parent_in_its_own_decision(end, outcome, value):
    run = Run(Step("a", result="x"), parent=PARENT, output={"found": var.x})
    assert run.intentions == []
    end(run)
    [telling] = run.intentions
    assert telling.command == ItemCommand.RESUME
    assert telling.body == {
        "instance_id": "the-parent",
        "bookmark_id": "the-bookmark",
        "outcome": outcome,
        "value": value,
    }


def test_a_parent_that_does_not_wait_is_not_told():
    run = Run(Step("a"), parent=Parent("the-parent", "the-item"))
    run.finish()
    assert run.state.status == InstanceStatus.COMPLETED
    assert run.intentions == []


def test_an_ending_leaves_nothing_that_could_run_or_wait():
    run = Run(Sequence(DispatchWorkflow("child", wait=True), Step("b")))
    run.give(Cancel("enough"))
    state = run.state
    assert (state.executions, state.ready, state.bookmarks, list(state.agenda)) == ({}, [], {}, [])


def test_an_output_that_cannot_be_evaluated_faults():
    run = Run(Sequence(), output=expr("$number('x')"))
    assert run.state.status == InstanceStatus.FAULTED
    assert run.state.failure.type == "ExpressionError"
    assert len(run.incidents) == 1


# --- steps ---


def test_a_second_result_of_a_step_finds_nothing():
    run = Run(Sequence(Step("a", result="x"), Step("b")))
    first = run.state.ready[0]
    assert run.give(StepFinished(first, 1))
    assert not run.give(StepFinished(first, 2))
    assert not run.give(Raise(first, Failure("E", "e")))
    assert run.state.variables == {"x": 1}


def test_the_inputs_of_a_step_are_evaluated_once_for_all_attempts():
    run = Run(Sequence(SetVariable("x", 1), Step("a", value=var.x)))
    execution = run.state.executions[run.state.ready[0]]
    run.state.variables["x"] = 2
    run.fail(retry_at="2026-11-30T21:45:25.000Z")
    run.resume("Done")
    assert execution.memory["inputs"] == {"value": 1}
    assert execution.attempt == 2


def test_a_retry_is_a_wait_with_a_timer_in_the_outbox():
    run = Run(Step("a"))
    run.fail(retry_at="2026-11-30T21:45:25.000Z")
    assert run.state.status == InstanceStatus.SUSPENDED
    assert run.ready == []
    [timer] = run.intentions
    [bookmark] = run.state.bookmarks.values()
    assert timer.deliver_at == pytest.approx(AT + 1.5)
    assert timer.body == {"instance_id": "i", "bookmark_id": bookmark.bookmark_id, "outcome": "Done"}
    assert run.incidents == []
    assert run.resume("Done")
    assert (run.state.status, run.ready) == (InstanceStatus.RUNNING, ["root"])


def test_each_retry_has_a_bookmark_and_an_item_of_its_own():
    run = Run(Step("a"))
    for _ in range(3):
        run.fail(retry_at="2026-11-30T21:45:25.000Z")
        run.resume("Done")
    assert len({each.item_id for each in run.intentions}) == 3
    assert len({each.body["bookmark_id"] for each in run.intentions}) == 3


def test_a_missing_activity_is_one_incident_however_often_it_is_missed():
    run = Run(Step("a"))
    for _ in range(3):
        run.fail(retry_at="2026-11-30T21:45:25.000Z", kind=moves.UNKNOWN_ACTIVITY)
        run.resume("Done")
    assert len({each.incident_id for each in run.incidents}) == 1
    assert run.state.executions[run.state.ready[0]].memory["uncounted"] == 3


def test_i6_a_bookmark_resumes_once():
    run = Run(DispatchWorkflow("child", wait=True, result="x"))
    [bookmark_id] = run.state.bookmarks
    assert run.give(Resume(bookmark_id, "Completed", 1))
    assert not run.give(Resume(bookmark_id, "Completed", 2))
    assert run.state.variables == {"x": 1}


def test_a_resume_of_an_unknown_bookmark_changes_nothing():
    run = Run(DispatchWorkflow("child", wait=True))
    before = copy.deepcopy(run.state.to_json())
    assert not run.give(Resume("nobody", "Completed"))
    assert run.state.to_json() == before


# --- faults ---


def test_c34_a_fault_stops_the_instance_with_one_incident():
    run = Run(Sequence(Step("a"), Step("b")))
    run.fail()
    assert (run.state.status, run.state.failure) == (InstanceStatus.FAULTED, Failure("OSError", "gone"))
    [incident] = run.incidents
    assert (incident.activity_id, incident.failure.type) == ("root.activities[0]", "OSError")


def test_under_continue_what_depends_on_the_fault_stays_and_the_instance_ends_faulted():
    run = Run(Sequence(Step("a"), Step("b")), incidents="continue")
    run.fail()
    assert (run.state.status, run.state.failure.type) == (InstanceStatus.FAULTED, "OSError")
    assert len(run.incidents) == 1


def test_a_state_that_outgrows_its_limit_faults_naming_the_largest():
    half = "x" * (STATE_BYTES_MAX // 2)
    run = Run(Sequence(Step("a", result="first"), Step("b", result="second"), Step("c")))
    run.finish(half)
    run.finish(half)
    assert run.state.status == InstanceStatus.FAULTED
    assert run.state.failure.type == "StateTooLargeError"
    assert "first (" in run.state.failure.message
    assert "second (" in run.state.failure.message
    assert "348160 bytes (LargePayloads=true allows 4 MB)" in run.state.failure.message
    assert run.incidents[0].failure == run.state.failure


def test_a_variable_that_is_overwritten_is_charged_once():
    most = "x" * (STATE_BYTES_MAX - 100)
    run = Run(Sequence(*[Step("a", result="x") for _ in range(3)], Step("b")))
    for _ in range(3):
        run.finish(most)
    assert run.ready == ["root.activities[3]"]


def test_a_variable_may_bear_the_name_of_the_inputs():
    half = "x" * (STATE_BYTES_MAX * 6 // 10)
    run = Run(SetVariable("inputs", half), inputs={"a": half})
    assert run.state.failure.type == "StateTooLargeError"


def test_a_dispatch_whose_input_is_too_large_faults_and_intends_nothing():
    """Its item could never be stored, and a commit that cannot succeed would be tried for ever."""
    text = "x" * 200_000
    run = Run(
        Sequence(SetVariable("x", text), DispatchWorkflow("child", input={"a": var.x, "b": var.x})),
    )
    assert run.state.status == InstanceStatus.FAULTED
    assert run.intentions == []
    assert "262144" in run.state.failure.message


# --- large decisions ---


def test_a_fan_out_too_large_for_one_commit_goes_on_in_the_next():
    number = COMMIT_INTENTIONS_MAX * 2 + 5
    run = Run(Sequence(*[DispatchWorkflow("child") for _ in range(number)]))
    parts = [len(run.intentions)]
    while run.state.agenda:
        before = len(run.intentions)
        assert run.give(Continue())
        parts.append(len(run.intentions) - before)
    assert sum(parts) == number
    assert max(parts) <= COMMIT_INTENTIONS_MAX
    assert len({each.item_id for each in run.intentions}) == number
    assert run.state.status == InstanceStatus.COMPLETED


def test_there_is_nothing_to_continue_when_nothing_was_left():
    run = Run(Step("a"))
    assert not run.give(Continue())


def test_endless_moves_end_as_a_fault(monkeypatch):
    monkeypatch.setattr(moves, "MOVES_MAX", 10)
    run = Run(Sequence(*[SetVariable("x", number) for number in range(20)]))
    assert run.state.failure.type == "EndlessLoopError"


# --- identities ---


def test_an_execution_and_its_child_are_the_same_in_every_run_of_an_instance():
    one, other = (Run(Sequence(Step("a"), DispatchWorkflow("child"))) for _ in range(2))
    assert one.state.ready == other.state.ready
    one.finish()
    other.finish(1)
    assert [each.item_id for each in one.intentions] == [each.item_id for each in other.intentions]


def test_i3_two_executions_always_have_two_children():
    run = Run(Sequence(DispatchWorkflow("child"), DispatchWorkflow("child")))
    first, second = run.intentions
    assert first.item_id != second.item_id
    assert first.body["instance_id"] != second.body["instance_id"]


# --- the journal ---


def test_the_journal_tells_what_ran_and_leaves_containers_out():
    run = Run(
        Sequence(
            If(given_inputs.go == True, then=Step("a")),  # noqa: E712 - builds an expression
            DispatchWorkflow("child", wait=True, on={"Faulted": SetVariable("bad", value=True)}),
            Fault("over", code="Over"),
        ),
        inputs={"go": True},
    )
    run.finish()
    run.resume("Faulted", {"type": "E", "message": "e"})
    told = [(each["activity_id"], each["status"]) for each in run.journal]
    assert told == [
        ("root.activities[0].then", "completed"),
        ("root.activities[1]", "intended"),
        ("root.activities[1].on.Faulted", "completed"),
        ("root.activities[1]", "completed"),
        ("root.activities[2]", "faulted"),
    ]
    assert run.journal[1]["instance_id"] == run.intentions[0].body["instance_id"]
    assert run.journal[3]["outcome"] == "Faulted"
    assert run.journal[4]["error"] == {"type": "Over", "message": "over"}


def test_finish_ends_from_anywhere():
    run = Run(Sequence(If(expr("true"), then=Sequence(Finish({"early": 1}), Step("never")))))
    assert (run.state.status, run.state.output) == (InstanceStatus.COMPLETED, {"early": 1})


def test_a_composite_is_running_while_its_child_is():
    run = Run(Sequence(Step("a")))
    statuses = {each.activity_id: each.status for each in run.state.executions.values()}
    assert statuses == {"root": ExecutionStatus.RUNNING, "root.activities[0]": ExecutionStatus.READY}
