"""Direct execution: run a workflow in process, with no AWS, for the tests of those who write workflows.

The engine is the real one; the queue and the tables are a list in memory, and time is skipped.
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from aftercommit import clock, engine
from aftercommit.definition import Definition
from aftercommit.errors import InputRefusedError, UnknownActivityError
from aftercommit.functions import (
    NO_RETRY,
    ActivityContext,
    ActivityFunction,
    Retry,
    failure_of,
    find_function,
)
from aftercommit.ids import derive_id
from aftercommit.model import (
    Command,
    Continue,
    Decision,
    Failure,
    Finish,
    InstanceStatus,
    Intention,
    ItemCommand,
    Json,
    Outcome,
    Parent,
    Raise,
    Resume,
    Start,
    State,
)
from aftercommit.schema import check_inputs
from aftercommit.settings import Settings
from aftercommit.workflow import Workflow


@dataclass
class DirectResult:
    """How a direct run ended: a journal line per activity, and the instances it dispatched."""

    status: InstanceStatus
    output: Json
    failure: Failure | None
    variables: dict[str, Json]
    journal: list[dict[str, Json]]
    children: list["DirectResult"]
    definition_id: str
    inputs: dict[str, Json]


@dataclass
class _Instance:
    definition: Definition
    state: State
    journal: list[dict[str, Json]] = field(default_factory=list)


class _World:
    """Instances, what is due when, and the time."""

    def __init__(
        self, workflows: list[Workflow], activities: Mapping[str, Callable[..., Any]], tenant: str
    ) -> None:
        self.definitions = {(each.id, each.version): each.definition for each in workflows}
        self.published = {each.id: each.definition for each in sorted(workflows, key=lambda x: x.version)}
        self.activities = activities
        self.tenant = tenant
        self.instances: dict[str, _Instance] = {}
        self.due: deque[tuple[float, Intention, str]] = deque()
        self.now = clock.now()

    def create(self, definition: Definition, state: State) -> _Instance:
        instance = _Instance(definition, state)
        self.instances[state.instance_id] = instance
        self.run(instance, Start())
        return instance

    def run(self, instance: _Instance, command: Command) -> None:
        self.advance(instance, command)
        while instance.state.ready:
            self.advance(instance, self.call(instance, instance.state.ready[0]))

    def advance(self, instance: _Instance, command: Command) -> None:
        self.take(instance, engine.advance(instance.definition, instance.state, command, self.now))
        while instance.state.agenda:
            self.take(instance, engine.advance(instance.definition, instance.state, Continue(), self.now))

    def take(self, instance: _Instance, decision: Decision) -> None:
        instance.journal += decision.journal
        for intention in decision.intentions:
            self.due.append((intention.deliver_at or self.now, intention, instance.state.instance_id))

    def call(self, instance: _Instance, execution_id: str) -> Command:
        execution = instance.state.executions[execution_id]
        step: Any = instance.definition.activities[execution.activity_id]
        context = ActivityContext(
            idempotency_key=execution_id,
            attempt=execution.attempt,
            instance_id=instance.state.instance_id,
            correlation_id=instance.state.correlation_id,
            tenant=self.tenant,
            deadline=self.now + 60,
            depth=instance.state.depth,
        )
        retry = NO_RETRY
        try:
            function = self.function(step.activity)
            retry = Retry.from_json(step.retry) if step.retry else function.retry
            result = function.run(execution.memory["inputs"], context)
        except Exception as error:  # noqa: BLE001 - whatever user code raises is its step's failure
            failure = failure_of(error)
            at = retry.next_attempt_at(
                attempt=execution.attempt, failure=failure, at=self.now, execution_id=execution_id
            )
            return Raise(execution_id, failure, clock.to_text(at) if at is not None else None)
        return Finish(execution_id, result, context.intentions)

    def function(self, name: str) -> ActivityFunction:
        replaced = self.activities.get(name)
        try:
            known = find_function(name)
        except UnknownActivityError:
            if replaced is None:
                raise
            return ActivityFunction(name, replaced, NO_RETRY, 0, _takes_context(replaced))
        if replaced is None:
            return known
        return replace(known, call=replaced, takes_context=_takes_context(replaced))

    def settle(self) -> None:
        """Deliver everything that is due, in order of time, skipping the time between."""
        while self.due:
            at, intention, owner_id = min(self.due, key=lambda each: each[0])
            self.due.remove((at, intention, owner_id))
            self.now = max(self.now, at)
            if intention.command == ItemCommand.START:
                self.start(intention, owner_id)
            else:
                body = intention.body
                instance = self.instances[body["instance_id"]]
                self.run(instance, Resume(body["bookmark_id"], body["outcome"], body.get("value")))

    def start(self, intention: Intention, owner_id: str) -> None:
        body = intention.body
        version = body.get("version")
        definition_id = body["definition_id"]
        definition = self.published.get(definition_id)
        if version is not None:
            definition = self.definitions.get((definition_id, version))
        failure = None
        inputs: dict[str, Json] = {}
        if definition is None:
            failure = Failure("NotFoundError", f"no published workflow {definition_id!r}")
        elif body["depth"] > Settings.dispatch_depth_max:
            deepest = Settings.dispatch_depth_max
            failure = Failure("DispatchTooDeepError", f"dispatches nest deeper than {deepest}")
        else:
            try:
                inputs = check_inputs(definition.inputs, body["input"])
            except InputRefusedError as error:
                failure = failure_of(error)
        if failure is None and definition is not None:
            parent = Parent(owner_id, intention.item_id, body.get("bookmark_id"))
            state = State(
                body["instance_id"],
                inputs,
                correlation_id=body.get("correlation_id"),
                parent=parent,
                depth=body["depth"],
            )
            self.create(definition, state)
        elif "bookmark_id" in body and failure is not None:
            told = Resume(body["bookmark_id"], Outcome.DISPATCH_FAILED, failure.to_json())
            self.run(self.instances[owner_id], told)

    def result(self, instance_id: str) -> DirectResult:
        instance = self.instances[instance_id]
        state = instance.state
        children = [
            self.result(key)
            for key, each in self.instances.items()
            if each.state.parent and each.state.parent.instance_id == instance_id
        ]
        return DirectResult(
            state.status,
            state.output,
            state.failure,
            state.variables,
            instance.journal,
            children,
            instance.definition.definition_id,
            state.inputs,
        )


def _takes_context(function: Callable[..., Any]) -> bool:
    code = getattr(function, "__code__", None)
    return code is not None and "context" in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def run(
    workflow: Workflow,
    input: dict[str, Json] | None = None,  # noqa: A002 - the word of the design
    *,
    workflows: list[Workflow] | None = None,
    activities: Mapping[str, Callable[..., Any]] | None = None,
    correlation_id: str | None = None,
    tenant: str = "default",
) -> DirectResult:
    """Run a workflow to its end, or until nothing more can happen, without AWS and without waiting.

    `workflows` are those it may dispatch; `activities` replace activity functions by name. Raises
    InputRefusedError if the input does not fit what the workflow declares.
    """
    world = _World([workflow, *(workflows or [])], activities or {}, tenant)
    inputs = check_inputs(workflow.definition.inputs, input or {})
    instance_id = derive_id("direct", workflow.id)
    world.create(workflow.definition, State(instance_id, inputs, correlation_id=correlation_id))
    world.settle()
    return world.result(instance_id)
