"""Event with `each`: a wait that stays, and runs a round for each stimulus; and with `scope`."""

import pytest

from aftercommit import (
    Break,
    Delay,
    DispatchWorkflow,
    Event,
    Fault,
    Fork,
    If,
    PublishEvent,
    Sequence,
    SetVariable,
    Step,
    Try,
    While,
    Workflow,
    direct,
    engine,
    expr,
    var,
)
from aftercommit.bookmarks import stimulus_id_of
from aftercommit.jsons import dumps
from aftercommit.model import Bookmark, Resume, Start, State, Stimulate
from aftercommit.statuses import InstanceStatus, ItemCommand
from tests.unit.engine_runs import AT, Run, failure_of, happen, waiting

STEP = Step("a", x=var.x)


def note(heard):
    def hear(x):
        heard.append(x)

    return hear


def inputs_of(run):
    return [run.state.executions[each].memory["inputs"] for each in run.state.ready]


def test_the_wait_stays_and_each_stimulus_runs_its_own_round():
    run = Run(Event("e", each=STEP, result="x"))
    [bookmark_id] = run.state.bookmarks
    for value in ("first", "second"):
        assert happen(run, "e", value)
    assert inputs_of(run) == [{"x": "first"}, {"x": "second"}]
    assert len(set(run.state.ready)) == 2
    assert list(run.state.bookmarks) == [bookmark_id]


def test_an_instance_with_only_such_a_wait_is_suspended_before_between_and_after_rounds():
    run = Run(Event("e", each=STEP))
    assert run.state.status == InstanceStatus.SUSPENDED
    for _ in range(2):
        happen(run, "e")
        assert run.state.status == InstanceStatus.RUNNING
        run.finish()
        assert run.state.status == InstanceStatus.SUSPENDED
    assert run.incidents == []


def test_the_input_is_a_variable_of_its_round_only():
    run = Run(Event("e", each=Sequence(Step("w"), SetVariable("y", var.x), STEP), result="x"))
    happen(run, "e", 1)
    happen(run, "e", 2)
    run.finish()
    run.finish()
    assert inputs_of(run) == [{"x": 1}, {"x": 2}]
    assert run.state.variables == {"y": 2}


def test_without_a_result_the_input_goes_nowhere():
    run = Run(Event("e", each=STEP))
    happen(run, "e", 1)
    assert (inputs_of(run), run.state.variables) == ([{"x": None}], {})


def test_rounds_that_wait_overlap_and_end_in_any_order():
    run = Run(Event("e", each=Sequence(Delay(1), STEP), result="x"))
    happen(run, "e", 1)
    happen(run, "e", 2)
    timers = [key for key, each in run.state.bookmarks.items() if each.waits_for == "timer"]
    assert len(timers) == 2
    assert len({each.item_id for each in run.intentions}) == 2
    for timer in reversed(timers):
        run.give(Resume(timer, "Done"))
    assert inputs_of(run) == [{"x": 2}, {"x": 1}]


@pytest.mark.parametrize("count", [1, 3])
def test_a_break_ends_the_event_its_wait_and_the_other_rounds(count):
    each = If(var.x == "stop", then=Break(), otherwise=DispatchWorkflow("child", wait=True))
    run = Run(Sequence(Event("e", each=each, result="x"), Step("after")))
    for _ in range(count):
        happen(run, "e", "go")
    happen(run, "e", "stop")
    assert (run.ready, run.state.bookmarks) == (["root.activities[1]"], {})
    assert [each.command for each in run.intentions[count:]] == [ItemCommand.CANCEL]
    assert not happen(run, "e", "late")


def test_a_break_tells_that_the_row_of_the_wait_is_gone():
    definition = Workflow("w", root=Event("e", each=Break())).definition
    state = State("i", {})
    [made] = engine.advance(definition, state, Start(), AT).made
    decision = engine.advance(definition, state, Stimulate({"name": "event:e", "payload": {}}), AT)
    assert decision.gone == [made]
    assert state.status == InstanceStatus.COMPLETED


def test_a_stimulus_that_does_not_end_it_leaves_its_row():
    definition = Workflow("w", root=Event("e", each=Step("a"))).definition
    state = State("i", {})
    engine.advance(definition, state, Start(), AT)
    decision = engine.advance(definition, state, Stimulate({"name": "event:e", "payload": {}}), AT)
    assert (decision.applied, decision.made, decision.gone) == (True, [], [])


def test_a_break_runs_the_finally_of_a_try_in_between():
    run = Run(Event("e", each=Try(Break(), finally_=Step("tidy"))))
    happen(run, "e")
    assert (run.ready, len(run.state.bookmarks)) == (["root.each.finally"], 1)
    run.finish()
    assert run.state.status == InstanceStatus.COMPLETED


