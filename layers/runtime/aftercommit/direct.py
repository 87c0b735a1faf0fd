"""Direct execution: run a workflow in process, with no AWS, for the tests of those who write workflows.

The engine is the real one; the queue and the tables are lists in memory, and time is skipped.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, cast

from aftercommit import clock, engine
from aftercommit.activities import PublishEvent, RunTask, Step
from aftercommit.activities.http_endpoint import callback_name, http_stimulus
from aftercommit.definition import Definition
from aftercommit.errors import ActivationRefusedError, InputRefusedError, UnknownActivityError
from aftercommit.functions import (
    NO_RETRY,
    ActivityContext,
    ActivityFunction,
    failure_of,
    find_function,
)
from aftercommit.ids import derive_id
from aftercommit.intentions import event_name, intend_stimulus
from aftercommit.joins import HandOver, Tally, Told, compose_batch, compose_result, judge
from aftercommit.model import (
    Bookmark,
    Cancel,
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
    Stimulate,
    canonical,
    dumps,
)
from aftercommit.places import Join, Mark
from aftercommit.schema import check_inputs
from aftercommit.settings import Settings
from aftercommit.workflow import Workflow


@dataclass
class DirectResult:
    """How a direct run ended, or that it waits; a journal line per activity, and the instances it started."""

    status: InstanceStatus
    output: Json
    failure: Failure | None
    variables: dict[str, Json]
    journal: list[dict[str, Json]]
    children: list["DirectResult"]
    definition_id: str
    inputs: dict[str, Json]
    correlation_id: str | None = None
    response: dict[str, Json] | None = None  # what a WriteHttpResponse has written
    events: list[dict[str, Json]] = field(default_factory=list)  # told to sinks, by all of them


@dataclass(frozen=True)
class Request:
    """An HTTP request that starts the workflow at its HttpEndpoint."""

    path: str
    method: str = "GET"
    query: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    body: Json = None

    def to_json(self) -> dict[str, Json]:
        """Return it as the workflow sees it."""
        return {**asdict(self), "headers": {name.lower(): value for name, value in self.headers.items()}}


@dataclass(frozen=True)
class Callback:
    """A request to the callback address that an HttpEndpoint waits for under `name`."""

    name: str
    body: Json = None
    method: str = "POST"
    query: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Json]:
        """Return it as the workflow sees it."""
        return Request("callbacks", self.method, self.query, self.headers, self.body).to_json()


@dataclass
class _Instance:
    definition: Definition
    state: State
    activation_id: str | None  # what it holds while it lives
    journal: list[dict[str, Json]] = field(default_factory=list)


@dataclass
class _Bulk:
    """The children of one bulk dispatch, as far as they have ended."""

    tally: Tally = field(default_factory=Tally)
    told: dict[int, Told] = field(default_factory=dict)
    joins: dict[str, Intention] = field(default_factory=dict)
    asleep: dict[int, tuple[Intention, str]] = field(default_factory=dict)

    def puts_to_sleep(self, join: Join, intention: Intention, owner_id: str) -> bool:
        """Keep a start whose turn in its lane has not come; returns whether it has not."""
        if not join.sleeps or join.index - (join.lanes or 0) in self.told:
            return False
        self.asleep[join.index] = (intention, owner_id)
        return True

    def tell(self, mark: Mark, world: "_World") -> None:
        """Take in an ending, and wake the next one of its lane."""
        self.tally.add(mark.outcome, [mark.join.index])
        self.told[mark.join.index] = (mark.outcome, mark.output)
        if mark.join.follower in self.asleep:
            world.due.append((world.now, *self.asleep.pop(mark.join.follower)))


class _World:
    """Instances, what is due when, and the time."""

    def __init__(
        self,
        workflows: list[Workflow],
        activities: Mapping[str, Callable[..., Any]],
        tasks: Mapping[str, Callable[..., Any]],
        tenant: str,
    ) -> None:
        self.definitions = {(each.id, each.version): each.definition for each in workflows}
        self.published = {each.id: each.definition for each in sorted(workflows, key=lambda x: x.version)}
        self.activities = activities
        self.tasks = tasks
        self.main_id = derive_id("direct", workflows[0].id)
        self.tenant = tenant
        self.instances: dict[str, _Instance] = {}
        self.due: deque[tuple[float, Intention, str]] = deque()
        self.events: list[dict[str, Json]] = []  # told to sinks
        self.open: list[Intention] = []  # stimuli that nothing has taken yet, oldest first
        self.bulks: dict[str, _Bulk] = defaultdict(_Bulk)  # by the id of their join
        # Children that are cancelled with their parent, though it does not wait for them; by the parent's id.
        self.along: dict[str, list[dict[str, Json]]] = defaultdict(list)
        self.callbacks: list[Callback] = []  # those that nothing waits for yet
        self.called: set[tuple[str, str]] = set()  # (instance id, name): an address is good once
        self.now = clock.now()

    def create(self, definition: Definition, state: State) -> _Instance:
        instance = _Instance(definition, state, definition.derive_activation_id(state.correlation_id))
        self.instances[state.instance_id] = instance
        self.run(instance, Start())
        return instance

    def run(self, instance: _Instance, command: Command) -> bool:
        applied = self.advance(instance, command)
        while instance.state.ready:
            self.advance(instance, self.call(instance, instance.state.ready[0]))
        return applied

    def advance(self, instance: _Instance, command: Command) -> bool:
        decision = engine.advance(instance.definition, instance.state, command, self.now)
        self.take(instance, decision)
        while instance.state.agenda:
            self.take(instance, engine.advance(instance.definition, instance.state, Continue(), self.now))
        return decision.applied

    def take(self, instance: _Instance, decision: Decision) -> None:
        instance.journal += decision.journal
        if decision.mark:
            self.bulks[decision.mark.join.join_id].tell(decision.mark, self)
        for intention in decision.intentions:
            self.due.append((intention.deliver_at or self.now, intention, instance.state.instance_id))

    def call(self, instance: _Instance, execution_id: str) -> Command:
        execution = instance.state.executions[execution_id]
        step = cast("Step", instance.definition.activities[execution.activity_id])
        context = ActivityContext(
            idempotency_key=execution_id,
            attempt=execution.attempt,
            instance_id=instance.state.instance_id,
            correlation_id=instance.state.correlation_id,
            tenant=self.tenant,
            deadline=self.now + 60,
            depth=instance.state.depth,
            secret="direct" if instance.definition.gives_tokens else None,
        )
        retry = NO_RETRY
        try:
            function = self.function(step.activity)
            retry = step.policy(function)
            result = step.run(function, execution.memory["inputs"], context)
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
        if replaced is None and known.built_in:
            raise NotImplementedError(f"nothing is sent here: give a function for {name!r} in activities")
        if replaced is None:
            return known
        return replace(known, call=replaced, takes_context=_takes_context(replaced))

    def settle(self) -> None:
        """Deliver everything that is due, in order of time, skipping the time between.

        Events and tasks take no time: what waits for one that is there goes on before any is skipped. What
        has ended by then of a bulk is handed over together.
        """
        while True:
            if self.apply_stimulus() or self.call_back() or self.complete_task():
                continue
            if not any(at <= self.now for at, _, _ in self.due) and self.join():
                continue
            if not self.due:
                return
            due = min(self.due, key=lambda each: each[0])
            self.due.remove(due)
            self.deliver(*due)

    def deliver(self, at: float, intention: Intention, owner_id: str) -> None:
        self.now = max(self.now, at)
        body = intention.body
        match intention.command:
            case ItemCommand.START:
                join = Join(**body["join"]) if "join" in body else None
                if not (join and self.bulks[join.join_id].puts_to_sleep(join, intention, owner_id)):
                    self.start(intention, owner_id)
            case ItemCommand.RESUME:
                if "token" in body:
                    self.answer(body)
                    return
                told = Resume(body["bookmark_id"], body["outcome"], body.get("value"))
                self.run(self.instances[body["instance_id"]], told)
            case ItemCommand.JOIN:
                self.bulks[body["join_id"]].joins[intention.item_id] = intention
            case ItemCommand.CANCEL:
                self.cancel(body)
            case ItemCommand.STIMULUS:
                self.open.append(intention)
            case ItemCommand.EVENT:
                self.events.append(body)

    def answer(self, body: dict[str, Json]) -> None:
        """Complete the first task that waits under a name, which stands for its token here."""
        for instance, bookmark, task in self.waiting_tasks():
            if task.name == body["token"]:
                self.run(instance, Resume(bookmark.bookmark_id, Outcome.DONE, body.get("value")))
                return

    def cancel(self, body: dict[str, Json]) -> None:
        if "join_id" in body:
            self.cancel_bulk(body)
        elif "parts" in body:
            for part in body["parts"]:
                self.cancel(part["body"])
        else:
            pairs = self.along[body["instance_id"]] if body.get("all") else [body, *body.get("more", [])]
            for each in pairs:
                self.withdraw(each)

    def withdraw(self, pair: dict[str, Json]) -> None:
        # Its dispatch was due before, so it is there unless that has failed.
        if child := self.instances.get(pair["instance_id"]):
            self.run(child, Cancel("its parent waits no more"))

    def cancel_bulk(self, body: dict[str, Json]) -> None:
        bulk, prefix = self.bulks[body["join_id"]], f"{body['join_id']}-"
        bulk.joins.pop(body["item_id"], None)
        bulk.asleep.clear()
        self.due = deque(each for each in self.due if not each[1].item_id.startswith(prefix))
        for instance in list(self.instances.values()):
            parent = instance.state.parent
            if parent and parent.join and parent.join.join_id == body["join_id"]:
                self.run(instance, Cancel("its parent waits no more"))

    def join(self) -> bool:
        """Tell a parent what the endings of its children come to, if anything."""
        for bulk in self.bulks.values():
            for intention in list(bulk.joins.values()):
                body = intention.body
                verdict = judge(body, bulk.tally)
                if verdict is None:
                    continue
                del bulk.joins[intention.item_id]
                if "bookmark_id" not in body:
                    continue
                if isinstance(verdict, HandOver):
                    outcome, value = Outcome.DONE, compose_batch(body["join_id"], verdict, bulk.told)
                else:
                    outcome, value = verdict.outcome, compose_result(body, bulk.tally, bulk.told)
                self.run(self.instances[body["instance_id"]], Resume(body["bookmark_id"], outcome, value))
                return True
        return False

    def apply_stimulus(self) -> bool:
        """Apply the oldest open stimulus that something waits for, or starts at."""
        for stimulus in self.open:
            body = stimulus.body
            command = Stimulate(body["stimulus"], body.get("value"))
            meant = [each for each in self.instances.values() if _is_meant(each.state, body)]
            applied = [self.run(each, command) for each in meant]
            if any(applied + self.trigger(stimulus)):
                self.open.remove(stimulus)
                return True
        return False

    def trigger(self, stimulus: Intention) -> list[bool]:
        """Start what starts at a stimulus; the workflow that is run has been started already."""
        body = stimulus.body
        started = []
        for definition in self.published.values():
            places = _start_points(definition, body["stimulus"])
            if body.get("instance_id") or definition is self.instances[self.main_id].definition:
                continue
            for path in places:
                started.append(True)
                if self.find_refusal(definition, body.get("correlation_id")):
                    continue
                state = State(
                    derive_id("triggered", stimulus.item_id, definition.definition_id, path),
                    check_inputs(definition.inputs, {}),
                    correlation_id=body.get("correlation_id"),
                    parent=Parent(self.main_id, stimulus.item_id),
                    trigger={"activity_id": path, "value": body.get("value")},
                )
                self.create(definition, state)
        return started

    def call_back(self) -> bool:
        """Call a callback address that something waits for, if there is a request for it."""
        for instance_id, instance in self.instances.items():
            for bookmark in instance.state.bookmarks.values():
                if bookmark.waits_for != "callback" or bookmark.stimulus is None:
                    continue
                name = callback_name(bookmark.stimulus)
                given = next((each for each in self.callbacks if each.name == name), None)
                if given and (instance_id, name) not in self.called:
                    self.called.add((instance_id, name))
                    self.callbacks.remove(given)
                    self.run(instance, Stimulate(bookmark.stimulus, given.to_json()))
                    return True
        return False

    def complete_task(self) -> bool:
        """Complete a task that waits, if there is a function for it."""
        for instance, bookmark, task in self.waiting_tasks():
            if task.name in self.tasks:
                execution = instance.state.executions[bookmark.execution_id]
                given = self.tasks[task.name](**execution.memory["inputs"])
                self.run(instance, Resume(bookmark.bookmark_id, Outcome.DONE, given))
                return True
        return False

    def waiting_tasks(self) -> Iterator[tuple[_Instance, Bookmark, RunTask]]:
        """Yield the tasks that wait, by instance in order of birth."""
        for instance in self.instances.values():
            for bookmark in instance.state.bookmarks.values():
                execution = instance.state.executions[bookmark.execution_id]
                task = instance.definition.activities[execution.activity_id]
                if isinstance(task, RunTask):
                    yield instance, bookmark, task

    def start(self, intention: Intention, owner_id: str) -> None:
        body = intention.body
        if body.get("cancel_with_parent"):
            self.along[owner_id].append(body)
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
            failure = self.find_refusal(definition, body.get("correlation_id"))
        if failure is None and definition is not None:
            join = Join(**body["join"]) if "join" in body else None
            parent = Parent(owner_id, intention.item_id, body.get("bookmark_id"), join)
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
        elif "join" in body and failure is not None:
            join = Join(**body["join"])
            mark = Mark(owner_id, join, Outcome.DISPATCH_FAILED.value, dumps(failure.to_json()))
            self.bulks[join.join_id].tell(mark, self)

    def find_refusal(self, definition: Definition, correlation_id: str | None) -> Failure | None:
        """Tell why a start has to stand aside for what is live."""
        wanted = definition.derive_activation_id(correlation_id)
        for key, each in self.instances.items():
            held = each.activation_id
            if wanted and held == wanted and not each.state.status.ended:
                return failure_of(ActivationRefusedError(key))
        return None

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
            state.correlation_id,
            state.response,
            self.events if instance_id == self.main_id else [],
        )


def _is_meant(state: State, body: dict[str, Json]) -> bool:
    instance_id, correlation_id = body.get("instance_id"), body.get("correlation_id")
    return instance_id in (None, state.instance_id) and correlation_id in (None, state.correlation_id)


def _start_points(definition: Definition, stimulus: dict[str, Json]) -> list[str]:
    wanted = canonical(stimulus)
    return [
        path
        for path, activity in definition.activities.items()
        for name, payload in activity.payloads() or []
        if canonical({"name": name, "payload": payload}) == wanted
    ]


def _place_of(request: Request, workflow: Workflow) -> str:
    places = _start_points(workflow.definition, http_stimulus(request.path, request.method))
    if not places:
        raise ValueError(f"workflow {workflow.id!r} does not start at {request.method} {request.path}")
    return places[0]


def _takes_context(function: Callable[..., Any]) -> bool:
    code = getattr(function, "__code__", None)
    return code is not None and "context" in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def run(
    workflow: Workflow,
    input: dict[str, Json] | Request | None = None,  # noqa: A002 - the word of the design
    *,
    workflows: list[Workflow] | None = None,
    activities: Mapping[str, Callable[..., Any]] | None = None,
    events: Sequence[PublishEvent | Callback] | None = None,
    tasks: Mapping[str, Callable[..., Any]] | None = None,
    correlation_id: str | None = None,
    tenant: str = "default",
) -> DirectResult:
    """Run a workflow to its end, or until nothing more can happen, without AWS and without waiting.

    `workflows` are those it may dispatch, or start by an event; `activities` replace activity functions by
    name, and what SendHttpRequest does by that name. A `Request` in place of the input starts the
    workflow at its HttpEndpoint. `events`, callbacks among them, come from outside, at the beginning: each is
    kept until something waits for it. `tasks` are functions by the name of the RunTask that they complete;
    they get its inputs. A task without one, or an event that never comes, leaves the workflow suspended.
    Raises InputRefusedError if the input does not fit what the workflow declares, ValueError for a request
    that it does not start at.
    """
    world = _World([workflow, *(workflows or [])], activities or {}, tasks or {}, tenant)
    request = input if isinstance(input, Request) else None
    given = {} if isinstance(input, Request) else input or {}
    inputs = check_inputs(workflow.definition.inputs, given)
    state = State(world.main_id, inputs, correlation_id=correlation_id)
    if request:
        state.trigger = {"activity_id": _place_of(request, workflow), "value": request.to_json()}
    world.create(workflow.definition, state)
    for number, each in enumerate(events or []):
        if isinstance(each, Callback):
            world.callbacks.append(each)
        else:
            world.open.append(_sent(each, number, world))
    world.settle()
    return world.result(world.main_id)


def _sent(event: PublishEvent, number: int, world: _World) -> Intention:
    return intend_stimulus(
        f"sent-{number}",
        at=world.now,
        name=event_name(event.name),
        payload=event.payload or {},
        value=event.input,
        correlation_id=event.correlation_id,
        instance_id=world.main_id if event.local else None,
    )
