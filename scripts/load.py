"""The load run: as many orders as a local stack can take, under killed workers and doubled messages.

`make load` posts for SECONDS (180) and ends with `started=N ended=N lost=0 duplicates=0`, or with exit status
1. PORT sets the emulator's port.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count, cycle
from typing import Any

from scripts.audit import Kind, Verdict, audit, judge
from scripts.background import Background
from scripts.console import Progress, RunError, choose_port, read_number, run_program, say
from scripts.course import await_quiet, begin_sweeping, count_messages, describe_deaths, describe_deliveries
from scripts.duplicator import Duplicator
from scripts.killer import Killer
from scripts.local_stack import Stack, deployed
from scripts.orders import AMOUNT_MAX, PARAMETERS, NoAnswerError, expected, owed, post_order, read_orders
from scripts.reading import count_open, find_ended, read_effects, read_instances, read_items

TENANT = "load"
SECONDS = 180
CLIENTS = 4
# Orders at most that have not ended: the stack sets the rate, as the next one waits for an earlier one's end.
UNFINISHED_MAX = 24
TWICE_EVERY = 5  # order is posted twice at once, ...
AGAIN_EVERY = 10  # ... and with every tenth one that has ended is posted again
TRIES_MAX = 5
WATCH_SECONDS = 0.3
WARM_SECONDS_MAX = 180  # until the first order has ended, and the first worker was killed
KILL_SECONDS = (2.0, 4.0)
KILL_SHARES = {"run": 0.8, "deliver": 0.1, "sweep": 0.1}
# Leases, redeliveries and resends without ack may come one after another, and a busy machine be slow: so it
# counts for how long nothing has ended.
STILL_SECONDS_MAX = 180
SETTLE_SECONDS_MAX = 900
TOLD_MAX = 40


def main() -> int:
    """Run the load on a stack of its own; return the exit status."""
    seconds = read_number("SECONDS", SECONDS)
    with deployed(port=choose_port(), parameters=PARAMETERS, say=say) as stack:
        begin_sweeping(stack)
        verdict, _ = run_load(stack, seconds)
    for each in verdict.violations[:TOLD_MAX]:
        say(f"{each.kind.upper()}: order {each.order_id}: {each.told}")
    if len(verdict.violations) > TOLD_MAX:
        say(f"... and {len(verdict.violations) - TOLD_MAX} more")
    if verdict.violations:
        say(", ".join(f"{kind}: {verdict.count(kind)}" for kind in Kind))
    say(verdict.line)
    return verdict.exit_status


class Load:
    """What a stack is put through."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.duplicator = Duplicator(stack, TENANT)
        self.posting = Posting(stack, self.duplicator)
        # Where workers take longer to start than they live, nothing ends: so one more dies once an order has.
        self.killer = Killer(stack, KILL_SHARES, KILL_SECONDS, pace=lambda: self.posting.ended)

    def run(self, seconds: float, progress: Progress) -> None:
        """Load the stack so long, from when all of it is going on; raises RunError if it never is."""
        with self.duplicator, self.posting, self.killer:
            if not self._watch(self._is_on, WARM_SECONDS_MAX, progress):
                raise RunError(f"no load after {WARM_SECONDS_MAX} seconds:\n{self.stack.describe_failures()}")
            self._watch(lambda: False, seconds, progress)

    def _is_on(self) -> bool:
        return bool(self.posting.ended and self.killer.total() and self.duplicator.copies)

    def _watch(self, is_over: Callable[[], bool], seconds_max: float, progress: Progress) -> bool:
        deadline = time.monotonic() + seconds_max
        while not is_over():
            if time.monotonic() > deadline:
                return False
            if not self.stack.emulator.is_running():
                raise RunError("the emulator has ended by itself")
            for each in (self.posting, self.duplicator, self.killer):
                each.check()
            progress.show(
                f"{len(self.posting.posted)} orders started, {self.posting.ended} of them ended; "
                f"{self.killer.total()} workers killed, {self.duplicator.copies} commands sent again"
            )
            time.sleep(1)
        return True


