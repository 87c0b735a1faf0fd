"""From counts to dollars: per million workflows, and per month without any."""

from typing import Any

from bench import prices
from bench.prices import MILLION
from bench.units import size_of
from bench.world import Tally, World

WRITES = ("PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems", "BatchWriteItem")
# Lambda polls each quiet queue with at least two (at most five) long polls of 20 seconds:
# https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html
POLLED_QUEUES = 2
POLLERS = 2
POLL_SECONDS = 20
# Storage is billed with 100 bytes more per item: CapacityUnitCalculations.html
ROW_OVERHEAD_BYTES = 100


def summarise(tally: Tally, memory_megabytes: int) -> dict[str, Any]:
    """Return the counts of one workflow, and dollars per million of them."""
    by_kind: dict[str, int] = {}
    for each in tally.requests:
        by_kind[each.operation] = by_kind.get(each.operation, 0) + 1
    write_units = sum(each.write_units for each in tally.requests)
    read_units = sum(each.read_units for each in tally.requests)
    sqs = {"send": tally.sent, "receive": tally.received, "delete": tally.deleted}
    dollars = {
        "dynamodb_writes": write_units * prices.WRITE_UNIT,
        "dynamodb_reads": read_units * prices.READ_UNIT,
        "sqs": sum(sqs.values()) * prices.SQS_REQUEST,
        "lambda": sum(each.dollars(memory_megabytes) for each in tally.invocations.values()),
        "api_gateway": tally.api * prices.API_REQUEST,
    }
    log_bytes = sum(each.log_bytes for each in tally.invocations.values())
    return {
        "write_requests": sum(by_kind.get(kind, 0) for kind in WRITES),
        "write_units": write_units,
        "write_units_of_indexes": sum(each.index_units for each in tally.requests),
        "read_requests": by_kind.get("GetItem", 0) + by_kind.get("Query", 0),
        "read_units": read_units,
        "requests_by_kind": dict(sorted(by_kind.items())),
        "sqs": sqs,
        "invocations": {name: each.count for name, each in tally.invocations.items()},
        "usd_per_million": _rounded(dollars),
        # Apart: they depend on the log level and on how long things are kept.
        "log_usd_per_million": round(log_bytes * MILLION / 1e9 * prices.LOG_GB, 2),
    }


def _rounded(dollars: dict[str, float], times: int = MILLION) -> dict[str, float]:
    parts = {name: round(value * times, 2) for name, value in dollars.items()}
    return {**parts, "total": round(sum(dollars.values()) * times, 2)}


def stored_bytes(world: World, instances: int) -> dict[str, Any]:
    """Return what the rows of one instance take, with what AWS adds to each, and what that costs."""
    rows = [
        item
        for table in ("INSTANCES_TABLE", "OUTBOX_TABLE")
        for item in world.dynamodb.scan(TableName=table)["Items"]
    ]
    size = sum(size_of(item) + ROW_OVERHEAD_BYTES for item in rows) / instances
    gigabyte_month = prices.STORAGE_GB_MONTH + prices.BACKUP_GB_MONTH
    return {
        "bytes": round(size),
        "rows": round(len(rows) / instances, 1),
        "usd_per_million_and_month": round(size * MILLION / 2**30 * gigabyte_month, 2),
    }


def idle_month(world: World) -> dict[str, float]:
    """Return what a month without any work costs, by part: the sweep's passes, and the polls of queues."""
    world.tally = Tally()
    world.invoke("sweep", {"Records": [{"eventSource": "aws:sqs"}]})  # a tick's pass
    units = sum(each.read_units for each in world.tally.requests)
    interval = int(world.template["Parameters"]["SweepIntervalSeconds"]["Default"])
    minutes = prices.HOURS_A_MONTH * 60
    passes = minutes * 60 / interval
    polls = POLLED_QUEUES * POLLERS * minutes * 60 / POLL_SECONDS
    dollars = {
        "sweep_reads": passes * units * prices.READ_UNIT,
        "sweep_lambda": passes * world.tally.invocations["sweep"].dollars(world.memory_megabytes),
        # The schedule makes a minute's first pass; each further one is a message: sent, received, deleted.
        "ticks": 3 * (passes - minutes) * prices.SQS_REQUEST,
        "polls_of_queues": polls * prices.SQS_REQUEST,
    }
    log_bytes = passes * world.tally.invocations["sweep"].log_bytes
    return {**_rounded(dollars, 1), "logs_apart": round(log_bytes / 1e9 * prices.LOG_GB, 2)}
