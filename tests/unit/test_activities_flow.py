"""Branches and loops: Fork, Switch, While, ForEach, ParallelForEach and Break under the engine."""

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercommit import (
    Break,
    DispatchWorkflow,
    Event,
    Fault,
    Finish,
    ForEach,
    Fork,
    If,
    ParallelForEach,
    RunTask,
    Sequence,
    SetVariable,
    Step,
    Switch,
    Try,
    While,
    engine,
    expr,
    var,
)
from aftercommit import inputs as given_inputs
from aftercommit.errors import DefinitionRefusedError
from aftercommit.ids import derive_child_id
from aftercommit.limits import COMMIT_INTENTIONS_MAX, ITEM_BYTES_MAX
from aftercommit.model import (
    Cancel,
    Continue,
    ExecutionStatus,
    InstanceStatus,
    ItemCommand,
    Resume,
    State,
    Stimulate,
    dumps,
)
from aftercommit.model import Finish as StepFinished
from tests.unit.test_activities import failure_of
from tests.unit.test_engine import Run, assert_sizes_are_exact

LATER = "2026-11-30T21:45:25.000Z"


def play(run):
    """Carry out what a large decision has left."""
    while run.state.agenda:
        assert run.give(Continue())
    return run


def finish_all(run, result=None):
    while run.state.ready:
        run.finish(result)
        play(run)
    return run


def happen(run, name, value=None, **payload):
    return run.give(Stimulate({"name": f"event:{name}", "payload": payload}, value))


def waiting(run):
    return sorted(
        run.state.executions[each.execution_id].activity_id for each in run.state.bookmarks.values()
    )


def withdrawn(run):
    """Return the ids of the children that cancel intentions speak of."""
    cancels = [each.body for each in run.intentions if each.command == ItemCommand.CANCEL]
    apart = [part["body"] for body in cancels for part in body.get("parts", [])]
    cancels = [*apart, *(body for body in cancels if "parts" not in body)]
    pairs = [pair for body in cancels for pair in [body, *body.get("more", [])]]
    return [pair["instance_id"] for pair in pairs]


def children(run):
    return [each.body["instance_id"] for each in run.intentions if each.command == ItemCommand.START]


def append(value):
    """Return an activity that notes a value down in `seen`."""
    return SetVariable("seen", expr(f"$append(var.seen ? var.seen : [], [{value}])"))


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


# --- While ---


def counting(body=None, *, rounds):
    return Sequence(
        SetVariable("n", 0),
        While(var.n < rounds, Sequence(*([body] if body else []), SetVariable("n", var.n + 1))),
    )


def test_a_while_asks_before_each_round():
    assert Run(While(expr("false"), Step("never"))).state.status == InstanceStatus.COMPLETED
    assert finish_all(Run(counting(Step("a"), rounds=3))).state.variables == {"n": 3}


def test_each_round_is_an_execution_of_its_own():
    run = Run(counting(Step("a"), rounds=3))
    seen = set()
    while run.state.ready:
        seen.add(run.state.ready[0])
        run.finish()
    assert len(seen) == 3


def test_a_thousand_rounds_leave_the_state_as_small_as_one():
    run = Run(counting(Step("a"), rounds=1000))
    sizes = []
    while run.state.ready:
        sizes.append(len(dumps(run.state.to_json())))
        run.finish()
    assert len(sizes) == 1000
    assert max(sizes) - min(sizes) <= 24  # the digits of its counters
    assert run.state.status == InstanceStatus.COMPLETED


def test_a_thousand_rounds_without_a_step_commit_in_parts():
    run = Run(counting(rounds=1000))
    assert run.state.agenda
    play(run)
    assert run.state.variables == {"n": 1000}


def test_a_while_that_never_ends_and_never_waits_faults(monkeypatch):
    monkeypatch.setattr(engine, "MOVES_MAX", 1000)
    run = play(Run(While(expr("true"), SetVariable("x", 1))))
    assert failure_of(run).type == "EndlessLoopError"


def test_a_condition_that_is_not_true_or_false_faults():
    assert "got nothing" in failure_of(Run(While(var.missing, Step("a")))).message


# --- ForEach ---


def test_a_for_each_runs_its_body_for_each_item_in_order():
    run = Run(ForEach(["a", "b"], Step("do", item=var.item, at=var.i), index="i"))
    given = []
    while run.state.ready:
        given.append(run.state.executions[run.state.ready[0]].memory["inputs"])
        run.finish()
    assert given == [{"item": "a", "at": 0}, {"item": "b", "at": 1}]
    assert run.state.variables == {}