def run_load(stack: Stack, seconds: float) -> tuple[Verdict, Load]:
    """Load a stack for some time, wait until it has come to rest, and audit what it did."""
    say(f"Posting orders for {seconds:.0f} s, killing workers and doubling commands meanwhile ...")
    load = Load(stack)
    began = time.monotonic()
    with Progress(sys.stdout, every_seconds=10) as progress:
        load.run(seconds, progress)
        loaded = time.monotonic()
        _await_rest(stack, progress)
    posting = load.posting
    say(f"  loaded for {loaded - began:.0f} s, at rest {time.monotonic() - loaded:.0f} s later")
    say("Comparing what the activities did with what is stored ...")
    items = read_items(stack, TENANT)
    instances = read_instances(stack, TENANT, items)
    effects = read_effects(stack, f"{TENANT}-")
    violations = audit(
        posting.posted,
        instances,
        effects,
        items,
        expected={order_id: expected(each) for order_id, each in posting.orders.items()},
        owed={order_id: owed(each) for order_id, each in posting.orders.items()},
    )
    verdict = judge(posting.posted, instances, violations)
    say(
        f"  {len(instances)} instances, {len(items)} intentions, {len(effects)} effects;\n"
        f"  {posting.repeats} posts of orders that were there already;\n"
        f"  {describe_deaths(stack, load.killer)};\n"
        f"  {load.duplicator.describe()}; {describe_deliveries(stack)}"
    )
    if verdict.exit_status:
        say(f"What the emulator complained of last:\n{stack.describe_failures()[-4000:]}\n")
    return verdict, load


class Posting(Background):
    """Posts orders as fast as earlier ones end, by several clients; some orders more than once."""

    def __init__(self, stack: Stack, duplicator: Duplicator) -> None:
        super().__init__()
        self.stack = stack
        self.posted: dict[str, str] = {}  # the instance of each order that the API has accepted
        self.orders: dict[str, dict[str, Any]] = {}
        self.repeats = 0  # posts of an order that had its answer already
        self._duplicator = duplicator
        self._places = threading.Semaphore(UNFINISHED_MAX)
        self._open: dict[str, str] = {}  # order by instance
        self._over: list[str] = []
        self._lock = threading.Lock()
        self._more = self._make_orders()

    @property
    def ended(self) -> int:
        """How many orders have ended."""
        return len(self._over)

    def work(self) -> None:
        """Keep as many orders unfinished as may be."""
        with ThreadPoolExecutor(CLIENTS) as pool:
            clients = [pool.submit(self._post_some) for _ in range(CLIENTS)]
            try:
                while not self.is_stopped(WATCH_SECONDS) and not any(each.done() for each in clients):
                    self._release_ended()
            finally:
                # An error of one client ends the others.
                self._stop.set()
        for each in clients:
            each.result()

    def _make_orders(self) -> Iterator[dict[str, Any]]:
        """Make orders after the samples, those that are paid: each has a child to wait for."""
        samples = [each for each in read_orders() if each["amount"] <= AMOUNT_MAX]
        for number, sample in zip(count(1), cycle(samples), strict=False):
            yield sample | {"order_id": f"{TENANT}-{number:06}"}

    def _release_ended(self) -> None:
        for instance_id in find_ended(self.stack, TENANT, list(self._open)):
            self._over.append(self._open.pop(instance_id))
            self._places.release()

    def _post_some(self) -> None:
        while not self.is_stopped():
            if not self._places.acquire(timeout=WATCH_SECONDS):
                continue
            with self._lock:
                order = next(self._more)
                number = len(self.orders) + 1
                self.orders[order["order_id"]] = order
            self._open[self._post(order)] = order["order_id"]
            if number % TWICE_EVERY == 0:
                self._repeat(order)
            if number % AGAIN_EVERY == 0 and self._over:
                self._repeat(self.orders[self._over[number % len(self._over)]])

    def _repeat(self, order: dict[str, Any]) -> None:
        self._post(order)
        self.repeats += 1

    def _post(self, order: dict[str, Any], tries: int = TRIES_MAX) -> str:
        """Post an order until there is an answer; the key makes it one start."""
        try:
            instance_id = post_order(self.stack, order, TENANT)
        except NoAnswerError:
            if tries == 1:
                raise
            return self._post(order, tries - 1)
        # If the key has made two instances, the audit finds the other one.
        self.posted.setdefault(order["order_id"], instance_id)
        self._duplicator.started(instance_id)
        return instance_id


def _await_rest(stack: Stack, progress: Progress) -> None:
    """Wait until nothing is left to do, or nothing happens any more: the audit then says what is left."""
    began = changed_at = time.monotonic()
    before = None
    while time.monotonic() < min(changed_at + STILL_SECONDS_MAX, began + SETTLE_SECONDS_MAX):
        running, undone = left = count_open(stack, TENANT)
        if not running and not undone:
            break
        if left != before:
            before, changed_at = left, time.monotonic()
        progress.show(
            f"at rest soon: {running} instances, {undone} intentions, {count_messages(stack)} messages left"
        )
        time.sleep(1)
    await_quiet(stack)


if __name__ == "__main__":
    sys.exit(run_program(main))
