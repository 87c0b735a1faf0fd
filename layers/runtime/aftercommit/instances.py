"""Instances as stored: a head, and the revision rows after it. Creating, leasing and loading them.

Rule that loading rests on: every write of the head that forgets its leases comes with a revision row of its
own. So the first lease after it finds no rows behind the head, and only one after others needs them read.
"""

import json
from dataclasses import dataclass

from pynamodb.exceptions import PynamoDBException
from pynamodb.expressions.update import Action

from aftercommit import clock, engine, traces
from aftercommit.activations import activation_key_of, activation_put
from aftercommit.definition import Definition
from aftercommit.definitions import load_definition
from aftercommit.errors import (
    AftercommitError,
    ConditionFailedError,
    InstanceEndedError,
    LeaseHeldError,
    MalformedRowError,
    NotFoundError,
    OvertakenError,
    RefusedError,
    TooLargeError,
    TryLaterError,
    UnreadableInstanceError,
)
from aftercommit.ids import derive_id, derive_shard, new_token
from aftercommit.incidents import incident_put
from aftercommit.jsons import Json, dumps, size_of
from aftercommit.limits import INLINE_SNAPSHOT_BYTES_MAX, told_bytes
from aftercommit.log import count, ids_of, logger, reason_of
from aftercommit.model import Failure, Incident, Parent, State, command_from_json
from aftercommit.payloads import PayloadMissingError, Payloads, read_payload
from aftercommit.settings import settings
from aftercommit.statuses import InstanceStatus, instance_status
from aftercommit.tables import (
    HeadRow,
    IncidentRow,
    RevisionRow,
    SnapshotRow,
    key_of,
    revision_name,
    snapshot_name,
)
from aftercommit.writes import Put, Update, Write, commit

SNAPSHOT = "snapshot"  # its name among the payloads of a commit
_READS_MAX = 5
_LIVE = (InstanceStatus.PENDING, InstanceStatus.RUNNING, InstanceStatus.SUSPENDED)


@dataclass
class Held:
    """An instance whose lease this worker has taken, and its state as loaded and then advanced."""

    tenant: str
    head: HeadRow
    definition: Definition
    state: State
    revision: int  # of the last row the state covers
    stalled: int  # leases before this one that committed nothing
    snapshot_row: str | None  # the row of its own that the stored snapshot has, if any


@dataclass(frozen=True)
class Birth:
    """What a new instance starts from."""

    tenant: str
    instance_id: str
    owner: str  # of its definition
    definition: Definition
    inputs: dict[str, Json]
    correlation_id: str | None = None
    parent: Parent | None = None
    depth: int = 0
    named: bool = False  # whether its id was chosen, and may be again when it is gone
    trigger: dict[str, Json] | None = None
    request_fingerprint: str | None = None
    channel: str | None = None
    large: bool = False  # whether it may hold what only objects can