@pytest.mark.parametrize("loop", [ForEach, ParallelForEach])
@pytest.mark.parametrize("items", [[], None])
def test_a_loop_over_nothing_goes_on(loop, items):
    run = Run(Sequence(loop(given_inputs.x, Step("never")), Step("a")), inputs={"x": items})
    assert run.ready == ["root.activities[1]"]


@pytest.mark.parametrize("loop", [ForEach, ParallelForEach])
@pytest.mark.parametrize("items", ["text", 5, {"a": 1}, True])
def test_a_loop_over_what_is_no_list_faults(loop, items):
    assert "expected a list" in failure_of(Run(loop(given_inputs.x, Step("a")), inputs={"x": items})).message


def test_the_items_are_those_of_the_beginning():
    run = Run(
        Sequence(SetVariable("x", [1, 2]), ForEach(var.x, Sequence(SetVariable("x", []), append("var.item"))))
    )
    assert run.state.variables["seen"] == [1, 2]


def test_an_inner_loop_hides_the_item_of_the_outer_one_and_gives_it_back():
    inner = ForEach([10, 20], append("var.item"))
    run = Run(ForEach([1, 2], Sequence(append("var.item"), inner, append("var.item"))))
    assert run.state.variables == {"seen": [1, 10, 20, 1, 2, 10, 20, 2]}


def test_loops_with_names_of_their_own_see_both():
    run = Run(ForEach([1, 2], ForEach([10, 20], append("var.a + var.b"), item="b"), item="a"))
    assert run.state.variables["seen"] == [11, 21, 12, 22]


def test_a_loop_variable_is_set_where_it_is_and_hides_the_instances_own():
    run = Run(
        Sequence(
            SetVariable("item", "mine"),
            ForEach([1, 2], Sequence(SetVariable("item", var.item * 100), append("var.item"))),
        )
    )
    assert run.state.variables == {"item": "mine", "seen": [100, 200]}


def test_a_variable_of_another_name_outlives_the_loop():
    run = Run(ForEach([1, 2], SetVariable("last", var.item)))
    assert run.state.variables == {"last": 2}


def test_a_result_into_the_item_of_a_body_that_is_the_step_itself_is_lost_and_leaves_no_trace():
    run = Run(Sequence(ForEach([1, 2], Step("a", result="item")), Step("b")))
    finish_all_but_last = [run.finish("x" * 1000) for _ in range(2)]
    assert finish_all_but_last == [True, True]
    assert run.state.variables == {}
    assert_sizes_are_exact(run.state)


def test_a_loop_variable_that_outgrows_the_state_faults_and_is_not_set():
    run = Run(
        Fork(ForEach([1], Sequence(SetVariable("item", given_inputs.big), Step("never"))), Event("e")),
        inputs={"big": "x" * 200_000},
        incidents="continue",
    )
    assert run.incidents[0].failure.type == "StateTooLargeError"
    assert_sizes_are_exact(run.state)


# --- ParallelForEach ---


def test_a_parallel_for_each_runs_all_items_side_by_side():
    run = play(Run(Sequence(ParallelForEach(list(range(200)), Step("a", n=var.item)), Step("after"))))
    given = [run.state.executions[each].memory["inputs"]["n"] for each in run.state.ready]
    assert given == list(range(200))
    for _ in range(200):
        run.finish()
    assert run.ready == ["root.activities[1]"]
    assert_sizes_are_exact(run.state)


def test_items_of_a_parallel_for_each_may_end_in_any_order():
    run = Run(ParallelForEach([1, 2, 3], Sequence(Event("e", payload={"n": var.item}), append("var.item"))))
    for number in (2, 3, 1):
        assert happen(run, "e", n=number)
    assert run.state.variables == {"seen": [2, 3, 1]}
    assert run.state.status == InstanceStatus.COMPLETED


@pytest.mark.parametrize(("number", "kept"), [(2_000, 10), (500, 300_000)])
def test_more_items_at_once_than_a_state_has_room_for_fault(number, kept):
    body = DispatchWorkflow("c", input={"n": var.item}, wait=True)
    root = Try(ParallelForEach(given_inputs.items, body), handler=SetVariable("why", var.error))
    run = play(Run(root, inputs={"items": list(range(number)), "kept": "x" * kept}))
    assert run.state.variables["why"]["type"] == "StateTooLargeError"
    assert "activities at once" in run.state.variables["why"]["message"]
    assert sorted(withdrawn(run)) == sorted(children(run))


