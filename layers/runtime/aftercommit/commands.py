"""Commands: from a queue message to the one function that sees it through.

Every message ends here in one of five ways: done, nothing to do, postponed (a held lease), left to newer
code, or set aside (malformed). Anything else raises, and the queue delivers it again.
"""

from collections.abc import Callable
from math import ceil

from aftercommit import clock, traces
from aftercommit.attempts import leave_to_newer
from aftercommit.burst import Worker
from aftercommit.cancel import cancel_child
from aftercommit.errors import (
    InstanceEndedError,
    LeaseHeldError,
    MalformedMessageError,
    MalformedRowError,
    NewerFormError,
    OvertakenError,
    UnreadableInstanceError,
)
from aftercommit.instances import find_head
from aftercommit.join import join
from aftercommit.log import count, logger
from aftercommit.outbox import find_item
from aftercommit.queue import Message, Sending, known_channel, postpone, read_message, send
from aftercommit.queue import set_aside as set_message_aside
from aftercommit.resume import resume
from aftercommit.run import run, run_item
from aftercommit.set_aside import set_aside
from aftercommit.start import start
from aftercommit.statuses import ItemCommand, ItemStatus
from aftercommit.stimulate import stimulate
from aftercommit.tables import HeadRow, ItemRow, key_of

_COMMANDS: dict[str, Callable[[ItemRow, Worker], None]] = {
    ItemCommand.START: start,
    ItemCommand.RESUME: resume,
    ItemCommand.RUN: run_item,
    ItemCommand.CANCEL: cancel_child,
    ItemCommand.STIMULUS: stimulate,
    ItemCommand.JOIN: join,
}


def handle(text: str, worker: Worker, *, message_id: str = "", trace_header: str | None = None) -> None:
    """Serve one message body. What cannot be read goes to the dead-letter queue, with its reason logged.

    `trace_header` is the message's own. Each line names its trace: by that, the lines of what followed from a
    traced step are found.
    """
    try:
        message = read_message(text)
    except MalformedMessageError as error:
        _set_aside(text, error.message, message_id)
        return
    asked = {"tenant": message.tenant, "owner_id": message.owner_id, "item_id": message.item_id}
    if upstream := traces.read_header(trace_header):
        asked["upstream_trace_id"] = upstream.root
    with logger.append_context_keys(message_id=message_id, **asked):
        _handle(message, worker, text, message_id)


def _handle(message: Message, worker: Worker, text: str, message_id: str) -> None:
    try:
        _serve(message, worker)
    except InstanceEndedError as error:
        logger.info("instance ended", extra={"reason": str(error)})
    except NewerFormError as error:
        # Its head stays due, and is sent again, each time later.
        logger.warning("left to newer code", extra={"instance_id": message.instance_id, "reason": str(error)})
        count("LeftToNewerCode")
    except (LeaseHeldError, OvertakenError) as error:
        logger.info("postponed", extra={"reason": str(error)})
        count("MessagesPostponed")
        postpone(message, *_way_of(message))
    except UnreadableInstanceError:
        return  # told by its incident; what the message asks for stays undone, and comes up again
    except MalformedRowError as error:
        if message.item_id and message.owner_id:
            set_aside(key_of(message.tenant, message.owner_id), message.item_id, error.message)
        _set_aside(text, error.message, message_id)


def _serve(message: Message, worker: Worker) -> None:
    if message.instance_id:
        run(message.tenant, message.instance_id, worker)
        return
    item = find_item(message.tenant, message.owner_id or "", message.item_id or "")
    if item is None or item.status != ItemStatus.UNDONE or item.asleep:
        logger.info("no undone item")
        return
    if item.deliver_at and (wait := clock.from_text(item.deliver_at) - clock.now()) > 0:
        send([Sending(message, ceil(wait), known_channel(item.channel), item.trace)])  # never early
        return
    try:
        if item.command not in _COMMANDS:
            raise NewerFormError(f"this code does not know the command {item.command!r}")  # noqa: TRY301
        _COMMANDS[item.command](item, worker)
    except NewerFormError as error:
        leave_to_newer(item, str(error))


def _way_of(message: Message) -> tuple[str | None, str | None]:
    """Return the channel of what a message speaks of, and the trace that it goes behind."""
    row: HeadRow | ItemRow | None
    if message.instance_id:
        row = find_head(message.tenant, message.instance_id)
    else:
        row = find_item(message.tenant, message.owner_id or "", message.item_id or "")
    return (row.channel, row.trace) if row else (None, None)


def _set_aside(text: str, reason: str, message_id: str) -> None:
    logger.error("message set aside", extra={"message_id": message_id, "reason": reason})
    count("MessagesSetAside")
    set_message_aside(text, reason)
