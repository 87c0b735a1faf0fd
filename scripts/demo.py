"""The demo: 50 orders on a local stack whose workers are killed at random, and a count of what went wrong.

Nothing should: `make demo` ends with `orders=50 completed=N faulted=N ghosts=0 lost=0 duplicates=0`, or with
exit status 1. PORT sets the emulator's port.
"""

import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from scripts.audit import Effect, Instance, Kind, audit, summary_line
from scripts.background import Background
from scripts.console import Progress, RunError, choose_port, run_program, say
from scripts.course import await_quiet, begin_sweeping, describe_deaths, describe_deliveries
from scripts.killer import Killer
from scripts.local_stack import Stack, deployed
from scripts.orders import PARAMETERS, expected, owed, post_order, read_orders
from scripts.reading import DEFAULT_TENANT, count_open, find_ended, read_effects, read_instances, read_items

CLIENTS = 3
WAVES = 5
KILLS_PER_WAVE = 2  # a wave of orders is posted when so many workers have died since the last one, ...
WAVE_SECONDS_MAX = 12  # ... or after this long
KILLS_MAX = 14
# Between two kills, if the workers are up again by then. For a second after a failure the emulator gives out
# no commands, so that a kill just then would meet an idle worker.
KILL_SECONDS = (1.2, 1.8)
KILL_SHARES = {"run": 0.9, "deliver": 0.1}
RUN_SECONDS_MAX = 400


def main() -> int:
    """Run the demo; return the exit status."""
    started = time.monotonic()
    with deployed(port=choose_port(), parameters=PARAMETERS, say=say) as stack:
        return run_demo(stack, read_orders(), started)


def run_demo(stack: Stack, orders: list[dict[str, Any]], started: float) -> int:
    """Post the orders to a fresh stack under killed workers, and audit them; return the exit status."""
    ready = time.monotonic()
    say(f"Posting {len(orders)} orders, and killing workers meanwhile ...")
    killer = Killer(stack, KILL_SHARES, KILL_SECONDS, KILLS_MAX)
    begin_sweeping(stack)
    with killer, Progress(sys.stdout) as progress, Posting(stack, orders, killer) as posting:
        finished = _await_end(stack, posting, killer, progress)
    posted = posting.posted
    ended = time.monotonic()
    say(f"  done in {ended - ready:.1f} s" if finished else f"  NOT finished after {ended - ready:.0f} s")
    say("Comparing what the activities did with what the instances say ...")
    await_quiet(stack)
    items = read_items(stack, DEFAULT_TENANT)
    instances = read_instances(stack, DEFAULT_TENANT, items)
    effects = read_effects(stack)
    violations = audit(
        posted,
        instances,
        effects,
        items,
        expected={each["order_id"]: expected(each) for each in orders},
        owed={each["order_id"]: owed(each) for each in orders},
    )
    say(f"  done in {time.monotonic() - ended:.1f} s\n")

    parents = [each for each in instances if each.instance_id in posted.values()]
    _print_table(parents)
    say(_describe(stack, killer, instances, effects, seconds=time.monotonic() - started))
    if not finished:
        say(f"What the emulator complained of last:\n{stack.describe_failures()[-4000:]}\n")
    for each in violations:
        say(f"{each.kind.upper()}: order {each.order_id}: {each.told}")
    unexpected = sum(1 for each in violations if each.kind == Kind.UNEXPECTED)
    if unexpected:
        say(f"{unexpected} orders ended otherwise than their content says.")
    say(summary_line(len(orders), parents, violations))
    return 0 if finished and not violations and len(posted) == len(orders) else 1


# --- while it runs ---


class Posting(Background):
    """Posts the orders in waves, several at once; some of them twice, as an impatient client would."""

    def __init__(self, stack: Stack, orders: list[dict[str, Any]], killer: Killer) -> None:
        super().__init__()
        self.stack = stack
        self.orders = orders
        self.killer = killer
        self.posted: dict[str, str] = {}  # the instance of each order that the API has accepted so far

    def work(self) -> None:
        """Post all orders."""
        size = -(-len(self.orders) // WAVES)
        with ThreadPoolExecutor(CLIENTS) as clients:
            for number in range(WAVES):
                self._await_kills(number * KILLS_PER_WAVE)
                list(clients.map(self._post, self.orders[number * size : (number + 1) * size]))
                if self.is_stopped():
                    return

    def _await_kills(self, kills: int) -> None:
        deadline = time.monotonic() + WAVE_SECONDS_MAX
        while self.killer.total() < kills and time.monotonic() < deadline and not self.is_stopped(0.1):
            pass

    def _post(self, order: dict[str, Any]) -> None:
        if self.is_stopped():
            return
        order_id = order["order_id"]
        twice = self.orders.index(order) % 10 == 0
        for _ in range(2 if twice else 1):
            instance_id = post_order(self.stack, order)
            if self.posted.setdefault(order_id, instance_id) != instance_id:
                raise RunError(f"order {order_id} was started twice")


def _await_end(stack: Stack, posting: Posting, killer: Killer, progress: Progress) -> bool:
    """Wait until every order and every child has ended; returns False when that takes too long."""
    deadline = time.monotonic() + RUN_SECONDS_MAX
    while time.monotonic() < deadline:
        if not stack.emulator.is_running():
            raise RunError("the emulator has ended by itself")
        posting.check()
        posted = dict(posting.posted)
        ended = len(find_ended(stack, DEFAULT_TENANT, posted.values()))
        told = f"{ended}/{len(posting.orders)} orders ended, of {len(posted)} posted"
        if ended == len(posting.orders):
            running, undone = count_open(stack, DEFAULT_TENANT)
            if not running and not undone:
                return True
            told = f"all orders ended, {running} of their children and {undone} intentions did not yet"
        progress.show(f"{told}; {killer.total()} workers killed")
        time.sleep(1)
    return False


# --- telling ---


def _print_table(parents: Iterable[Instance]) -> None:
    by_outcome: dict[str, list[str]] = {}
    for each in parents:
        by_outcome.setdefault(each.outcome, []).append(each.order_id)
    width = max((len(each) for each in by_outcome), default=0)
    say(f"{'outcome':{width}}  orders  for example")
    for outcome, ids in sorted(by_outcome.items()):
        say(f"{outcome:{width}}  {len(ids):6}  {', '.join(ids[:4])}")
    say("")


def _describe(
    stack: Stack, killer: Killer, instances: list[Instance], effects: list[Effect], *, seconds: float
) -> str:
    return (
        f"{len(instances)} instances with {len(effects)} effects; {describe_deaths(stack, killer)};\n"
        f"{describe_deliveries(stack)}; {seconds:.0f} s in all\n"
    )


if __name__ == "__main__":
    sys.exit(run_program(main))
