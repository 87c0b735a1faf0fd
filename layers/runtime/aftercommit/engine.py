"""The engine: what one command does to an instance. Pure: it reads no clock, no table, no environment.

`advance` applies a command to a state and carries out the moves that activities leave, until only steps to
run and waits remain. The same state, command and instant always give the same result, so a snapshot and
the commands committed after it are all that a worker needs to go on where another died.
"""

from collections.abc import Callable

from aftercommit.activities.activity import (
    Activity,
    Schedule,
    Visit,
)
from aftercommit.definition import Definition
from aftercommit.ids import derive_id
from aftercommit.intentions import (
    find_bookmark,
    intend_retry,
    stamped,
)
from aftercommit.jsons import Json, canonical
from aftercommit.model import (
    Abort,
    Bookmark,
    Cancel,
    Command,
    Continue,
    Decision,
    Execution,
    Failure,
    Finish,
    Raise,
    Resume,
    Start,
    State,
    Stimulate,
)
from aftercommit.moves import CARRY_OUT, UNKNOWN_ACTIVITY, Moves
from aftercommit.statuses import ExecutionStatus, InstanceStatus, Outcome


def advance(definition: Definition, state: State, command: Command, at: float) -> Decision:
    """Apply `command`, decided at instant `at`, to `state` (changed in place) and say what it led to.

    A command that no longer meets what it speaks of changes nothing and gives `applied=False`; so does
    every command to an instance that has ended.
    """
    if state.status.ended:
        return Decision(applied=False)
    burst = _Advance(definition, state, at)
    burst.take(command)
    return burst.decision


class _Advance(Moves):
    """What each command does."""

    def take(self, command: Command) -> None:
        if not isinstance(command, Continue):
            self.state.moves = 0
        match command:
            case Start():
                self.start()
            case Continue():
                self.decision.applied = bool(self.state.agenda)
            case Finish():
                self.finish(command)
            case Raise():
                self.step_raised(command)
            case Resume():
                self.resume(command)
            case Stimulate():
                self.stimulate(command)
            case Cancel():
                self.end(InstanceStatus.CANCELLED, failure=Failure("Cancelled", command.reason))
            case Abort():
                self.incident(command.failure, None)
                self.end(InstanceStatus.FAULTED, failure=command.failure)
        if self.decision.applied:
            self.settle()

    def start(self) -> None:
        if self.state.executions:
            self.decision.applied = False
            return
        self.state.status = InstanceStatus.RUNNING
        self.enter(None, Schedule("root"))

    def finish(self, command: Finish) -> None:
        execution = self.take_ready(command.execution_id)
        if execution is None:
            return
        for intention in command.intentions:
            self.intend(execution, stamped(intention, self.at))
        self.step_ended(
            execution, command.started_at, lambda activity, visit: activity.finished(visit, command.result)
        )

    def step_raised(self, command: Raise) -> None:
        execution = self.take_ready(command.execution_id)
        if execution is None:
            return
        if command.retry_at is None:
            self.step_ended(
                execution, command.started_at, lambda activity, visit: activity.raised(visit, command.failure)
            )
            return
        if command.failure.type == UNKNOWN_ACTIVITY:
            # The deployment's fault, not the step's: visible to operators, and no attempt of its policy.
            execution.memory["uncounted"] = execution.memory.get("uncounted", 0) + 1
            self.incident(command.failure, execution)
        bookmark_id = derive_id("bookmark", execution.execution_id, "retry", execution.attempt)
        self.note(
            execution,
            "retrying",
            failure=command.failure,
            started_at=command.started_at,
            retry_at=command.retry_at,
        )
        bookmark = Bookmark(bookmark_id, execution.execution_id, "retry", until=command.retry_at)
        self.wait(execution, bookmark)
        self.decision.intentions.append(intend_retry(self.state.instance_id, execution, bookmark))

    def step_ended(
        self, execution: Execution, started_at: str, act: Callable[[Activity, Visit], None]
    ) -> None:
        """Carry out what a step's end leads to at once: it belongs to the very command that tells it."""
        self.started_at = started_at
        visit = self.visit(execution)
        act(self.activity(execution), visit)
        for move in visit.moves:
            if self.is_live(execution):
                CARRY_OUT[type(move)](self, execution, move)
        self.started_at = ""

    def resume(self, command: Resume) -> None:
        # A bookmark leaves the state with its first resume: a second one, however late, finds nothing.
        bookmark = find_bookmark(self.state, command.bookmark_id)
        if bookmark is None:
            self.decision.applied = False
            return
        self.consume(bookmark, command.outcome, command.value)

    def stimulate(self, command: Stimulate) -> None:
        # As text: to Python, true is 1.
        wanted = canonical(command.stimulus)
        met = [each for each in self.state.bookmarks.values() if canonical(each.stimulus) == wanted]
        self.decision.applied = bool(met)
        # The last first, as each puts its moves in front: so the first to wait is the first to go on.
        for bookmark in reversed(met):
            # One that is resumed may fault, and end what another stood in.
            if bookmark.bookmark_id in self.state.bookmarks:
                self.consume(bookmark, Outcome.DONE, command.value)

    def consume(self, bookmark: Bookmark, outcome: str, value: Json) -> None:
        execution = self.state.executions[bookmark.execution_id]
        self.state.status = InstanceStatus.RUNNING
        if not bookmark.multi_use:
            self.drop(bookmark)
            execution.status = ExecutionStatus.RUNNING
        if bookmark.waits_for == "retry":
            execution.attempt += 1
            self.make_ready(execution)
        else:
            self.moment(execution, lambda activity, visit: activity.resumed(visit, outcome, value))

    def take_ready(self, execution_id: str) -> Execution | None:
        # A step leaves `ready` with its first result: a second result of it finds nothing.
        if execution_id not in self.state.ready:
            self.decision.applied = False
            return None
        self.state.ready.remove(execution_id)
        return self.state.executions[execution_id]
