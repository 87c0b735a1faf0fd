"""What a bulk dispatch costs per child, and how often its parent is resumed, by the number of children."""

import copy
import json
from types import SimpleNamespace
from typing import Any
from unittest import mock

from moto.dynamodb import models
from moto.dynamodb.models.table import Table

from bench.world import Tally, World, deployed

SIZES = (10, 100, 1_000)
UNITS_PER_CHILD_MAX = 25


def measure_bulks(sizes: tuple[int, ...] = SIZES) -> dict[int, dict[str, float]]:
    """Return the figures of bulks of these sizes; definitions are in memory, as in warm functions."""
    with deployed("bench.bulk_workflows") as world, _without_backups():
        _run(world, 1)
        return {size: _measure(world, size) for size in sizes}


def _without_backups() -> Any:
    """Let moto copy no tables: it does for each action of a transaction, in case that has to be undone.

    With a thousand rows that takes minutes. Nothing fails here; `_measure` makes sure of it.
    """

    def deepcopy(value: Any) -> Any:
        return value if isinstance(value, Table) else copy.deepcopy(value)

    return mock.patch.object(models, "copy", SimpleNamespace(deepcopy=deepcopy, copy=copy.copy))


def _measure(world: World, size: int) -> dict[str, float]:
    instance_id = _run(world, size)
    requests = world.tally.requests
    if any("condition failed" in each.reasons for each in requests):
        raise RuntimeError("a write has failed, and was not undone")
    snapshot, resumes = _read(world, instance_id)
    if snapshot["output"] != {"completed": size}:
        raise RuntimeError(f"not all of {size} children completed: {snapshot['output']}")
    return {
        "write_units_per_child": round(sum(each.write_units for each in requests) / size, 2),
        "read_units_per_child": round(sum(each.read_units for each in requests) / size, 2),
        "sqs_sends_per_child": round(world.tally.sent / size, 2),
        "resumes": resumes,
    }


def _run(world: World, size: int) -> str:
    world.tally = Tally()
    instance_id = world.dispatch("bulk", {"children": size})
    world.settle()
    return instance_id


def _read(world: World, instance_id: str) -> tuple[dict[str, Any], int]:
    """Return the parent's last snapshot, and how often it was resumed."""
    key = {":key": {"S": f"default#{instance_id}"}}
    rows: list[dict[str, Any]] = world.dynamodb.query(
        TableName="INSTANCES_TABLE",
        KeyConditionExpression="instance_key = :key",
        ExpressionAttributeValues=key,
    )["Items"]
    commands = [row["commands"]["S"] for row in rows if "commands" in row]
    resumes = sum(each["command"]["kind"] == "resume" for written in commands for each in json.loads(written))
    [snapshot] = [row["snapshot"]["S"] for row in rows if "snapshot" in row]
    return json.loads(snapshot), resumes


def find_bulk_misses(bulks: dict[int, dict[str, float]]) -> list[str]:
    """Return the counted targets that bulks miss: linear in children, flat in resumes."""
    misses = [
        f"a bulk of {size} takes {each['write_units_per_child']} write units per child, "
        f"not {UNITS_PER_CHILD_MAX}"
        for size, each in bulks.items()
        if each["write_units_per_child"] > UNITS_PER_CHILD_MAX
    ]
    if {each["resumes"] for each in bulks.values()} != {1}:
        misses.append(f"a bulk resumes its parent more than once: {bulks}")
    return misses