def test_a_losing_branch_ends_it():
    run = Run(Sequence(Fork(Event("e", each=STEP), Event("stop"), wait="any"), Step("after")))
    happen(run, "e")
    happen(run, "stop")
    assert (run.ready, run.state.bookmarks) == (["root.activities[1]"], {})


def test_a_fault_in_a_round_ends_the_instance_or_is_caught():
    run = Run(Event("e", each=Fault("no")))
    happen(run, "e")
    assert (failure_of(run).type, run.state.bookmarks) == ("Fault", {})
    run = Run(Event("e", each=Try(Fault("no"), handler=STEP)))
    happen(run, "e")
    assert run.ready == ["root.each.handler"]
    run = Run(Try(Event("e", each=Fault("no")), handler=Step("h")))
    happen(run, "e")
    assert (run.ready, run.state.bookmarks) == (["root.handler"], {})


def test_under_continue_the_wait_outlives_a_round_that_faults():
    run = Run(Event("e", each=If(var.x, then=Fault("no"), otherwise=STEP), result="x"), incidents="continue")
    happen(run, "e", value=True)
    assert run.state.status == InstanceStatus.SUSPENDED
    assert len(run.incidents) == 1
    happen(run, "e", value=False)
    assert len(run.state.ready) == 1


def test_a_round_of_a_loop_inside_breaks_that_loop_only():
    run = Run(Event("e", each=Sequence(While(expr("true"), Break()), STEP)))
    happen(run, "e")
    assert len(run.state.bookmarks) == len(run.state.ready) == 1


def test_the_starting_event_is_round_0_and_the_next_are_others():
    definition = Workflow("w", root=Event("e", starts=True, each=STEP, result="x")).definition
    state = State("i", {}, trigger={"activity_id": "root", "value": "begin"})
    engine.advance(definition, state, Start(), AT)
    engine.advance(definition, state, Stimulate({"name": "event:e", "payload": {}}, "next"), AT)
    rounds = [state.executions[each] for each in state.ready]
    assert [(each.iteration, each.memory["inputs"]["x"]) for each in rounds] == [(0, "begin"), (1, "next")]
    assert len(state.bookmarks) == 1


def test_the_flag_survives_the_snapshot_and_takes_no_room_where_it_is_not_set():
    run = Run(Fork(Event("e", each=STEP), Event("f")))
    stored = State.from_json(run.state.to_json(), instance_id="i", status="suspended")
    assert [each.multi_use for each in stored.bookmarks.values()] == [True, False]
    assert dumps(stored.to_json()) == dumps(run.state.to_json())
    assert "multi_use" not in Bookmark("b", "x", "stimulus").to_json()


def test_direct_execution_runs_each_event_and_ends_with_the_break():
    heard = []
    workflow = Workflow(
        "w",
        root=Event("e", each=If(var.x == 3, then=Break(), otherwise=Step("hear", x=var.x)), result="x"),
    )
    result = direct.run(
        workflow,
        events=[PublishEvent("e", input=number) for number in (1, 2, 3, 4)],
        activities={"hear": note(heard)},
    )
    assert heard == [1, 2]
    assert result.status == "completed"


# --- scope ---


def test_with_the_scope_of_the_activity_only_a_stimulus_that_names_it_is_met():
    run = Run(Fork(Event("e", scope="activity", result="a"), Event("e", scope="all", result="b")))
    mine, other = run.state.bookmarks.values()
    assert mine.stimulus["execution_id"] == mine.execution_id
    assert happen(run, "e", 1)
    assert waiting(run) == ["root.branches[0]"]
    assert not run.give(Stimulate({**mine.stimulus, "execution_id": other.execution_id}, 2))
    assert run.give(Stimulate(mine.stimulus, 3))
    assert run.state.variables == {"b": 1, "a": 3}


def test_the_execution_is_part_of_what_a_stimulus_is_matched_by():
    plain = {"name": "event:e", "payload": {"a": 1}}
    ids = {
        stimulus_id_of(each) for each in (plain, plain | {"execution_id": "1"}, plain | {"execution_id": "2"})
    }
    assert len(ids) == 3


def test_each_round_of_a_loop_is_another_execution():
    run = Run(While(expr("true"), Event("e", scope="activity")))
    [first] = run.state.bookmarks.values()
    assert run.give(Stimulate(first.stimulus))
    assert not run.give(Stimulate(first.stimulus))


def test_a_start_point_is_the_same_whatever_the_scope():
    assert Event("e", starts=True, scope="activity").payloads() == Event("e", starts=True).payloads()
