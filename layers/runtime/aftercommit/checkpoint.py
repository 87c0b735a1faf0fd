"""The checkpoint: what a burst decided, visible whole or not at all.

The log position is the fence: whoever puts revision n+1 first has committed it, and anyone else at n is
overtaken. The lease only saves double work. If a worker dies before, nothing happened; if after, the next
one replays the row.
"""

from dataclasses import dataclass, field, replace

from pynamodb.exceptions import PynamoDBException
from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action

from aftercommit import clock, engine
from aftercommit.activations import release_activation
from aftercommit.bookmarks import bookmark_put, remove_bookmarks, stimulus_id_of
from aftercommit.errors import ConditionFailedError, ItemSettledError, OvertakenError, TryLaterError
from aftercommit.ids import derive_event_owner, new_token
from aftercommit.incidents import incident_put
from aftercommit.instances import SNAPSHOT, Held, leases_of, snapshot_writes
from aftercommit.jsons import Json, dumps
from aftercommit.log import count, ids_of, logger, reason_of
from aftercommit.model import Bookmark, Command, Decision, Incident, Intention, command_to_json
from aftercommit.outbox import item_put
from aftercommit.payloads import Payloads, remove_payload
from aftercommit.places import Mark
from aftercommit.settings import settings
from aftercommit.statuses import InstanceStatus, ItemCommand
from aftercommit.tables import HeadRow, RevisionRow, SnapshotRow, key_of, removal_shard, revision_name
from aftercommit.tallies import ending_writes, hurry, leave_out
from aftercommit.writes import Put, Update, Write, commit


@dataclass
class Pending:
    """What a burst has decided since its last commit."""

    commands: list[dict[str, Json]] = field(default_factory=list)
    journal: list[dict[str, Json]] = field(default_factory=list)
    intentions: list[Intention] = field(default_factory=list)
    incidents: list[Incident] = field(default_factory=list)
    made: dict[str, Bookmark] = field(default_factory=dict)  # bookmarks for stimuli, by id
    gone: dict[str, Bookmark] = field(default_factory=dict)
    mark: Mark | None = None  # the instance's ending, if it is one of a bulk
    ack: Update | None = None  # settles the outbox item that caused the burst
    bytes: int = 0

    @property
    def has_rows(self) -> bool:
        """Whether it has rows beside its revision's: what one command adds to them may fill a transaction."""
        return bool(self.intentions or self.made or self.incidents)

    def add(self, command: Command, decision: Decision, at: str) -> None:
        """Take in a command and what it led to."""
        written = {"at": at, "command": command_to_json(command)}
        self.commands.append(written)
        self.bytes += len(dumps(written))
        # The instant stands in a command's first line only: rows are billed by the KB.
        self.journal += [{"at": at, **line} for line in decision.journal[:1]] + decision.journal[1:]
        self.intentions += decision.intentions
        self.incidents += decision.incidents
        self.mark = decision.mark or self.mark
        self.made |= {each.bookmark_id: each for each in decision.made}
        for bookmark in decision.gone:
            # Made and consumed before any commit: it is never written.
            if not self.made.pop(bookmark.bookmark_id, None):
                self.gone[bookmark.bookmark_id] = bookmark


def decide(held: Held, pending: Pending, command: Command) -> bool:
    """Advance an instance by a command; returns False if it met nothing to apply to."""
    at = clock.to_text(clock.now())
    # The instant goes through its stored form, so that a replay decides by the very same one.
    decision = engine.advance(held.definition, held.state, command, clock.from_text(at))
    if decision.applied:
        pending.add(command, decision, at)
    return decision.applied


def commit_step(held: Held, pending: Pending) -> None:
    """Commit a burst that goes on: one small row, and whatever effects were decided with it.

    Raises OvertakenError if another writer was first, ItemSettledError if the item that caused the burst is
    no longer undone: in both cases nothing of `pending` has happened, and `held` is void.
    """
    at = clock.now()
    payloads = Payloads(held.head.instance_key, held.state.large)
    row = _revision_row(held, pending, payloads, at)
    writes = [_revision_put(row), *_effects(held, pending, payloads, at)]
    _commit(held, pending, row, [*writes, *payloads.store(at)])


