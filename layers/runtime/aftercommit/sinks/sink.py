"""What a sink is: somewhere outside that is told of events, many in one request, each under its own id."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from aftercommit import clock
from aftercommit.events import envelope
from aftercommit.jsons import Json, dumps
from aftercommit.model import Failure


@dataclass(frozen=True, slots=True)
class Outgoing:
    """An event on its way: what was stored, and when it was first taken up (the same each time)."""

    tenant: str
    body: dict[str, Json]
    first_claimed_at: str

    @property
    def event_id(self) -> str:
        """Its id, the same on every delivery."""
        return str(self.body["id"])

    @property
    def first_claimed(self) -> float:
        """That instant in seconds."""
        return clock.from_text(self.first_claimed_at)

    def text(self) -> str:
        """Return it as JSON, with its tenant."""
        return dumps({**envelope(self.body), "tenant": self.tenant})


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a sink did not take an event; `content`: for what is in it, so that an operator should see it."""

    failure: Failure
    content: bool = False


class Sink(Protocol):
    """A sink; `events_max` and `bytes_max` bound one request."""

    name: str
    events_max: int
    bytes_max: int

    def send(self, events: Sequence[Outgoing], seconds: float) -> list[Refusal | None]:
        """Send events in one request that takes no longer than `seconds`; returns what became of each.

        Raises ContentRefusedError if the request was refused for something in it, without saying for which
        event; anything else it raises means that the sink is down.
        """


def refused(kind: str, message: str, *, content: bool) -> Refusal:
    """Return a refusal."""
    return Refusal(Failure(kind, message), content)