def test_a_state_that_its_limit_allows_has_room_in_an_item():
    body = DispatchWorkflow("c", input={"n": var.item}, wait=True)
    run = play(Run(ParallelForEach(given_inputs.items, body), inputs={"items": list(range(1_000))}))
    assert run.state.status == InstanceStatus.SUSPENDED
    assert len(dumps(run.state.to_json())) < ITEM_BYTES_MAX


def test_items_of_a_parallel_for_each_have_children_of_their_own():
    run = play(
        Run(ParallelForEach(list(range(200)), DispatchWorkflow("c", input={"n": var.item}, wait=True)))
    )
    assert len(set(children(run))) == 200
    for bookmark_id in list(run.state.bookmarks):
        run.give(Resume(bookmark_id, "Completed"))
    assert run.state.status == InstanceStatus.COMPLETED


@pytest.mark.parametrize(
    "end",
    [
        lambda run: run.give(Cancel("enough")),
        lambda run: happen(run, "stop"),
        lambda run: happen(run, "finish"),
    ],
)
def test_two_hundred_children_that_are_awaited_are_withdrawn_within_one_commit(end):
    root = Fork(
        ParallelForEach(list(range(200)), DispatchWorkflow("c", wait=True)),
        Event("stop"),
        Sequence(Event("finish"), Finish()),
        wait="any",
    )
    run = play(Run(root))
    before = len(run.intentions)
    end(run)
    assert len(run.intentions) - before < COMMIT_INTENTIONS_MAX
    assert sorted(withdrawn(run)) == sorted(children(run))


def test_a_withdrawal_names_the_dispatch_and_the_child():
    run = Run(Fork(DispatchWorkflow("c", wait=True), Event("stop"), wait="any"))
    [dispatch] = run.intentions
    [bookmark] = [each for each in run.state.bookmarks.values() if each.waits_for == "child"]
    happen(run, "stop")
    [_, cancel] = run.intentions
    assert cancel.body == {
        "instance_id": derive_child_id(bookmark.execution_id),
        "item_id": dispatch.item_id,
    }


# --- Break ---


def test_a_break_ends_the_nearest_loop_only():
    run = Run(
        Sequence(
            ForEach(
                [1, 2],
                Sequence(
                    ForEach([10, 20], Sequence(append("var.item"), Break(), append("'never'"))),
                    append("var.item"),
                ),
            ),
            Step("after"),
        )
    )
    assert run.state.variables == {"seen": [10, 1, 10, 2]}
    assert run.ready == ["root.activities[1]"]


def test_a_break_out_of_nested_forks_drops_steps_waits_and_children():
    body = Fork(
        Fork(
            Step("slow"),
            Event("never"),
            RunTask("ask"),
            DispatchWorkflow("child", wait=True),
            Sequence(Event("stop"), Break()),
        ),
        Step("other"),
    )
    run = Run(Sequence(While(expr("true"), body), Step("after")))
    assert len(run.state.ready) == 2
    assert happen(run, "stop")
    assert run.ready == ["root.activities[1]"]
    assert run.state.bookmarks == {}
    assert withdrawn(run) == children(run)
    assert_sizes_are_exact(run.state)


def test_a_break_in_one_item_ends_all_of_a_parallel_for_each():
    body = Sequence(Event("e", payload={"n": var.item}), If(var.item == 2, then=Break()), append("var.item"))
    run = Run(Sequence(ParallelForEach([1, 2, 3], body), Step("after")))
    happen(run, "e", n=3)
    happen(run, "e", n=2)
    assert run.ready == ["root.activities[1]"]
    assert run.state.variables == {"seen": [3]}
    assert not happen(run, "e", n=1)


def test_a_break_at_once_starts_no_other_item():
    run = Run(ParallelForEach([1, 2, 3], Sequence(DispatchWorkflow("c"), Break())))
    assert len(children(run)) == 1
    assert run.state.status == InstanceStatus.COMPLETED


def test_a_break_is_told_in_the_journal():
    run = Run(ForEach([1], Break()))
    assert [(each["type"], each["status"]) for each in run.journal] == [("Break", "completed")]


@pytest.mark.parametrize(
    ("root", "path"),
    [
        (Break(), "root"),
        (Sequence(ForEach([1], Step("a")), Break()), "root.activities[1]"),
        (Fork(Sequence(If(expr("true"), then=Break()))), "root.branches[0].activities[0].then"),
    ],
)
def test_a_break_outside_a_loop_is_refused(root, path):
    with pytest.raises(DefinitionRefusedError) as caught:
        Run(root)
    assert caught.value.faults == [(path, "there is no loop around this Break")]


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
