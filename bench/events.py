"""Events of users' own transactions: what storing one takes, and what telling a sink of a thousand takes.

The runtime's clock stands still meanwhile: moto is slower than AWS, and claims would grow old.
"""

import os
from typing import Any
from unittest import mock

from bench.prices import MILLION, READ_UNIT, SQS_REQUEST, WRITE_UNIT
from bench.world import Tally, World, deployed

EVENTS = 1_000
_BATCH = 100  # that one transaction holds at most, and that the stream brings at once under load
_AT = 1_800_000_000.0
_DATA = {
    "order_id": "order-2026-000123",
    "amount": 4200,
    "customer": "Ada Lovelace",
    "lines": list(range(40)),
}


def measure_events() -> dict[str, Any]:
    """Return the figures of events that a queue is told of."""
    with deployed("bench.workflows") as world:
        world.sqs.create_queue(QueueName="their-events")
        os.environ["EVENT_STIMULI"] = "false"
        os.environ["EVENT_QUEUE_ARN"] = "arn:aws:sqs:us-east-1:123456789012:their-events"
        from aftercommit import aws, clock  # noqa: PLC0415 - reads the settings from the environment set above
        from aftercommit.settings import settings  # noqa: PLC0415

        settings.cache_clear()
        world.meter.watch(aws.client("sqs", seconds=settings().event_send_timeout_seconds))
        with mock.patch.object(clock.clock, "now", return_value=_AT):
            stored = _store(world)
            told = _tell(world)
    updates = [each for each in told.requests if each.operation in ("BatchExecuteStatement", "UpdateItem")]
    sends = sum(each.operation == "SendMessageBatch" for each in told.requests)
    to_store = sum(each.write_units for each in stored.requests) / _BATCH
    units = to_store + sum(each.write_units for each in told.requests) / EVENTS
    reads = sum(each.read_units for each in told.requests) / EVENTS
    return {
        "write_units_per_event": round(units, 2),
        "of_them_to_store": round(to_store, 2),
        "read_units_per_event": round(reads, 2),
        "claim_and_record_requests_per_1000": len(updates),
        "read_requests_per_1000": sum(each.operation == "BatchGetItem" for each in told.requests),
        "events_per_claim_or_record": round(2 * EVENTS / len(updates), 1),
        "events_per_send_request": round(EVENTS / sends, 1),
        "usd_per_million": round(
            (units * WRITE_UNIT + reads * READ_UNIT + sends / EVENTS * SQS_REQUEST) * MILLION, 2
        ),
    }


def _store(world: World) -> Tally:
    """Store events: of those that an application stores in one transaction, what it takes is counted."""
    from aftercommit import aws  # noqa: PLC0415
    from aftercommit.events import Event, event_put  # noqa: PLC0415

    puts = [
        event_put(Event("order/placed", {**_DATA, "n": number}), table=os.environ["OUTBOX_TABLE"])
        for number in range(EVENTS)
    ]
    world.tally = Tally()
    world.meter.requests = world.tally.requests
    aws.client("dynamodb").transact_write_items(TransactItems=puts[:_BATCH])
    for each in puts[_BATCH:]:
        item = each["Put"]["Item"]
        world.dynamodb.put_item(TableName=os.environ["OUTBOX_TABLE"], Item=item)
        key = {name: item[name] for name in ("owner_key", "item_id")}
        world.stream.append({"eventName": "INSERT", "dynamodb": {"Keys": key, "NewImage": item}})
    return world.tally


def _tell(world: World) -> Tally:
    """Let the stream hand them over, a hundred at a time."""
    world.tally = Tally()
    while world.stream:
        records, world.stream = world.stream[:_BATCH], world.stream[_BATCH:]
        world.invoke("events", {"Records": records})
    return world.tally
