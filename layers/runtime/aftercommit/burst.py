"""A burst: run an instance from where it stands until it waits, ends, or the worker's time is up.

It holds the lease from before its first step to its last commit. If it dies anywhere, what it committed
stands, the sweep finds the instance by `due_at`, and the next burst goes on from the last commit.
"""

from dataclasses import dataclass

from aftercommit import clock, traces
from aftercommit.activities.step import Step
from aftercommit.attempts import give_up_if_undone
from aftercommit.bookmarks import stimulus_id_of
from aftercommit.checkpoint import Pending, commit_end, commit_step, decide
from aftercommit.errors import (
    InstanceEndedError,
    ItemSettledError,
    NotFoundError,
    TryLaterError,
    UnknownActivityError,
    WorkerDiedError,
)
from aftercommit.functions import NO_RETRY, ActivityContext, Retry, failure_of, find_function
from aftercommit.instances import Held, find_head, lease, load_leased, release
from aftercommit.limits import BURST_COMMANDS_BYTES_MAX, LEASE_MARGIN_SECONDS
from aftercommit.log import about, count, logger, reason_of
from aftercommit.model import (
    Abort,
    Bookmark,
    Command,
    Continue,
    Execution,
    Failure,
    Finish,
    Raise,
    Start,
    State,
    Stimulate,
)
from aftercommit.outbox import ack, drop, open_stimuli
from aftercommit.queue import Message, Sending, known_channel, send
from aftercommit.settings import settings
from aftercommit.tables import HeadRow, ItemRow
from aftercommit.writes import Update

UNKNOWN_ACTIVITY_DELAY_SECONDS = 60
_COMMIT_SECONDS = 2  # kept free at the end of an invocation for the last commit


@dataclass
class Worker:
    """One invocation: until when it may work, and whether it has its whole time before it.

    A fresh invocation runs its first step even if that declares to need more than any invocation has.
    """

    deadline: float  # seconds since the epoch
    fresh: bool = True

    def has_time_for(self, seconds: float) -> bool:
        """Whether so much can be done before the deadline, with the last commit still to come."""
        return clock.now() + seconds + _COMMIT_SECONDS <= self.deadline


