"""Flowcharts: connections, joins, loops, and what is refused; under the engine."""

import pytest

from aftercommit import (
    DispatchWorkflow,
    Event,
    Fault,
    Flowchart,
    ForEach,
    If,
    Sequence,
    SetVariable,
    Step,
    Try,
    Workflow,
    expr,
    var,
)
from aftercommit.definition import read_definition
from aftercommit.errors import DefinitionRefusedError
from aftercommit.jsons import dumps
from aftercommit.statuses import InstanceStatus
from tests.unit.engine_runs import Run, append, happen, waiting


def to(source, target, outcome=None):
    return {"from": source, "to": target, **({"outcome": outcome} if outcome else {})}


def names(run):
    return [each.removeprefix("root.activities.") for each in run.ready]


def finish(run, name, result=None):
    """Finish the step of this name, wherever it stands in the order."""
    run.state.ready.sort(key=lambda each: not run.state.executions[each].activity_id.endswith(f".{name}"))
    assert names(run)[0] == name
    run.finish(result)


def faults_of(**properties):
    with pytest.raises(DefinitionRefusedError) as caught:
        read_definition({"id": "w", "root": {"type": "Flowchart", **properties}})
    return dict(caught.value.faults)


STEPS = {name: Step(name) for name in "abcd"}


def test_a_flowchart_runs_along_its_connections_and_ends_when_nothing_runs():
    run = Run(Flowchart(STEPS, [to("a", "b"), to("b", "c")], start="a"))
    for name in "abc":
        assert names(run) == [name]
        run.finish()
    assert run.state.status == InstanceStatus.COMPLETED


def test_connections_are_taken_by_outcome():
    activities = {"send": DispatchWorkflow("c", wait=True, on={"Faulted": append("'on'")}), **STEPS}
    connections = [to("send", "a", "Completed"), to("send", "b", "Faulted"), to("send", "c")]
    run = Run(Flowchart(activities, connections, start="send"))
    run.resume("Completed")
    assert names(run) == ["a", "c"]
    run = Run(Flowchart(activities, connections, start="send"))
    run.resume("Faulted")
    assert names(run) == ["b", "c"]


def test_an_outcome_that_no_connection_is_for_is_a_dead_end():
    run = Run(Sequence(Flowchart(STEPS, [to("a", "b", "Maybe")], start="a"), Step("after")))
    run.finish()
    assert run.ready == ["root.activities[1]"]


def test_an_activity_that_nothing_leads_to_never_runs():
    run = Run(Flowchart(STEPS, [to("d", "c")], start="a"))
    run.finish()
    assert run.state.status == InstanceStatus.COMPLETED


def test_a_start_alone_is_a_flowchart():
    run = Run(Flowchart({"a": Step("a")}, [], start="a"))
    run.finish()
    assert run.state.status == InstanceStatus.COMPLETED


DIAMOND = [to("a", "b"), to("a", "c"), to("b", "d"), to("c", "d")]


def test_a_join_of_all_waits_for_every_connection_into_it():
    run = Run(Flowchart(STEPS, DIAMOND, start="a", joins={"d": "all"}))
    finish(run, "a")
    assert names(run) == ["b", "c"]
    finish(run, "c")
    assert names(run) == ["b"]
    finish(run, "b")
    assert names(run) == ["d"]
    finish(run, "d")
    assert run.state.status == InstanceStatus.COMPLETED


@pytest.mark.parametrize("joins", [None, {"d": "any"}])
def test_a_join_of_any_runs_once_for_each_connection(joins):
    run = Run(Flowchart(STEPS, DIAMOND, start="a", joins=joins))
    finish(run, "a")
    finish(run, "b")
    finish(run, "c")
    assert names(run) == ["d", "d"]
    assert len(set(run.state.ready)) == 2


