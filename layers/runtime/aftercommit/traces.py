"""Traces: which trace something was decided in, so that what follows from it can be shown behind it.

A trace of X-Ray ends where a row is written, as whoever sends the message about it runs in another one. So
the row keeps the trace, the message bears it, and Lambda links the run to it. Nothing rests on this: what
cannot be read is left out, what cannot be sent is lost, and neither stops anything.
"""

import json
import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache

from aftercommit import clock
from aftercommit.ids import new_token
from aftercommit.jsons import Json
from aftercommit.log import logger, reason_of
from aftercommit.settings import settings

# In place of a stored trace, for a message that is not to go on with the trace of its sender.
UNTRACED = ""

_ROOT = re.compile(r"1-[0-9a-f]{8}-[0-9a-f]{24}")
_PARENT = re.compile(r"[0-9a-f]{16}")
# As rows keep it, in 52 bytes: an item's or a head's other attributes often just fit into a KB.
_STORED = re.compile(f"({_ROOT.pattern})(?::({_PARENT.pattern}))?")
_DAEMON = re.compile(r"(?:udp:)?([0-9.]+):([0-9]{1,5})")
# What X-Ray takes as a name.
_ODD = re.compile(r"[^\w\s.:/%&#=+\\\-@]")
_NAME_CHARACTERS_MAX = 200


@dataclass(frozen=True, slots=True)
class Trace:
    """A place in a recorded trace: the trace's id, and that of what comes before in it."""

    root: str
    parent: str


def read_header(text: str | None) -> Trace | None:
    """Read the trace of a header, `Root=...;Parent=...;Sampled=1`; None if it is not recorded, or malformed.

    Its other parts stay behind: by `Lineage` Lambda counts how often messages have gone round, and would stop
    a workflow as a loop.
    """
    parts = dict(part.partition("=")[::2] for part in (text or "").split(";"))
    root, parent = parts.get("Root", ""), parts.get("Parent", "")
    if parts.get("Sampled") != "1" or not _ROOT.fullmatch(root) or not _PARENT.fullmatch(parent):
        return None
    return Trace(root, parent)


def _recorded() -> Trace | None:
    """Return the trace of this invocation, if it is recorded."""
    return read_header(os.environ.get("_X_AMZN_TRACE_ID")) if settings().tracing else None


def current() -> str | None:
    """Return the trace of this invocation as rows keep it; None if it is not recorded."""
    trace = _recorded()
    return f"{trace.root}:{trace.parent}" if trace else None


def begin() -> str | None:
    """Return a trace for what begins by itself, as rows keep it: whoever meets it decides on recording."""
    if not settings().tracing:
        return None
    return f"1-{int(clock.now()):08x}-{(new_token() + new_token())[:24]}"


def header_of(stored: str | None) -> str | None:
    """Return the header for a message about something whose row keeps a trace; None for none.

    A row without a trace, or with one that cannot be read, gives that of this invocation.
    """
    trace = _recorded()
    if stored == UNTRACED:
        return f"Root={trace.root};Parent={trace.parent};Sampled=0" if trace else None
    if settings().tracing and stored and (match := _STORED.fullmatch(stored)):
        root, parent = match.groups()
        return f"Root={root};Parent={parent};Sampled=1" if parent else f"Root={root}"
    return f"Root={trace.root};Parent={trace.parent};Sampled=1" if trace else None


@dataclass
class Subsegment:
    """A stretch of work that the trace shows; `fail` marks it. Without a trace it is shown nowhere."""

    trace: Trace | None
    name: str
    about: dict[str, Json]
    subsegment_id: str = field(default_factory=new_token)
    started_at: float = field(default_factory=clock.now)
    failure: str | None = None

    def fail(self, error_type: str) -> None:
        """Mark it as failed. Only the kind of the error is told: its message may have inputs in it."""
        self.failure = error_type

    def tell(self, *, ended: bool) -> None:
        """Tell X-Ray how far it is."""
        if self.trace is None:
            return
        document: dict[str, Json] = {
            "type": "subsegment",
            "trace_id": self.trace.root,
            "parent_id": self.trace.parent,
            "id": self.subsegment_id,
            "name": _ODD.sub("_", self.name)[:_NAME_CHARACTERS_MAX],
            "start_time": self.started_at,
            **({"end_time": clock.now()} if ended else {"in_progress": True}),
            **self.about,
        }
        if self.failure:
            document["fault"] = True
            document["cause"] = {"exceptions": [{"id": new_token(), "type": self.failure}]}
        _send(document)


@contextmanager
def subsegment(
    name: str,
    *,
    under: Subsegment | None = None,
    annotations: dict[str, str | None] | None = None,
    metadata: dict[str, Json] | None = None,
) -> Iterator[Subsegment]:
    """Show what happens meanwhile as a part of the invocation's trace, or of another subsegment.

    `annotations` are what traces are searched by, `metadata` is only shown. It is told when it begins, too:
    so one whose worker dies is seen as unfinished. An exception that leaves it marks it as failed.
    """
    about: dict[str, Json] = {}
    if annotations:
        about["annotations"] = {key: value for key, value in annotations.items() if value is not None}
    if metadata:
        about["metadata"] = {"aftercommit": metadata}
    trace = _recorded()
    if trace and under:
        trace = Trace(trace.root, under.subsegment_id)
    shown = Subsegment(trace, name, about)
    shown.tell(ended=False)
    try:
        yield shown
    except BaseException as error:
        shown.fail(type(error).__name__)
        raise
    finally:
        shown.tell(ended=True)


def _send(document: dict[str, Json]) -> None:
    """Hand a document to the daemon that Lambda runs beside a traced function; nobody waits for an answer."""
    address = _daemon(os.environ.get("AWS_XRAY_DAEMON_ADDRESS", ""))
    if address is None:
        return
    text = '{"format": "json", "version": 1}\n' + json.dumps(document)
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.settimeout(0)  # telling must never hold up a step
            sender.sendto(text.encode(), address)
    except Exception as error:  # noqa: BLE001 - whatever the reason, only a trace is the poorer for it
        logger.debug("trace not told", extra={"reason": reason_of(error)})


@cache
def _daemon(told: str) -> tuple[str, int] | None:
    """Read where the daemon listens: `address:port`, or `tcp:address:port udp:address:port`."""
    for part in told.split():
        if match := _DAEMON.fullmatch(part):
            return match[1], int(match[2])
    return None
