"""Users of events: applications that store an order and its event in one transaction of their own."""

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from botocore.exceptions import ClientError

from aftercommit import aws
from aftercommit.events import Event, EventExistsError, event_put, telling
from aftercommit.settings import settings
from tests.simulation.calls import TENANT
from tests.simulation.dynamodb import Table

ORDERS = "orders"
_HEALS_AFTER_SECONDS = 200


def order(number: int, name: str = "sim/placed", **more: Any) -> Event:
    """Return the event of an order; its id is the order's, so that a caller who asks again repeats none."""
    return Event(name, {"order": number}, id=f"order-{number}", tenant=TENANT, **more)


def save(event: Event, *, condition: str = "attribute_not_exists (order_id)") -> None:
    """Store an order and its event; a caller who learns that the event exists knows that it did so before."""
    item = {"order_id": {"S": event.id}, "row": {"S": "order"}, "event_id": {"S": event.id}}
    put = {"TableName": ORDERS, "Item": item, "ConditionExpression": condition}
    with suppress(EventExistsError), telling():
        aws.client("dynamodb").transact_write_items(
            TransactItems=[{"Put": put}, event_put(event, table="outbox")]
        )


def save_orders(
    *events: Event,
    refused: tuple[str, ...] = (),
    stream_delay: float = 0,
    skew: float = 0,
    sink_seconds: float = 0,
) -> Callable[[Any], None]:
    """Let users save orders, and one transaction fail; the sink refuses some events for a while.

    Clocks may be ahead or behind by `skew`, and the sink take `sink_seconds` to answer.
    """

    def disturb(world: Any) -> None:
        world.dynamodb.tables[ORDERS] = Table(ORDERS, "order_id", "row")
        for number, event in enumerate(events):
            world.call_until_done(lambda event=event: save(event), after=number * 0.01)
        world.call_until_done(fail, after=0.02)
        world.stream_delay, world.skew, world.sink_seconds = stream_delay, skew, sink_seconds
        world.sink.refuses = lambda event: event["id"] in refused
        if refused:
            world.refused_ids = frozenset(refused)
            world.plan(_HEALS_AFTER_SECONDS, lambda: setattr(world.sink, "refuses", lambda event: False))

    return disturb


def refuse_whole(world: Any) -> None:
    """Let a slow sink refuse requests for one event in them, and invocations end amid the single sends."""
    save_orders(*map(order, range(1, 6)), refused=("order-2",), sink_seconds=15)(world)
    world.sink.refuses_whole = True
    world.events_seconds = 60
    world.prompt_seconds = 180


def deploy_sink_later(settings_of_sink: dict[str, str]) -> Callable[[Any], None]:
    """Let users save orders before any sink is deployed."""

    def deploy() -> None:
        os.environ.update(settings_of_sink)
        settings.cache_clear()

    def disturb(world: Any) -> None:
        save_orders(order(1), order(2))(world)
        world.plan(_HEALS_AFTER_SECONDS, deploy)
        world.prompt_seconds = 2 * 300 + 60  # the longest wait, and a head start for the sweep

    return disturb


def fail() -> None:
    """Try to store an order whose condition does not hold; its event must never be heard of."""
    with suppress(ClientError):
        save(order(0), condition="attribute_exists (order_id)")