def test_a_join_of_all_that_one_connection_never_reaches_does_not_run():
    run = Run(
        Flowchart(STEPS, [to("a", "b"), to("a", "d"), to("b", "d", "Maybe")], start="a", joins={"d": "all"})
    )
    finish(run, "a")
    finish(run, "b")
    assert run.state.status == InstanceStatus.COMPLETED


def test_a_loop_goes_round_until_its_choice_leads_out():
    activities = {
        "work": Step("work", n=var.n),
        "count": SetVariable("n", var.n + 1),
        "again": DispatchWorkflow("check", wait=True, on={"Faulted": Sequence()}),
        "done": Step("done"),
    }
    connections = [
        to("work", "count"),
        to("count", "again"),
        to("again", "work", "Faulted"),
        to("again", "done", "Completed"),
    ]
    run = Run(Sequence(SetVariable("n", 0), Flowchart(activities, connections, start="work")))
    for _ in range(3):
        run.finish()
        run.resume("Faulted")
    run.finish()
    run.resume("Completed")
    assert run.ready == ["root.activities[1].activities.done"]
    assert run.state.variables == {"n": 4}
    assert len({each.item_id for each in run.intentions}) == 4


def test_a_join_of_all_counts_anew_in_each_round():
    connections = [to("a", "b"), to("a", "c"), to("b", "d"), to("c", "d"), to("d", "a")]
    run = Run(Flowchart(STEPS, connections, start="a", joins={"d": "all"}))
    for _ in range(3):
        finish(run, "a")
        finish(run, "b")
        assert names(run) == ["c"]
        finish(run, "c")
        assert names(run) == ["d"]
        finish(run, "d")
    assert names(run) == ["a"]


def test_a_connection_taken_twice_before_the_other_counts_for_the_next_round():
    activities = {
        "again": Sequence(Event("tick")),
        "slow": Event("slow"),
        "start": Sequence(),
        "both": Step("both"),
    }
    connections = [
        to("start", "again"),
        to("start", "slow"),
        to("again", "again"),
        to("again", "both"),
        to("slow", "both"),
        to("slow", "slow"),
    ]
    run = Run(Flowchart(activities, connections, start="start", joins={"both": "all"}))
    happen(run, "tick")
    happen(run, "tick")
    assert names(run) == []
    happen(run, "slow")
    assert names(run) == ["both"]
    happen(run, "slow")
    assert names(run) == ["both", "both"]
    happen(run, "slow")
    assert names(run) == ["both", "both"]


def test_many_rounds_leave_the_state_as_small_as_one():
    run = Run(Flowchart(STEPS, [*DIAMOND, to("d", "a")], start="a", joins={"d": "all"}))
    sizes = []
    for _ in range(50):
        sizes.append(len(dumps(run.state.to_json())))
        for name in "abcd":
            finish(run, name)
    assert max(sizes) - min(sizes) < 60


def test_a_fault_in_a_flowchart_is_handled_around_it():
    run = Run(
        Try(
            Flowchart({**STEPS, "f": Fault("x")}, [to("a", "b"), to("a", "f")], start="a"),
            handler=Step("fix"),
        )
    )
    run.finish()
    assert run.ready == ["root.handler"]


def test_flowcharts_nest():
    inner = Flowchart({"x": Event("e"), "y": Event("f")}, [to("x", "y")], start="x")
    run = Run(Flowchart({"in": inner, "a": Step("a")}, [to("in", "a")], start="in"))
    assert waiting(run) == ["root.activities.in.activities.x"]
    happen(run, "e")
    happen(run, "f")
    assert names(run) == ["a"]


# --- what is refused ---


def tree(**activities):
    return {name: each.to_json() for name, each in activities.items()}