def birth_writes(birth: Birth, at: float, *, lease_until: float | None = None) -> list[Write]:
    """Return the writes that create an instance, only where none of that id exists; for `commit_birth`.

    A large input is stored before; raises TryLaterError if that cannot be done now. Raises TooLargeError for
    what no instance can hold: what is filled in comes on top of an input that is within its own limit.
    With `lease_until` it is born running, its lease taken by this worker (the head's `lease_token`); else
    pending, and due after the head start of the message that announces it.
    """
    moment = clock.to_text(at)
    state = State(
        birth.instance_id,
        birth.inputs,
        parent=birth.parent,
        depth=birth.depth,
        life=moment if birth.named else "",
        trigger=birth.trigger,
        large=birth.large,
    )
    if size_of(birth.inputs) + size_of(birth.trigger) > state.bytes_max:
        told = "the input, with what is filled in for what it leaves out, is larger than"
        raise TooLargeError(f"{told} {told_bytes(state.bytes_max)}", field="input")
    due_at = lease_until or at + settings().eager_head_start_seconds
    activation_key = activation_key_of(birth.tenant, birth.definition, birth.correlation_id)
    head = HeadRow(
        key_of(birth.tenant, birth.instance_id),
        "head",
        tenant=birth.tenant,
        instance_id=birth.instance_id,
        definition_id=birth.definition.definition_id,
        definition_key=key_of(birth.tenant, birth.definition.definition_id),
        definition_owner=birth.owner,
        version=birth.definition.version,
        status=(InstanceStatus.RUNNING if lease_until else InstanceStatus.PENDING).value,
        revision=0,
        activation_key=activation_key,
        # Only where tokens can be given out: the heads of most instances just fit into a KB.
        secret=new_token() + new_token() if birth.definition.gives_tokens else None,
        correlation_id=birth.correlation_id,
        correlation_key=key_of(birth.tenant, birth.correlation_id) if birth.correlation_id else None,
        parent_instance_id=birth.parent.instance_id if birth.parent else None,
        parent_item_id=birth.parent.item_id if birth.parent else None,
        channel=birth.channel,
        request_fingerprint=birth.request_fingerprint,
        due_shard=derive_shard(birth.instance_id, settings().due_shards),
        trace=traces.current(),
        due_at=clock.to_text(due_at),
        created_at=moment,
        updated_at=moment,
    )
    if lease_until:
        head.lease_token, head.lease_until, head.leases = new_token(), clock.to_text(lease_until), 1
    absent = HeadRow.instance_key.does_not_exist()  # closes: two starts of one id
    payloads = Payloads(head.instance_key, state.large)
    head.snapshot, puts = snapshot_writes(payloads, 0, state)
    head.payloads = payloads.name if payloads.texts else None
    activation = [activation_put(activation_key, birth.instance_id)] if activation_key else []
    return [Put("head", head, absent), *puts, *activation, *payloads.store(at)]


def head_of(writes: list[Write]) -> HeadRow:
    """Return the head that the writes of a birth put."""
    return next(each.row for each in writes if isinstance(each, Put) and isinstance(each.row, HeadRow))


def snapshot_writes(payloads: Payloads, revision: int, state: State) -> tuple[str | None, list[Put]]:
    """Return (the snapshot if it stays in the head, the puts of its own row); of neither, it is a payload."""
    text = dumps(state.to_json())
    if len(text.encode()) <= INLINE_SNAPSHOT_BYTES_MAX:
        return text, []
    if payloads.take(SNAPSHOT, text):
        return None, []
    row = SnapshotRow(payloads.instance_key, snapshot_name(revision), snapshot=text)
    return None, [Put("snapshot", row)]


def find_head(tenant: str, instance_id: str) -> HeadRow | None:
    """Read the head of an instance as it is now."""
    try:
        return HeadRow.get(key_of(tenant, instance_id), "head", consistent_read=True)
    except HeadRow.DoesNotExist:
        return None


def lease(tenant: str, instance_id: str, until: float, *, waiting: bool) -> HeadRow:
    """Take the lease of an instance, and return its head: lock and load in one request.

    `waiting` says whether a suspended instance is wanted too: only what resumes it has business with it.
    Raises LeaseHeldError, InstanceEndedError (also for one that is suspended and not wanted), NotFoundError,
    NewerFormError.
    """
    at = clock.to_text(clock.now())
    row = HeadRow(key_of(tenant, instance_id), "head")
    statuses = [each.value for each in _LIVE if waiting or each != InstanceStatus.SUSPENDED]
    live = HeadRow.status.is_in(*statuses)  # closes: ended since the message was sent; also: it exists
    free = HeadRow.lease_until.does_not_exist() | (HeadRow.lease_until <= at)  # closes: two workers at once
    token = new_token()
    actions = [
        HeadRow.lease_token.set(token),
        HeadRow.lease_until.set(clock.to_text(until)),
        HeadRow.leases.set((HeadRow.leases | 0) + 1),
        HeadRow.status.set(InstanceStatus.RUNNING.value),
        # Left where it is if set, which saves moving it in its index; the sweep moves it when it gets there.
        HeadRow.due_at.set(HeadRow.due_at | clock.to_text(until)),
    ]
    try:
        commit([Update("lease", row, actions, live & free)])
    except ConditionFailedError:
        return _explain_refused_lease(tenant, instance_id, statuses, token)
    return row