def commit_end(held: Held, pending: Pending, *, due_at: float | None = None) -> None:
    """Commit a burst that stops here, and give the lease back; the head takes in all rows so far.

    `due_at`: when the sweep is to go on with an instance that still has steps to run. Raises as
    `commit_step` does.
    """
    # Closes: the lease ran out and another worker, or a cancel, has written the head since.
    _commit_head(held, pending, HeadRow.lease_token == held.head.lease_token, due_at)


def commit_unleased(held: Held, pending: Pending) -> None:
    """Commit a decision that needs no lease, as a cancel; whoever holds one is overtaken by the revision row.

    Raises OvertakenError if the instance went on since it was loaded.
    """
    # Closes: a burst has ended since the head was read, and its snapshot must not be covered by an older one.
    _commit_head(held, pending, HeadRow.revision == held.head.revision, None)


def _commit_head(held: Held, pending: Pending, fence: Condition, due_at: float | None) -> None:
    at = clock.now()
    payloads = Payloads(held.head.instance_key, held.state.large)
    row = _revision_row(held, pending, payloads, at)
    inline, snapshot_puts = snapshot_writes(payloads, held.revision + 1, held.state)
    moment = clock.to_text(at)
    status = held.state.status
    actions = [
        HeadRow.status.set(status.value),
        HeadRow.revision.set(held.revision + 1),
        HeadRow.updated_at.set(moment),
        HeadRow.lease_token.remove(),
        HeadRow.lease_until.remove(),
        # Workers that died are forgotten with the first progress, not by one that found nothing to do.
        HeadRow.leases.set(held.stalled)
        if held.stalled and not pending.commands
        else HeadRow.leases.remove(),
        HeadRow.released.remove(),
        HeadRow.sends.remove(),
        *_due_actions(held, at, due_at),
        HeadRow.snapshot.set(inline) if inline is not None else HeadRow.snapshot.remove(),
        HeadRow.payloads.set(payloads.name) if SNAPSHOT in payloads.texts else HeadRow.payloads.remove(),
    ]
    if held.head.trace and not due_at:
        # The sweep has no message to send about it now; and a head with a snapshot often just fits into a KB.
        actions.append(HeadRow.trace.remove())
    if status.ended:
        actions.append(HeadRow.ended_at.set(moment))
    correlation_id = held.state.correlation_id
    if correlation_id and correlation_id != held.head.correlation_id:
        actions += [
            HeadRow.correlation_id.set(correlation_id),
            HeadRow.correlation_key.set(key_of(held.tenant, correlation_id)),
        ]
    head = Update("head", HeadRow(held.head.instance_key, "head"), actions, fence)
    writes = [_revision_put(row), *snapshot_puts, *_effects(held, pending, payloads, at), head]
    _commit(held, pending, row, [*writes, *payloads.store(at)])
    _remove_old_snapshot(held, snapshot_puts, payloads)
    if pending.mark:
        hurry(held.tenant, pending.mark)
    if status == InstanceStatus.FAULTED:
        # The kind of failure alone: its message may have inputs in it.
        failure = held.state.failure
        told = {**ids_of(held.head), "correlation_id": held.state.correlation_id}
        logger.warning("instance faulted", extra={**told, "reason": failure.type if failure else None})
        count("InstancesFaulted")
    if status.ended:
        # After the commit: before, another could begin beside one that goes on after all. A death in between
        # is cured by the next start, which finds the holder ended.
        release_activation(held.head)


def _due_actions(held: Held, at: float, due_at: float | None) -> list[Action]:
    """Return what says when the sweep is to look at the instance; an ended one, when its days are over."""
    days = settings().ended_instance_days
    if held.state.status.ended and days:
        shard = HeadRow.due_shard.set(removal_shard(held.head.instance_id))
        return [shard, HeadRow.due_at.set(clock.to_text(at + days * clock.DAY_SECONDS))]
    return [HeadRow.due_at.set(clock.to_text(due_at)) if due_at else HeadRow.due_at.remove()]


