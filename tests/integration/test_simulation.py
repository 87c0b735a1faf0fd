"""The simulation itself: every scenario ends as it must without faults, and a run can be repeated exactly."""

from itertools import pairwise

import pytest

from tests.simulation.__main__ import main
from tests.simulation.faults import Fault, FaultKind
from tests.simulation.runs import Run, calm_runs, simulate
from tests.simulation.scenarios import SCENARIOS
from tests.simulation.weather import ROUGH

NAMES = [each.name for each in SCENARIOS]


def story_of(world):
    """Return all that happened, call by call."""
    return [(each.at, each.worker, each.what, str(each.arguments), each.fault) for each in world.trace]


@pytest.mark.parametrize("name", NAMES)
def test_scenario_without_faults_violates_nothing(name):
    for run in calm_runs(name):
        _, violations = simulate(run)
        assert violations == []


def test_same_seed_and_faults_give_the_same_calls():
    run = Run("several", 7, (Fault(12, FaultKind.CRASH_AFTER), Fault(20, FaultKind.LATE)), ROUGH)
    first, second = simulate(run)[0], simulate(run)[0]
    assert story_of(first) == story_of(second)


def test_other_seeds_give_other_orders_of_calls():
    orders = {tuple(each.worker for each in simulate(Run("several", seed))[0].trace) for seed in range(5)}
    assert len(orders) > 1


def test_crashed_run_goes_like_the_calm_one_up_to_the_crash():
    calm, crashed = simulate(Run("wait"))[0], simulate(Run("wait", 0, (Fault(9, FaultKind.CRASH_BEFORE),)))[0]
    until = next(index for index, each in enumerate(crashed.trace) if each.fault)
    assert story_of(crashed)[:until] == story_of(calm)[:until]
    assert any(each.what == "died" for each in crashed.trace)


def test_several_workers_are_at_it_at_once():
    world, _ = simulate(Run("several"))
    workers = [each.worker for each in world.trace]
    switches = sum(before != after for before, after in pairwise(workers))
    assert switches > len(set(workers))


def test_one_run_is_told_call_by_call(monkeypatch, capsys):
    arguments = ["simulation", "--scenario", "no-wait", "--seed", "3", "--faults", "crash-after@7,freeze@9"]
    monkeypatch.setattr("sys.argv", arguments)
    assert main() == 0
    told = capsys.readouterr().out
    assert "<-- crash-after" in told
    assert told.splitlines()[-1] == "crash_points=0 runs=1 violations=0"
