"""What the moves of activities do to an instance's state, and what they add to its decision.

An activity leaves moves; they are carried out one by one, each of which may lead to more (`agenda`). Pure: no
clock, no I/O.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from aftercommit import expressions
from aftercommit.activities.activity import (
    NOTHING,
    Activity,
    BreakLoop,
    CancelChildren,
    Complete,
    End,
    FaultWith,
    Intend,
    IntendEach,
    MakeReady,
    Move,
    Respond,
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
from aftercommit.ids import derive_execution_id, derive_id
from aftercommit.intentions import (
    gather_cancels,
    intend_cancel_along,
    intend_cancels,
    intend_ending,
)
from aftercommit.joins import mark_ending
from aftercommit.journal import line_of
from aftercommit.jsons import Json, size_of
from aftercommit.limits import (
    COMMIT_BYTES_MAX,
    COMMIT_INTENTIONS_MAX,
    COMMIT_JOURNAL_LINES_MAX,
    INPUT_BYTES_MAX,
    MOVES_MAX,
)
from aftercommit.model import (
    Bookmark,
    Decision,
    Execution,
    Failure,
    Incident,
    Intention,
    State,
)
from aftercommit.scopes import assign, below, lineage, visible_variables
from aftercommit.sizes import charge, charge_memory, measured, release
from aftercommit.statuses import ExecutionStatus, InstanceStatus, ItemCommand, Outcome

UNKNOWN_ACTIVITY = UnknownActivityError.__name__


class Moves:
    """A decision in the making: the state that it changes in place, and what it has led to so far."""

    def __init__(self, definition: Definition, state: State, at: float) -> None:
        self.definition = definition
        self.state = state
        self.at = at
        self.decision = Decision(applied=True)
        self.intended_bytes = 0
        self.started_at = ""  # when the worker began the step whose end is told

    def settle(self) -> None:
        """Carry out moves until there are none, or the decision fills a commit."""
        while self.state.agenda and not self.state.status.ended:
            if self.fills_a_commit():
                return
            execution, move = self.state.agenda.popleft()
            self.state.moves += 1
            if self.state.moves > MOVES_MAX:
                failure = Failure("EndlessLoopError", f"{MOVES_MAX} moves without a step to run or a wait")
                self.incident(failure, execution)
                self.end(InstanceStatus.FAULTED, failure=failure)
            elif self.is_live(execution):
                CARRY_OUT[type(move)](self, execution, move)
        if not self.state.status.ended and not self.state.ready:
            self.rest()

    def fills_a_commit(self) -> bool:
        """Whether what is decided so far is as much as one transaction, or one row, should hold."""
        decision = self.decision
        rows = len(decision.intentions) + len(decision.made) + len(decision.incidents)
        return (
            rows >= COMMIT_INTENTIONS_MAX
            or len(decision.journal) >= COMMIT_JOURNAL_LINES_MAX
            or self.intended_bytes >= COMMIT_BYTES_MAX
        )

    def rest(self) -> None:
        """Nothing can run now: the instance waits, or (under `continue`) has nothing left but faults."""
        if self.state.bookmarks:
            self.state.status = InstanceStatus.SUSPENDED
        else:
            self.end(InstanceStatus.FAULTED, failure=self.state.failure)

    def is_live(self, execution: Execution) -> bool:
        """Whether its moves still count: not those of one that was cancelled or has faulted."""
        return execution.execution_id in self.state.executions and execution.status != ExecutionStatus.FAULTED

    def wait(self, execution: Execution, bookmark: Bookmark) -> None:
        """Put an execution to wait at a bookmark."""
        execution.status = ExecutionStatus.WAITING
        self.state.bookmarks[bookmark.bookmark_id] = bookmark
        if bookmark.stimulus:
            self.decision.made.append(bookmark)

    def drop(self, bookmark: Bookmark) -> None:
        """Take a bookmark out of the state; nothing resumes there any more."""
        del self.state.bookmarks[bookmark.bookmark_id]
        if bookmark.stimulus:
            self.decision.gone.append(bookmark)

    def withdraw(self, execution_ids: Iterable[str]) -> None:
        """Cancel the children that these executions wait for, unless their dispatch leaves them alone."""
        gone = dict.fromkeys(execution_ids)
        waiting = [each for each in self.state.bookmarks.values() if each.execution_id in gone]
        cancels = intend_cancels(
            [each.execution_id for each in waiting if each.waits_for == "child" and self.goes_along(each)]
        )
        for execution in map(self.state.executions.__getitem__, gone):
            cancels += self.activity(execution).dropped(self.state.instance_id, execution)
        self.decision.intentions += gather_cancels(self.state.instance_id, cancels)
        for bookmark in waiting:
            self.drop(bookmark)

    def goes_along(self, bookmark: Bookmark) -> bool:
        """Whether the child that is waited for at a bookmark is cancelled with the wait."""
        activity = self.activity(self.state.executions[bookmark.execution_id])
        return activity.cancel_with_parent is not False

    def intend(self, execution: Execution, intention: Intention) -> None:
        """Add an intention to the decision."""
        self.decision.intentions.append(intention)
        self.state.cancels_along |= bool(intention.body.get("cancel_with_parent"))
        self.intended_bytes += size_of(intention.body)
        if intention.command == ItemCommand.START:
            self.note(execution, "intended", intention=intention)

    def intend_each(self, execution: Execution, move: IntendEach) -> None:
        """Take as many intentions as this commit holds; the others are made after it."""
        first, count = None, 0
        failure: Failure | None = None
        try:
            for intention in move.intentions:
                self.decision.intentions.append(intention)
                self.intended_bytes += size_of(intention.body)
                first, count = first or intention, count + 1
                if self.fills_a_commit():
                    self.state.agenda.appendleft((execution, move))
                    break
        except InstanceFaultError as error:
            failure = failure_of(error)
        if first:
            self.note(execution, "intended", intention=first)
            self.decision.journal[-1]["count"] = count  # so many, from the first on
        if failure:
            self.fault(execution, failure)

    def take_trigger(self) -> None:
        """Forget the start point that the instance was started at: it has been met."""
        self.state.trigger = None

    def correlate(self, correlation_id: str) -> None:
        """Give the instance another correlation id."""
        self.state.correlation_id = correlation_id

    def enter(self, parent: Execution | None, move: Schedule) -> None:
        """Begin the execution of a child of `parent`, or of the root."""
        activity_id = f"{parent.activity_id}.{move.key}" if parent else move.key
        scheduled_by = parent.execution_id if parent else ""
        if parent and parent.status == ExecutionStatus.READY:  # a step whose end has a branch
            parent.status = ExecutionStatus.RUNNING
        # Closes: children, tokens and effects of an earlier life of this id are still there.
        above = scheduled_by or self.state.life
        execution_id = derive_execution_id(self.state.instance_id, activity_id, move.iteration, above)
        execution = Execution(execution_id, activity_id, scheduled_by, move.iteration)
        if move.given:
            execution.memory["locals"] = move.given
        self.state.executions[execution_id] = execution
        self.moment(execution, lambda activity, visit: activity.enter(visit))

    def make_ready(self, execution: Execution) -> None:
        """Have a worker run a step."""
        execution.status = ExecutionStatus.READY
        self.state.ready.append(execution.execution_id)

    def break_loop(self, execution: Execution) -> None:
        """End the nearest loop around an execution, after the `finally` of every Try in between."""
        for each in lineage(self.state, execution):
            activity = self.activity(each)
            if activity.is_loop or activity.holds_break(each.memory):
                self.note(execution, "completed", outcome=Outcome.DONE)
                self.cancel_below(each)
                if activity.is_loop:
                    self.withdraw([each.execution_id])  # one that goes round with each stimulus waits, too
                    self.complete(each, Outcome.DONE)
                else:
                    self.moment(each, lambda activity, visit: activity.child_broke(visit))
                return
        self.fault(execution, Failure("BreakOutsideLoop", "there is no loop around this Break"))

    def complete(self, execution: Execution, outcome: str, result: Json = NOTHING) -> None:
        """End an execution with its outcome, set its result, and tell the execution above."""
        activity = self.activity(execution)
        release(self.state, execution)
        if (
            activity.result is not None
            and result is not NOTHING
            and not self.set_variable(execution, activity.result, result)
        ):
            return
        self.note(execution, "completed", outcome=outcome, started_at=self.started_at)
        self.forget(execution)
        if not execution.scheduled_by:
            self.end_completed(NOTHING)
            return
        parent = self.state.executions[execution.scheduled_by]
        key = execution.activity_id[len(parent.activity_id) + 1 :]
        self.moment(parent, lambda activity, visit: activity.child_ended(visit, key, outcome))

    def fault(self, execution: Execution, failure: Failure) -> None:
        """Fault an execution: a Try above may catch it, else the strategy of the definition decides."""
        self.note(execution, "faulted", failure=failure, started_at=self.started_at)
        above = (each for each in lineage(self.state, execution) if each is not execution)
        catcher = next((each for each in above if self.activity(each).catches(each.memory)), None)
        if catcher:
            self.cancel_below(catcher)
            self.moment(catcher, lambda activity, visit: activity.child_faulted(visit, failure))
            return
        self.incident(failure, execution)
        if self.definition.incidents == "fault":
            self.end(InstanceStatus.FAULTED, failure=failure)
            return
        # Strategy `continue`: this execution stays where it is, and what does not depend on it runs on.
        self.withdraw([execution.execution_id])
        release(self.state, execution)
        execution.status = ExecutionStatus.FAULTED
        execution.memory = {}
        self.state.failure = self.state.failure or failure

    def finish_instance(self, execution: Execution, output: Json) -> None:
        """End the instance as completed, at a Finish."""
        self.note(execution, "completed")
        self.end_completed(output)

    def end_completed(self, output: Json) -> None:
        """End the instance as completed, with this output or the definition's."""
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
        self.withdraw(state.executions)
        if status == InstanceStatus.CANCELLED and state.cancels_along:
            self.decision.intentions.append(intend_cancel_along(state.instance_id))
        state.executions, state.ready = {}, []
        state.agenda.clear()
        if ending := intend_ending(state):
            self.decision.intentions.append(ending)
        self.decision.mark = mark_ending(state)

    # --- parts ---

    def activity(self, execution: Execution) -> Activity:
        """Return the activity of an execution."""
        return self.definition.activities[execution.activity_id]

    def visit(self, execution: Execution) -> Visit:
        """Return what the activity of an execution may know now, and where it leaves its moves."""
        return Visit(
            execution,
            partial(self.evaluate, execution.execution_id),
            self.state.instance_id,
            self.state.correlation_id,
            self.state.depth,
            self.at,
            self.state.value_bytes_max,
            self.state.trigger,
        )

    def moment(self, execution: Execution, act: Callable[[Activity, Visit], None]) -> None:
        """Let the activity of an execution act; its moves go in front of those that wait."""
        visit = self.visit(execution)
        measured(self.state)
        try:
            act(self.activity(execution), visit)
            charge_memory(self.state, execution)
        except InstanceFaultError as error:
            self.fault(execution, failure_of(error))
        else:
            # In front, in their order: what an activity leads to comes before what was waiting already.
            self.state.agenda.extendleft((execution, move) for move in reversed(visit.moves))

    def evaluate(self, seed: str, value: Json, given: dict[str, Json] | None = None, number: int = 0) -> Json:
        """Return a value with its expressions replaced; `seed` names what draws of chance follow from."""
        execution = self.state.executions.get(seed)
        variables = visible_variables(self.state, execution) if execution else self.state.variables
        scope = {"inputs": self.state.inputs, "var": variables}
        if given is not None:
            scope["var"] = {**variables, **given}
            seed = f"{seed}-{number}"  # what is drawn for one item is not drawn for the next
        return expressions.evaluate(value, scope, at=self.at, seed=seed)

    def set_variable(self, execution: Execution, variable: str, value: Json) -> bool:
        """Set a variable as an execution sees it; returns False if there is no room: then it has faulted."""
        try:
            assign(self.state, execution, variable, value)
        except StateTooLargeError as error:
            self.fault(execution, failure_of(error))
            return False
        return True

    def respond(self, execution: Execution, response: dict[str, Json]) -> None:
        """Answer the request that the instance was started at, unless it has an answer."""
        if self.state.response is not None:
            return
        if size_of(response) > INPUT_BYTES_MAX:
            told = f"an answer is at most {INPUT_BYTES_MAX} bytes"
            self.fault(execution, Failure("ResponseTooLargeError", told))
            return
        try:
            charge(self.state, "the response", response)
        except StateTooLargeError as error:
            self.fault(execution, failure_of(error))
        else:
            self.state.response = response

    def cancel_below(self, top: Execution) -> None:
        """Drop everything that runs or waits below an execution, with its bookmarks."""
        dropped = below(self.state, top)
        gone = {each.execution_id for each in dropped}
        self.withdraw(gone)
        for each in dropped:
            self.forget(each)
            if each.status in (ExecutionStatus.READY, ExecutionStatus.WAITING):
                self.note(each, "cancelled")
        self.state.ready = [each for each in self.state.ready if each not in gone]

    def forget(self, execution: Execution) -> None:
        """Take an execution out of the state."""
        release(self.state, execution)
        del self.state.executions[execution.execution_id]

    def incident(self, failure: Failure, execution: Execution | None) -> None:
        """Record a fault."""
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
        """Add a line to the journal, if this activity writes any."""
        line = line_of(self.activity(execution), execution, status, **told)
        if line:
            self.decision.journal.append(line)


CARRY_OUT: dict[type[Move], Callable[[Moves, Execution, Any], object]] = {
    Schedule: lambda moves, execution, move: moves.enter(execution, move),
    Complete: lambda moves, execution, move: moves.complete(execution, move.outcome, move.result),
    CancelChildren: lambda moves, execution, _: moves.cancel_below(execution),
    BreakLoop: lambda moves, execution, _: moves.break_loop(execution),
    SetCorrelation: lambda moves, _, move: moves.correlate(move.correlation_id),
    TakeTrigger: lambda moves, _, __: moves.take_trigger(),
    MakeReady: lambda moves, execution, _: moves.make_ready(execution),
    Wait: lambda moves, execution, move: moves.wait(execution, move.bookmark),
    Intend: lambda moves, execution, move: moves.intend(execution, move.intention),
    IntendEach: lambda moves, execution, move: moves.intend_each(execution, move),
    SetTo: lambda moves, execution, move: moves.set_variable(execution, move.variable, move.value),
    Respond: lambda moves, execution, move: moves.respond(execution, move.response),
    FaultWith: lambda moves, execution, move: moves.fault(execution, move.failure),
    End: lambda moves, execution, move: moves.finish_instance(execution, move.output),
}
