"""Loops: While, ForEach, ParallelForEach and Break under the engine."""

import pytest

from aftercommit import (
    Break,
    DispatchWorkflow,
    Event,
    Finish,
    ForEach,
    Fork,
    If,
    ParallelForEach,
    RunTask,
    Sequence,
    SetVariable,
    Step,
    Try,
    While,
    expr,
    moves,
    var,
)
from aftercommit import inputs as given_inputs
from aftercommit.errors import DefinitionRefusedError
from aftercommit.ids import derive_child_id
from aftercommit.jsons import dumps
from aftercommit.limits import COMMIT_INTENTIONS_MAX, ITEM_BYTES_MAX
from aftercommit.model import Cancel, Resume
from aftercommit.statuses import InstanceStatus
from tests.unit.engine_runs import (
    Run,
    append,
    assert_sizes_are_exact,
    children,
    failure_of,
    finish_all,
    happen,
    play,
    withdrawn,
)

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
    monkeypatch.setattr(moves, "MOVES_MAX", 1000)
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
