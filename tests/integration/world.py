"""A deployment in one process: moto's tables and queues, a clock that is driven, messages served by hand."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aftercommit import ActivityContext, activity, aws, clock
from aftercommit.burst import Worker
from aftercommit.client import StartRequest, dispatch
from aftercommit.commands import handle
from aftercommit.definitions import store
from aftercommit.deliver import deliver
from aftercommit.publish import publish
from aftercommit.queue import Message
from aftercommit.settings import settings
from aftercommit.statuses import ItemStatus
from aftercommit.sweep import sweep
from aftercommit.tables import SHARED_TENANT, HeadRow, IncidentRow, ItemRow, RevisionRow, key_of
from aftercommit.views import show_instance

STARTED_AT = 1_796_075_123.5
VISIBILITY_SECONDS = 130
_ROUNDS_MAX = 150

# What the activity `act` does, by its input `name`; and what it has done.
behaviours: dict[str, Callable[[ActivityContext, Any], Any]] = {}
effects: list[tuple[str, str, int]] = []


@activity(name="act")
def act(name: str, context: ActivityContext, value: Any = None) -> Any:
    """Do what the test has planned under `name`; by itself it notes that it ran, and returns its value."""
    if name in behaviours:
        value = behaviours[name](context, value)
    effects.append((name, context.instance_id, context.attempt))
    return value


class DrivenClock(clock.Clock):
    """Stands still unless it is told to go on."""

    def __init__(self) -> None:
        self.at = STARTED_AT

    def now(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.at += seconds


def raw_rows(table):
    """Return a table's rows as stored, whether or not they can be read."""
    return aws.client("dynamodb").scan(TableName=table)["Items"]


def _key_of(row):
    return row["owner_key"]["S"], row["item_id"]["S"]


@dataclass
class Sent:
    """A message on the command queue."""

    due: float
    body: str
    trace_header: str | None = None