class Burst:
    """The run of one leased instance by one worker."""

    def __init__(self, head: HeadRow, worker: Worker) -> None:
        self.worker = worker
        self.held: Held = load_leased(head)
        self.pending = Pending()

    @property
    def state(self) -> State:
        """The instance's state, as far as this burst has advanced it."""
        return self.held.state

    def apply(self, command: Command) -> bool:
        """Advance the state by a command; returns False if it met nothing to apply to."""
        return decide(self.held, self.pending, command)

    def run(
        self, first: Command | None = None, *, ack: Update | None = None, ack_unapplied: bool = True
    ) -> bool:
        """Apply `first`, then run steps until nothing can run or time is up; commits as it goes.

        `ack` settles the item that caused the burst, in the first commit. If it turns out to be settled
        already, its effect is dropped and the burst goes on without it. Returns whether `first` met what it
        speaks of; without `ack_unapplied`, the item stays undone if it did not. Raises OvertakenError when
        another writer decided first.
        """
        self.pending.ack = ack
        self.ack_unapplied = ack_unapplied
        self.applied: bool = False
        head = self.held.head
        ids = {
            "tenant": head.tenant,
            "instance_id": head.instance_id,
            "definition_id": head.definition_id,
            "correlation_id": self.state.correlation_id,
            "parent_instance_id": head.parent_instance_id,
        }
        # The item that it sees through: a resume, say; of a child that is run, its dispatch.
        caused_by = str(ack.row.item_id) if ack else head.parent_item_id  # type: ignore[attr-defined]
        searched = {**ids, "item_id": caused_by}
        with (
            about(**ids),
            traces.subsegment(head.definition_id, annotations=searched) as self.subsegment,
        ):
            try:
                self._begin(first)
                self._loop()
            except ItemSettledError:
                logger.info("item settled already")
                self._reload()
                self._begin(None)
                self._loop()
            except TryLaterError:
                release(self.held.head)
                raise
        return self.applied

    def _reload(self) -> None:
        head = find_head(self.held.tenant, self.state.instance_id)
        if head is None or head.lease_token != self.held.head.lease_token:
            raise InstanceEndedError(f"instance {self.state.instance_id} has another owner now")
        self.held = load_leased(head)
        self.pending = Pending()

    def _begin(self, first: Command | None) -> None:
        unstarted = not self.state.status.ended and not self.state.executions
        stalled, most = self.held.stalled, settings().leases_max
        if stalled >= 2 * most and (unstarted or first or self._goes_on()):
            # Stopping its step has not helped: what ends the workers is the instance itself.
            self.apply(Abort(self._worker_died()))
            return
        if unstarted:
            self.apply(Start())
        if first:
            # Before a killer is stopped: it may be the step that this makes ready.
            self.applied = self.apply(first)
            if not self.applied and not self.ack_unapplied:
                self.pending.ack = None
        self._finish_agenda()
        if isinstance(first, Stimulate) and self.pending.ack and self._goes_on():
            # Before its first step: which stimulus comes first here is decided by this commit alone, and an
            # execution that has had an effect must not turn out to be another one's.
            self._commit_step()
        if stalled >= most and self._goes_on():
            self._stop_killer()

    def _stop_killer(self) -> None:
        """Count the activity that keeps ending its workers as raised, so that its policy applies."""
        if self.pending.has_rows:
            self._commit_step()  # what was decided before may fill a transaction by itself
        execution = self.state.executions[self.state.ready[0]]
        self.apply(self._raised(execution, self._worker_died(), started_at=""))
        self._finish_agenda()
        if self._goes_on():
            self._commit_step()

    def _worker_died(self) -> Failure:
        """Return the failure of what is stopped for it; an operator is told."""
        logger.error("stopped, as its workers end", extra={"reason": f"{self.held.stalled} in a row"})
        count("StalledStopped")
        return failure_of(WorkerDiedError(f"{self.held.stalled} workers ended without a result"))

    def _loop(self) -> None:
        # No effect waits for the next step; and a large resume gets a row to itself, as the next result may
        # be as large.
        heavy = self.pending.has_rows or self.pending.bytes > BURST_COMMANDS_BYTES_MAX
        if heavy and self._goes_on():
            self._commit_step()
        while self._goes_on():
            execution = self.state.executions[self.state.ready[0]]
            needed = 0 if self.worker.fresh else self._seconds_needed(execution)
            if not self.worker.has_time_for(needed):
                self._continue_elsewhere()
                return
            self.worker.fresh = False
            self.apply(self._run_step(execution))
            self._finish_agenda()
            if self._must_commit() and self._goes_on():
                self._commit_step()
        made = list(self.pending.made.values())
        commit_end(self.held, self.pending)
        self._hurry_stimuli(made)

    def _hurry_stimuli(self, made: list[Bookmark]) -> None:
        """Look whether stimuli have come early for bookmarks that are committed now.

        Closes: one that was stored before found no bookmark, and would be looked at again only after a while;
        one that is stored later finds it by itself. The last one is enough: those before it go first.
        """
        tenant = self.held.tenant
        try:
            for stimulus_id in sorted({stimulus_id_of(each.stimulus or {}) for each in made}):
                for last in open_stimuli(tenant, stimulus_id)[-1:]:
                    message = Message(tenant, owner_id=stimulus_id, item_id=last.item_id)
                    send([Sending(message, trace=last.trace)])
        except Exception as error:  # noqa: BLE001 - the commit stands, and the sweep comes
            logger.warning("early stimuli not looked for", extra={"reason": reason_of(error)})

    def _goes_on(self) -> bool:
        return bool(self.state.ready) and not self.state.status.ended

    def _finish_agenda(self) -> None:
        """Commit a decision that is too large for one transaction part by part, in as many revisions."""
        while self.state.agenda:
            if self.pending.commands:
                self._commit_step()
            self.apply(Continue())

    def _must_commit(self) -> bool:
        return bool(
            self.held.definition.commit == "step"
            or self.pending.has_rows
            or self.pending.bytes > BURST_COMMANDS_BYTES_MAX
        )

    def _commit_step(self) -> None:
        commit_step(self.held, self.pending)
        self._hurry_stimuli(list(self.pending.made.values()))
        self.pending = Pending()

    def _continue_elsewhere(self) -> None:
        """Stop in time: commit, and have another invocation go on at once (or the sweep, if this dies)."""
        commit_end(self.held, self.pending, due_at=clock.now() + settings().eager_head_start_seconds)
        message = Message(self.held.tenant, instance_id=self.state.instance_id)
        send([Sending(message, channel=known_channel(self.held.head.channel))])

    def _seconds_needed(self, execution: Execution) -> float:
        try:
            step = self._step(execution)
            return step.seconds_needed(find_function(step.activity))
        except UnknownActivityError:
            return 0

    def _step(self, execution: Execution) -> Step:
        step = self.held.definition.activities[execution.activity_id]
        if not isinstance(step, Step):
            raise TypeError(f"{execution.activity_id} is ready but no step")
        return step

    def _run_step(self, execution: Execution) -> Command:
        started_at = clock.to_text(clock.now())
        step = self._step(execution)
        try:
            function = find_function(step.activity)
        except UnknownActivityError as error:
            # Tried again until the code is there: a deploy that is rolled back heals what it broke.
            retry_at = clock.to_text(clock.now() + UNKNOWN_ACTIVITY_DELAY_SECONDS)
            return Raise(execution.execution_id, failure_of(error), retry_at, started_at)
        context = ActivityContext(
            idempotency_key=execution.execution_id,
            attempt=execution.attempt - execution.memory.get("uncounted", 0),
            instance_id=self.state.instance_id,
            correlation_id=self.state.correlation_id,
            tenant=self.held.tenant,
            deadline=self.worker.deadline,
            depth=self.state.depth,
            channels=frozenset(settings().channels),
            bytes_max=self.state.value_bytes_max,
            token_days=settings().callback_token_days,
            secret=self.held.head.secret,
        )
        ids = {
            "activity_id": execution.activity_id,
            "execution_id": execution.execution_id,
            "attempt": context.attempt,
        }
        with (
            about(**ids),
            traces.subsegment(step.activity, under=self.subsegment, metadata=ids) as shown,
        ):
            try:
                result = step.run(function, execution.memory["inputs"], context)
            except Exception as error:  # noqa: BLE001 - whatever user code raises is its step's failure
                logger.info("step raised", extra={"error_type": type(error).__name__})
                shown.fail(type(error).__name__)
                return self._raised(execution, failure_of(error), started_at=started_at)
        return Finish(execution.execution_id, result, context.intentions, started_at)

    def _raised(self, execution: Execution, failure: Failure, *, started_at: str) -> Raise:
        retry_at = self._policy(execution).next_attempt_at(
            attempt=execution.attempt - execution.memory.get("uncounted", 0),
            failure=failure,
            at=clock.now(),
            execution_id=execution.execution_id,
        )
        if retry_at is None:
            # The kind of error alone: its message may have inputs in it.
            told = {"activity_id": execution.activity_id, "execution_id": execution.execution_id}
            logger.warning("step given up", extra={**told, "reason": failure.type})
            count("StepsGivenUp")
        again_at = clock.to_text(retry_at) if retry_at is not None else None
        return Raise(execution.execution_id, failure, again_at, started_at)

    def _policy(self, execution: Execution) -> Retry:
        step = self._step(execution)
        try:
            return step.policy(find_function(step.activity))
        except UnknownActivityError:
            return NO_RETRY if step.retry is None else Retry.from_json(step.retry)


def apply_item(item: ItemRow, command: Command, worker: Worker) -> None:
    """Continue the instance that an item is for by a command, and ack the item in the commit that follows.

    A second delivery finds nothing that the command applies to, and only acks. Raises LeaseHeldError while
    another worker has the instance.
    """
    try:
        head = lease(item.tenant, item.instance_id, worker.deadline + LEASE_MARGIN_SECONDS, waiting=True)
    except InstanceEndedError as error:
        drop(item, reason_of(error))  # nothing waits any more
        return
    except NotFoundError as error:
        if _may_have_gone(item):
            drop(item, reason_of(error))
        else:
            give_up_if_undone(item, failure_of(error))  # its instance is gone (a table restored alone)
        return
    Burst(head, worker).run(command, ack=ack(item, clock.now()))


def _may_have_gone(item: ItemRow) -> bool:
    """Whether the instance that an item is for may have ended and gone by itself, with nobody left to tell.

    A parent may end before the child that it has waited for, and goes so many days later: never sooner than
    that after the child's birth.
    """
    days = settings().ended_instance_days
    owner = find_head(item.tenant, item.owner_id) if days else None
    return owner is not None and clock.now() - clock.from_text(owner.created_at) >= days * clock.DAY_SECONDS
