"""The scenarios. Add one to SCENARIOS, and every write of it is crashed.

A scenario names the workflows that it starts (from workflows.py; those that they dispatch come along), the
endings and the effects that must come of it.
"""

from collections.abc import Callable
from typing import Any

from tests.simulation.disturbances import (
    delay_stream,
    deploy_later,
    poison_head,
    poison_item,
    refuse_unawaited,
    refuse_yet_send,
)
from tests.simulation.scenario import Scenario, Start
from tests.simulation.users import order, save_orders

_COMPLETED = {"parent": "completed"}
_FAULTED = {"parent": "faulted"}
_BOTH = {"parent": "completed", "other": "completed"}
_CHILD = {"child-first": 1, "child-second": 1}
_WAITING = {"before": 1, "after": 1, "last": 1, **_CHILD}
_NOT_WAITING = {"before": 1, "after": 1, **_CHILD}
_TELLING = {"before": 1, "told": 1}
_OFF = {"EAGER_DELIVERY": "false"}
_QUEUE = {"EVENT_QUEUE_ARN": "arn:aws:sqs:us-east-1:123456789012:sim-events", "EVENT_STIMULI": "false"}


def _times(effects: dict[str, int], times: int) -> dict[str, int]:
    return {name: each * times for name, each in effects.items()}


def _poisoned(name: str, disturb: Callable[[Any], None]) -> Scenario:
    return Scenario(
        name,
        (Start("waiting"),),
        _COMPLETED,
        _WAITING,
        _OFF,
        disturb,
        stuck=frozenset({"poisoned"}),
        ends_within_seconds=120,
        thorough=False,
    )


