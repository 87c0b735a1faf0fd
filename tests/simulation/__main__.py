"""Simulate: crash at every write of every scenario, then draw faults at random; both check all invariants.

    python -m tests.simulation                        all of it; SIM_RUNS and SIM_SEED set the random part
    python -m tests.simulation --scenario wait --seed 7 --faults crash-after@12 --weather rough
                                                      one run, told call by call

The last line is `crash_points=N runs=N violations=N`; the exit status is 1 if there are violations.
"""

import argparse
import os
import sys
import time
from collections.abc import Iterable, Iterator
from multiprocessing import get_context

from tests.simulation import scenarios
from tests.simulation.faults import CRASHES, Fault
from tests.simulation.runs import Result, Run, calm_runs, enumerate_runs, random_run, run_once, simulate
from tests.simulation.weather import CALM, ROUGH, WEATHERS
from tests.simulation.world import STARTED_AT

RANDOM_RUNS = 2_000
SHOWN_MAX = 20


def main() -> int:
    """Run what the command line asks for; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("--scenario", choices=sorted(scenarios.BY_NAME), help="only this one")
    parser.add_argument("--seed", type=int, help="tell one run of the scenario, with this seed")
    parser.add_argument("--faults", default="", help="its faults, as crash-after@12,freeze@20")
    parser.add_argument("--weather", choices=sorted(WEATHERS), default=CALM.name)
    given = parser.parse_args()
    if given.scenario and given.seed is not None:
        faults = tuple(Fault.parse(each) for each in given.faults.split(",") if each)
        return tell(Run(given.scenario, given.seed, faults, WEATHERS[given.weather]))
    names = [given.scenario] if given.scenario else list(scenarios.BY_NAME)
    return simulate_all(
        names, int(os.environ.get("SIM_RUNS", RANDOM_RUNS)), int(os.environ.get("SIM_SEED", "1"))
    )


def simulate_all(names: list[str], random_runs: int, seed: int) -> int:
    """Enumerate the crash points of these scenarios, and run them at random; returns the exit status."""
    tally = Tally()
    # One process per core; fork is not everywhere, and a fresh process starts in a second.
    with get_context("spawn").Pool(os.cpu_count() or 2) as pool:

        def run_all(runs: Iterable[Run]) -> Iterator[Result]:
            return pool.imap_unordered(run_once, runs, chunksize=4)

        calm = list(run_all(run for name in names for run in calm_runs(name)))
        tally.add_all(calm)
        for name in names:
            started = time.monotonic()
            of_it = [each for each in calm if each.run.scenario == name]
            runs = [run for each in of_it for run in enumerate_runs(each.run, each.writes)]
            slowest = tally.add_all(run_all(runs))
            points = sum(run.faults[0].kind in CRASHES for run in runs)
            print(
                f"{name}: {points} crash points, {len(runs)} runs in {time.monotonic() - started:.0f} s; "
                f"all quiet after at most {slowest:.0f} s of theirs",
                flush=True,
            )
        writes = {name: max(each.writes for each in calm if each.run.scenario == name) for name in names}
        started = time.monotonic()
        tally.add_all(run_all(random_run(number, seed, writes, ROUGH) for number in range(random_runs)))
        print(f"random: {random_runs} runs from seed {seed} in {time.monotonic() - started:.0f} s")
    print(f"crash_points={tally.crash_points} runs={tally.runs} violations={tally.violations}")
    return 1 if tally.violations else 0


class Tally:
    """What the runs came to; tells of the first that violate something."""

    def __init__(self) -> None:
        self.crash_points = 0
        self.runs = 0
        self.violations = 0
        self.shown = 0

    def add_all(self, results: Iterable[Result]) -> float:
        """Add results as they come; returns how long, by its own clock, the slowest took to be quiet."""
        slowest = 0.0
        for result in results:
            self.add(result)
            slowest = max(slowest, result.seconds)
        return slowest

    def add(self, result: Result) -> None:
        """Add one."""
        run = result.run
        self.runs += 1
        enumerated = run.weather != ROUGH and len(run.faults) == 1
        self.crash_points += enumerated and run.faults[0].kind in CRASHES
        self.violations += len(result.violations)
        if result.violations and self.shown < SHOWN_MAX:
            self.shown += 1
            print(f"VIOLATED by {run.scenario}, seed {run.seed}: {run.command()}")
            for each in result.violations:
                print(f"    {each}", flush=True)


def tell(run: Run) -> int:
    """Run once, and print every call of every worker, and the violations."""
    world, violations = simulate(run)
    for call in world.trace:
        told = f"  <-- {call.fault.value}" if call.fault else ""
        print(
            f"{call.at - STARTED_AT:10.3f} {call.write:4} {call.worker:12} {call.what} "
            f"{str(call.arguments)[:400]}{told}"
        )
    for each in violations:
        print(f"VIOLATED {each}")
    print(f"crash_points=0 runs=1 violations={len(violations)}")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
