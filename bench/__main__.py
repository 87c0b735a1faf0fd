"""Run the benchmark: `python -m bench`. Exits with 1 if a counted target is missed; times only inform.

`python -m bench --budget` only counts the awaited workload, in seconds, and `--bulks` only bulk dispatches;
neither writes results. `--events` counts what events take, `--removal` what it takes that ended instances go
and a month without work; both put it into the results that are there.
"""

import json
import sys
from typing import Any

from bench.bulk import find_bulk_misses, measure_bulks
from bench.costs import idle_month, stored_bytes, summarise
from bench.events import measure_events
from bench.meter import Request
from bench.removal import measure_removal
from bench.report import print_bulks, print_events, print_removal, print_report, print_requests
from bench.timing import time_engine, time_imports
from bench.world import ROOT, Tally, World, deployed

RESULTS = ROOT / "bench" / "results" / "latest.json"
WORKLOADS = {
    "awaited": "a parent of 5 steps that waits for a child of 5 steps",
    "unawaited": "a parent of 5 steps that starts a child of 5 steps",
    "one-step": "one step",
}
POSITIONS = (10, 100, 1_000)
STATES = ("small-state", "large-state")
INPUT = {"order_id": "order-2026-000123"}

AWAITED_REQUESTS_MAX = 20
AWAITED_UNITS_MAX = 50
# Batched: a request for each claim and each record would be 2,000.
EVENT_REQUESTS_MAX = 100


def count(world: World, workload: str) -> Tally:
    """Run a workload twice, and count the second time: definitions are in memory, as in a warm function."""
    for _ in range(2):
        world.tally = Tally()
        world.dispatch(workload, INPUT)
        world.settle()
    return world.tally


def units_of_steps(world: World, workload: str) -> dict[int, float]:
    """Return the write units and read units that each of some steps of a long instance takes."""
    world.tally = Tally()
    world.dispatch(workload, INPUT)
    world.settle()
    units: dict[int, float] = {}
    since_commit = 0.0
    for each in _of_runs(world.tally.requests):
        since_commit += each.write_units + each.read_units
        for revision in each.revisions:
            units[revision] = since_commit
            since_commit = 0.0
    return {position: units[position] for position in POSITIONS}


def _of_runs(requests: list[Request]) -> list[Request]:
    return [each for each in requests if each.function == "run"]


def measure() -> dict[str, Any]:
    """Return all figures."""
    engine = time_engine()  # first, while memory is small: the collector walks all of it
    workloads: dict[str, Any] = {}
    for name, told in WORKLOADS.items():
        with deployed("bench.workflows") as world:
            tally = count(world, name)
            storage = stored_bytes(world, 2)
            workloads[name] = {"what": told, **summarise(tally, world.memory_megabytes), "storage": storage}
            print_requests(name, told, tally)
    with deployed("bench.long_workflows") as world:
        steps = {name: units_of_steps(world, name) for name in STATES}
        idle = idle_month(world)
    return {
        "workloads": workloads,
        "events": measure_events(),
        "removal": measure_removal(INPUT),
        "step_units": steps,
        "bulks": measure_bulks(),
        "idle_usd_per_month": idle,
        "engine_us_per_step": round(engine, 1),
        "import_ms": {name: round(value) for name, value in time_imports().items()},
    }


def summary_of(figures: dict[str, Any]) -> dict[str, float]:
    """Return the figures that have a target, or are watched most."""
    awaited = figures["workloads"]["awaited"]
    # Of the small and the large state, the dearer one.
    step = {
        position: max(each[position] for each in figures["step_units"].values()) for position in POSITIONS
    }
    return {
        "awaited_write_requests": awaited["write_requests"],
        "awaited_write_units": awaited["write_units"],
        "step_units_10": step[10],
        "step_units_1000": step[1_000],
        "engine_us_per_step": round(figures["engine_us_per_step"]),
        "run_import_ms": figures["import_ms"]["run"],
        "usd_per_million": awaited["usd_per_million"]["total"],
    }


def find_misses(figures: dict[str, Any]) -> list[str]:
    """Return the counted targets that are missed."""
    misses = find_overruns(figures["workloads"]["awaited"])
    if len({units for each in figures["step_units"].values() for units in each.values()}) != 1:
        misses.append(f"a step's units grow: {figures['step_units']}")
    return misses + find_bulk_misses(figures["bulks"]) + find_event_misses(figures["events"])


def find_event_misses(events: dict[str, Any]) -> list[str]:
    """Return what a thousand events take beyond their budget."""
    requests = events["claim_and_record_requests_per_1000"]
    if requests > EVENT_REQUESTS_MAX:
        return [f"1,000 events take {requests} requests to claim and record, not {EVENT_REQUESTS_MAX}"]
    return []


def find_overruns(awaited: dict[str, Any]) -> list[str]:
    """Return what the awaited workload takes beyond its budget."""
    misses = []
    if awaited["write_requests"] > AWAITED_REQUESTS_MAX:
        misses.append(f"awaited takes {awaited['write_requests']} requests, not {AWAITED_REQUESTS_MAX}")
    if awaited["write_units"] > AWAITED_UNITS_MAX:
        misses.append(f"awaited takes {awaited['write_units']} units, not {AWAITED_UNITS_MAX}")
    return misses


def check_budget() -> int:
    """Count the awaited workload alone; returns 1 if it costs more than it may."""
    with deployed("bench.workflows") as world:
        tally = count(world, "awaited")
        awaited = summarise(tally, world.memory_megabytes)
    print_requests("awaited", WORKLOADS["awaited"], tally)
    misses = find_overruns(awaited)
    print("\n".join(misses) or f"{awaited['write_requests']} write requests, {awaited['write_units']} units")
    return 1 if misses else 0


def count_events() -> int:
    """Count what events take, alone; returns 1 if it is more than it may be."""
    events = measure_events()
    print_events(events)
    figures = json.loads(RESULTS.read_text())
    RESULTS.write_text(json.dumps({**figures, "events": events}, indent=1) + "\n")
    misses = find_event_misses(events)
    print("\n".join(misses) or "within its budget")
    return 1 if misses else 0


def count_removal() -> int:
    """Count what removing ended instances takes, and a month without work, alone."""
    removal = measure_removal(INPUT)
    with deployed("bench.long_workflows") as world:
        idle = idle_month(world)
    print_removal(removal)
    figures = json.loads(RESULTS.read_text())
    figures = {**figures, "removal": removal, "idle_usd_per_month": idle}
    RESULTS.write_text(json.dumps(figures, indent=1) + "\n")
    return 0


def check_bulks() -> int:
    """Count the bulk dispatches alone; returns 1 if they cost more than they may."""
    bulks = measure_bulks()
    print_bulks(bulks)
    misses = find_bulk_misses(bulks)
    print("\n".join(misses))
    return 1 if misses else 0


def main() -> int:
    """Measure, print and write."""
    figures = measure()
    print_report(figures)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({**figures, "summary": summary_of(figures)}, indent=1) + "\n")
    misses = find_misses(figures)
    for miss in misses:
        print(f"MISSED: {miss}")
    print(" ".join(f"{name}={value:g}" for name, value in summary_of(figures).items()))
    return 1 if misses else 0


if __name__ == "__main__":
    checks = {"--budget": check_budget, "--bulks": check_bulks}
    checks |= {"--events": count_events, "--removal": count_removal}
    sys.exit(checks.get(sys.argv[-1], main)())
