"""The world around the runtime: tables, queues, stream, clock and the services that start its functions.

Everything that happens is decided by the seed and the faults. Nothing here knows workflows; what must be
true afterwards is said in checks.py.
"""

import heapq
import json
from collections.abc import Callable
from functools import cache
from itertools import count
from math import ceil
from random import Random
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError, ConnectTimeoutError, ReadTimeoutError
from pynamodb.exceptions import PynamoDBException

from aftercommit import clock, sweep
from aftercommit.deliver import deliver
from aftercommit.deliver_events import deliver_events
from aftercommit.errors import ActivationRefusedError, RefusedError, TryLaterError
from tests.simulation import calls
from tests.simulation.accounts import Call, Change, Effect, Refusal
from tests.simulation.boundary import SERVICES, Boundary, refuse
from tests.simulation.dynamodb import DynamoDB, Item
from tests.simulation.faults import CRASHES, Crash, Fault, FaultKind
from tests.simulation.layout import QUEUES, make_tables
from tests.simulation.objects import Objects
from tests.simulation.queues import CommandQueue, SinkQueue
from tests.simulation.weather import CALM, Weather
from tests.simulation.workers import Task, Workers

STARTED_AT = 1_900_000_000.0
SECONDS_MAX = (
    28 * 3600.0
)  # an instance that has not ended after a day never ends; a deleted one is gone by then
STUCK_SECONDS = 300.0  # how long a world is watched in which something can never end
CALL_SECONDS = 0.004
PATIENCE_SECONDS = 3600  # how long a caller comes again for what is not there yet
SWEEP_SECONDS = 10
API_SECONDS, DELIVER_SECONDS, EVENTS_SECONDS = 29, 60, 180
FREEZE_SECONDS = 140  # longer than a lease
STREAM_TRIES_MAX = 4

_TABLE_WRITES = frozenset({"PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems"})
_TABLE_WRITES |= {"BatchExecuteStatement", "BatchWriteItem"}
_WRITES = _TABLE_WRITES | {"SendMessage", "SendMessageBatch", "Invoke", "Effect", "Acknowledge"}
_WRITES |= {"PutObject", "DeleteObject"}


