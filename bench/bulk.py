"""What a bulk dispatch costs per child, and how often its parent is resumed, by the number of children."""

import json
from typing import Any

from bench.model import modelled
from bench.world import Tally, World, deployed

SIZES = (10, 100, 1_000, 10_000)
UNITS_PER_CHILD_MAX = 25


def measure_bulks(sizes: tuple[int, ...] = SIZES) -> dict[int, dict[str, float]]:
    """Return the figures of bulks of these sizes; definitions are in memory, as in warm functions."""
    with modelled(), deployed("bench.bulk_workflows") as world:
        _run(world, 1)
        return {size: _measure(world, size) for size in sizes}


def _measure(world: World, size: int) -> dict[str, float]:
    instance_id = _run(world, size)
    requests = world.tally.requests
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
    pages = world.dynamodb.get_paginator("query").paginate(
        TableName="INSTANCES_TABLE",
        KeyConditionExpression="instance_key = :key",
        ExpressionAttributeValues=key,
    )
    rows: list[dict[str, Any]] = [row for page in pages for row in page["Items"]]
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
