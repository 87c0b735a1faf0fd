"""Workers: threads of which one runs at a time, handing the baton over at each call to AWS.

So every interleaving of calls is possible, the seed chooses which, and the same seed gives the same one.
"""

import threading
from collections.abc import Callable
from random import Random

from tests.simulation.faults import Crash


class Task:
    """One invocation. It runs only while it holds the baton; `wake_at` is set while it waits for a time."""

    def __init__(
        self,
        name: str,
        body: Callable[[], None],
        deadline: float,
        after: "Callable[[Task], None] | None" = None,
    ) -> None:
        self.name = name
        self.after = after  # what the service that started it does when it has ended
        self.body = body
        self.deadline = deadline
        self.skew = 0.0  # seconds by which its clock is ahead
        self.frozen = False  # stood still past its deadline: nothing ends it any more but its own end
        self.wake_at: float | None = None
        self.ended = False
        self.died = False
        self.error: Exception | None = None
        self.baton = threading.Lock()
        self.baton.acquire()
        self.thread: threading.Thread | None = None

    @property
    def failed(self) -> bool:
        """Whether the invocation did not end well."""
        return self.died or self.error is not None


class Workers:
    """All workers of a world, and who goes next."""

    def __init__(self, random: Random, now: Callable[[], float]) -> None:
        self.random = random
        self.now = now
        self.tasks: list[Task] = []
        self.current: Task | None = None
        self._main = threading.Lock()
        self._main.acquire()
        self._stopping = False

    def add(self, task: Task) -> None:
        """Take in a new invocation."""
        self.tasks.append(task)

    def ready(self) -> list[Task]:
        """Return those that can go on now."""
        now = self.now()
        return [task for task in self.tasks if task.wake_at is None or task.wake_at <= now]

    def wakes_at(self) -> float | None:
        """Return when the first of those that wait goes on."""
        times = [task.wake_at for task in self.tasks if task.wake_at is not None]
        return min(times) if times else None

    def go_on(self, ready: list[Task]) -> list[Task]:
        """Let one of them run, and whoever it hands over to; returns those that have ended."""
        self._hand_to(self.random.choice(ready))
        self._main.acquire()
        self.current = None
        ended = [each for each in self.tasks if each.ended]
        self.tasks = [each for each in self.tasks if not each.ended]
        return ended

    def _hand_to(self, task: Task) -> None:
        self.current = task
        task.wake_at = None
        if task.thread is None:
            task.thread = threading.Thread(target=self._live, args=(task,), daemon=True)
            task.thread.start()
        else:
            task.baton.release()

    def _live(self, task: Task) -> None:
        try:
            task.body()
        except Crash:
            task.died = True
        except Exception as error:  # noqa: BLE001 - an invocation that raised; the world decides what follows
            task.error = error
        task.ended = True
        if not self._stopping:
            self._main.release()

    def pause(self) -> None:
        """Let others go first, if the choice falls on them."""
        task = self._running()
        chosen = self.random.choice(self.ready())
        if chosen is not task:
            self._yield(task, chosen)

    def sleep_until(self, at: float) -> None:
        """Stand still until a time."""
        task = self._running()
        task.wake_at = at
        ready = self.ready()
        if task not in ready:
            self._yield(task, self.random.choice(ready) if ready else None)

    def _yield(self, task: Task, chosen: Task | None) -> None:
        if chosen:
            self._hand_to(chosen)
        else:
            self._main.release()
        task.baton.acquire()
        if self._stopping:
            raise Crash

    def _running(self) -> Task:
        if self.current is None:
            raise RuntimeError("no worker runs")
        return self.current

    def stop(self) -> None:
        """End every worker that still stands somewhere."""
        self._stopping = True
        for task in self.tasks:
            if task.thread is not None:
                task.baton.release()
                task.thread.join()
        self.tasks = []
