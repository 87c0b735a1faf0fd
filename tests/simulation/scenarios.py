"""The scenarios. Add one to SCENARIOS, and every write of it is crashed.

A scenario names the workflows that it starts (from workflows.py; those that they dispatch come along), the
endings and the effects that must come of it.
"""

from collections.abc import Callable
from typing import Any

from tests.simulation.calls import (
    Cancel,
    Complete,
    Delete,
    Publish,
    Replay,
    Request,
    Retract,
    Send,
    Start,
    requested_id,
)
from tests.simulation.disturbances import (
    cancel_trees,
    damage_start,
    delay_stream,
    deploy_later,
    lose_snapshot,
    outlast_messages,
    poison_head,
    poison_item,
    poison_status,
    redrive_late,
    refuse_unawaited,
    refuse_yet_send,
    roll_back_activities,
    roll_back_commands,
)
from tests.simulation.scenario import Scenario
from tests.simulation.users import deploy_sink_later, order, refuse_whole, save_orders

_COMPLETED = {"parent": "completed"}
_FAULTED = {"parent": "faulted"}
_BOTH = {"parent": "completed", "other": "completed"}
_CHILD = {"child-first": 1, "child-second": 1}
_WAITING = {"before": 1, "after": 1, "last": 1, **_CHILD}
_NOT_WAITING = {"before": 1, "after": 1, **_CHILD}
_TELLING = {"before": 1, "told": 1}
_OFF = {"EAGER_DELIVERY": "false"}
_BUCKET = {"PAYLOAD_BUCKET": "sim-payloads", "LARGE_PAYLOADS": "true"}
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
    Scenario("rolled-back-commands", (Start("waiting"),), _COMPLETED, _WAITING, disturb=roll_back_commands),
    Scenario("rolled-back", (Start("waiting"),), _COMPLETED, _WAITING, disturb=roll_back_activities(0.01)),
    Scenario(
        "rolled-back-late", (Start("waiting"),), _COMPLETED, _WAITING, disturb=roll_back_activities(0.1)
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
    # All that can be large: the input, a result, the child's input and its output.
    Scenario(
        "payloads",
        (Start("weighty", input={"padding": "x" * 70_000}),),
        _COMPLETED,
        {"before": 1, "weighed": 1, "after": 1, "last": 1},
        _BUCKET,
    ),
    Scenario(
        "payloads-deleted",
        (Start("weighty", input={"padding": "x" * 70_000}),),
        _COMPLETED,
        {"before": 1, "weighed": 1, "after": 1, "last": 1},
        _BUCKET,
        calls=(Delete(after=8_000),),
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
    Scenario("orders-one-by-one", (), {}, settings=_QUEUE, disturb=refuse_whole),
    Scenario(
        "orders-sink-later",
        (),
        {},
        settings={"EVENT_STIMULI": "false"},
        disturb=deploy_sink_later({"EVENT_QUEUE_ARN": _QUEUE["EVENT_QUEUE_ARN"]}),
        thorough=False,
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
    Scenario("bulk", (Start("bulk"),), _COMPLETED, {"counted": 3, "after": 1}),
    Scenario("bulk-unawaited", (Start("bulk-unawaited"),), _COMPLETED, {"counted": 3, "after": 1}),
    Scenario("bulk-in-lanes", (Start("bulk-in-lanes"),), _COMPLETED, {"counted": 4, "after": 1}),
    Scenario("bulk-tolerating", (Start("bulk-tolerating"),), _COMPLETED, {"counted": 3, "after": 1}),
    # Those behind the failing one may begin before they are cancelled.
    Scenario(
        "bulk-failing",
        (Start("bulk-failing"),),
        _COMPLETED,
        drops=True,
    ),
    Scenario("bulk-unknown", (Start("bulk-unknown"),), _COMPLETED, thorough=False),
    Scenario(
        "bulk-handled",
        (Start("bulk-handled"),),
        _COMPLETED,
    ),
    Scenario("bulk-abandoned", (Start("bulk-abandoned"),), _COMPLETED, {"won": 1, "after": 1}, drops=True),
    Scenario("bulks-abandoned", (Start("bulks-abandoned"),), _COMPLETED, {"won": 1}, drops=True),
    Scenario(
        "bulk-large",
        (Start("bulk-in-lanes"), Start("bulk", "other")),
        _BOTH,
        {"counted": 7, "after": 2},
        limits={"COMMIT_INTENTIONS_MAX": 2},
    ),
    # The first cancel comes about when the last children are dispatched.
    Scenario(
        "bulk-cancelled",
        (Start("bulk-endless"), Start("bulk", "other")),
        {"parent": "cancelled", "other": "completed"},
        {"counted": 3, "after": 1},
        calls=(Cancel(after=0.1), Cancel(after=30)),
        limits={"COMMIT_INTENTIONS_MAX": 2},
    ),
    Scenario("bulk-twice", (Start("bulk-twice"),), _COMPLETED, {"counted": 4, "after": 1}, thorough=False),
    Scenario(
        "multi-use",
        (Start("listening"), Start("pinging", "other", after=5)),
        _BOTH,
        {"ping": 3, "between": 2, "after-pings": 1},
    ),
    Scenario(
        "multi-use-early",
        (Start("pinging", "other"), Start("listening", after=5)),
        _BOTH,
        {"ping": 3, "between": 2, "after-pings": 1},
        thorough=False,
    ),
    Scenario(
        "multi-use-overlap",
        (Start("overlapping", correlation_id="r"), Start("ringing", "other", after=5)),
        _BOTH,
        {"ring": 2, "stopped": 1, **_times(_CHILD, 2)},
    ),
    Scenario(
        "acting",
        (
            Start("asked", "asked"),
            Start("told", "told"),
            Start("acting", after=5),
            # Pending, running or over when it is told to run.
            Start("grandchild", "lonely", after=5.02),
        ),
        {"asked": "completed", "told": "completed", "lonely": "completed", **_COMPLETED},
        {"answered": 1, "heard": 1, "tell": 1, "after-telling": 1, "deepest": 1, **_CHILD},
    ),
    # One of the two finds the task answered, or its token used: its own incident, and nothing else.
    Scenario(
        "acting-twice",
        (Start("asked", "asked"), Start("acting", after=5), Start("acting", "other", after=5)),
        {"asked": "completed", **_BOTH},
        {"answered": 1, "tell": 2, "after-telling": 2, **_times(_CHILD, 2)},
        thorough=False,
    ),
    # Which of those that come at once is let in is open, and with faults one may come after the other.
    Scenario("singleton-at-once", (Start("only-one"), Start("only-one", "other")), {}, seeds=2),
    Scenario(
        "singleton-at-its-end",
        (Start("only-one"), *(Start("only-one", f"other-{n}", after=20.4 + n * 0.01) for n in range(6))),
        {},
        seeds=2,
        thorough=False,
    ),
    Scenario(
        "singleton-in-turn",
        (Start("only-one"), Start("only-one", "other", after=1_500)),
        _BOTH,
        {"only": 2, "only-end": 2},
    ),
    Scenario(
        "one-per-correlation",
        (
            Start("one-each", correlation_id="a"),
            Start("one-each", "other", correlation_id="b"),
            Start("one-each", "third"),
            Start("one-each", "fourth"),
            Start("one-each", "refused", correlation_id="a", after=10),
        ),
        {**_BOTH, "third": "completed", "fourth": "completed"},
        thorough=False,
    ),
    Scenario(
        "singleton-dispatch",
        (Start("refused-child"),),
        _COMPLETED,
        {"long-one": 1, "refused": 1, "after": 1},
        thorough=False,
    ),
    Scenario("singleton-starts", (Start("opening-twice"),), _COMPLETED, {"begun-once": 1}, thorough=False),
    Scenario(
        "http-start",
        (Request("answering", path="orders"), Request("answering", path="orders", after=0.01)),
        {requested_id("answering"): "completed"},
        {"answered": 1, "after": 1, **_CHILD},
    ),
    # Two requests are two instances; what one is told is its own.
    Scenario(
        "http-starts",
        (Request("answering", path="orders"), Request("answering", path="orders", key="other")),
        {requested_id("answering"): "completed", requested_id("answering", "other"): "completed"},
        {"answered": 2, "after": 2, **_times(_CHILD, 2)},
        thorough=False,
    ),
    # However late what died comes to its wait, the callback is still there.
    Scenario(
        "early-callback",
        (Start("asking-early"),),
        _COMPLETED,
        {"ask": 1, "called": 1},
        {"STIMULUS_OPEN_SECONDS": "7200"},
    ),
    Scenario(
        "late-callback",
        (Start("asking-late"),),
        _COMPLETED,
        {"ask": 1, "called": 1},
        {"STIMULUS_OPEN_SECONDS": "7200"},
    ),
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
    # What callers ask. Each event has a key of its own, so that a caller who calls again sends no second one.
    Scenario(
        "sent-late",
        (Start("hearing"),),
        _COMPLETED,
        {"heard": 1},
        calls=(Send("said", "one", {"n": 1}, "hello", after=2),),
    ),
    Scenario(
        "sent-early",
        (Start("hearing", after=3),),
        _COMPLETED,
        {"heard": 1},
        calls=(Send("said", "one", {"n": 1}, "hello"),),
    ),
    Scenario(
        "sent-for-two-rounds",
        (Start("rounding"),),
        _COMPLETED,
        {"first": 1, "second": 1},
        calls=(Send("tick", "one", value="first", after=2), Send("tick", "two", value="second", after=2)),
        seeds=2,
    ),
    # The one that fits comes when those that do not are dead letters.
    Scenario(
        "sent-amiss",
        (Start("correlated"),),
        _COMPLETED,
        {"heard": 1},
        {"STIMULUS_OPEN_SECONDS": "60"},
        calls=(
            Send("said", "payload", {"n": 2}, after=1),
            Send("said", "correlation", {"n": 1}, correlation_id="c-2", after=1),
            Send("said", "fitting", {"n": 1}, correlation_id="c-1", after=1000),
        ),
        dead=frozenset({"payload", "correlation"}),
        thorough=False,
    ),
    Scenario(
        "sent-starts-and-resumes",
        (Start("waiting-for-begin"),),
        _COMPLETED,
        {"heard": 1, "begun": 1},
        calls=(Send("begin", "one", value="go", after=1000),),
        published=frozenset({"beginning"}),
    ),
    Scenario(
        "cancel-a-running-one",
        (Start("stepping"),),
        {"parent": "cancelled"},
        calls=(Cancel(after=10),),
        races={"before": 1, "slow": 1},
    ),
    Scenario(
        "cancel-with-children",
        (Start("testator"),),
        {"parent": "cancelled"},
        calls=(Cancel(after=1), Cancel(after=30)),
        races={"begun": 2},
    ),
    # Whether the child ends first is left to the run; who waits is told the ending that there was.
    Scenario(
        "cancel-races-the-end",
        (Start("hasty"),),
        {},
        calls=(Cancel(after=2.1), Cancel(after=2.15), Cancel(after=2.2)),
        races={"brief": 1, "after": 1},
        seeds=3,
    ),
    Scenario(
        "two-completions",
        (Start("tasked"),),
        _COMPLETED,
        {"answered": 1},
        calls=(Complete("yes", after=2), Complete("no", after=2)),
        seeds=2,
    ),
    Scenario(
        "deleted",
        (Start("mortal"),),
        _COMPLETED,
        {"after": 1, **_CHILD},
        calls=(Delete(after=600), Delete(after=600)),
    ),
    # A parent is kept while its child goes; a child is, while its parent goes; and a dispatch that failed
    # keeps its owner until it is redriven. Old messages come again all the while.
    Scenario(
        "ended-go",
        (
            Start("dispatching-late"),
            Start("outliving", "outliving"),
            Start("survived", "survived"),
            Start("endless", "cancelled"),
            Start("endless", "pending", after=1),
        ),
        {"outliving": "completed", "survived": "completed", "cancelled": "cancelled", **_COMPLETED},
        {"late": 1, "won": 1, "outlived": 1, "after": 1, **_CHILD},
        {"ENDED_INSTANCE_DAYS": "1"},
        outlast_messages,
        calls=(Cancel("cancelled", after=30), Cancel("pending", after=1)),
        drops=True,
        days=9,
    ),
    # Rows of every kind go: of bulks, callbacks, activations, large snapshots, stimuli and incidents.
    Scenario(
        "ended-go-with-all-rows",
        (
            Start("bulk-in-lanes"),
            Start("asking-early", "asking"),
            Start("only-one", "only-one"),
            Start("large", "large"),
            Start("child-faults", "faulty"),
            Start("tasked", "tasked"),
        ),
        {"asking": "completed", "only-one": "completed", "faulty": "faulted", **_COMPLETED},
        settings={"ENDED_INSTANCE_DAYS": "1", "STIMULUS_OPEN_SECONDS": "7200"},
        calls=(Complete("yes", "tasked", after=2), Delete("large", after=600)),
        thorough=False,
        days=6,
    ),
    # When it is replayed, what waits for it surely waits; two operators replay it at once.
    Scenario(
        "two-replays",
        (Start("hearing", after=1000),),
        _COMPLETED,
        {"heard": 1},
        {"STIMULUS_OPEN_SECONDS": "30"},
        calls=(Send("said", "one", {"n": 1}, "hello"), Replay("one", after=1500), Replay("one", after=1500)),
        seeds=2,
    ),
    Scenario(
        "two-publishers",
        (),
        {},
        calls=(
            Publish("version_a", after=1),
            Publish("version_b", after=1),
            *(Send("begin", f"event {number}", after=0.9 + number / 20) for number in range(4)),
        ),
        races={"begun": 4, "version-a": 4, "version-b": 4},
        thorough=False,
    ),
    Scenario(
        "retract-while-starting",
        (),
        {},
        settings={"STIMULUS_OPEN_SECONDS": "60"},
        calls=(
            Publish("version_a"),
            *(Send("begin", f"event {number}", after=1000 + number / 20) for number in range(3)),
            Retract("versioned", after=1000.06),
            Send("begin", "late", after=3000),
        ),
        races={"begun": 3, "version-a": 3},
        dead=frozenset({"late"}),
        thorough=False,
    ),
    # A new version comes just as a time is due, and the end as another one is; far apart, so that no fault
    # turns their order around.
    Scenario(
        "schedules",
        (),
        {},
        calls=(
            Publish("clocked_a"),
            Publish("clocked_b", after=1200),
            Retract("clocked", after=2400),
        ),
        races={"clock-a": 4, "clock-b": 4},
        drops=True,
    ),
    # The message comes shortly before the last attempt, or shortly after; faults turn that around, and how it
    # ends with it: only the invariants hold.
    Scenario("refused-yet-sent", (Start("waiting"),), {}, disturb=refuse_yet_send(25)),
    Scenario("given-up-yet-sent", (Start("waiting"),), {}, disturb=refuse_yet_send(35)),
    Scenario("redriven", (Start("dispatching-late"),), _COMPLETED, {"late": 1}, disturb=redrive_late),
    Scenario(
        "cancelled-trees",
        (Start("cancelled-tree"), Start("cancelled-tree", "other")),
        {"parent": "cancelled", "other": "cancelled"},
        _times(_CHILD, 2),
        disturb=cancel_trees,
        drops=True,
        thorough=False,
    ),
    # Where a crash has delayed it, the damage may come too late: then the child has begun.
    Scenario("damaged-start", (Start("told-of-unread"),), _COMPLETED, {}, _OFF, damage_start, thorough=False),
    Scenario(
        "lost-snapshot",
        (Start("awaiting-long"),),
        _COMPLETED,
        {"long-below": 1, "after": 1},
        disturb=lose_snapshot,
        thorough=False,
    ),
    _poisoned("poisoned-body", poison_item({})),
    _poisoned("poisoned-body-parts", poison_item({"body": {"S": '{"instance_id":"nobody"}'}})),
    _poisoned("poisoned-item", poison_item({"sends": {"S": "many"}, "body": {"N": "1"}})),
    _poisoned("poisoned-status", poison_status),
    _poisoned("poisoned-time", poison_item({"deliver_at": {"S": "soon"}})),
    _poisoned("poisoned-head", poison_head({"revision": {"S": "many"}})),
    _poisoned("poisoned-snapshot", poison_head({"snapshot": {"S": "{"}})),
)
BY_NAME = {each.name: each for each in SCENARIOS}
