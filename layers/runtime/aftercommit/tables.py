"""The tables: every row kind, its key and its attributes. docs/tables.md says who writes what, and when.

Keys start with the tenant. An index is sparse: a row is in it only while it has the index's attributes.
"""

from typing import Any, ClassVar

from pynamodb.attributes import BooleanAttribute, NumberAttribute, NumberSetAttribute, UnicodeAttribute
from pynamodb.connection import Connection
from pynamodb.connection.table import TableConnection
from pynamodb.indexes import GlobalSecondaryIndex, KeysOnlyProjection
from pynamodb.models import Model

from aftercommit import aws
from aftercommit.errors import MalformedRowError
from aftercommit.ids import derive_shard
from aftercommit.limits import REMOVAL_SHARDS
from aftercommit.settings import settings

DEFAULT_TENANT = "default"  # of callers that name none
SHARED_TENANT = "*"  # owner of the definitions that a deploy brings; no caller can bear this name


class Row(Model):
    """Base of all rows: the table's name from settings, and the process's one client."""

    table_setting: ClassVar[str]

    @classmethod
    def _get_connection(cls) -> TableConnection:
        cls.Meta.table_name = getattr(settings(), cls.table_setting)
        found = super()._get_connection()
        _share_client(found.connection)
        return found


_transactions = Connection()


def connection() -> Connection:
    """Return the connection that transactions go through."""
    _share_client(_transactions)
    return _transactions


def _share_client(each: Connection) -> None:
    # PynamoDB would make a session and a client per model, at 100 ms each.
    each._client = aws.client("dynamodb")  # noqa: SLF001


class HintAttribute(UnicodeAttribute):
    """A text that nothing rests on: stored as anything else, it counts as missing, and bars no reading."""

    def get_value(self, value: dict[str, Any]) -> Any:
        """Return the text, as stored."""
        return value.get(self.attr_type)


class DueIndex(GlobalSecondaryIndex[Any]):
    """What must be looked at by the sweep, oldest first, spread over shards."""

    class Meta:
        index_name = "due"
        projection = KeysOnlyProjection()

    due_shard = NumberAttribute(hash_key=True)
    due_at = UnicodeAttribute(range_key=True)


class AttentionIndex(GlobalSecondaryIndex[Any]):
    """What needs an operator, by tenant."""

    class Meta:
        index_name = "attention"
        projection = KeysOnlyProjection()

    tenant = UnicodeAttribute(hash_key=True)
    attention_at = UnicodeAttribute(range_key=True)


class PublishedIndex(GlobalSecondaryIndex[Any]):
    """Which definitions a tenant has published."""

    class Meta:
        index_name = "published"
        projection = KeysOnlyProjection()

    published_by = UnicodeAttribute(hash_key=True)
    definition_id = UnicodeAttribute(range_key=True)


class DefinitionIndex(GlobalSecondaryIndex[Any]):
    """The instances of a definition, by birth."""

    class Meta:
        index_name = "by_definition"
        projection = KeysOnlyProjection()

    definition_key = UnicodeAttribute(hash_key=True)
    created_at = UnicodeAttribute(range_key=True)


class CorrelationIndex(GlobalSecondaryIndex[Any]):
    """The instances of a correlation id, by birth."""

    class Meta:
        index_name = "by_correlation"
        projection = KeysOnlyProjection()

    correlation_key = UnicodeAttribute(hash_key=True)
    created_at = UnicodeAttribute(range_key=True)


# --- definitions ---


class DefinitionRow(Row):
    """A version of a definition (`version#000001`), its `draft`, or the pointer to the `published` one."""

    class Meta:
        table_name = ""

    table_setting = "definitions_table"
    definition_key = UnicodeAttribute(hash_key=True)  # tenant#definition_id
    row = UnicodeAttribute(range_key=True)
    definition_id = UnicodeAttribute()
    version = NumberAttribute()
    fingerprint = UnicodeAttribute()
    data = UnicodeAttribute(null=True)  # the tree as JSON; absent in the pointer
    published_by = UnicodeAttribute(null=True)  # the tenant; only in the pointer
    created_at = UnicodeAttribute()
    published = PublishedIndex()


