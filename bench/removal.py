"""Ended instances that go by themselves: what their endings take more, and what their removal takes."""

import os
from typing import Any
from unittest import mock

from bench.prices import MILLION, READ_UNIT, WRITE_UNIT
from bench.world import Tally, World, deployed

DAYS = 30
WORKLOADS = ("awaited", "one-step")
_DAY_SECONDS = 86_400
_TIMES = 2  # each workload is run, since the first one reads definitions


def measure_removal(inputs: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Return the figures of one workflow, by workload."""
    return {name: _measure(name, inputs) for name in WORKLOADS}


def _measure(workload: str, inputs: dict[str, Any]) -> dict[str, float]:
    with deployed("bench.workflows") as world:
        without = _run(world, workload, inputs, days=0)
        with_days = _run(world, workload, inputs, days=DAYS)
        from aftercommit import clock  # noqa: PLC0415 - reads the settings from the environment set above

        begun = clock.now() + _DAY_SECONDS  # past all due times but those of what has ended
        with mock.patch.object(clock.clock, "now", side_effect=lambda: begun):
            idle = _sweep(world)
        begun += DAYS * _DAY_SECONDS
        _expire(world, begun)
        with mock.patch.object(clock.clock, "now", side_effect=lambda: begun):
            deleted = _sweep(world)
        begun += _DAY_SECONDS
        with mock.patch.object(clock.clock, "now", side_effect=lambda: begun):
            removed = _sweep(world)
    figures = {
        "ending_write_units": _units(with_days) - _units(without),
        "deleting_write_units": _units(deleted) / _TIMES,
        "removing_write_units": _units(removed) / _TIMES,
        "write_requests": sum(bool(r.write_units) for r in deleted.requests + removed.requests) / _TIMES,
        "read_units": (_reads(deleted) + _reads(removed) - 2 * _reads(idle)) / _TIMES,
    }
    units = sum(value for name, value in figures.items() if name.endswith("write_units"))
    dollars = (units * WRITE_UNIT + figures["read_units"] * READ_UNIT) * MILLION
    return {**figures, "usd_per_million": round(dollars, 2)}


def _run(world: World, workload: str, inputs: dict[str, Any], *, days: int) -> Tally:
    """Run a workload, and return what the last run took."""
    from aftercommit.settings import settings  # noqa: PLC0415

    os.environ["ENDED_INSTANCE_DAYS"] = str(days)
    settings.cache_clear()
    for _ in range(_TIMES):
        world.tally = Tally()
        world.dispatch(workload, inputs)
        world.settle()
    return world.tally


def _sweep(world: World) -> Tally:
    world.tally = Tally()
    world.invoke("sweep", {"Records": [{"eventSource": "aws:sqs"}]})
    return world.tally


def _expire(world: World, at: float) -> None:
    """Remove what DynamoDB has removed by then, free of charge."""
    for item in world.dynamodb.scan(TableName="OUTBOX_TABLE")["Items"]:
        if int(item.get("ttl", {"N": "0"})["N"]) and int(item["ttl"]["N"]) < at:
            key = {name: item[name] for name in ("owner_key", "item_id")}
            world.dynamodb.delete_item(TableName="OUTBOX_TABLE", Key=key)


def _units(tally: Tally) -> int:
    return sum(each.write_units for each in tally.requests)


def _reads(tally: Tally) -> float:
    return sum(each.read_units for each in tally.requests)
