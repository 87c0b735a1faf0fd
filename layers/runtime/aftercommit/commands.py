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
    RefusedError,
    UnreadableInstanceError,
)
from aftercommit.instances import find_head
from aftercommit.join import join
from aftercommit.log import about, count, ids_of, logger, reason_of, tell_failure
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
    """Serve one message body. What cannot be read goes to the dead-letter queue, with its reason.

    `trace_header` is the message's own. Each line names its trace: by that, the lines of what followed from a
    traced step are found. What nobody expected is told here, and raised.
    """
    with about(message_id=message_id):
        try:
            _read_and_handle(text, worker, trace_header)
        except Exception as error:
            # Lambda counts no error: the message alone comes back (ReportBatchItemFailures).
            tell_failure("command failed", error)
            raise


def _read_and_handle(text: str, worker: Worker, trace_header: str | None) -> None:
    try:
        message = read_message(text)
    except MalformedMessageError as error:
        _set_aside(text, error)
        return
    upstream = traces.read_header(trace_header)
    with about(**ids_of(message), upstream_trace_id=upstream.root if upstream else None):
        _handle(message, worker, text)


def _handle(message: Message, worker: Worker, text: str) -> None:
    try:
        _serve(message, worker)
    except InstanceEndedError as error:
        logger.info("instance ended", extra={"reason": reason_of(error)})
    except NewerFormError as error:
        # Its head stays due, and is sent again, each time later.
        logger.warning("left to newer code", extra={"reason": reason_of(error)})
        count("LeftToNewerCode")
    except (LeaseHeldError, OvertakenError) as error:
        logger.info("postponed", extra={"reason": reason_of(error)})
        count("MessagesPostponed")
        postpone(message, *_way_of(message))
    except UnreadableInstanceError:
        return  # told by its incident; what the message asks for stays undone, and comes up again
    except MalformedRowError as error:
        if message.item_id and message.owner_id:
            set_aside(key_of(message.tenant, message.owner_id), message.item_id, error.message)
        _set_aside(text, error)


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
        with about(**ids_of(item)):
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


def _set_aside(text: str, error: RefusedError) -> None:
    logger.error("message set aside", extra={"reason": reason_of(error)})
    count("MessagesSetAside")
    set_message_aside(text, error.message)