# --- instances: a short log each ---


class HeadRow(Row):
    """The head of an instance's log: what it is, and its snapshot up to `revision`."""

    class Meta:
        table_name = ""

    table_setting = "instances_table"
    instance_key = UnicodeAttribute(hash_key=True)  # tenant#instance_id
    row = UnicodeAttribute(range_key=True, default="head")
    tenant = UnicodeAttribute()
    instance_id = UnicodeAttribute()
    definition_id = UnicodeAttribute()
    definition_key = UnicodeAttribute()  # tenant#definition_id
    definition_owner = UnicodeAttribute()  # the tenant whose definition it runs: its own, or the shared one
    version = NumberAttribute()
    status = UnicodeAttribute()
    revision = NumberAttribute()  # the snapshot covers up to here
    snapshot = UnicodeAttribute(
        null=True
    )  # the state as JSON; absent when it has a row or an object of its own
    payloads = UnicodeAttribute(null=True)  # names the object that the snapshot is in
    correlation_id = UnicodeAttribute(null=True)
    correlation_key = UnicodeAttribute(null=True)  # tenant#correlation_id
    parent_instance_id = UnicodeAttribute(null=True)
    parent_item_id = UnicodeAttribute(null=True)  # the dispatch that started it
    channel = UnicodeAttribute(null=True)  # on which messages about it travel
    request_fingerprint = UnicodeAttribute(null=True)  # of the body that came with an Idempotency-Key
    activation_key = UnicodeAttribute(null=True)  # the row by which it is the only one; None: it need not be
    secret = UnicodeAttribute(null=True)  # by which the instance knows the callback tokens it has given out
    lease_token = UnicodeAttribute(null=True)
    lease_until = UnicodeAttribute(null=True)
    leases = NumberAttribute(null=True)  # leases taken since the head was last written by a burst
    released = NumberAttribute(null=True)  # those of them that were given back by workers that lived on
    sends = NumberAttribute(null=True)  # times the sweep has sent it since then
    trace = HintAttribute(null=True)  # in which it was born, until it first waits or ends
    due_shard = NumberAttribute()
    # Set while the instance must move by itself; and, where ended instances are to go, once it has ended.
    due_at = UnicodeAttribute(null=True)
    created_at = UnicodeAttribute()
    updated_at = UnicodeAttribute()
    ended_at = UnicodeAttribute(null=True)
    deleted_at = UnicodeAttribute(null=True)  # hidden from then on; all rows go a day later
    due = DueIndex()
    by_definition = DefinitionIndex()
    by_correlation = CorrelationIndex()


class RevisionRow(Row):
    """One committed step of an instance: put only if absent, so that a log position has one author."""

    class Meta:
        table_name = ""

    table_setting = "instances_table"
    instance_key = UnicodeAttribute(hash_key=True)
    row = UnicodeAttribute(range_key=True)  # revision#0000000001
    revision = NumberAttribute()
    commands = UnicodeAttribute(null=True)  # JSON list of {at, command}: what a replay applies
    payloads = UnicodeAttribute(null=True)  # names the object that the commands are in, if they are large
    journal = UnicodeAttribute()  # JSON list of lines for people
    leases = NumberAttribute()  # the writer's lease count: tells leases with progress from those without
    nonce = UnicodeAttribute()  # by which its writer knows it after an unknown outcome
    committed_at = UnicodeAttribute()


class SnapshotRow(Row):
    """The state at a revision, when it is too large to stay in the head."""

    class Meta:
        table_name = ""

    table_setting = "instances_table"
    instance_key = UnicodeAttribute(hash_key=True)
    row = UnicodeAttribute(range_key=True)  # snapshot#0000000001
    snapshot = UnicodeAttribute()


class PayloadsRow(Row):
    """Announces the objects of a commit, and is due until that has come."""

    class Meta:
        table_name = ""

    table_setting = "instances_table"
    instance_key = UnicodeAttribute(hash_key=True)
    row = UnicodeAttribute(range_key=True)  # payloads#<name>
    doomed = BooleanAttribute(null=True)  # the commit must not come any more
    due_shard = NumberAttribute()
    due_at = UnicodeAttribute(null=True)  # when the sweep takes it that the commit never comes
    ttl = NumberAttribute(null=True)  # of one that was given up