class World:
    """One run. `events` are what is to happen at a time; workers run whenever they can."""

    def __init__(self, seed: int, faults: tuple[Fault, ...] = (), weather: Weather = CALM) -> None:
        self.at = STARTED_AT
        self.random = Random(seed)
        self.random_ids = Random(seed + 2)
        self.client = cache(lambda service, **_: Boundary(self, service))
        self.weather = weather
        self.planned = faults
        self.faults = {fault.write: fault.kind for fault in faults}
        self.workers = Workers(Random(seed + 1), self.now)
        self.dynamodb = DynamoDB(make_tables(), now=self.now, on_change=self._changed)
        self.dynamodb.index_lag_seconds = lambda: self.random.random() * weather.index_lag
        self.objects = Objects()
        self.queue = CommandQueue(self)
        self.sink = SinkQueue(self.now)
        self.eager = True
        self.stream_delay = 0.0  # seconds that the stream takes, beyond the weather's
        self.skew = 0.0  # seconds by which a worker's clock may be ahead or behind
        self.sink_seconds = 0.0  # that the sink of events takes to answer
        self.stuck: frozenset[str] = frozenset()  # instances that nothing waits for
        self.days: float | None = None  # how long it is watched, if not as long as most
        self.excused: tuple[type[Exception], ...] = ()  # what a disturbance lets requests end with
        self.writes = 0
        self.calls = 0
        self.effects: list[Effect] = []
        self.changes: list[Change] = []
        self.refusals: list[Refusal] = []
        self.answers: list[tuple[calls.Call, Any]] = []  # what the callers were told, refusals included
        self.trace: list[Call] = []
        self.errors: list[tuple[str, Exception]] = []
        self.sweeps = 0
        self.prompt_seconds = 30.0  # in which a sink hears of an event that nothing stands in the way of
        self.events_seconds = EVENTS_SECONDS
        self.refused_ids: frozenset[str] = frozenset()  # of events that a sink refuses for a while
        self.pending = 0  # messages and stream batches on their way, and callers that will call again
        self._events: list[tuple[float, int, Callable[[], Any]]] = []
        self._numbers = count(1)
        self._new: dict[str, list[tuple[str, str]]] = {"deliver": [], "events": []}  # by who hears of them

    def now(self) -> float:
        """Return the world's time."""
        return self.at

    def local_now(self) -> float:
        """Return the time by the clock of the worker that runs."""
        return self.at + (self.workers.current.skew if self.workers.current else 0)

    def moment_at(self, seconds: float) -> float:
        """Return an instant, counted from the start of the world."""
        return STARTED_AT + seconds

    def moment(self, seconds: float) -> str:
        """Return the text of an instant, counted from the start of the world."""
        return clock.to_text(STARTED_AT + seconds)

    def is_excused(self, error: Exception) -> bool:
        """Whether an error tells of nothing but a fault that was planned."""
        if isinstance(error, calls.NotYetError):
            return True  # a caller comes again
        if isinstance(error, RuntimeError) and "InternalError" in str(error):
            return True  # the queue refused: only where that is planned
        if isinstance(error, self.excused):
            return True
        excusing = self.weather.failing_reads or any(fault.kind not in CRASHES for fault in self.planned)
        return bool(excusing) and isinstance(
            error, TryLaterError | PynamoDBException | BotoCoreError | ClientError
        )

    # --- the calls of workers ---

    def call(self, service: str, operation: str, arguments: dict[str, Any]) -> Any:
        """Serve one call to AWS: others may go first, then a fault may strike."""
        if self.workers.current is None:
            return self._perform(service, operation, arguments)  # the tests look at the outcome
        return self.strike(
            service, operation, lambda: self._perform(service, operation, arguments), arguments
        )

    def effect(self, activity: str, instance_id: str, idempotency_key: str) -> None:
        """Do something outside, from within an activity; its worker may die around it like around a write."""

        def happen() -> None:
            self.effects.append(Effect(activity, instance_id, idempotency_key, self.at))

        self.strike("outside", "Effect", happen, {"activity": activity, "instance_id": instance_id})

    def work(self, seconds: float) -> None:
        """Spend time inside an activity; whoever passes its deadline is ended there."""
        task = self.workers.current
        if task is None:
            raise RuntimeError("only an activity works")
        until = self.at + seconds
        self.workers.sleep_until(until if task.frozen else min(until, task.deadline))
        self._end_if_overdue(task)

    def sleep(self, seconds: float) -> None:
        """Stand in for time.sleep: time is skipped."""
        self.workers.sleep_until(self.at + seconds)

    def strike(
        self, service: str, operation: str, perform: Callable[[], Any], arguments: dict[str, Any]
    ) -> Any:
        """Let a worker do one thing outside: others may go first, then a fault may strike."""
        task = self.workers.current
        assert task is not None
        self._take_events()  # what is due starts beside this worker, not after it
        self.workers.pause()
        self.at += CALL_SECONDS
        self._end_if_overdue(task)
        kind = None
        if operation in _WRITES:
            self.writes += 1
            kind = self.faults.pop(self.writes, None)
        elif self.random.random() < self.weather.failing_reads:
            raise ConnectTimeoutError(endpoint_url=service)
        self._note(task.name, operation, arguments, kind)
        if kind == FaultKind.CRASH_BEFORE:
            raise Crash
        if kind == FaultKind.FREEZE:
            task.frozen = True
            self.workers.sleep_until(self.at + FREEZE_SECONDS)
        if kind == FaultKind.REFUSE and operation == "SendMessageBatch":
            return {"Failed": [{"Id": each["Id"], "Code": "InternalError"} for each in arguments["Entries"]]}
        if service in SERVICES and kind is not None:
            if kind == FaultKind.LATE:
                self.plan(self.random.uniform(0.1, 30), lambda: self._perform_late(perform))
            refuse(kind, service, operation, arguments)
        self.calls += 1
        answer = perform()
        if self.sink_seconds and arguments.get("QueueUrl") == QUEUES["events"]:
            self.workers.sleep_until(self.at + self.sink_seconds)
        if kind == FaultKind.CRASH_AFTER:
            raise Crash
        if service in SERVICES and kind == FaultKind.UNKNOWN:
            raise ReadTimeoutError(endpoint_url=service)
        if kind == FaultKind.TWICE:
            answer = perform()
        return answer

    def _perform_late(self, perform: Callable[[], Any]) -> None:
        try:
            perform()
        except Exception:  # noqa: BLE001 - nobody waits for the answer any more
            self._note("late", "void", {}, None)

    def _end_if_overdue(self, task: Task) -> None:
        if self.at >= task.deadline and not task.frozen:
            raise Crash  # Lambda ends an invocation at its time-out

    def _perform(self, service: str, operation: str, arguments: dict[str, Any]) -> Any:
        if service == "dynamodb":
            return self.dynamodb._make_api_call(operation, arguments)
        if service == "s3":
            return self.objects.perform(operation, arguments)
        if operation == "SendMessageBatch":
            to_sink = arguments["QueueUrl"] == QUEUES["events"]
            return (self.sink if to_sink else self.queue).send_batch(arguments)
        if operation == "SendMessage":
            self.queue.send(arguments["QueueUrl"], arguments["MessageBody"], arguments.get("DelaySeconds", 0))
            return {"MessageId": "1"}
        if operation == "GetQueueUrl":
            return {"QueueUrl": QUEUES["events"]}
        if operation == "Invoke":
            keys = [tuple(each) for each in json.loads(arguments["Payload"])["keys"]]
            self.pending += 1
            self.plan(self.delay(), lambda: self._deliver("events", keys, STREAM_TRIES_MAX))
            return {"StatusCode": 202}
        raise NotImplementedError(f"{service}.{operation}")

    def _changed(self, table: str, before: Item | None, after: Item | None) -> None:
        worker = self.workers.current.name if self.workers.current else ""
        self.changes.append(Change(self.at, worker, self.calls, table, before, after))
        if self.eager and table == "outbox" and after and after.get("status") == {"S": "undone"}:
            hears = "events" if after.get("command") == {"S": "event"} else "deliver"
            replaced = hears == "events" and after["sends"] == {"N": "0"}
            if before is not None and not replaced:
                return
            new = self._new[hears]
            new.append((after["owner_key"]["S"], after["item_id"]["S"]))
            if len(new) == 1:
                self.pending += 1
                self.plan(self.stream_delay + self.delay(), lambda: self._flush_stream(hears))

    # --- the stream ---

    def _flush_stream(self, hears: str) -> None:
        keys, self._new[hears] = self._new[hears], []
        self.pending -= 1
        if self.random.random() < self.weather.duplicates:
            self.plan(self.delay(), lambda: self._deliver(hears, keys, STREAM_TRIES_MAX))
            self.pending += 1
        self.random.shuffle(keys)
        self.pending += 1
        self._deliver(hears, keys, 1)

    def _deliver(self, hears: str, keys: list[tuple[str, str]], number: int) -> None:
        seconds = self.events_seconds if hears == "events" else DELIVER_SECONDS
        until = self.at + seconds

        def serve() -> None:
            if hears == "events":
                deliver_events(keys, until=clock.now() + seconds)
            else:
                deliver(keys)
            self.strike("stream", "Acknowledge", lambda: None, {})

        def ended(task: Task) -> None:
            if task.failed and number < STREAM_TRIES_MAX:
                self.plan(1, lambda: self._deliver(hears, keys, number + 1))
            else:
                self.pending -= 1

        self.spawn(hears, serve, until, ended)

    # --- callers and the schedule ---

    def call_until_done(self, body: Callable[[], None], *, after: float = 0) -> None:
        """Let somebody outside the runtime do something, and again until they have seen it through."""
        self.pending += 1

        def ended(task: Task) -> None:
            if task.failed:
                self.plan(5, call)
            else:
                self.pending -= 1

        def call() -> None:
            self.spawn("user", body, self.at + API_SECONDS, ended)

        self.plan(after, call)

    def call_back(self, path: str, *, after: float) -> None:
        """Let somebody call a callback address after so many seconds."""
        self.ask(calls.CallBack(path, after=after))

    def ask(self, call: calls.Call) -> None:
        """Let somebody call the API, and call again until it answers."""
        self.pending += 1
        patient_until = self.at + call.after + PATIENCE_SECONDS

        def serve() -> None:
            asked_at = self.at
            try:
                answer = call.make(self, self.at + API_SECONDS)
            except calls.NotYetError:
                if self.at < patient_until:
                    raise
                answer = None
            except RefusedError as error:
                answer = error
                if isinstance(error, ActivationRefusedError):
                    refusal = Refusal(str(call.instance_id), error.holder, asked_at, self.at)
                    self.refusals.append(refusal)
            self.answers.append((call, answer))

        def ended(task: Task) -> None:
            if task.failed:
                self.plan(5, begin)
            else:
                self.pending -= 1

        def begin() -> None:
            self.spawn("api", serve, self.at + API_SECONDS, ended)

        self.plan(call.after, begin)

    def _tick(self) -> None:
        """Start a sweep, unless it would find nothing and hence change nothing."""
        self.plan(self._seconds_to_tick(), self._tick)
        moment = clock.to_text(self.at)
        if any(row["due_at"]["S"] <= moment for row in self._due_rows()):
            self.sweeps += 1
            self.spawn("sweep", self._sweep, self.at + 60)

    def _seconds_to_tick(self) -> float:
        """Return when the next sweep is; if nothing can happen before, the next that finds something."""
        if self.workers.tasks or self.pending:
            return SWEEP_SECONDS
        coming = [clock.from_text(row["due_at"]["S"]) for row in self._due_rows()]
        first = min(coming + [at for at, *_ in self._events[:1]], default=self.at)
        return max(SWEEP_SECONDS, ceil((first - self.at) / SWEEP_SECONDS) * SWEEP_SECONDS)

    def _sweep(self) -> None:
        sweep.sweep(seconds_left=50)

    def _due_rows(self) -> list[Item]:
        indexes = [table.indexes["due"] for table in self.dynamodb.tables.values() if "due" in table.indexes]
        return [row for index in indexes for row in index.current.values()]

    # --- the course of things ---

    def delay(self) -> float:
        """Return how long something is on its way, in this weather."""
        if self.random.random() < self.weather.long_delay:
            return self.random.uniform(1, 120)
        return self.weather.delay * (0.5 + self.random.random())

    def spawn(
        self,
        kind: str,
        body: Callable[[], None],
        deadline: float,
        ended: Callable[[Task], None] | None = None,
    ) -> None:
        """Start a worker, which may live until its deadline; `ended` is told when it has ended."""
        task = Task(f"{kind}-{next(self._numbers)}", body, deadline, ended)
        if self.skew:
            task.skew = self.random.choice((-self.skew, self.skew))
        self.workers.add(task)

    def plan(self, seconds: float, act: Callable[[], Any]) -> None:
        """Let something happen after so many seconds."""
        heapq.heappush(self._events, (self.at + seconds, next(self._numbers), act))

    def run(self) -> None:
        """Let everything happen until nothing can happen any more, or its time is over."""
        self.plan(SWEEP_SECONDS, self._tick)
        until = STARTED_AT + (self.days * 86_400 if self.days else SECONDS_MAX)
        try:
            while self.at < until and not self._quiet():
                self._take_events()
                if ready := self.workers.ready():
                    for task in self.workers.go_on(ready):
                        self._task_ended(task)
                else:
                    self._skip()
        finally:
            self.workers.stop()

    def _take_events(self) -> None:
        running, self.workers.current = self.workers.current, None
        while self._events and self._events[0][0] <= self.at:
            heapq.heappop(self._events)[2]()
        self.workers.current = running

    def _skip(self) -> None:
        times = [self._events[0][0]] if self._events else []
        wakes_at = self.workers.wakes_at()
        self.at = max(self.at, min(times if wakes_at is None else [*times, wakes_at]))

    def _task_ended(self, task: Task) -> None:
        if task.error is not None:
            self.errors.append((task.name, task.error))
            self._note(task.name, f"raised {task.error!r}", {}, None)
        if task.died:
            self._note(task.name, "died", {}, None)
        if task.after:
            task.after(task)

    def _quiet(self) -> bool:
        """Whether nothing can happen any more: no worker, nothing on its way, nothing due ever."""
        if self.workers.tasks or self.pending:
            return False
        due = self._due_rows()
        if due and self.at < STARTED_AT + STUCK_SECONDS:
            return False
        return all(row.get("instance_key", {}).get("S", "").partition("#")[2] in self.stuck for row in due)

    def _note(self, worker: str, what: str, arguments: dict[str, Any], kind: FaultKind | None) -> None:
        self.trace.append(Call(self.at, self.writes, worker, what, arguments, kind))