SCENARIOS = (
    Scenario("wait", (Start("waiting"),), _COMPLETED, _WAITING, ends_within_seconds=2),
    Scenario("no-wait", (Start("not-waiting"),), _COMPLETED, _NOT_WAITING, ends_within_seconds=2),
    Scenario("several", (Start("several"),), _COMPLETED, _times(_CHILD, 4)),
    Scenario("nested", (Start("top"),), _COMPLETED, {"deepest": 1, "middle": 1, "top": 1, **_CHILD}),
    Scenario(
        "child-faults",
        (Start("child-faults"), Start("child-raises", "other")),
        {"parent": "faulted", "other": "faulted"},
        {"before-fault": 1},
    ),
    Scenario("fault-handled", (Start("fault-handled"),), _COMPLETED, {"before-fault": 1, "handled": 1}),
    Scenario(
        "retries",
        (Start("retrying"), Start("never-works", "other")),
        {"parent": "completed", "other": "faulted"},
        {"third-time": 1, "second-time": 1, "never": 1, **_CHILD},
        thorough=False,
    ),
    Scenario(
        "two-starts",
        (Start("waiting"), Start("waiting", after=0.01), Start("waiting", after=60)),
        _COMPLETED,
        _WAITING,
    ),
    Scenario(
        "synchronous",
        (Start("waiting", synchronous=True), Start("slow", "other", synchronous=True)),
        _BOTH,
        {"slow": 1, "end": 1, **_WAITING, **_times(_CHILD, 2)},
    ),
    Scenario(
        "eager-off",
        (Start("waiting"), Start("not-waiting", "other")),
        _BOTH,
        {**_times(_NOT_WAITING, 2), "last": 1},
        _OFF,
    ),
    Scenario(
        "sweep-races-stream",
        (Start("waiting", after=8.95),),
        _COMPLETED,
        _WAITING,
        {"EAGER_HEAD_START_SECONDS": "1", "ACK_TIMEOUT_SECONDS": "1"},
        delay_stream,
        seeds=2,
    ),
    Scenario(
        "unknown-workflow",
        (Start("unknown-child"), Start("unknown-unhandled", "other")),
        {"parent": "completed", "other": "faulted"},
        {"told": 1, "after": 1},
        thorough=False,
    ),
    Scenario(
        "fan-out",
        (Start("fan-out"),),
        _COMPLETED,
        {"before": 1, "after": 1, "deepest": 5},
        limits={"COMMIT_INTENTIONS_MAX": 2},
    ),
    Scenario(
        "deployed-later",
        (Start("deployed-later"),),
        _COMPLETED,
        {"before": 1, "later": 1, "after": 1},
        disturb=deploy_later,
    ),
    Scenario("too-deep", (Start("top"),), _FAULTED, settings={"DISPATCH_DEPTH_MAX": "1"}, thorough=False),
    Scenario(
        "dispatch-in-activity",
        (Start("queueing"),),
        _COMPLETED,
        {"queue": 1, "after": 1, "queued-0": 1, "queued-1": 1, "child-second": 2},
    ),
    Scenario(
        "burst", (Start("bursting"),), _COMPLETED, {"one": 1, "two": 1, "three": 1, "four": 1, **_CHILD}
    ),
    Scenario(
        "out-of-time",
        (Start("long-running"),),
        _COMPLETED,
        {"long-0": 1, "long-1": 1, "long-2": 1, "long-3": 1, **_CHILD},
    ),
    Scenario(
        "killing",
        (Start("killing"), Start("killing-first", "other")),
        {"parent": "faulted", "other": "faulted"},
        {"before": 1, "x": 1},
        thorough=False,
    ),
    Scenario(
        "killing-after-wait",
        (Start("killing-after-wait"),),
        _FAULTED,
        _CHILD,
        {"ACK_TIMEOUT_SECONDS": "900", "LEASES_MAX": "2"},
        thorough=False,
    ),
    Scenario(
        "large",
        (Start("large"),),
        _COMPLETED,
        {"large-1": 1, "large-2": 1, "large-3": 1, "large-4": 1, "large-5": 1, **_CHILD},
        thorough=False,
    ),
    Scenario(
        "timers",
        (Start("delaying"),),
        _COMPLETED,
        {"late": 1, "early": 1, "after": 1, **_CHILD},
        thorough=False,
    ),
    Scenario("lost-branch", (Start("racing"),), _COMPLETED, {"won": 1, "after": 1}, drops=True),
    Scenario(
        "event", (Start("hearing"), Start("telling", "other", after=5)), _BOTH, {"heard": 1, **_TELLING}
    ),
    Scenario(
        "early-event",
        (Start("telling", "other"), Start("hearing", after=5)),
        _BOTH,
        {"heard": 1, **_TELLING},
    ),
    # The event comes when both surely wait, whatever died before: it is for those that do.
    Scenario(
        "event-for-two",
        (Start("hearing"), Start("hearing", "second"), Start("telling", "other", after=1500)),
        {"second": "completed", **_BOTH},
        {"heard": 2, **_TELLING},
        thorough=False,
    ),
    Scenario(
        "event-rounds",
        (Start("counting"), Start("ticking", "other", after=5)),
        _BOTH,
        {"round": 2, "between": 1},
    ),
    Scenario("event-starts", (Start("opening"),), _COMPLETED, {"begun": 1}),
    Scenario("orders", (), {}, settings=_QUEUE, disturb=save_orders(*map(order, range(1, 4))), seeds=2),
    Scenario("orders-eager-off", (), {}, settings=_QUEUE | _OFF, disturb=save_orders(order(1), order(2))),
    # The stream comes as late as the second sweep, so that both deliver the same events.
    Scenario(
        "orders-raced",
        (),
        {},
        settings=_QUEUE,
        disturb=save_orders(*map(order, range(1, 4)), stream_delay=19.98),
        seeds=2,
    ),
    # Clocks differ by up to 40 seconds, the claim less the time that a send may take, and the sink takes it.
    Scenario(
        "orders-skewed",
        (),
        {},
        settings=_QUEUE,
        disturb=save_orders(*map(order, range(1, 4)), skew=20, sink_seconds=19.9),
        seeds=5,
        thorough=False,
    ),
    Scenario(
        "orders-refused",
        (),
        {},
        settings=_QUEUE,
        disturb=save_orders(*map(order, range(1, 4)), refused=("order-2",)),
    ),
    Scenario(
        "orders-several-sinks",
        (),
        {},
        settings=_QUEUE | {"EVENT_STIMULI": "true", "STIMULUS_OPEN_SECONDS": "60"},
        disturb=save_orders(order(1), order(2), refused=("order-2",)),
        thorough=False,
    ),
    Scenario(
        "order-resumes",
        (Start("hearing"),),
        _COMPLETED,
        {"heard": 1},
        # Before the instance waits, or after: neither loses it.
        disturb=save_orders(order(1, "said", payload={"n": 1})),
        seeds=2,
    ),
    Scenario("announcing", (Start("announcing"),), _COMPLETED, {"before": 1, "after": 1}, _QUEUE),
    Scenario("outgrowing", (Start("outgrowing"),), _FAULTED, {"a": 1, "b": 1}),
    Scenario("continuing", (Start("continuing"),), _FAULTED, _CHILD),
    Scenario(
        "refused-send",
        (Start("several"), Start("several", "other")),
        _BOTH,
        _times(_CHILD, 6),
        disturb=refuse_unawaited,
        thorough=False,
    ),
    # The message comes shortly before the last attempt, or shortly after; faults turn that around, and how it
    # ends with it: only the invariants hold.
    Scenario("refused-yet-sent", (Start("waiting"),), {}, disturb=refuse_yet_send(25)),
    Scenario("given-up-yet-sent", (Start("waiting"),), {}, disturb=refuse_yet_send(35)),
    _poisoned("poisoned-body", poison_item({})),
    _poisoned("poisoned-body-parts", poison_item({"body": {"S": '{"instance_id":"nobody"}'}})),
    _poisoned("poisoned-item", poison_item({"sends": {"S": "many"}, "body": {"N": "1"}})),
    _poisoned("poisoned-time", poison_item({"deliver_at": {"S": "soon"}})),
    _poisoned("poisoned-command", poison_item({"command": {"S": "explode"}})),
    _poisoned("poisoned-head", poison_head({"revision": {"S": "many"}})),
    _poisoned("poisoned-snapshot", poison_head({"snapshot": {"S": "{"}})),
)
BY_NAME = {each.name: each for each in SCENARIOS}