class ActivationRow(Row):
    """Names the one live instance that a definition may have, or may have per correlation id."""

    class Meta:
        table_name = ""

    table_setting = "instances_table"
    instance_key = UnicodeAttribute(hash_key=True)  # tenant#activation#id: the head's activation_key
    row = UnicodeAttribute(range_key=True)  # activation
    holder = UnicodeAttribute()  # the instance's id


class IncidentRow(Row):
    """A recorded fault that may need an operator."""

    class Meta:
        table_name = ""

    table_setting = "instances_table"
    instance_key = UnicodeAttribute(hash_key=True)
    row = UnicodeAttribute(range_key=True)  # incident#<incident_id>
    tenant = UnicodeAttribute()
    incident_id = UnicodeAttribute()
    instance_id = UnicodeAttribute()
    activity_id = UnicodeAttribute(null=True)
    execution_id = UnicodeAttribute(null=True)
    item_id = UnicodeAttribute(null=True)  # the outbox item it speaks of
    error_type = UnicodeAttribute()
    message = UnicodeAttribute()
    created_at = UnicodeAttribute()
    attention_at = UnicodeAttribute(null=True)
    ttl = NumberAttribute(null=True)  # of an event's: it has no instance with which it could go
    attention = AttentionIndex()


class TallyRow(Row):
    """Which children of a bulk dispatch have ended, by outcome; each row counts a part of them.

    Indexes as members of sets, rather than their number: one that is told of twice is counted once.
    """

    class Meta:
        table_name = ""

    table_setting = "instances_table"
    instance_key = UnicodeAttribute(hash_key=True)  # of the parent
    row = UnicodeAttribute(range_key=True)  # count#<join id>#<row>
    completed = NumberSetAttribute(null=True)
    faulted = NumberSetAttribute(null=True)
    cancelled = NumberSetAttribute(null=True)
    dispatch_failed = NumberSetAttribute(null=True)


class CallbackRow(Row):
    """A callback address that was called: put only if absent, so that it counts once for good."""

    class Meta:
        table_name = ""

    table_setting = "instances_table"
    instance_key = UnicodeAttribute(hash_key=True)
    row = UnicodeAttribute(range_key=True)  # callback#<hash of its name>
    item_id = UnicodeAttribute()  # the stimulus that the call has become
    nonce = UnicodeAttribute()  # by which its writer knows it after an unknown outcome
    created_at = UnicodeAttribute()


# --- what stimuli find ---


class BookmarkRow(Row):
    """Names an instance that waits for a stimulus. An index of the bookmarks in states: perhaps in excess."""

    class Meta:
        table_name = ""

    table_setting = "bookmarks_table"
    stimulus_key = UnicodeAttribute(hash_key=True)  # tenant#stimulus id
    bookmark_id = UnicodeAttribute(range_key=True)
    instance_id = UnicodeAttribute()
    correlation_id = UnicodeAttribute(null=True)
    created_at = UnicodeAttribute()


class TriggerRow(Row):
    """Names a start point of a published definition."""

    class Meta:
        table_name = ""

    table_setting = "triggers_table"
    stimulus_key = UnicodeAttribute(hash_key=True)  # owner#stimulus id
    row = UnicodeAttribute(range_key=True)  # definition_id#version#activity_id
    owner = UnicodeAttribute()
    definition_id = UnicodeAttribute()
    version = NumberAttribute()
    activity_id = UnicodeAttribute()


# --- the outbox ---


