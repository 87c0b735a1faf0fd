"""Scenarios of what callers ask of the API: send, cancel, complete, delete, replay, publish, retract.

What ends goes by itself here, too, and schedules run while versions are published. Activities call as well.
"""

from tests.simulation.calls import Cancel, Complete, Delete, Publish, Replay, Retract, Send, Start
from tests.simulation.disturbances import outlast_messages
from tests.simulation.scenario import BOTH, CHILD, COMPLETED, Scenario, times

ACTING = (
    Scenario(
        "acting",
        (
            Start("asked", "asked"),
            Start("told", "told"),
            Start("acting", after=5),
            # Pending, running or over when it is told to run.
            Start("grandchild", "lonely", after=5.02),
        ),
        {"asked": "completed", "told": "completed", "lonely": "completed", **COMPLETED},
        {"answered": 1, "heard": 1, "tell": 1, "after-telling": 1, "deepest": 1, **CHILD},
    ),
    # One of the two finds the task answered, or its token used: its own incident, and nothing else.
    Scenario(
        "acting-twice",
        (Start("asked", "asked"), Start("acting", after=5), Start("acting", "other", after=5)),
        {"asked": "completed", **BOTH},
        {"answered": 1, "tell": 2, "after-telling": 2, **times(CHILD, 2)},
        thorough=False,
    ),
)
SCENARIOS = (
    # Each event has a key of its own, so that a caller who calls again sends no second one.
    Scenario(
        "sent-late",
        (Start("hearing"),),
        COMPLETED,
        {"heard": 1},
        calls=(Send("said", "one", {"n": 1}, "hello", after=2),),
    ),
    Scenario(
        "sent-early",
        (Start("hearing", after=3),),
        COMPLETED,
        {"heard": 1},
        calls=(Send("said", "one", {"n": 1}, "hello"),),
    ),
    Scenario(
        "sent-for-two-rounds",
        (Start("rounding"),),
        COMPLETED,
        {"first": 1, "second": 1},
        calls=(Send("tick", "one", value="first", after=2), Send("tick", "two", value="second", after=2)),
        seeds=2,
    ),
    # The one that fits comes when those that do not are dead letters.
    Scenario(
        "sent-amiss",
        (Start("correlated"),),
        COMPLETED,
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
        COMPLETED,
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
        COMPLETED,
        {"answered": 1},
        calls=(Complete("yes", after=2), Complete("no", after=2)),
        seeds=2,
    ),
    Scenario(
        "deleted",
        (Start("mortal"),),
        COMPLETED,
        {"after": 1, **CHILD},
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
        {"outliving": "completed", "survived": "completed", "cancelled": "cancelled", **COMPLETED},
        {"late": 1, "won": 1, "outlived": 1, "after": 1, **CHILD},
        {"ENDED_INSTANCE_DAYS": "1"},
        outlast_messages,
        calls=(Cancel("cancelled", after=30), Cancel("pending", after=1)),
        drops=True,
        days=9,
    ),
    # More items than are looked at unclaimed, of timers that nothing waits for any more.
    Scenario(
        "ended-go-with-many-items",
        (Start("many-timers"),),
        COMPLETED,
        {"won": 1},
        {"ENDED_INSTANCE_DAYS": "1"},
        drops=True,
        days=4,
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
        {"asking": "completed", "only-one": "completed", "faulty": "faulted", **COMPLETED},
        settings={"ENDED_INSTANCE_DAYS": "1", "STIMULUS_OPEN_SECONDS": "7200"},
        calls=(Complete("yes", "tasked", after=2), Delete("large", after=600)),
        thorough=False,
        days=6,
    ),
    # When it is replayed, what waits for it surely waits; two operators replay it at once.
    Scenario(
        "two-replays",
        (Start("hearing", after=1000),),
        COMPLETED,
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
)