def _revision_row(held: Held, pending: Pending, payloads: Payloads, at: float) -> RevisionRow:
    revision = held.revision + 1
    commands = dumps(pending.commands)
    is_large = payloads.take(revision_name(revision), commands)
    return RevisionRow(
        held.head.instance_key,
        revision_name(revision),
        revision=revision,
        commands=None if is_large else commands,
        payloads=payloads.name if is_large else None,
        journal=dumps(pending.journal),
        leases=leases_of(held.head),
        nonce=new_token(),
        committed_at=clock.to_text(at),
    )


def _revision_put(row: RevisionRow) -> Put:
    return Put(
        "revision", row, RevisionRow.instance_key.does_not_exist()
    )  # closes: two authors of one position


def _effects(held: Held, pending: Pending, payloads: Payloads, at: float) -> list[Write]:
    instance_id = held.head.instance_id
    effects: list[Write] = [
        item_put(
            held.tenant, _owner_of(intention, instance_id), _on_channel(intention, held.head), at, payloads
        )
        for intention in pending.intentions
    ]
    effects += [incident_put(held.tenant, instance_id, incident, at) for incident in pending.incidents]
    effects += [
        bookmark_put(held.tenant, instance_id, held.state.correlation_id, bookmark, at)
        for bookmark in pending.made.values()
    ]
    if pending.mark:
        effects += ending_writes(held.tenant, pending.mark, at)
    if pending.ack:
        effects.append(pending.ack)
    return effects


def _on_channel(intention: Intention, head: HeadRow) -> Intention:
    # What the instance has planned for itself, as a retry or a timer, runs where the instance runs.
    if not head.channel or intention.body.get("instance_id") != head.instance_id:
        return intention
    return replace(intention, channel=head.channel)


def _owner_of(intention: Intention, instance_id: str) -> str:
    # A stimulus stands under its own key, where what waits for it looks for it.
    if intention.command == ItemCommand.STIMULUS:
        return stimulus_id_of(intention.body["stimulus"])
    if intention.command == ItemCommand.EVENT:
        return derive_event_owner(intention.item_id)
    return instance_id


def _commit(held: Held, pending: Pending, row: RevisionRow, writes: list[Write]) -> None:
    try:
        commit(writes)
    except (ConditionFailedError, TryLaterError) as error:
        # After a request that was tried again, or that brought no answer, the row may be our own.
        if not _is_own(row):
            fewer = leave_out(writes, error.purposes) if isinstance(error, ConditionFailedError) else None
            if fewer is None:
                raise _read_loss(error, held) from error
            _commit(held, pending, row, fewer)
            return
    held.revision += 1
    remove_bookmarks(held.tenant, list(pending.gone.values()))


def _is_own(row: RevisionRow) -> bool:
    try:
        return bool(RevisionRow.get(row.instance_key, row.row, consistent_read=True).nonce == row.nonce)
    except RevisionRow.DoesNotExist:
        return False


def _read_loss(error: ConditionFailedError | TryLaterError, held: Held) -> Exception:
    if isinstance(error, TryLaterError):
        return error
    if error.purposes == {"payloads"}:
        return TryLaterError("what was stored for this commit was given up before it came")
    if "revision" in error.purposes or "head" in error.purposes:
        count("CheckpointConflicts")
        return OvertakenError(f"instance {held.head.instance_id} went on without this worker: {error}")
    return ItemSettledError(str(error))


def _remove_old_snapshot(held: Held, puts: list[Put], payloads: Payloads) -> None:
    """Remove the snapshot that the head no longer names; one left behind goes with the instance."""
    if held.head.payloads:
        remove_payload(held.head.instance_key, held.head.payloads, SNAPSHOT)
    held.head.payloads = payloads.name if SNAPSHOT in payloads.texts else None
    if held.snapshot_row:
        try:
            SnapshotRow(held.head.instance_key, held.snapshot_row).delete()
        except PynamoDBException as error:  # what was committed stands all the same
            logger.warning(
                "old snapshot not removed", extra={**ids_of(held.head), "reason": reason_of(error)}
            )
    held.snapshot_row = str(puts[0].row.row) if puts else None  # type: ignore[attr-defined]
