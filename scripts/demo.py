"""The demo: 50 orders on a local stack whose workers are killed at random, and a count of what went wrong.

Nothing should: `make demo` ends with `orders=50 completed=N faulted=N ghosts=0 lost=0 duplicates=0`, or with
exit status 1. PORT sets the emulator's port.
"""

import json
import os
import random
import signal
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Self, TextIO

from scripts.demo_audit import (
    CHILDREN,
    ENDED,
    PARENT,
    SETTLED,
    Effect,
    Instance,
    Kind,
    audit,
    summary_line,
)
from scripts.demo_reading import (
    CLIENTS,
    DemoError,
    get_all,
    list_instances,
    read_effects,
    read_instances,
)
from scripts.emulator import ROOT, EmulatorError
from scripts.local_build import BuildError
from scripts.local_stack import Stack, deployed

ORDERS = ROOT / "events/orders.jsonl"
AMOUNT_MAX = 10_000  # what the example's payment provider accepts

# Shorter than is right for production: a dead worker's lease ends, and the sweep comes, while one watches.
PARAMETERS = {
    "ExampleLedger": "true",
    "RunTimeoutSeconds": "8",
    "CommandVisibilitySeconds": "8",
    "AckTimeoutSeconds": "15",
    "EagerHeadStartSeconds": "15",
    "SweepIntervalSeconds": "2",
    # The killer is not the orders' fault, so they are not to be stopped for it.
    "LeasesMax": "100",
}

WAVES = 5
KILLS_PER_WAVE = 2  # a wave of orders is posted when so many workers have died since the last one, ...
WAVE_SECONDS_MAX = 12  # ... or after this long
KILLS_MAX = 14
# Between two kills, if the workers are up again by then. For a second after a failure the emulator gives out
# no commands, so that a kill just then would meet an idle worker.
KILL_SECONDS = (1.2, 1.8)
START_SECONDS_MAX = 20
KILL_SHARE_OF_RUN = 0.9
RUN_SECONDS_MAX = 400
QUIET_SECONDS_MAX = 40


