"""Commands: from a queue message to the one function that sees it through.

Every message ends here in one of four ways: done, nothing to do, postponed (a held lease), or set aside
(malformed). Anything else raises, and the queue delivers it again.
"""

from math import ceil

from aftercommit import clock
from aftercommit.burst import Worker
from aftercommit.cancel import cancel_child
from aftercommit.errors import (
    InstanceEndedError,
    LeaseHeldError,
    MalformedMessageError,
    MalformedRowError,
    OvertakenError,
)
from aftercommit.log import count, logger
from aftercommit.model import ItemCommand, ItemStatus
from aftercommit.outbox import find_item, set_aside
from aftercommit.queue import Message, Sending, postpone, read_message, send
from aftercommit.queue import set_aside as set_message_aside
from aftercommit.resume import resume
from aftercommit.run import run, run_item
from aftercommit.start import start
from aftercommit.stimulate import stimulate
from aftercommit.tables import key_of

_COMMANDS = {
    ItemCommand.START: start,
    ItemCommand.RESUME: resume,
    ItemCommand.RUN: run_item,
    ItemCommand.CANCEL: cancel_child,
    ItemCommand.STIMULUS: stimulate,
}


def handle(text: str, worker: Worker, *, message_id: str = "") -> None:
    """Serve one message body. What cannot be read goes to the dead-letter queue, with its reason logged."""
    try:
        message = read_message(text)
    except MalformedMessageError as error:
        _set_aside(text, error.message, message_id)
        return
    asked = {"tenant": message.tenant, "owner_id": message.owner_id, "item_id": message.item_id}
    with logger.append_context_keys(message_id=message_id, **asked):
        _handle(message, worker, text, message_id)


def _handle(message: Message, worker: Worker, text: str, message_id: str) -> None:
    try:
        _serve(message, worker)
    except InstanceEndedError as error:
        logger.info("instance ended", extra={"reason": str(error)})
    except (LeaseHeldError, OvertakenError) as error:
        logger.info("postponed", extra={"reason": str(error)})
        count("MessagesPostponed")
        postpone(message)
    except MalformedRowError as error:
        if message.item_id and message.owner_id:
            set_aside(key_of(message.tenant, message.owner_id), message.item_id, error.message)
        _set_aside(text, error.message, message_id)


def _serve(message: Message, worker: Worker) -> None:
    if message.instance_id:
        run(message.tenant, message.instance_id, worker)
        return
    item = find_item(message.tenant, message.owner_id or "", message.item_id or "")
    if item is None or item.status != ItemStatus.UNDONE:
        logger.info("no undone item")
        return
    if item.deliver_at and (wait := clock.from_text(item.deliver_at) - clock.now()) > 0:
        send([Sending(message, ceil(wait), item.channel)])  # never early
        return
    try:
        command = _COMMANDS[ItemCommand(item.command)]
    except ValueError:
        raise MalformedRowError(f"unknown command {item.command!r}", field="command") from None
    command(item, worker)


def _set_aside(text: str, reason: str, message_id: str) -> None:
    logger.error("message set aside", extra={"message_id": message_id, "reason": reason})
    count("MessagesSetAside")
    set_message_aside(text, reason)
