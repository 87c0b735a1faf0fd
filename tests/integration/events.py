"""Events as tests store, send and see them."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aftercommit import aws, clock
from aftercommit.deliver_events import deliver_events
from aftercommit.errors import ContentRefusedError
from aftercommit.event_items import read_events
from aftercommit.events import Event, event_put, telling
from aftercommit.settings import settings
from aftercommit.tables import ItemRow
from tests.integration.world import raw_rows

DOWN = ConnectionError("no answer")


@dataclass
class Listener:
    """A sink of the test's own: notes what it gets; `answer` says what becomes of a request."""

    name: str = "queue"
    events_max: int = 100
    bytes_max: int = 1 << 20
    answer: Callable[[list[str]], Any] = lambda ids: None
    requests: list[list[str]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def send(self, events, seconds):
        ids = [each.event_id for each in events]
        self.requests.append(ids)
        self.seconds.append(seconds)
        return self.answer(ids) or [None] * len(events)


def save(*events: Event) -> None:
    """Store events, as a transaction of their writer does."""
    table = settings().outbox_table
    with telling():
        aws.client("dynamodb").transact_write_items(
            TransactItems=[event_put(each, table=table) for each in events]
        )


def order(name: str, **more: Any) -> Event:
    return Event("order/placed", {"order": name}, id=name, **more)


def keys() -> list[tuple[str, str]]:
    """Return the keys of all events, in no order of time."""
    rows = [row for row in raw_rows(settings().outbox_table) if row.get("command") == {"S": "event"}]
    return sorted((row["owner_key"]["S"], row["item_id"]["S"]) for row in rows)


def run(*sinks: Listener, seconds: float = 180) -> int:
    """Deliver all events that there are."""
    return deliver_events(keys(), until=clock.now() + seconds, sinks=sinks or None)


def row(name: str) -> ItemRow:
    [found] = [each for each in ItemRow.scan() if each.item_id == name]
    return found


def undone() -> list[str]:
    return sorted(each.event_id for each in read_events(keys()))


def failing(error):
    def answer(ids):
        raise error

    return answer


def refusing(*guilty):
    """Refuse a request for its content as long as one of these is in it, without saying which."""

    def answer(ids):
        if set(guilty) & set(ids):
            raise ContentRefusedError("422")

    return answer


def state(name, sink="queue"):
    return json.loads(row(name).sinks)[sink]


def save_some(world, *names):
    """Store events one after the other, a second apart."""
    for name in names:
        save(order(name))
        world.clock.at += 1