def main() -> int:
    """Run the demo; return the exit status."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    try:
        orders = [json.loads(line) for line in ORDERS.read_text(encoding="utf-8").splitlines()]
        started = time.monotonic()
        with deployed(port=_choose_port(), parameters=PARAMETERS, say=_say) as stack:
            return _run(stack, orders, started)
    except KeyboardInterrupt:
        _say("\nStopped; nothing is left running.")
    except (EmulatorError, BuildError, DemoError) as error:
        print(error, file=sys.stderr)
    return 1


def _choose_port() -> int:
    if text := os.environ.get("PORT"):
        if not text.isdecimal():
            raise DemoError(f"PORT must be a port number, not {text!r}")
        return int(text)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _run(stack: Stack, orders: list[dict[str, Any]], started: float) -> int:
    ready = time.monotonic()
    _say(f"Posting {len(orders)} orders, and killing workers meanwhile ...")
    killer = Killer(stack)
    # The schedule fires a minute after the deploy for the first time; nobody wants to watch that.
    sweeping = threading.Thread(target=stack.invoke, args=("sweep", {}), daemon=True)
    sweeping.start()
    with killer, Progress(sys.stdout) as progress:
        posting = Posting(stack, orders, killer)
        with posting:
            finished = _await_end(stack, posting, killer, progress)
    posted = posting.posted()
    ended = time.monotonic()
    _say(f"  done in {ended - ready:.1f} s" if finished else f"  NOT finished after {ended - ready:.0f} s")
    _say("Comparing what the activities did with what the instances say ...")
    _await_quiet(stack)
    instances = read_instances(stack, posted.values())
    effects = read_effects(stack)
    violations = audit(posted, instances, effects, {each["order_id"]: expected(each) for each in orders})
    _say(f"  done in {time.monotonic() - ended:.1f} s\n")

    parents = [each for each in instances if each.instance_id in posted.values()]
    _print_table(parents)
    _say(_describe(stack, killer, instances, effects, seconds=time.monotonic() - started))
    if not finished:
        _say(f"What the emulator complained of last:\n{stack.describe_failures()[-4000:]}\n")
    for each in violations:
        _say(f"{each.kind.upper()}: order {each.order_id}: {each.told}")
    unexpected = sum(1 for each in violations if each.kind == Kind.UNEXPECTED)
    if unexpected:
        _say(f"{unexpected} orders ended otherwise than their content says.")
    print(summary_line(len(orders), parents, violations), flush=True)
    return 0 if finished and not violations and len(posted) == len(orders) else 1


def expected(order: Mapping[str, Any]) -> str:
    """Return the outcome that an order should have, going by what it holds."""
    if order["amount"] > AMOUNT_MAX:
        return "faulted: PaymentRefused"
    if not order["address"].strip():
        return "faulted: ShippingFailed"
    return "completed"


# --- while it runs ---


@dataclass
class Killer:
    """Kills random workers of run, and sometimes of deliver, as long as its context is open."""

    stack: Stack
    kills: Counter[str] = field(default_factory=Counter)
    _started: dict[str, set[int]] = field(default_factory=dict)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _dice: random.Random = field(default_factory=random.Random)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._kill_some, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._thread:
            self._thread.join()

    def total(self) -> int:
        """Return how many workers have been killed."""
        return self.kills.total()

    def _kill_some(self) -> None:
        while self.total() < KILLS_MAX and not self._stop.wait(self._dice.uniform(*KILL_SECONDS)):
            function = "run" if self._dice.random() < KILL_SHARE_OF_RUN else "deliver"
            pids = self._await_targets(function)
            if pids and self.stack.kill_worker(function, self._dice.choice(pids)):
                self.kills[function] += 1

    def _await_targets(self, function: str) -> list[int]:
        """Return the workers of a function once none of them is still starting, or nothing after a while.

        When one dies as it starts, the emulator ends all others of its function, those that start included,
        which does the same to others still: no death of a sandbox does that.
        """
        deadline = time.monotonic() + START_SECONDS_MAX
        name = self.stack.function_name(function)
        seen = self._started.setdefault(function, set())
        while time.monotonic() < deadline and not self._stop.wait(0.1):
            log = self.stack.emulator.log_path.read_text(errors="replace")
            pids = self.stack.worker_pids(function)
            seen.update(pids)
            if len(seen) <= log.count(f"Lambda worker spawned for {name} "):
                return pids
        return []


@dataclass
class Posting:
    """Posts the orders in waves, several at once; some of them twice, as an impatient client would."""

    stack: Stack
    orders: list[dict[str, Any]]
    killer: Killer
    _posted: dict[str, str] = field(default_factory=dict)
    _errors: list[str] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._post_all, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._thread:
            self._thread.join()

    def posted(self) -> dict[str, str]:
        """Return the instance of each order that the API has accepted so far."""
        if self._errors:
            raise DemoError(self._errors[0])
        return dict(self._posted)

    def _post_all(self) -> None:
        size = -(-len(self.orders) // WAVES)
        with ThreadPoolExecutor(CLIENTS) as clients:
            for number in range(WAVES):
                self._await_kills(number * KILLS_PER_WAVE)
                list(clients.map(self._post, self.orders[number * size : (number + 1) * size]))
                if self._stop.is_set():
                    return

    def _await_kills(self, kills: int) -> None:
        deadline = time.monotonic() + WAVE_SECONDS_MAX
        while self.killer.total() < kills and time.monotonic() < deadline and not self._stop.wait(0.1):
            pass

    def _post(self, order: dict[str, Any]) -> None:
        if self._stop.is_set():
            return
        order_id = order["order_id"]
        twice = self.orders.index(order) % 10 == 0
        for _ in range(2 if twice else 1):
            try:
                answer = self.stack.request(
                    "POST",
                    f"/workflows/{PARENT}/dispatch",
                    {"input": order, "correlation_id": order_id},
                    {"Idempotency-Key": order_id},
                )
            except OSError as error:
                self._errors.append(f"order {order_id} could not be posted: {error}")
                return
            if answer.status != 202:  # noqa: PLR2004 - Accepted
                self._errors.append(f"order {order_id} was refused: {answer.status} {answer.body!r}")
                return
            instance_id = answer.json()["instance_id"]
            if self._posted.setdefault(order_id, instance_id) != instance_id:
                self._errors.append(f"order {order_id} was started twice")


class Progress:
    """Shows how far it is: a line that changes on a terminal, a line now and then elsewhere."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._started = time.monotonic()
        self._shown = ""
        self._shown_at = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._stream.isatty():
            self._stream.write("\n")
            self._stream.flush()

    def show(self, text: str) -> None:
        """Show the state of things, if it has changed or some time has passed."""
        now = time.monotonic()
        line = f"  {now - self._started:4.0f} s  {text}"
        if self._stream.isatty():
            self._stream.write(f"\r{line}\x1b[K")
        elif text == self._shown or now - self._shown_at < 3:  # noqa: PLR2004 - seconds between lines
            return
        else:
            self._stream.write(line + "\n")
        self._stream.flush()
        self._shown, self._shown_at = text, now


