"""The queues of a world: of commands, which loses and doubles messages and brings them again, and of a sink.

A message stays until a worker has acknowledged it, or it has come so often that it is a dead letter.
"""

import json
from collections.abc import Callable
from typing import Any

from aftercommit import commands
from aftercommit.burst import Worker
from tests.simulation.accounts import Announcement
from tests.simulation.dynamodb import failed
from tests.simulation.layout import QUEUES
from tests.simulation.workers import Task

RUN_SECONDS = 120
VISIBILITY_SECONDS, RECEIVES_MAX = 130, 10
WORKERS_MAX = 6


class _Received:
    """A message in the queue, with how often it was received."""

    def __init__(self, body: str) -> None:
        self.body = body
        self.receives = 0
        self.acknowledged = False


class CommandQueue:
    """The queue of commands, the workers that it starts, and its dead letters."""

    def __init__(self, world: Any) -> None:
        self.world = world
        self.dead_letters: list[str] = []
        self.refuses: Callable[[dict[str, Any]], bool] = lambda message: False
        self._running = 0

    def send_batch(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Take the messages of a SendMessageBatch, but for those that are refused."""
        refused = []
        for entry in arguments["Entries"]:
            if self.refuses(json.loads(entry["MessageBody"])):
                refused.append({"Id": entry["Id"], "Code": "InternalError", "SenderFault": False})
            else:
                self.send(arguments["QueueUrl"], entry["MessageBody"], entry["DelaySeconds"])
        return {"Failed": refused, "Successful": []}

    def send(self, url: str, body: str, delay: float) -> None:
        """Take a message, which the weather may lose or double."""
        world = self.world
        if url == QUEUES["dead_letters"]:
            self.dead_letters.append(body)
            return
        if world.random.random() < world.weather.lost:
            return
        # A postponed message is sent again and again: were each doubled again, they would grow without bound.
        doubled = world.random.random() < world.weather.duplicates and "postponed" not in body
        for _ in range(2 if doubled else 1):
            self.deliver(body, delay)

    def deliver(self, body: str, delay: float = 0) -> None:
        """Bring a message to a worker, after its delay and the weather's."""
        self.world.pending += 1
        message = _Received(body)
        self.world.plan(delay + self.world.delay(), lambda: self._receive(message))

    def _receive(self, message: _Received) -> None:
        """Hand a message to a worker; it comes back unless it is acknowledged in time."""
        world = self.world
        if message.acknowledged:
            return
        if self._running >= WORKERS_MAX:
            world.plan(0.2, lambda: self._receive(message))
            return
        message.receives += 1
        if message.receives > RECEIVES_MAX:
            self.dead_letters.append(message.body)
            self._settle(message)
            return
        world.plan(VISIBILITY_SECONDS, lambda: self._receive(message))
        self._running += 1
        deadline = world.at + RUN_SECONDS

        def serve() -> None:
            commands.handle(message.body, Worker(deadline))
            world.strike("queue", "Acknowledge", lambda: self._settle(message), {})

        world.spawn("run", serve, deadline, self._ended)

    def _settle(self, message: _Received) -> None:
        if not message.acknowledged:
            message.acknowledged = True
            self.world.pending -= 1

    def _ended(self, task: Task) -> None:
        self._running -= 1


class SinkQueue:
    """The queue that a sink sends events to. What arrives there is heard of at once."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now
        self.refuses: Callable[[dict[str, Any]], bool] = lambda event: False
        self.refuses_whole = False  # it refuses the request of an event that it refuses
        self.announcements: list[Announcement] = []

    def send_batch(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Take the events of a SendMessageBatch, but for those that are refused."""
        refused = []
        events = [json.loads(entry["MessageBody"]) for entry in arguments["Entries"]]
        if self.refuses_whole and any(map(self.refuses, events)):
            raise failed("InvalidMessageContents", "Invalid message contents", "SendMessageBatch")
        for entry, event in zip(arguments["Entries"], events, strict=True):
            if self.refuses(event):
                refused.append({"Id": entry["Id"], "Code": "InvalidMessageContents", "SenderFault": True})
            else:
                self.announcements.append(Announcement(event["id"], entry["MessageBody"], self.now()))
        return {"Failed": refused, "Successful": []}
