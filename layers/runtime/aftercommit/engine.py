"""The engine: what one command does to an instance. Pure: it reads no clock, no table, no environment.

`advance` applies a command to a state and carries out the moves that activities leave, until only steps to
run and waits remain. The same state, command and instant always give the same result, so a snapshot and
the commands committed after it are all that a worker needs to go on where another died.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from aftercommit import clock, expressions
from aftercommit.activities.activity import (
    NOTHING,
    Activity,
    BreakLoop,
    CancelChildren,
    Complete,
    End,
    FaultWith,
    Intend,
    MakeReady,
    Move,
    Schedule,
    SetCorrelation,
    SetTo,
    TakeTrigger,
    Visit,
    Wait,
)
from aftercommit.definition import Definition
from aftercommit.errors import InstanceFaultError, StateTooLargeError, UnknownActivityError
from aftercommit.functions import failure_of
from aftercommit.ids import derive_child_id, derive_execution_id, derive_id
from aftercommit.journal import line_of
from aftercommit.limits import (
    COMMIT_BYTES_MAX,
    COMMIT_INTENTIONS_MAX,
    COMMIT_JOURNAL_LINES_MAX,
    MOVES_MAX,
)
from aftercommit.model import (
    Abort,
    Bookmark,
    Cancel,
    Command,
    Continue,
    Decision,
    Execution,
    ExecutionStatus,
    Failure,
    Finish,
    Incident,
    InstanceStatus,
    Intention,
    ItemCommand,
    Json,
    Outcome,
    Raise,
    Resume,
    Start,
    State,
    Stimulate,
    size_of,
)
from aftercommit.scopes import below, holder_of, lineage, visible_variables
from aftercommit.sizes import charge, charge_memory, release

_OUTCOME_OF_ENDING = {
    InstanceStatus.COMPLETED: Outcome.COMPLETED,
    InstanceStatus.FAULTED: Outcome.FAULTED,
    InstanceStatus.CANCELLED: Outcome.CANCELLED,
}
UNKNOWN_ACTIVITY = UnknownActivityError.__name__


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


class _Advance:
    def __init__(self, definition: Definition, state: State, at: float) -> None:
        self.definition = definition
        self.state = state
        self.at = at
        self.decision = Decision(applied=True)
        self.intended_bytes = 0

    # --- commands ---

    def take(self, command: Command) -> None:
        if not isinstance(command, Continue):
            self.state.moves = 0
        match command:
            case Start():
                self.start()
            case Continue():
                self.decision.applied = bool(self.state.agenda)
                self.state.status = InstanceStatus.RUNNING
            case Finish():
                self.finish(command)
            case Raise():
                self.step_raised(command)
            case Resume():
                self.resume(command)
            case Stimulate():
                self.stimulate(command)
            case Cancel():
                self.withdraw(list(self.state.executions.values()))
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
            self.intend(execution, intention)
        self.complete(execution, Outcome.DONE, command.result, started_at=command.started_at)

    def step_raised(self, command: Raise) -> None:
        execution = self.take_ready(command.execution_id)
        if execution is None:
            return
        if command.retry_at is None:
            self.fault(execution, command.failure, started_at=command.started_at)
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
        execution.status = ExecutionStatus.WAITING
        self.state.bookmarks[bookmark_id] = Bookmark(
            bookmark_id, execution.execution_id, "retry", until=command.retry_at
        )
        body = {"instance_id": self.state.instance_id, "bookmark_id": bookmark_id, "outcome": Outcome.DONE}
        self.decision.intentions.append(
            Intention(
                ItemCommand.RESUME,
                derive_id("retry", execution.execution_id, execution.attempt),
                body,
                deliver_at=clock.from_text(command.retry_at),
            )
        )

    def resume(self, command: Resume) -> None:
        # A bookmark leaves the state with its first resume: a second one, however late, finds nothing.
        bookmark = self.state.bookmarks.get(command.bookmark_id)
        if bookmark is None:
            self.decision.applied = False
            return
        self.consume(bookmark, command.outcome, command.value)

    def stimulate(self, command: Stimulate) -> None:
        met = [each for each in self.state.bookmarks.values() if each.stimulus == command.stimulus]
        self.decision.applied = bool(met)
        for bookmark in met:
            # One that is resumed may end the loop, or the fork, that another stood in.
            if bookmark.bookmark_id in self.state.bookmarks:
                self.consume(bookmark, Outcome.DONE, command.value)

    def consume(self, bookmark: Bookmark, outcome: str, value: Json) -> None:
        self.drop(bookmark)
        execution = self.state.executions[bookmark.execution_id]
        self.state.status = InstanceStatus.RUNNING
        if bookmark.waits_for == "retry":
            execution.attempt += 1
            self.make_ready(execution)
        else:
            execution.status = ExecutionStatus.RUNNING
            activity = self.activity(execution)
            visit = self.visit(execution)
            self.moment(execution, visit, partial(activity.resumed, visit, outcome, value))

    def take_ready(self, execution_id: str) -> Execution | None:
        # A step leaves `ready` with its first result: a second result of it finds nothing.
        if execution_id not in self.state.ready:
            self.decision.applied = False
            return None
        self.state.ready.remove(execution_id)
        return self.state.executions[execution_id]

    # --- moves ---

    def settle(self) -> None:
        while self.state.agenda and not self.state.status.ended:
            if self.fills_a_commit():
                return
            execution, move = self.state.agenda.popleft()
            self.state.moves += 1
            if self.state.moves > MOVES_MAX:
                failure = Failure("EndlessLoopError", f"{MOVES_MAX} moves without a step to run or a wait")
                self.incident(failure, execution)
                self.end(InstanceStatus.FAULTED, failure=failure)
            elif execution.execution_id in self.state.executions:
                self.carry_out(execution, move)
        if not self.state.status.ended and not self.state.ready:
            self.rest()

    def fills_a_commit(self) -> bool:
        """Whether what is decided so far is as much as one transaction, or one row, should hold."""
        intentions = self.decision.intentions
        return (
            len(intentions) + len(self.decision.made) >= COMMIT_INTENTIONS_MAX
            or len(self.decision.journal) >= COMMIT_JOURNAL_LINES_MAX
            or self.intended_bytes >= COMMIT_BYTES_MAX
        )

    def rest(self) -> None:
        """Nothing can run now: the instance waits, or (under `continue`) has nothing left but faults."""
        if self.state.bookmarks:
            self.state.status = InstanceStatus.SUSPENDED
        else:
            self.end(InstanceStatus.FAULTED, failure=self.state.failure)

    def carry_out(self, execution: Execution, move: Move) -> None:
        _CARRY_OUT[type(move)](self, execution, move)

    def wait(self, execution: Execution, bookmark: Bookmark) -> None:
        execution.status = ExecutionStatus.WAITING
        self.state.bookmarks[bookmark.bookmark_id] = bookmark
        if bookmark.stimulus:
            self.decision.made.append(bookmark)

    def drop(self, bookmark: Bookmark) -> None:
        del self.state.bookmarks[bookmark.bookmark_id]
        if bookmark.stimulus:
            self.decision.gone.append(bookmark)

    def withdraw(self, executions: list[Execution]) -> None:
        """Cancel the children that these executions wait for: nobody will take what they bring."""
        waiting = {each.execution_id for each in executions}
        for bookmark in self.state.bookmarks.values():
            if bookmark.execution_id in waiting and bookmark.waits_for == "child":
                body = {
                    "instance_id": derive_child_id(bookmark.execution_id),
                    "item_id": derive_id("dispatch", bookmark.execution_id),
                }
                item_id = derive_id("cancel", bookmark.execution_id)
                self.decision.intentions.append(Intention(ItemCommand.CANCEL, item_id, body))

    def intend(self, execution: Execution, intention: Intention) -> None:
        self.decision.intentions.append(intention)
        self.intended_bytes += size_of(intention.body)
        if intention.command == ItemCommand.START:
            self.note(execution, "intended", intention=intention)

    def take_trigger(self) -> None:
        self.state.trigger = None

    def correlate(self, correlation_id: str) -> None:
        self.state.correlation_id = correlation_id

    def enter(self, parent: Execution | None, move: Schedule) -> None:
        activity_id = f"{parent.activity_id}.{move.key}" if parent else move.key
        scheduled_by = parent.execution_id if parent else ""
        execution_id = derive_execution_id(self.state.instance_id, activity_id, move.iteration, scheduled_by)
        execution = Execution(execution_id, activity_id, scheduled_by, move.iteration)
        if move.given:
            execution.memory["locals"] = move.given
        self.state.executions[execution_id] = execution
        visit = self.visit(execution)
        self.moment(execution, visit, partial(self.activity(execution).enter, visit))

    def make_ready(self, execution: Execution) -> None:
        execution.status = ExecutionStatus.READY
        self.state.ready.append(execution.execution_id)

    def break_loop(self, execution: Execution) -> None:
        """End the nearest loop around an execution, with everything that runs in it."""
        above = (each for each in lineage(self.state, execution) if self.activity(each).is_loop)
        loop = next(above, None)
        if loop is None:
            self.fault(execution, Failure("BreakOutsideLoop", "there is no loop around this Break"))
            return
        self.note(execution, "completed")
        self.cancel_below(loop)
        self.complete(loop, Outcome.DONE)

    def complete(
        self, execution: Execution, outcome: str, result: Json = NOTHING, *, started_at: str = ""
    ) -> None:
        activity = self.activity(execution)
        release(self.state, execution)
        if (
            activity.result is not None
            and result is not NOTHING
            and not self.set_variable(execution, activity.result, result)
        ):
            return
        self.note(execution, "completed", outcome=outcome, started_at=started_at)
        del self.state.executions[execution.execution_id]
        if not execution.scheduled_by:
            self.end_completed(NOTHING)
            return
        parent = self.state.executions[execution.scheduled_by]
        key = execution.activity_id[len(parent.activity_id) + 1 :]
        visit = self.visit(parent)
        self.moment(parent, visit, partial(self.activity(parent).child_ended, visit, key, outcome))

    def fault(self, execution: Execution, failure: Failure, *, started_at: str = "") -> None:
        self.note(execution, "faulted", failure=failure, started_at=started_at)
        catcher = next(
            (each for each in lineage(self.state, execution) if each is not execution and self.catches(each)),
            None,
        )
        if catcher:
            self.cancel_below(catcher)
            visit = self.visit(catcher)
            self.moment(catcher, visit, partial(self.activity(catcher).child_faulted, visit, failure))
            return
        self.incident(failure, execution)
        if self.definition.incidents == "fault":
            self.end(InstanceStatus.FAULTED, failure=failure)
            return
        # Strategy `continue`: this execution stays where it is, and what does not depend on it runs on.
        release(self.state, execution)
        execution.status = ExecutionStatus.FAULTED
        execution.memory = {}
        self.state.failure = self.state.failure or failure

    def catches(self, execution: Execution) -> bool:
        return self.activity(execution).catches(execution.memory)

    def finish_instance(self, execution: Execution, output: Json) -> None:
        self.note(execution, "completed")
        self.end_completed(output)

    def end_completed(self, output: Json) -> None:
        try:
            if output is NOTHING:
                output = self.evaluate(self.state.instance_id, self.definition.output)
            charge(self.state, "the output", output)
        except InstanceFaultError as error:
            failure = failure_of(error)
            self.incident(failure, None)
            self.end(InstanceStatus.FAULTED, failure=failure)
        else:
            self.end(InstanceStatus.COMPLETED, output=output)

    def end(self, status: InstanceStatus, *, output: Json = None, failure: Failure | None = None) -> None:
        """End the instance and, in the same decision, tell a parent that waits (I7)."""
        state = self.state
        state.status, state.output, state.failure = status, output, failure
        for bookmark in list(state.bookmarks.values()):
            self.drop(bookmark)
        state.executions, state.ready = {}, []
        self.state.agenda.clear()
        if state.parent and state.parent.bookmark_id:
            value = output if status == InstanceStatus.COMPLETED else (failure.to_json() if failure else None)
            body = {
                "instance_id": state.parent.instance_id,
                "bookmark_id": state.parent.bookmark_id,
                "outcome": _OUTCOME_OF_ENDING[status],
                "value": value,
            }
            self.decision.intentions.append(
                Intention(ItemCommand.RESUME, derive_id("ending", state.instance_id), body)
            )

    # --- parts ---

    def activity(self, execution: Execution) -> Activity:
        return self.definition.activities[execution.activity_id]

    def visit(self, execution: Execution) -> Visit:
        return Visit(
            execution,
            partial(self.evaluate, execution.execution_id),
            self.state.instance_id,
            self.state.correlation_id,
            self.state.depth,
            self.at,
            self.state.trigger,
        )

    def moment(self, execution: Execution, visit: Visit, act: partial[None]) -> None:
        try:
            act()
            charge_memory(self.state, execution)
        except InstanceFaultError as error:
            self.fault(execution, failure_of(error))
        else:
            # In front, in their order: what an activity leads to comes before what was waiting already.
            self.state.agenda.extendleft((execution, move) for move in reversed(visit.moves))

    def evaluate(self, seed: str, value: Json) -> Json:
        execution = self.state.executions.get(seed)
        variables = visible_variables(self.state, execution) if execution else self.state.variables
        scope = {"inputs": self.state.inputs, "var": variables}
        return expressions.evaluate(value, scope, at=self.at, seed=seed)

    def set_variable(self, execution: Execution, variable: str, value: Json) -> bool:
        """Set a variable where it is visible from here: the nearest loop that has it, else the instance."""
        holder = holder_of(self.state, execution, variable)
        try:
            if holder is None:
                charge(self.state, variable, value)
                self.state.variables[variable] = value
            else:
                holder.memory["locals"] = {**holder.memory["locals"], variable: value}
                charge_memory(self.state, holder)
        except StateTooLargeError as error:
            self.fault(execution, failure_of(error))
            return False
        return True

    def cancel_below(self, top: Execution) -> None:
        """Drop everything that runs or waits below an execution, with its bookmarks."""
        dropped = below(self.state, top)
        self.withdraw(dropped)
        for each in dropped:
            release(self.state, each)
            del self.state.executions[each.execution_id]
            if each.status in (ExecutionStatus.READY, ExecutionStatus.WAITING):
                self.note(each, "cancelled")
        gone = {each.execution_id for each in dropped}
        self.state.ready = [each for each in self.state.ready if each not in gone]
        for bookmark in list(self.state.bookmarks.values()):
            if bookmark.execution_id in gone:
                self.drop(bookmark)

    def incident(self, failure: Failure, execution: Execution | None) -> None:
        where = execution.execution_id if execution else self.state.instance_id
        # One incident however often an activity is found missing: it is one fault of the deployment.
        attempt = execution.attempt if execution and failure.type != UNKNOWN_ACTIVITY else 0
        self.decision.incidents.append(
            Incident(
                derive_id("incident", where, attempt, failure.type),
                failure,
                execution.activity_id if execution else None,
                execution.execution_id if execution else None,
            )
        )

    def note(self, execution: Execution, status: str, **told: Any) -> None:
        line = line_of(self.activity(execution), execution, status, **told)
        if line:
            self.decision.journal.append(line)


_CARRY_OUT: dict[type[Move], Callable[[_Advance, Execution, Any], object]] = {
    Schedule: lambda advance, execution, move: advance.enter(execution, move),
    Complete: lambda advance, execution, move: advance.complete(execution, move.outcome, move.result),
    CancelChildren: lambda advance, execution, _: advance.cancel_below(execution),
    BreakLoop: lambda advance, execution, _: advance.break_loop(execution),
    SetCorrelation: lambda advance, _, move: advance.correlate(move.correlation_id),
    TakeTrigger: lambda advance, _, __: advance.take_trigger(),
    MakeReady: lambda advance, execution, _: advance.make_ready(execution),
    Wait: lambda advance, execution, move: advance.wait(execution, move.bookmark),
    Intend: lambda advance, execution, move: advance.intend(execution, move.intention),
    SetTo: lambda advance, execution, move: advance.set_variable(execution, move.variable, move.value),
    FaultWith: lambda advance, execution, move: advance.fault(execution, move.failure),
    End: lambda advance, execution, move: advance.finish_instance(execution, move.output),
}