@dataclass
class World:
    clock: DrivenClock
    messages: list[Sent] = field(default_factory=list)
    raised: list[BaseException] = field(default_factory=list)
    _seen: set[tuple[str, str]] = field(default_factory=set)

    # --- the command queue, as the client's events tell ---

    def listen(self) -> Callable[[], None]:
        """Take down what is sent to the command queue; returns what ends that."""
        events = aws.client("sqs").meta.events
        handlers = [
            ("before-parameter-build.sqs.SendMessageBatch", self._on_send),
            ("after-call.sqs.SendMessageBatch", self._on_sent),
        ]
        for name, handler in handlers:
            events.register(name, handler)
        return lambda: [events.unregister(name, handler) for name, handler in handlers] and None

    def _on_send(self, params, context, **_):
        context["entries"] = (
            params["Entries"] if params["QueueUrl"] == os.environ["COMMAND_QUEUE_URL"] else []
        )

    def _on_sent(self, parsed, context, **_):
        taken = {each["Id"] for each in parsed.get("Successful", [])}
        for entry in context["entries"]:
            if entry["Id"] in taken:
                attributes = entry.get("MessageSystemAttributes", {})
                header = attributes.get("AWSTraceHeader", {}).get("StringValue")
                self.messages.append(Sent(clock.now() + entry["DelaySeconds"], entry["MessageBody"], header))

    # --- acting ---

    def publish(self, *workflows, owner=SHARED_TENANT):
        for each in workflows:
            store(owner, each.definition)
            publish(owner, each.definition)

    def dispatch(self, definition_id, input=None, *, tenant="default", **more):  # noqa: A002
        return dispatch(StartRequest(tenant, definition_id, input or {}, **more))

    def worker(self, seconds=120):
        return Worker(clock.now() + seconds)

    def handle(self, message, *, seconds=120):
        text = message.to_text() if isinstance(message, Message) else message
        handle(text, self.worker(seconds), message_id="message-1")

    def handle_item(self, item, *, seconds=120):
        self.handle(Message(item.tenant, owner_id=item.owner_id, item_id=item.item_id), seconds=seconds)

    def run(self, instance_id, *, tenant="default", seconds=120):
        self.handle(Message(tenant, instance_id=instance_id), seconds=seconds)

    def deliver_new(self):
        """Do what the stream does: deliver each new item once."""
        new = [
            key
            for row in raw_rows(settings().outbox_table)
            if row.get("status") == {"S": ItemStatus.UNDONE} and (key := _key_of(row)) not in self._seen
        ]
        self._seen.update(new)
        return deliver(new)

    def forget_stream(self):
        """Lose what the stream has to say about the items so far."""
        self._seen.update(_key_of(row) for row in raw_rows(settings().outbox_table))

    def serve(self):
        """Serve the messages that are due, as the queue would; returns how many there were."""
        due = sorted((each for each in self.messages if each.due <= clock.now()), key=lambda each: each.due)
        for each in due:
            self.messages.remove(each)
            try:
                self.handle(each.body)
            except Exception as error:  # noqa: BLE001 - the queue delivers it again
                self.raised.append(error)
                self.messages.append(Sent(clock.now() + VISIBILITY_SECONDS, each.body))
        return len(due)

    def settle(self, seconds=7_200):
        """Let everything happen that happens by itself within a time; the clock jumps to what is next."""
        until = clock.now() + seconds
        for _ in range(_ROUNDS_MAX):
            delivered = self.deliver_new() if settings().eager_delivery else 0
            if self.serve() or delivered:
                continue
            upcoming = [each.due for each in self.messages] + [clock.from_text(each) for each in self.due()]
            if not upcoming or min(upcoming) > until:
                return
            self.clock.at = max(self.clock.at, min(upcoming))
            if not any(each.due <= clock.now() for each in self.messages):
                sweep()
                if not any(each.due <= clock.now() for each in self.messages):
                    self.clock.at += 0.001
        raise AssertionError("the world does not come to rest")

    # --- looking ---

    def due(self):
        rows = raw_rows(settings().outbox_table) + raw_rows(settings().instances_table)
        return sorted(row["due_at"]["S"] for row in rows if "due_at" in row)

    def head(self, instance_id, tenant="default"):
        return HeadRow.get(key_of(tenant, instance_id), "head", consistent_read=True)

    def heads(self):
        return sorted(HeadRow.scan(HeadRow.row == "head"), key=lambda row: row.created_at)

    def items(self, command=None):
        rows = sorted(ItemRow.scan(), key=lambda row: (row.created_at, row.item_id))
        return [row for row in rows if command in (None, row.command)]

    def item(self, command=None):
        [row] = self.items(command)
        return row

    def incidents(self):
        return list(IncidentRow.scan(IncidentRow.row.startswith("incident#")))

    def revisions(self, instance_id, tenant="default"):
        return list(RevisionRow.query(key_of(tenant, instance_id), RevisionRow.row.startswith("revision#")))

    def show(self, instance_id, tenant="default"):
        return show_instance(tenant, instance_id)

    def everything(self):
        """Return all rows of all tables as stored, for comparing before and after."""
        found = {}
        of = settings()
        tables = (of.definitions_table, of.instances_table, of.outbox_table)
        for name in (*tables, of.bookmarks_table, of.triggers_table):
            found[name] = sorted(json.dumps(row, sort_keys=True) for row in raw_rows(name))
        return found

    def set_raw(self, model, key, **values):
        """Write attributes past the models, as a bug or an operator might; None removes one."""
        names = {f"#{name}": name for name in values}
        sets = ", ".join(f"#{name} = :{name}" for name, value in values.items() if value is not None)
        removes = ", ".join(f"#{name}" for name, value in values.items() if value is None)
        expression = " ".join(
            part for part in (f"SET {sets}" if sets else "", f"REMOVE {removes}" if removes else "") if part
        )
        arguments = {
            "TableName": getattr(settings(), model.table_setting),
            "Key": {name: {"S": value} for name, value in key.items()},
            "UpdateExpression": expression,
            "ExpressionAttributeNames": names,
        }
        given = {f":{name}": value for name, value in values.items() if value is not None}
        if given:
            arguments["ExpressionAttributeValues"] = given
        aws.client("dynamodb").update_item(**arguments)

    def dead_letters(self):
        """Return (body, reason) of what was set aside."""
        found = aws.client("sqs").receive_message(
            QueueUrl=os.environ["COMMAND_DEAD_LETTER_QUEUE_URL"],
            MaxNumberOfMessages=10,
            MessageAttributeNames=["All"],
            VisibilityTimeout=0,
        )
        return [
            (each["Body"], each["MessageAttributes"]["reason"]["StringValue"])
            for each in found.get("Messages", [])
        ]

    def statuses(self):
        return {row.instance_id: row.status for row in self.heads()}
