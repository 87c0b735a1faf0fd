"""What the world notes down: each effect outside, each change of a row, each call of a worker."""

from dataclasses import dataclass
from typing import Any

from tests.simulation.dynamodb import Item
from tests.simulation.faults import FaultKind


@dataclass(frozen=True)
class Effect:
    """What an activity did outside, as the outside world saw it."""

    activity: str
    instance_id: str
    idempotency_key: str
    at: float


@dataclass(frozen=True)
class Announcement:
    """An event that came out of the queue of a sink."""

    event_id: str
    text: str
    at: float


@dataclass(frozen=True)
class Change:
    """One change of one row, in the order in which they took effect."""

    at: float
    worker: str
    call: int  # rows of one transaction share it
    table: str
    before: Item | None
    after: Item | None


@dataclass(frozen=True)
class Refusal:
    """A start that a caller was refused, as the holder of its activation lived."""

    instance_id: str
    holder: str
    asked_at: float
    at: float


@dataclass(frozen=True)
class Call:
    """One call of a worker, or what became of one."""

    at: float
    write: int  # writes of the world so far
    worker: str
    what: str
    arguments: dict[str, Any]
    fault: FaultKind | None
