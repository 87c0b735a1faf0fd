"""The command queue: messages carry keys only, and are hints that may be lost, doubled or late.

Whatever a message asks for stands in a durable row; a message whose row is gone or settled does nothing.
"""

import json
from dataclasses import dataclass, replace
from typing import Any

from aftercommit import aws, traces
from aftercommit.errors import MalformedMessageError, RefusedError
from aftercommit.jsons import dumps
from aftercommit.limits import (
    POSTPONE_SECONDS_FIRST,
    POSTPONE_SECONDS_MAX,
    QUEUE_BATCH_MAX,
    QUEUE_DELAY_SECONDS_MAX,
)
from aftercommit.log import logger
from aftercommit.settings import settings


@dataclass(frozen=True, slots=True)
class Message:
    """Asks to see an outbox item through (owner_id, item_id), or to run an instance (instance_id)."""

    tenant: str
    owner_id: str | None = None
    item_id: str | None = None
    instance_id: str | None = None
    postponed: int = 0  # times it met a held lease

    def to_text(self) -> str:
        """Return the message's body."""
        named = {name: getattr(self, name) for name in self.__slots__}
        return dumps({name: value for name, value in named.items() if value})


@dataclass(frozen=True, slots=True)
class Sending:
    """A message on its way: after how many seconds, on which channel, and behind which trace.

    `trace` is what the row that it speaks of keeps; None stands for that of this invocation.
    """

    message: Message
    delay_seconds: int = 0
    channel: str | None = None
    trace: str | None = None


def read_message(text: str) -> Message:
    """Read a body; raises MalformedMessageError naming the part that is wrong."""
    try:
        parts = json.loads(text)
    except ValueError:
        raise MalformedMessageError("the body is no JSON") from None
    if not isinstance(parts, dict):
        raise MalformedMessageError("the body is no object")
    for name in parts.keys() - set(Message.__slots__):
        raise MalformedMessageError(f"unknown part {name!r}", field=name)
    postponed = parts.pop("postponed", 0)
    if type(postponed) is not int:
        raise MalformedMessageError("must be a whole number", field="postponed")
    for name, value in parts.items():
        if not isinstance(value, str) or not value:
            raise MalformedMessageError("must be a text that is not empty", field=name)
    if "tenant" not in parts:
        raise MalformedMessageError("is missing", field="tenant")
    if parts.keys() not in ({"tenant", "owner_id", "item_id"}, {"tenant", "instance_id"}):
        raise MalformedMessageError("must name either an item (owner_id, item_id) or an instance_id")
    return Message(**parts, postponed=postponed)


def send(sendings: list[Sending]) -> list[Exception | None]:
    """Send messages, in as few requests as possible; one that fails does not stop the others.

    Returns, in the order given, None for each that the queue took, else why it did not.
    """
    results: list[Exception | None] = [None] * len(sendings)
    by_queue: dict[str, list[int]] = {}
    for index, each in enumerate(sendings):
        try:
            by_queue.setdefault(queue_url_of(each.channel), []).append(index)
        except RefusedError as error:
            results[index] = error
    for url, indexes in by_queue.items():
        for first in range(0, len(indexes), QUEUE_BATCH_MAX):
            _send_batch(url, indexes[first : first + QUEUE_BATCH_MAX], sendings, results)
    return results


def _send_batch(
    url: str, indexes: list[int], sendings: list[Sending], results: list[Exception | None]
) -> None:
    entries = [_entry(index, sendings[index]) for index in indexes]
    try:
        answer = aws.client("sqs").send_message_batch(QueueUrl=url, Entries=entries)
    except Exception as error:  # noqa: BLE001 - whatever the reason, these messages were not taken
        for index in indexes:
            results[index] = error
        return
    for refused in answer.get("Failed", []):
        results[int(refused["Id"])] = RuntimeError(f"{refused['Code']}: {refused.get('Message', '')}")


def _entry(index: int, sending: Sending) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "Id": str(index),
        "MessageBody": sending.message.to_text(),
        "DelaySeconds": min(max(0, sending.delay_seconds), QUEUE_DELAY_SECONDS_MAX),
        # One busy tenant must not hold back the others: standard queues deliver groups fairly.
        "MessageGroupId": sending.message.tenant,
    }
    if header := traces.header_of(sending.trace):
        attribute = {"DataType": "String", "StringValue": header}
        entry["MessageSystemAttributes"] = {"AWSTraceHeader": attribute}
    return entry


def queue_url_of(channel: str | None) -> str:
    """Return the queue of a channel; raises RefusedError for one that the deployment does not know."""
    if channel is None:
        return settings().command_queue_url
    if channel in settings().channels:
        return settings().channels[channel]
    known = ", ".join(sorted(settings().channels)) or "none"
    raise RefusedError(f"unknown channel {channel!r}; this deployment has {known}", field="channel")


def known_channel(channel: str | None) -> str | None:
    """Return the channel of something that must go on; the default queue's if the deployment has lost it."""
    if channel is None or channel in settings().channels:
        return channel
    logger.warning("channel not known any more", extra={"channel": channel})
    return None


def postpone(message: Message, channel: str | None, trace: str | None = None) -> None:
    """Send a copy that comes back later on its channel, for a message that met a held lease.

    The copy replaces the message, so that waiting never counts as failing; the delay doubles.
    """
    delay = min(POSTPONE_SECONDS_FIRST * 2**message.postponed, POSTPONE_SECONDS_MAX)
    copy = replace(message, postponed=message.postponed + 1)
    for failed in send([Sending(copy, delay, known_channel(channel), trace)]):
        if failed:
            raise failed


def send_tick(delay_seconds: int) -> None:
    """Ask for a pass of the sweep after a delay."""
    aws.client("sqs").send_message(
        QueueUrl=settings().tick_queue_url, MessageBody="{}", DelaySeconds=delay_seconds
    )


def set_aside(body: str, reason: str) -> None:
    """Put a message that can never be served into the dead-letter queue, with the reason."""
    aws.client("sqs").send_message(
        QueueUrl=settings().command_dead_letter_queue_url,
        MessageBody=body,
        MessageAttributes={"reason": {"DataType": "String", "StringValue": reason[:256]}},
    )
