"""Scenarios of instances: their steps and children, retries, commits, time, size, and code that changes."""

from tests.simulation.calls import Delete, Start
from tests.simulation.disturbances import delay_stream, deploy_later, roll_back_activities, roll_back_commands
from tests.simulation.scenario import BOTH, CHILD, COMPLETED, EAGER_OFF, FAULTED, WAITING, Scenario, times

_NOT_WAITING = {"before": 1, "after": 1, **CHILD}
_BUCKET = {"PAYLOAD_BUCKET": "sim-payloads", "LARGE_PAYLOADS": "true"}

SCENARIOS = (
    Scenario("wait", (Start("waiting"),), COMPLETED, WAITING, ends_within_seconds=2),
    Scenario("no-wait", (Start("not-waiting"),), COMPLETED, _NOT_WAITING, ends_within_seconds=2),
    Scenario("several", (Start("several"),), COMPLETED, times(CHILD, 4)),
    Scenario("nested", (Start("top"),), COMPLETED, {"deepest": 1, "middle": 1, "top": 1, **CHILD}),
    Scenario(
        "child-faults",
        (Start("child-faults"), Start("child-raises", "other")),
        {"parent": "faulted", "other": "faulted"},
        {"before-fault": 1},
    ),
    Scenario("fault-handled", (Start("fault-handled"),), COMPLETED, {"before-fault": 1, "handled": 1}),
    Scenario(
        "retries",
        (Start("retrying"), Start("never-works", "other")),
        {"parent": "completed", "other": "faulted"},
        {"third-time": 1, "second-time": 1, "never": 1, **CHILD},
        thorough=False,
    ),
    Scenario(
        "two-starts",
        (Start("waiting"), Start("waiting", after=0.01), Start("waiting", after=60)),
        COMPLETED,
        WAITING,
    ),
    Scenario(
        "synchronous",
        (Start("waiting", synchronous=True), Start("slow", "other", synchronous=True)),
        BOTH,
        {"slow": 1, "end": 1, **WAITING, **times(CHILD, 2)},
    ),
    Scenario(
        "eager-off",
        (Start("waiting"), Start("not-waiting", "other")),
        BOTH,
        {**times(_NOT_WAITING, 2), "last": 1},
        EAGER_OFF,
    ),
    Scenario(
        "sweep-races-stream",
        (Start("waiting", after=8.95),),
        COMPLETED,
        WAITING,
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
        COMPLETED,
        {"before": 1, "after": 1, "deepest": 5},
        limits={"COMMIT_INTENTIONS_MAX": 2},
    ),
    Scenario(
        "deployed-later",
        (Start("deployed-later"),),
        COMPLETED,
        {"before": 1, "later": 1, "after": 1},
        disturb=deploy_later,
    ),
    Scenario("rolled-back-commands", (Start("waiting"),), COMPLETED, WAITING, disturb=roll_back_commands),
    Scenario("rolled-back", (Start("waiting"),), COMPLETED, WAITING, disturb=roll_back_activities(0.01)),
    Scenario("rolled-back-late", (Start("waiting"),), COMPLETED, WAITING, disturb=roll_back_activities(0.1)),
    Scenario("too-deep", (Start("top"),), FAULTED, settings={"DISPATCH_DEPTH_MAX": "1"}, thorough=False),
    Scenario(
        "dispatch-in-activity",
        (Start("queueing"),),
        COMPLETED,
        {"queue": 1, "after": 1, "queued-0": 1, "queued-1": 1, "child-second": 2},
    ),
    Scenario("burst", (Start("bursting"),), COMPLETED, {"one": 1, "two": 1, "three": 1, "four": 1, **CHILD}),
    Scenario(
        "out-of-time",
        (Start("long-running"),),
        COMPLETED,
        {"long-0": 1, "long-1": 1, "long-2": 1, "long-3": 1, **CHILD},
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
        FAULTED,
        CHILD,
        {"ACK_TIMEOUT_SECONDS": "900", "LEASES_MAX": "2"},
        thorough=False,
    ),
    Scenario(
        "large",
        (Start("large"),),
        COMPLETED,
        {"large-1": 1, "large-2": 1, "large-3": 1, "large-4": 1, "large-5": 1, **CHILD},
        thorough=False,
    ),
    # All that can be large: the input, a result, the child's input and its output.
    Scenario(
        "payloads",
        (Start("weighty", input={"padding": "x" * 70_000}),),
        COMPLETED,
        {"before": 1, "weighed": 1, "after": 1, "last": 1},
        _BUCKET,
    ),
    Scenario(
        "payloads-deleted",
        (Start("weighty", input={"padding": "x" * 70_000}),),
        COMPLETED,
        {"before": 1, "weighed": 1, "after": 1, "last": 1},
        _BUCKET,
        calls=(Delete(after=8_000),),
        thorough=False,
    ),
    Scenario(
        "timers",
        (Start("delaying"),),
        COMPLETED,
        {"late": 1, "early": 1, "after": 1, **CHILD},
        thorough=False,
    ),
    Scenario("lost-branch", (Start("racing"),), COMPLETED, {"won": 1, "after": 1}, drops=True),
)
INCIDENTS = (
    Scenario("outgrowing", (Start("outgrowing"),), FAULTED, {"a": 1, "b": 1}),
    Scenario("continuing", (Start("continuing"),), FAULTED, CHILD),
)
