"""The world of a direct run: instances, what is due when, and the time, which is skipped."""

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from aftercommit import clock, engine
from aftercommit.activities import RunTask, Step
from aftercommit.activities.http_endpoint import callback_name
from aftercommit.definition import Definition
from aftercommit.direct.bulks import Bulks
from aftercommit.direct.outside import Callback, start_points
from aftercommit.direct.result import DirectResult
from aftercommit.errors import ActivationRefusedError, InputRefusedError, UnknownActivityError
from aftercommit.functions import (
    NO_RETRY,
    ActivityContext,
    ActivityFunction,
    asks_for_context,
    failure_of,
    find_function,
)
from aftercommit.ids import derive_id
from aftercommit.jsons import Json, dumps
from aftercommit.model import (
    Bookmark,
    Cancel,
    Command,
    Continue,
    Decision,
    Failure,
    Finish,
    Intention,
    Parent,
    Raise,
    Resume,
    Start,
    State,
    Stimulate,
)
from aftercommit.places import Join, Mark
from aftercommit.schema import check_inputs
from aftercommit.settings import Settings
from aftercommit.statuses import ItemCommand, Outcome
from aftercommit.workflow import Workflow


@dataclass
class _Instance:
    definition: Definition
    state: State
    activation_id: str | None  # what it holds while it lives
    journal: list[dict[str, Json]] = field(default_factory=list)


class World:
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
        self.bulks = Bulks()
        # Children that are cancelled with their parent, though it does not wait for them; by the parent's id.
        self.along: dict[str, list[dict[str, Json]]] = defaultdict(list)
        self.callbacks: list[Callback] = []  # those that nothing waits for yet
        self.called: set[tuple[str, str]] = set()  # (instance id, name): an address is good once
        self.large_payloads = False
        self.now = clock.now()

    def create(self, definition: Definition, state: State) -> _Instance:
        """Make an instance and run its first burst."""
        state.large = self.large_payloads
        instance = _Instance(definition, state, definition.derive_activation_id(state.correlation_id))
        self.instances[state.instance_id] = instance
        self.run(instance, Start())
        return instance

    def run(self, instance: _Instance, command: Command) -> bool:
        """Apply a command, and run steps until none is ready; returns whether the command had an effect."""
        applied = self.advance(instance, command)
        while instance.state.ready:
            self.advance(instance, self.call(instance, instance.state.ready[0]))
        return applied

    def advance(self, instance: _Instance, command: Command) -> bool:
        """Apply a command alone, in as many parts as it takes."""
        decision = engine.advance(instance.definition, instance.state, command, self.now)
        self.take(instance, decision)
        while instance.state.agenda:
            self.take(instance, engine.advance(instance.definition, instance.state, Continue(), self.now))
        return decision.applied

    def take(self, instance: _Instance, decision: Decision) -> None:
        """Keep what a decision intends, as a checkpoint would."""
        instance.journal += decision.journal
        if decision.mark:
            self.tell(decision.mark)
        for intention in decision.intentions:
            self.due.append((intention.deliver_at or self.now, intention, instance.state.instance_id))

    def tell(self, mark: Mark) -> None:
        """Take in the ending of a child of many; the one that it wakes is due now."""
        if woken := self.bulks.tell(mark):
            self.due.append((self.now, *woken))

    def call(self, instance: _Instance, execution_id: str) -> Command:
        """Call the function of a step that is ready; returns what came of it."""
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
            bytes_max=instance.state.value_bytes_max,
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
        """Return an activity function, or what replaces it."""
        replaced = self.activities.get(name)
        try:
            known = find_function(name)
        except UnknownActivityError:
            if replaced is None:
                raise
            return ActivityFunction(name, replaced, NO_RETRY, 0, asks_for_context(replaced))
        if replaced is None and known.built_in:
            raise NotImplementedError(f"nothing is sent here: give a function for {name!r} in activities")
        if replaced is None:
            return known
        return replace(known, call=replaced, takes_context=asks_for_context(replaced))

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
        """Let an intention have its effect, at its time."""
        self.now = max(self.now, at)
        body = intention.body
        match intention.command:
            case ItemCommand.START:
                join = Join(**body["join"]) if "join" in body else None
                if not (join and self.bulks.puts_to_sleep(join, intention, owner_id)):
                    self.start(intention, owner_id)
            case ItemCommand.RESUME:
                if "token" in body:
                    self.answer(body)
                    return
                told = Resume(body["bookmark_id"], body["outcome"], body.get("value"))
                self.run(self.instances[body["instance_id"]], told)
            case ItemCommand.JOIN:
                self.bulks.await_endings(intention)
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
        """Cancel the children of whoever waits for them no more: one, many, or all those that go along."""
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
        """Cancel one child."""
        # Its dispatch was due before, so it is there unless that has failed.
        if child := self.instances.get(pair["instance_id"]):
            self.run(child, Cancel("its parent waits no more"))

    def cancel_bulk(self, body: dict[str, Json]) -> None:
        """Cancel the children of a bulk dispatch; those that are not started yet never will be."""
        self.bulks.forget(body)
        prefix = f"{body['join_id']}-"
        self.due = deque(each for each in self.due if not each[1].item_id.startswith(prefix))
        for instance in list(self.instances.values()):
            parent = instance.state.parent
            if parent and parent.join and parent.join.join_id == body["join_id"]:
                self.run(instance, Cancel("its parent waits no more"))

    def join(self) -> bool:
        """Tell a parent what the endings of its children come to, if anything."""
        found = self.bulks.find_resume()
        if found is None:
            return False
        instance_id, told = found
        self.run(self.instances[instance_id], told)
        return True

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
            places = start_points(definition, body["stimulus"])
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
        """Start a child, or tell its parent why it cannot be."""
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
            self.tell(mark)

    def find_refusal(self, definition: Definition, correlation_id: str | None) -> Failure | None:
        """Tell why a start has to stand aside for what is live."""
        wanted = definition.derive_activation_id(correlation_id)
        for key, each in self.instances.items():
            held = each.activation_id
            if wanted and held == wanted and not each.state.status.ended:
                return failure_of(ActivationRefusedError(key))
        return None

    def result(self, instance_id: str) -> DirectResult:
        """Return how an instance stands, with its children."""
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