def release(head: HeadRow, *more: Action) -> None:
    """Give the lease back where nothing could be decided (the database is away, only newer code knows how).

    It does not count as a worker that died. If this fails, too, the lease runs out by itself.
    """
    actions = [
        HeadRow.lease_token.remove(),
        HeadRow.lease_until.remove(),
        HeadRow.released.set((HeadRow.released | 0) + 1),
        *more,
    ]
    own = HeadRow.lease_token == head.lease_token  # closes: it ran out, and another worker has it
    try:
        commit([Update("release", HeadRow(head.instance_key, "head"), actions, own)])
    except (AftercommitError, PynamoDBException) as error:
        logger.warning("lease not given back", extra={**ids_of(head), "reason": reason_of(error)})


def leases_of(head: HeadRow) -> int:
    """Return the leases taken since the head was last written, without those that were given back."""
    return int(head.leases or 0) - int(head.released or 0)


def _explain_refused_lease(tenant: str, instance_id: str, statuses: list[str], token: str) -> HeadRow:
    head = find_head(tenant, instance_id)
    if head and head.lease_token == token:
        return head  # our own write, whose answer was lost before it was tried again
    if head is None:
        raise NotFoundError(f"no instance {instance_id!r}", field="instance_id")
    if head.status not in statuses:
        instance_status(head.status)  # one that only newer code knows is no ending
        raise InstanceEndedError(f"instance {instance_id} is {head.status}")
    raise LeaseHeldError(f"instance {instance_id} is leased until {head.lease_until}")


def load_leased(head: HeadRow) -> Held:
    """Load the instance whose lease was just taken; gives it back if this code cannot go on with it.

    One that cannot be read at all has an incident, and raises UnreadableInstanceError: it comes up again
    after a while, so that it goes on once what it lacks is repaired. Raises NewerFormError for one that only
    newer code can read, TryLaterError while S3 is away.
    """
    try:
        return load(head)
    except TryLaterError:
        release(head)
        raise
    except (MalformedRowError, NotFoundError) as error:
        unreadable = _record_fault(head, error)
        release(head, HeadRow.due_at.set(clock.to_text(clock.now() + settings().ack_timeout_max_seconds)))
        raise unreadable from error


def load_unleased(head: HeadRow) -> Held:
    """Load an instance whose lease another may hold; raises as `load_leased` does, with the same incident."""
    try:
        return load(head, leased=False)
    except (MalformedRowError, NotFoundError) as error:
        raise _record_fault(head, error) from error


def _record_fault(head: HeadRow, error: RefusedError) -> UnreadableInstanceError:
    told = f"instance {head.instance_id} cannot be read: {error.message}"
    record_unreadable(head.tenant, head.instance_id, told)
    return UnreadableInstanceError(told, field=error.field)


def record_unreadable(tenant: str, instance_id: str, told: str) -> None:
    """Leave the incident of an instance that cannot be read, once however often it is met."""
    incident = Incident(
        derive_id("incident", instance_id, "unreadable"), Failure("UnreadableInstanceError", told)
    )
    put = incident_put(tenant, instance_id, incident, clock.now())
    absent = IncidentRow.instance_key.does_not_exist()  # keeps the time at which it was met first
    # What it cannot be read for is in the incident: it may name what was stored.
    logger.error("instance cannot be read", extra={"tenant": tenant, "instance_id": instance_id})
    count("InstancesUnreadable")
    try:
        commit([Put(put.purpose, put.row, absent)])
    except ConditionFailedError:
        return


def load(head: HeadRow, *, leased: bool = True) -> Held:
    """Load the instance whose lease was just taken: its snapshot, plus the rows of bursts that died.

    Without the lease, whoever holds it may be committing: then all rows so far are read.
    """
    definition = load_definition(head.definition_owner, head.definition_id, int(head.version))
    state, snapshot_row = load_snapshot(head)
    revision, leases = int(head.revision), 0
    # More than one lease since the head was last written: an earlier holder died, maybe after committing.
    if not leased or head.leases > 1:
        for row in rows_after(head):
            replay(definition, state, row)
            revision, leases = int(row.revision), int(row.leases)
    if not state.status.ended and state.bookmarks and not state.ready and not state.agenda:
        state.status = InstanceStatus.SUSPENDED  # the lease has overwritten it in the head
    # One that has committed before it gave its lease back is counted by its rows, too.
    stalled = max(0, leases_of(head) - leases - 1)
    return Held(head.tenant, head, definition, state, revision, stalled, snapshot_row)


