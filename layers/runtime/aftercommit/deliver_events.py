"""Deliver events: claim a batch, send it to each sink in one request, and record each by its own answer.

A claim goes right before a send, and every send is over before its claim: the clocks of two deliverers may
differ by what is left of it. A deliverer that dies leaves its events undone and due, and they are sent again
under the same id. No event is given up; what one of them meets holds back no other.
"""

from collections.abc import Iterator, Sequence
from itertools import islice

from aftercommit import clock
from aftercommit.errors import AftercommitError, ConditionFailedError, ContentRefusedError
from aftercommit.event_items import (
    EventItem,
    Key,
    claim_events,
    give_back,
    postpone_events,
    read_events,
    record_events,
    renew_claims,
    sinks_of,
)
from aftercommit.functions import failure_of
from aftercommit.ids import derive_id
from aftercommit.incidents import incident_put
from aftercommit.limits import STATEMENTS_MAX
from aftercommit.log import count, gauge, logger, reason_of
from aftercommit.model import Failure, Incident
from aftercommit.settings import settings
from aftercommit.sinks import Missing, Outgoing, Refusal, Sink, deployed_sinks
from aftercommit.tables import IncidentRow, split_key
from aftercommit.writes import Put, commit

# An invocation needs this long after a send to record what came of it.
_RECORD_SECONDS = 5
# The envelope of an event in a request.
_ENVELOPE_BYTES = 512
_DOUBLINGS_MAX = 20


def deliver_events(keys: Sequence[Key], *, until: float, sinks: Sequence[Sink] | None = None) -> int:
    """Deliver the undone events of these (owner_key, item_id); returns how many were told to a sink.

    `until`: when the invocation ends. What there is no time for is given back. `sinks`: in place of those
    that are deployed.
    """
    deployed = deployed_sinks() if sinks is None else sinks
    rest = iter(keys)
    sent = 0
    while batch := list(islice(rest, settings().event_batch)):
        if not _has_time(until):
            logger.warning("no time left for events", extra={"events": len(batch)})
            break  # nothing was claimed: they are due as before
        sent += _Delivery(deployed, until).deliver(read_events(batch))
    return sent


def _has_time(until: float) -> bool:
    return clock.now() + settings().event_send_timeout_seconds + _RECORD_SECONDS <= until