class ItemRow(Row):
    """An outbox item: a stored intention."""

    class Meta:
        table_name = ""

    table_setting = "outbox_table"
    owner_key = UnicodeAttribute(hash_key=True)  # tenant#owner_id
    item_id = UnicodeAttribute(range_key=True)
    tenant = UnicodeAttribute()
    owner_id = UnicodeAttribute()  # the instance whose commit decided it
    command = UnicodeAttribute()
    status = UnicodeAttribute()
    instance_id = UnicodeAttribute(null=True)  # the child to start, or the instance that it is for
    definition_id = UnicodeAttribute(null=True)
    version = NumberAttribute(null=True)
    channel = UnicodeAttribute(null=True)
    wait = BooleanAttribute(null=True)  # whether the owner waits for the child
    body = UnicodeAttribute()  # JSON of the whole command
    payloads = UnicodeAttribute(null=True)  # names the object that its input or value is in, if that is large
    attempts = NumberAttribute(default=0)  # refusals
    last_error = UnicodeAttribute(null=True)
    sends = NumberAttribute(default=0)  # claims; the value read is what a claim is conditional on
    generation = NumberAttribute(default=1)
    split = BooleanAttribute(
        null=True
    )  # a stimulus that reaches so many that splitting it takes several commits
    replayed_as = UnicodeAttribute(null=True)  # the stimulus that the replay of this dead letter has made
    sinks = UnicodeAttribute(null=True)  # of an event: JSON of what became of it, by sink
    claimed_until = UnicodeAttribute(null=True)  # of an event: whoever has claimed it sends it until then
    first_claimed_at = UnicodeAttribute(null=True)  # of an event: when it was first taken up
    deliver_at = UnicodeAttribute(null=True)  # not before
    asleep = BooleanAttribute(null=True)  # undone, and not to be sent until another's end wakes it
    outcome = UnicodeAttribute(null=True)  # how the child of a bulk dispatch has ended
    output = UnicodeAttribute(null=True)  # and JSON of its output or failure, if that is small
    trace = HintAttribute(null=True)  # in which it was decided
    due_shard = NumberAttribute()
    due_at = UnicodeAttribute(null=True)  # set while undone, unless asleep: when the sweep takes it
    attention_at = UnicodeAttribute(null=True)  # set when failed, unless a parent was told; or damaged
    created_at = UnicodeAttribute()
    settled_at = UnicodeAttribute(null=True)
    ttl = NumberAttribute(null=True)  # epoch seconds; DynamoDB removes the row some time after
    due = DueIndex()
    attention = AttentionIndex()


class RequestRow(Row):
    """Remembers a call that came with an Idempotency-Key, and the stimulus that it has made."""

    class Meta:
        table_name = ""

    table_setting = "outbox_table"
    owner_key = UnicodeAttribute(hash_key=True)  # tenant#hash of the key
    item_id = UnicodeAttribute(range_key=True, default="request")
    fingerprint = UnicodeAttribute()  # of the body
    stimulus_id = UnicodeAttribute()
    created_at = UnicodeAttribute()
    ttl = NumberAttribute()  # epoch seconds; the key counts as new from then on


PAYLOADS_PREFIX = "payloads#"


def key_of(tenant: str, name: str) -> str:
    """Return a partition key: tenants cannot hold the separator, so no two pairs share one."""
    return f"{tenant}#{name}"


def removal_shard(instance_id: str) -> int:
    """Return the shard of the due index for what is to be removed, apart from what is to go on."""
    return REMOVAL_SHARDS[derive_shard(instance_id, len(REMOVAL_SHARDS))]


def split_key(key: str) -> tuple[str, str]:
    """Return (tenant, name) of a partition key."""
    tenant, separator, name = key.partition("#")
    if not separator:
        raise MalformedRowError(f"the key {key!r} has no tenant", field=key)
    return tenant, name


def ids_of_instance(instance_key: str) -> dict[str, str]:
    """Return the ids in an instance's key as lines have them: also where its row cannot be read."""
    tenant, _, instance_id = instance_key.partition("#")
    return {"tenant": tenant, "instance_id": instance_id}


def revision_name(revision: int) -> str:
    """Return the sort key of a revision; as text they sort by number."""
    return f"revision#{revision:010}"


def snapshot_name(revision: int) -> str:
    """Return the sort key of the snapshot of a revision."""
    return f"snapshot#{revision:010}"


def tally_name(join_id: str, row: int) -> str:
    """Return the sort key of a row of a tally."""
    return f"count#{join_id}#{row:03}"


def version_name(version: int) -> str:
    """Return the sort key of a version of a definition."""
    return f"version#{version:06}"
