"""The runtime's own stimuli: an event starts and resumes the workflows that wait for its name.

The stimulus's id derives from the event's, so however often the event is delivered, there is one.
"""

from collections.abc import Sequence

from aftercommit import clock, traces
from aftercommit.bookmarks import stimulus_id_of
from aftercommit.errors import AftercommitError, ConditionFailedError, TryLaterError
from aftercommit.functions import failure_of
from aftercommit.ids import derive_id
from aftercommit.intentions import event_name, intend_stimulus
from aftercommit.outbox import item_put
from aftercommit.sinks.sink import Outgoing, Refusal
from aftercommit.tables import ItemRow
from aftercommit.writes import Put, commit


class Stimuli:
    """The bookmark queue of this deployment."""

    name = "stimuli"
    events_max = 25
    bytes_max = 4 * 1024 * 1024

    def send(self, events: Sequence[Outgoing], seconds: float) -> list[Refusal | None]:
        """Store a stimulus for each event; its data is the stimulus's input."""
        del seconds  # DynamoDB's client has time-outs of its own, and a second delivery has no second effect
        return [_store(each) for each in events]


def _store(event: Outgoing) -> Refusal | None:
    body = event.body
    intention = intend_stimulus(
        derive_id("event", event.event_id),
        # The same at each delivery, and not long ago: open stimuli are looked for by their time.
        at=event.first_claimed,
        name=event_name(body["name"]),
        payload=body.get("payload", {}),
        value=body["data"],
        correlation_id=body.get("correlation_id"),
    )
    owner_id = stimulus_id_of(intention.body["stimulus"])
    put = item_put(event.tenant, owner_id, intention, clock.now(), trace=traces.begin())
    try:
        commit([Put(put.purpose, put.row, ItemRow.item_id.does_not_exist())])
    except ConditionFailedError:
        return None  # a delivery before this one has stored it
    except TryLaterError:
        raise
    except AftercommitError as error:
        return Refusal(failure_of(error), content=True)
    return None