class _Delivery:
    """One batch: who is held, and what is to be recorded."""

    def __init__(self, deployed: Sequence[Sink], until: float) -> None:
        self.deployed = deployed
        self.names = [each.name for each in deployed]
        self.until = until
        self.held: list[EventItem] = []
        self.answered: list[EventItem] = []  # to be recorded
        self.sent = 0

    def deliver(self, items: list[EventItem]) -> int:
        free = [each for each in items if self._is_free(each)]
        self._postpone_homeless(free)
        self.held = claim_events([each for each in free if each.due])
        named = {name for each in self.held for name in each.due}
        missing = [Missing(name) for name in sorted(named - set(self.names))]
        for sink in (*self.deployed, *missing):
            self._send_all(sink)
        self._give_back()
        self._tell(items)
        return self.sent

    def _is_free(self, item: EventItem) -> bool:
        """Whether nobody holds an event; sets the sinks to which it is to be sent now."""
        moment = clock.to_text(clock.now())
        wanted = sinks_of(item, self.names)
        item.due = [
            name for name in wanted if not item.is_sent_to(name) and item.next_attempt_at(name) <= moment
        ]
        return item.claimed_until is None or item.claimed_until <= moment

    def _postpone_homeless(self, items: list[EventItem]) -> None:
        homeless = [each for each in items if not sinks_of(each, self.names)]
        if homeless:
            logger.warning("events without a sink", extra={"events": len(homeless)})
            count("EventsWithoutSink", len(homeless))
            postpone_events(homeless, "this deployment has no sink")

    # --- sending ---

    def _send_all(self, sink: Sink) -> None:
        down: Exception | None = None
        for portion in list(_portions(sink, [each for each in self.held if sink.name in each.due])):
            if down is not None:
                self._take_failure(sink, portion, down)
                continue
            try:
                self._send(sink, portion)
            except ContentRefusedError as error:
                down = self._send_singly(sink, portion, error)
            except Exception as error:  # noqa: BLE001 - whatever the reason, the sink took none of them
                # An outage is not split: what was claimed fails as one.
                self._take_failure(sink, portion, error)
                down = error
        self._record(all_of_them=True)

    def _send(self, sink: Sink, portion: list[EventItem]) -> None:
        """Send in one request; raises what the sink raises: then nothing of it is known to be there."""
        ready = self._ready(portion)
        if not ready:
            return
        seconds = min(each.claimed_at for each in ready) + settings().event_send_timeout_seconds - clock.now()
        outgoing = [Outgoing(each.tenant, each.body, each.first_claimed_at or "") for each in ready]
        answers = sink.send(outgoing, seconds)
        for item, answer in zip(ready, answers, strict=True):
            self._take(sink, item, answer)
        self._record()

    def _ready(self, portion: list[EventItem]) -> list[EventItem]:
        """Return those of a portion that are held long enough for a send; none if the invocation ends."""
        held = [each for each in portion if each in self.held]
        if not _has_time(self.until):
            return []
        latest = clock.now() - settings().event_send_timeout_seconds / 4
        stale = [each for each in held if each.claimed_at < latest]
        if stale:
            kept = renew_claims(stale)
            self._drop([each for each in stale if each not in kept])
        return [each for each in held if each in self.held]

    def _send_singly(
        self, sink: Sink, portion: list[EventItem], refused: ContentRefusedError
    ) -> Exception | None:
        """Send again one by one, so that only the guilty one waits; returns why the sink is down, if so."""
        if len(portion) == 1:
            self._take(sink, portion[0], Refusal(failure_of(refused), content=True))
            return None
        for number, item in enumerate(portion):
            try:
                self._send(sink, [item])
            except ContentRefusedError as error:
                self._take(sink, item, Refusal(failure_of(error), content=True))
            except Exception as error:  # noqa: BLE001 - as above
                self._take_failure(sink, portion[number:], error)
                return error
        return None

    # --- what came of it ---

    def _take_failure(self, sink: Sink, portion: list[EventItem], error: Exception) -> None:
        failure = failure_of(error)
        logger.warning(
            "sink is down", extra={"sink": sink.name, "events": len(portion), "reason": failure.type}
        )
        count("SinkFailures")
        for item in portion:
            self._take(sink, item, Refusal(failure))

    def _take(self, sink: Sink, item: EventItem, answer: Refusal | None) -> None:
        if item not in self.held:
            return
        at = clock.now()
        told = item.sinks.setdefault(sink.name, {})
        item.due.remove(sink.name)
        self.answered.append(item)
        if answer is None:
            told["sent_at"] = clock.to_text(at)
            self.sent += 1
            return
        attempts = int(told.get("attempts", 0)) + 1
        wait = settings().event_delay_seconds * 2 ** min(attempts - 1, _DOUBLINGS_MAX)
        told["attempts"] = attempts
        told["last_error"] = f"{answer.failure.type}: {answer.failure.message}"[:_ENVELOPE_BYTES]
        told["next_attempt_at"] = clock.to_text(at + min(wait, settings().event_delay_max_seconds))
        item.attempts += 1
        if answer.content and "refused_at" not in told and _record_refusal(sink, item, answer.failure, at):
            told["refused_at"] = clock.to_text(at)

    def _record(self, *, all_of_them: bool = False) -> None:
        """Record what was answered, in full batches unless it is all that there will be."""
        while self.answered and (all_of_them or len(self.answered) >= STATEMENTS_MAX):
            some, self.answered = self.answered[:STATEMENTS_MAX], self.answered[STATEMENTS_MAX:]
            recorded = record_events(some, self.names)
            # Not recorded: another has claimed it since, or its claim will run out; it is sent again, under
            # the same id. What is recorded stays held only on its way to another sink.
            self._drop([each for each in some if each not in recorded or not each.due])

    def _drop(self, items: list[EventItem]) -> None:
        self.held = [each for each in self.held if each not in items]

    def _give_back(self) -> None:
        if self.held:
            logger.info("events given back", extra={"events": len(self.held)})
            give_back(self.held)

    def _tell(self, items: list[EventItem]) -> None:
        count("EventsSent", self.sent)
        unsent = [each for each in items if not all(map(each.is_sent_to, sinks_of(each, self.names)))]
        if unsent:
            oldest = min(clock.from_text(each.created_at) for each in unsent)
            gauge("OldestUnsentEventSeconds", max(0.0, clock.now() - oldest))


def _portions(sink: Sink, items: list[EventItem]) -> Iterator[list[EventItem]]:
    """Cut a batch into what a sink takes in one request; one that is too large by itself is a portion."""
    portion: list[EventItem] = []
    size = 0
    for item in items:
        weight = item.bytes + _ENVELOPE_BYTES
        if portion and (len(portion) == sink.events_max or size + weight > sink.bytes_max):
            yield portion
            portion, size = [], 0
        portion.append(item)
        size += weight
    if portion:
        yield portion


def _record_refusal(sink: Sink, item: EventItem, failure: Failure, at: float) -> bool:
    """Make an incident of an event that a sink refused for its content, once per event and sink."""
    told = f"event {item.event_id!r} ({item.body['name']}) refused by the {sink.name}: {failure.message}"
    incident = Incident(derive_id("refused", *item.key, sink.name), Failure(failure.type, told))
    ttl = int(at) + settings().dead_letter_days * clock.DAY_SECONDS
    put = incident_put(item.tenant, split_key(item.key[0])[1], incident, at, item_id=item.event_id, ttl=ttl)
    absent = (
        IncidentRow.instance_key.does_not_exist()
    )  # closes: made by a deliverer that died before recording
    logger.warning(
        "event refused",
        extra={"tenant": item.tenant, "event_id": item.event_id, "sink": sink.name, "reason": failure.type},
    )
    count("EventsRefused")
    try:
        commit([Put(put.purpose, put.row, absent)])
    except ConditionFailedError:
        return True
    except AftercommitError as error:
        logger.warning(
            "incident not recorded",
            extra={"tenant": item.tenant, "event_id": item.event_id, "reason": reason_of(error)},
        )
        return False
    return True