def test_names_that_are_no_activity_here_are_refused_with_their_paths():
    assert faults_of(
        activities=tree(a=Step("a")),
        connections=[to("a", "b"), to("c", "a")],
        start="z",
        joins={"y": "all", "a": "both"},
    ) == {
        "root.start": "no activity 'z' here",
        "root.connections[0].to": "no activity 'b' here",
        "root.connections[1].from": "no activity 'c' here",
        "root.joins.y": "no activity 'y' here",
        "root.joins.a": "must be one of all, any",
    }


@pytest.mark.parametrize(
    "connections",
    [{}, "a", [1], [{}], [{"from": "a"}], [{"from": "a", "to": 1}], [{"from": "a", "to": "a", "if": "x"}]],
)
def test_connections_that_are_none_are_refused(connections):
    faults = faults_of(activities=tree(a=Step("a")), connections=connections, start="a")
    assert faults == {"root.connections": "must be a list of {from, to, outcome?}"}


def test_a_cycle_without_a_step_or_a_wait_is_refused():
    activities = tree(a=Sequence(), b=SetVariable("x", 1), c=DispatchWorkflow("not-waited-for"), d=Sequence())
    faults = faults_of(
        activities=activities,
        connections=[to("d", "a"), to("a", "b"), to("b", "c"), to("c", "a")],
        start="d",
    )
    assert faults == {"root.connections": "a -> b -> c -> a turns without a step or a wait"}


def test_an_activity_that_leads_to_itself_without_a_wait_is_refused():
    assert (
        "a -> a"
        in faults_of(activities=tree(a=Sequence()), connections=[to("a", "a")], start="a")["root.connections"]
    )


@pytest.mark.parametrize("slow", [Step("s"), Event("e"), DispatchWorkflow("c", wait=True)])
def test_a_cycle_with_a_step_or_a_wait_is_welcome(slow):
    body = ForEach([1], If(expr("true"), then=slow))
    Workflow("w", root=Flowchart({"a": Sequence(), "b": body}, [to("a", "b"), to("b", "a")], start="a"))


def test_branches_that_meet_again_are_no_cycle():
    idle = {name: Sequence() for name in "abcd"}
    Workflow("w", root=Flowchart(idle, DIAMOND, start="a"))


def test_a_large_flowchart_is_checked_in_time():
    idle = {f"n{number}": Sequence() for number in range(500)}
    chain = [to(f"n{one}", f"n{other}") for one in range(499) for other in (one + 1, min(one + 2, 499))]
    Workflow("w", root=Flowchart(idle, chain, start="n0"))


@pytest.mark.parametrize(
    ("properties", "path"),
    [
        ({"activities": [], "start": "a"}, "root.activities"),
        ({"activities": {}, "start": ["a"]}, "root.start"),
        ({"activities": {"a": {"type": "Stepp"}}, "start": "a"}, "root.activities.a"),
        ({"activities": {"a": 5}, "start": "a"}, "root.activities.a"),
        (
            {"activities": {"a": {"type": "Sequence", "activities": 5}}, "start": "a"},
            "root.activities.a.activities",
        ),
        (
            {"activities": {"a": {"type": "Sequence", "activities": [5]}}, "start": "a"},
            "root.activities.a.activities[0]",
        ),
        (
            {"activities": {"a": {"type": "Switch", "value": 1, "cases": []}}, "start": "a"},
            "root.activities.a.cases",
        ),
    ],
)
def test_a_fault_within_a_flowchart_is_told_with_its_path(properties, path):
    connections = [to("a", "a")] if "a" in properties["activities"] else []
    assert path in faults_of(connections=connections, **properties)


def test_two_activities_never_share_a_path():
    inner = {"type": "Switch", "value": 1, "cases": {"b": {"type": "Finish"}}}
    data = {"type": "Switch", "value": 1, "cases": {"a": inner, "a.cases.b": {"type": "Finish"}}}
    with pytest.raises(DefinitionRefusedError) as caught:
        read_definition({"id": "w", "root": data})
    [(path, message)] = caught.value.faults
    assert path == "root.cases.a.cases.b"
    assert "two activities have this path" in message
