"""Which sinks this deployment has. Each is imported only where it is asked for."""

from collections.abc import Sequence

from aftercommit.intentions import SINKS
from aftercommit.settings import settings
from aftercommit.sinks.sink import Outgoing, Refusal, Sink, refused


class Missing:
    """Stands in for a sink that an event names and the deployment lacks: it may come with the next one."""

    events_max = 1_000
    bytes_max = 1 << 40

    def __init__(self, name: str) -> None:
        self.name = name

    def send(self, events: Sequence[Outgoing], seconds: float) -> list[Refusal | None]:
        """Refuse."""
        del seconds
        told = f"this deployment has no sink {self.name!r}"
        return [refused("NoSuchSinkError", told, content=True)] * len(events)


def deployed_sinks() -> list[Sink]:
    """Return the sinks that the deployment's settings name, in the order of SINKS.

    What is nearest is told first, so that one which is slow or away holds back none of the others.
    """
    found: list[Sink] = []
    if settings().event_stimuli:
        from aftercommit.sinks.stimuli import Stimuli  # noqa: PLC0415 - only where it is deployed

        found.append(Stimuli())
    if settings().event_queue_arn:
        from aftercommit.sinks.queue import Queue  # noqa: PLC0415

        found.append(Queue())
    if settings().event_bus_arn:
        from aftercommit.sinks.bus import Bus  # noqa: PLC0415

        found.append(Bus())
    if settings().event_webhook_url:
        from aftercommit.sinks.webhook import Webhook  # noqa: PLC0415

        found.append(Webhook())
    return found


__all__ = ["SINKS", "Missing", "Outgoing", "Refusal", "Sink", "deployed_sinks", "refused"]
