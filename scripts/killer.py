"""Kills Lambda workers of a local stack at random, as crashed sandboxes die: by SIGKILL, busy or idle."""

import random
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping

from scripts.background import Background
from scripts.local_stack import Stack

START_SECONDS_MAX = 20
SPAWNED = re.compile(rb"Lambda worker spawned for (\S+) ")


class Killer(Background):
    """Kills workers of some functions, one at a time, as long as its context is open.

    `shares` says how often each function's workers are meant; `pause_seconds` lie between two kills (least
    and most), longer if the workers are not up again by then. With a `pace`, which counts what the workers
    have brought to its end, none is killed before that has grown since the kill before.
    """

    def __init__(
        self,
        stack: Stack,
        shares: Mapping[str, float],
        pause_seconds: tuple[float, float],
        kills_max: int | None = None,
        pace: Callable[[], int] | None = None,
    ) -> None:
        super().__init__()
        self.stack = stack
        self.kills: Counter[str] = Counter()
        self._shares = shares
        self._pause_seconds = pause_seconds
        self._kills_max = kills_max
        self._pace = pace
        self._seen: dict[str, set[int]] = {name: set() for name in shares}
        self._gone: dict[str, int] = {}  # workers that have started and ended before
        self._spawned: Counter[str] = Counter()
        self._log_read = 0
        self._reached = 0  # by the pace, at the kill before
        self._dice = random.Random()  # noqa: S311 - chance, no secret

    def total(self) -> int:
        """Return how many workers have been killed."""
        return self.kills.total()

    def describe(self) -> str:
        """Say how many workers of which function have been killed."""
        return ", ".join(f"{number} of {name}" for name, number in sorted(self.kills.items())) or "none"

    def work(self) -> None:
        """Kill until it is enough."""
        self._read_log()
        for function, seen in self._seen.items():
            seen.update(self.stack.worker_pids(function))
            self._gone[function] = self._spawned[self.stack.function_name(function)] - len(seen)
        while self.total() != self._kills_max and not self.is_stopped(
            self._dice.uniform(*self._pause_seconds)
        ):
            self._await_pace()
            (function,) = self._dice.choices([*self._shares], [*self._shares.values()])
            pids = self._await_targets(function)
            if pids and self.stack.kill_worker(function, self._dice.choice(pids)):
                self.kills[function] += 1

    def _await_pace(self) -> None:
        while self._pace and self._pace() <= self._reached and not self.is_stopped(0.1):
            pass
        self._reached = self._pace() if self._pace else 0

    def _await_targets(self, function: str) -> list[int]:
        """Return the workers of a function once none of them is still starting, or nothing after a while.

        When one dies as it starts, the emulator ends all others of its function, those that start included,
        which does the same to others still: no death of a sandbox does that.
        """
        deadline = time.monotonic() + START_SECONDS_MAX
        name = self.stack.function_name(function)
        seen = self._seen[function]
        while time.monotonic() < deadline and not self.is_stopped(0.1):
            # The log is read first: a worker that starts in between is then seen, and waited for.
            self._read_log()
            pids = self.stack.worker_pids(function)
            seen.update(pids)
            if self._gone[function] + len(seen) <= self._spawned[name]:
                return pids
        return []

    def _read_log(self) -> None:
        """Count which workers have started since the log was read last."""
        with self.stack.emulator.log_path.open("rb") as log:
            log.seek(self._log_read)
            # The last line may be half written.
            whole, newline, _ = log.read().rpartition(b"\n")
        self._log_read += len(whole + newline)
        self._spawned.update(found.decode() for found in SPAWNED.findall(whole))