def _await_end(stack: Stack, posting: Posting, killer: Killer, progress: Progress) -> bool:
    """Wait until every order and every child has ended; returns False when that takes too long."""
    deadline = time.monotonic() + RUN_SECONDS_MAX
    while time.monotonic() < deadline:
        if not stack.emulator.is_running():
            raise DemoError("the emulator has ended by itself")
        posted = posting.posted()
        orders = list(list_instances(stack, PARENT))
        ended = sum(1 for each in orders if each["status"] in ENDED)
        told = f"{ended}/{len(posting.orders)} orders ended, of {len(posted)} posted"
        if ended == len(posting.orders) == len(orders):
            left = _count_unsettled(stack, posted)
            if not left:
                return True
            told = f"all orders ended, {left} of their children did not yet"
        progress.show(f"{told}; {killer.total()} workers killed")
        time.sleep(1)
    return False


def _count_unsettled(stack: Stack, posted: Mapping[str, str]) -> int:
    """Count the children that have not ended, and the dispatches that have not led to one yet."""
    listed = [each for name in CHILDREN for each in list_instances(stack, name)]
    running = sum(1 for each in listed if each["status"] not in ENDED)
    if running:
        return running
    shown = get_all(stack, [f"/instances/{each}" for each in posted.values()])
    return sum(1 for each in shown for item in each["dispatches"] if item["status"] not in SETTLED)


def _await_quiet(stack: Stack) -> None:
    """Wait until no command is on its way any more: even the late ones must have had no effect."""
    deadline = time.monotonic() + QUIET_SECONDS_MAX
    counts = (
        "ApproximateNumberOfMessages",
        "ApproximateNumberOfMessagesNotVisible",
        "ApproximateNumberOfMessagesDelayed",
    )
    while time.monotonic() < deadline:
        answer = stack.client("sqs").get_queue_attributes(
            QueueUrl=stack.outputs["CommandQueueUrl"], AttributeNames=list(counts)
        )
        if not any(int(answer["Attributes"].get(name, 0)) for name in counts):
            return
        time.sleep(0.5)


# --- telling ---


def _print_table(parents: Iterable[Instance]) -> None:
    by_outcome: dict[str, list[str]] = {}
    for each in parents:
        by_outcome.setdefault(each.outcome, []).append(each.order_id)
    width = max((len(each) for each in by_outcome), default=0)
    _say(f"{'outcome':{width}}  orders  for example")
    for outcome, ids in sorted(by_outcome.items()):
        _say(f"{outcome:{width}}  {len(ids):6}  {', '.join(ids[:4])}")
    _say("")


def _describe(
    stack: Stack, killer: Killer, instances: list[Instance], effects: list[Effect], *, seconds: float
) -> str:
    midway = stack.describe_failures().count("Worker process died")
    killed = ", ".join(f"{number} of {function}" for function, number in sorted(killer.kills.items()))
    again = len(stack.logs("sweep", "swept instance")) + len(stack.logs("run", "no undone item"))
    return (
        f"{len(instances)} instances with {len(effects)} effects; workers killed: {killed or 'none'} "
        f"({midway} in the middle of their work);\n"
        f"{again} commands delivered again; {seconds:.0f} s in all\n"
    )


def _say(text: str) -> None:
    print(text, flush=True)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
