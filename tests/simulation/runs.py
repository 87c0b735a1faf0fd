"""One run of one scenario under given faults, and the enumeration of all its crash points."""

import traceback
from contextlib import ExitStack
from dataclasses import dataclass, replace
from random import Random
from unittest import mock

from aftercommit import moves
from aftercommit.definitions import store
from aftercommit.publish import publish
from aftercommit.tables import SHARED_TENANT
from tests.simulation import activities, scenarios
from tests.simulation.checks import violations_of
from tests.simulation.faults import Fault, FaultKind, draw_faults
from tests.simulation.layout import installed
from tests.simulation.scenario import Scenario
from tests.simulation.story import read_story
from tests.simulation.weather import CALM, DOUBLED, Weather
from tests.simulation.workflows import collect
from tests.simulation.world import STARTED_AT, World

CRASH_POINTS = (FaultKind.CRASH_BEFORE, FaultKind.CRASH_AFTER)
# What else is tried at every write of the scenarios that are looked at thoroughly.
OTHERS = (FaultKind.FREEZE, FaultKind.UNKNOWN, FaultKind.TWICE)


@dataclass(frozen=True)
class Run:
    """What to run; enough to run it again."""

    scenario: str
    seed: int = 0
    faults: tuple[Fault, ...] = ()
    weather: Weather = CALM

    def command(self) -> str:
        """Return the command line that repeats it."""
        faults = f" --faults {','.join(map(str, self.faults))}" if self.faults else ""
        return (
            f"python -m tests.simulation --scenario {self.scenario} --seed {self.seed}"
            f" --weather {self.weather.name}{faults}"
        )


@dataclass(frozen=True)
class Result:
    """What came of a run."""

    run: Run
    violations: list[str]
    writes: int
    seconds: float  # of the world's time, until it was quiet


def simulate(run: Run) -> tuple[World, list[str]]:
    """Run a scenario, and return its quiet world with what it violates."""
    scenario = scenarios.BY_NAME[run.scenario]
    return simulate_scenario(scenario, run)


def simulate_scenario(scenario: Scenario, run: Run) -> tuple[World, list[str]]:
    """Run a scenario that may be in no list."""
    world = World(run.seed, run.faults, run.weather)
    world.stuck = scenario.stuck
    world.days = scenario.days
    world.eager = scenario.settings.get("EAGER_DELIVERY") != "false"
    activities.enter(world)
    with ExitStack() as stack:
        stack.enter_context(installed(world, scenario.settings))
        for name, value in scenario.limits.items():
            stack.enter_context(mock.patch.object(moves, name, value))
        for each in collect({start.definition_id for start in scenario.starts} | scenario.published):
            store(SHARED_TENANT, each.definition)
            publish(SHARED_TENANT, each.definition)
        if scenario.disturb:
            scenario.disturb(world)
        for call in (*scenario.starts, *scenario.calls):
            world.ask(call)
        world.run()
        return world, violations_of(read_story(scenario, world))


def run_once(run: Run) -> Result:
    """Run, and keep only what can be told to another process."""
    try:
        world, violations = simulate(run)
    except Exception:  # noqa: BLE001 - told with the run that it came of, rather than ending all others
        return Result(run, [f"the simulation broke: {traceback.format_exc()}"], 0, 0)
    return Result(run, violations, world.writes, world.now() - STARTED_AT)


def calm_runs(scenario: str) -> list[Run]:
    """Return the runs without faults whose writes are enumerated."""
    found = scenarios.BY_NAME[scenario]
    weathers = (CALM, DOUBLED) if found.thorough else (CALM,)
    return [Run(scenario, seed, (), weather) for weather in weathers for seed in range(found.seeds)]


def enumerate_runs(calm: Run, writes: int) -> list[Run]:
    """Return the runs that strike each write of a run without faults, one by one."""
    kinds = CRASH_POINTS
    if scenarios.BY_NAME[calm.scenario].thorough and calm.weather == CALM:
        kinds += OTHERS
    return [replace(calm, faults=(Fault(write, kind),)) for write in range(1, writes + 1) for kind in kinds]


def random_run(number: int, seed: int, writes: dict[str, int], weather: Weather) -> Run:
    """Return the n-th random run: its scenario in turn, its faults drawn by its seed."""
    name = list(writes)[number % len(writes)]
    return Run(name, seed + number, draw_faults(Random(seed + number), writes[name]), weather)
