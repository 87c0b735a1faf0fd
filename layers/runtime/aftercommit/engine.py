"""The engine: what one command does to an instance. Pure: it reads no clock, no table, no environment.

`advance` applies a command to a state and carries out the moves that activities leave, until only steps to
run and waits remain. The same state, command and instant always give the same result, so a snapshot and
the commands committed after it are all that a worker needs to go on where another died.
"""

from functools import partial

from aftercommit import clock, expressions
from aftercommit.activities.activity import (
    NOTHING,
    Activity,
    Complete,
    End,
    FaultWith,
    Intend,
    MakeReady,
    Move,
    Schedule,
    SetTo,
    Visit,
    Wait,
)
from aftercommit.definition import Definition
from aftercommit.errors import InstanceFaultError, StateTooLargeError, UnknownActivityError
from aftercommit.functions import failure_of
from aftercommit.ids import derive_execution_id, derive_id
from aftercommit.limits import (
    COMMIT_BYTES_MAX,
    COMMIT_INTENTIONS_MAX,
    COMMIT_JOURNAL_LINES_MAX,
    MOVES_MAX,
    STATE_BYTES_MAX,
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
    size_of,
)

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
        self.enter("root", "", 0)

    def finish(self, command: Finish) -> None:
        execution = self.take_ready(command.execution_id)
        if execution is None:
            return
        for intention in command.intentions:
            self.carry_out(execution, Intend(intention))
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
        bookmark = self.state.bookmarks.pop(command.bookmark_id, None)
        if bookmark is None:
            self.decision.applied = False
            return
        execution = self.state.executions[bookmark.execution_id]
        self.state.status = InstanceStatus.RUNNING
        if bookmark.waits_for == "retry":
            execution.attempt += 1
            self.make_ready(execution)
        else:
            execution.status = ExecutionStatus.RUNNING
            activity = self.activity(execution)
            visit = self.visit(execution)
            self.moment(execution, visit, partial(activity.resumed, visit, command.outcome, command.value))

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
            len(intentions) >= COMMIT_INTENTIONS_MAX
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
        match move:
            case Schedule():
                self.enter(f"{execution.activity_id}.{move.key}", execution.execution_id, move.iteration)
            case Complete():
                self.complete(execution, move.outcome, move.result)
            case MakeReady():
                self.make_ready(execution)
            case Wait():
                execution.status = ExecutionStatus.WAITING
                self.state.bookmarks[move.bookmark.bookmark_id] = move.bookmark
            case Intend():
                self.decision.intentions.append(move.intention)
                self.intended_bytes += size_of(move.intention.body)
                self.note(execution, "intended", intention=move.intention)
            case SetTo():
                self.set_variable(execution, move.variable, move.value)
            case FaultWith():
                self.fault(execution, move.failure)
            case End():
                self.note(execution, "completed")
                self.end_completed(move.output)

    def enter(self, activity_id: str, scheduled_by: str, iteration: int) -> None:
        execution_id = derive_execution_id(self.state.instance_id, activity_id, iteration, scheduled_by)
        execution = Execution(execution_id, activity_id, scheduled_by, iteration)
        self.state.executions[execution_id] = execution
        visit = self.visit(execution)
        self.moment(execution, visit, partial(self.activity(execution).enter, visit))

    def make_ready(self, execution: Execution) -> None:
        execution.status = ExecutionStatus.READY
        self.state.ready.append(execution.execution_id)
        try:
            self.charge(f"inputs of {execution.activity_id}", execution.memory.get("inputs"))
        except StateTooLargeError as error:
            self.state.ready.remove(execution.execution_id)
            self.fault(execution, failure_of(error))

    def complete(
        self, execution: Execution, outcome: str, result: Json = NOTHING, *, started_at: str = ""
    ) -> None:
        activity = self.activity(execution)
        self.release(f"inputs of {execution.activity_id}")
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
        self.incident(failure, execution)
        if self.definition.incidents == "fault":
            self.end(InstanceStatus.FAULTED, failure=failure)
            return
        # Strategy `continue`: this execution stays where it is, and what does not depend on it runs on.
        execution.status = ExecutionStatus.FAULTED
        execution.memory = {}
        self.release(f"inputs of {execution.activity_id}")
        self.state.failure = self.state.failure or failure

    def end_completed(self, output: Json) -> None:
        try:
            if output is NOTHING:
                output = self.evaluate(self.state.instance_id, self.definition.output)
            self.charge("the output", output)
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
        state.executions, state.ready, state.bookmarks = {}, [], {}
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
        )

    def moment(self, execution: Execution, visit: Visit, act: partial[None]) -> None:
        try:
            act()
        except InstanceFaultError as error:
            self.fault(execution, failure_of(error))
        else:
            # In front, in their order: what an activity leads to comes before what was waiting already.
            self.state.agenda.extendleft((execution, move) for move in reversed(visit.moves))

    def evaluate(self, seed: str, value: Json) -> Json:
        scope = {"inputs": self.state.inputs, "var": self.state.variables}
        return expressions.evaluate(value, scope, at=self.at, seed=seed)

    def set_variable(self, execution: Execution, variable: str, value: Json) -> bool:
        try:
            self.charge(variable, value)
        except StateTooLargeError as error:
            self.fault(execution, failure_of(error))
            return False
        self.state.variables[variable] = value
        return True

    def charge(self, name: str, value: Json) -> None:
        """Account for a value the state is about to hold; raises StateTooLargeError naming the largest."""
        sizes = self.sizes()
        size = size_of(value)
        if self.state.bytes - sizes.get(name, 0) + size > STATE_BYTES_MAX:
            largest = sorted({**sizes, name: size}.items(), key=lambda each: -each[1])[:3]
            told = ", ".join(f"{each} ({bytes_} bytes)" for each, bytes_ in largest)
            raise StateTooLargeError(f"the state would outgrow {STATE_BYTES_MAX} bytes; the largest: {told}")
        self.state.bytes += size - sizes.get(name, 0)
        sizes[name] = size

    def release(self, name: str) -> None:
        self.state.bytes -= self.sizes().pop(name, 0)

    def sizes(self) -> dict[str, int]:
        """Return the bytes of everything large that the state holds, by name; measured once, then kept up."""
        state = self.state
        if state.sizes is None:
            state.sizes = {name: size_of(value) for name, value in state.variables.items()}
            state.sizes["the inputs"] = size_of(state.inputs)
            for execution in state.executions.values():
                if "inputs" in execution.memory:
                    name = f"inputs of {execution.activity_id}"
                    state.sizes[name] = size_of(execution.memory["inputs"])
            state.bytes = sum(state.sizes.values())
        return state.sizes

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

    def note(
        self,
        execution: Execution,
        status: str,
        *,
        outcome: str | None = None,
        failure: Failure | None = None,
        intention: Intention | None = None,
        started_at: str = "",
        retry_at: str | None = None,
    ) -> None:
        """Add a line to the journal; containers are left out, as their children tell the story."""
        activity = self.activity(execution)
        if status == "completed" and next(activity.children(), None) and outcome == Outcome.DONE:
            return
        line: dict[str, Json] = {
            "activity_id": execution.activity_id,
            "type": activity.type,
            "status": status,
        }
        if name := getattr(activity, "activity", None):
            line["activity"] = name
        line["execution_id"] = execution.execution_id
        if outcome and outcome != Outcome.DONE:
            line["outcome"] = outcome
        if execution.attempt > 1 or status == "retrying":
            line["attempt"] = execution.attempt
        if failure:
            line["error"] = failure.to_json()
        if intention:
            line["item_id"] = intention.item_id
            line["instance_id"] = intention.body["instance_id"]
        if started_at:
            line["started_at"] = started_at
        if retry_at:
            line["retry_at"] = retry_at
        self.decision.journal.append(line)