def load_snapshot(head: HeadRow) -> tuple[State, str | None]:
    """Return the state that a head covers, and the name of the snapshot's own row if it has one."""
    text: str | None = head.snapshot
    name: str | None = None
    if text is None and head.payloads:
        try:
            text = read_payload(head.instance_key, head.payloads, SNAPSHOT)
        except PayloadMissingError as error:
            raise _explain_missing_snapshot(head, str(error)) from None
    elif text is None:
        name = snapshot_name(int(head.revision))
        try:
            text = SnapshotRow.get(head.instance_key, name, consistent_read=True).snapshot
        except SnapshotRow.DoesNotExist:
            raise _explain_missing_snapshot(head, name) from None
    try:
        state = State.from_json(
            json.loads(text),
            instance_id=head.instance_id,
            status=head.status,
            correlation_id=head.correlation_id,
        )
    except (ValueError, KeyError, TypeError) as error:
        raise MalformedRowError(
            f"the snapshot of {head.instance_id} cannot be read: {error!r}", field="snapshot"
        ) from error
    return state, name


def find_whole(tenant: str, instance_id: str) -> tuple[HeadRow, State] | None:
    """Read an instance after its last commit, without its lease; None if it is none, or deleted."""
    for _ in range(_READS_MAX):
        head = find_head(tenant, instance_id)
        if head is None or head.deleted_at:
            return None
        try:
            state, _ = load_snapshot(head)
        except OvertakenError:
            continue  # a burst ended between the two reads
        # While a burst runs, its commits stand in rows that the head does not cover yet.
        if head.leases:
            definition = load_definition(head.definition_owner, head.definition_id, int(head.version))
            for row in rows_after(head):
                replay(definition, state, row)
        # An ending and its head are one commit: rows that end it, after a head that does not, came between
        if state.status.ended == instance_status(head.status).ended:
            return head, state
    raise TryLaterError(f"instance {instance_id} changes faster than it can be read")


def _explain_missing_snapshot(head: HeadRow, name: str) -> Exception:
    # A burst that ended since the head was read has put its own snapshot, and removed this one.
    now = find_head(head.tenant, head.instance_id)
    if now is None or now.revision != head.revision:
        return OvertakenError(f"instance {head.instance_id} went on while it was read")
    return MalformedRowError(f"the snapshot of {head.instance_id} is missing: {name}", field=name)


def rows_after(head: HeadRow) -> list[RevisionRow]:
    """Read the revision rows that a head does not cover yet, in order."""
    first, last = revision_name(int(head.revision) + 1), revision_name(10**10 - 1)
    return list(
        RevisionRow.query(head.instance_key, RevisionRow.row.between(first, last), consistent_read=True)
    )


def commands_of(row: RevisionRow) -> str:
    """Return the commands of a revision as JSON; raises MalformedRowError if they are missing."""
    if not row.payloads:
        return str(row.commands)
    try:
        return read_payload(row.instance_key, row.payloads, row.row)
    except PayloadMissingError as error:
        raise MalformedRowError(f"the commands of {row.row} are missing", field=str(error)) from None


def replay(definition: Definition, state: State, row: RevisionRow) -> None:
    """Fold a committed revision into a state; raises MalformedRowError for one that cannot be read."""
    try:
        written = json.loads(commands_of(row))
        read = [(command_from_json(each["command"]), clock.from_text(each["at"])) for each in written]
    except (ValueError, KeyError, TypeError) as error:
        raise MalformedRowError(f"{row.row} cannot be read: {error!r}", field=row.row) from error
    for command, at in read:
        engine.advance(definition, state, command, at)
