"""The workflows that the scenarios run; their effects are named after the place in which they happen."""

from typing import Any

from aftercommit import (
    Break,
    BulkDispatchWorkflows,
    Correlate,
    Delay,
    DispatchWorkflow,
    Event,
    Fault,
    Finish,
    Fork,
    HttpEndpoint,
    If,
    ParallelForEach,
    PublishEvent,
    RunTask,
    Sequence,
    SetVariable,
    StartAt,
    Step,
    Timer,
    While,
    Workflow,
    WriteHttpResponse,
    expr,
    inputs,
    var,
)
from tests.simulation.activities import act, ask, flaky, kill, long, queue, refuse, tell

child = Workflow(
    "child",
    inputs={"name": str},
    root=Sequence(Step(act, name=inputs.name, result="first"), Step(act, name="child-second")),
    output={"told": var.first.done},
)
failing_child = Workflow(
    "failing-child", root=Sequence(Step(act, name="before-fault"), Fault("went wrong", code="Wrong"))
)
raising_child = Workflow("raising-child", root=Step(refuse))


def _dispatch(workflow: str, **more: Any) -> DispatchWorkflow:
    return DispatchWorkflow(workflow, input={"name": "child-first"} if workflow == "child" else None, **more)


waiting = Workflow(
    "waiting",
    root=Sequence(
        Step(act, name="before", result="before"),
        _dispatch("child", wait=True, result="child"),
        Step(act, name="after"),
        Step(act, name="last"),
    ),
    output={"child": var.child.told},
)
not_waiting = Workflow(
    "not-waiting",
    root=Sequence(Step(act, name="before"), _dispatch("child", result="child"), Step(act, name="after")),
    output={"child": var.child.instance_id},
)
several = Workflow(
    "several",
    root=Sequence(
        _dispatch("child"),
        _dispatch("child", wait=True),
        _dispatch("child"),
        _dispatch("child", wait=True),
    ),
)
fan_out = Workflow(
    "fan-out",
    root=Sequence(
        Step(act, name="before"), *(_dispatch("grandchild") for _ in range(5)), Step(act, name="after")
    ),
)
grandchild = Workflow("grandchild", root=Step(act, name="deepest", result="found"), output=var.found.done)
middle = Workflow(
    "middle",
    root=Sequence(
        DispatchWorkflow("grandchild", wait=True, result="found"),
        Step(act, name="middle"),
        _dispatch("child"),
    ),
    output=var.found,
)
top = Workflow(
    "top",
    root=Sequence(DispatchWorkflow("middle", wait=True, result="found"), Step(act, name="top")),
    output=var.found,
)
weighty_child = Workflow(
    "weighty-child",
    inputs={"padding": str},
    root=Step(act, name="weighed", size=70_000, result="weight"),
    output={"weight": var.weight.padding, "given": inputs.padding},
)
weighty = Workflow(
    "weighty",
    inputs={"padding": str},
    root=Sequence(
        Step(act, name="before", size=70_000, result="weight"),
        DispatchWorkflow("weighty-child", input={"padding": var.weight.padding}, wait=True, result="child"),
        Step(act, name="after"),
        SetVariable("weight", None),
        SetVariable("child", None),
        Step(act, name="last"),
    ),
)
child_faults = Workflow("child-faults", root=_dispatch("failing-child", wait=True))
child_raises = Workflow("child-raises", root=_dispatch("raising-child", wait=True))
fault_handled = Workflow(
    "fault-handled",
    root=Sequence(
        _dispatch("failing-child", wait=True, result="child", on={"Faulted": Step(act, name="handled")}),
        If(
            var.child.error.type == "Wrong",
            then=Finish(output="handled"),
            otherwise=Fault("the fault was not told"),
        ),
    ),
)
retrying = Workflow(
    "retrying",
    root=Sequence(
        Step(flaky, name="third-time"),
        _dispatch("child", wait=True),
        Step(flaky, name="second-time", succeeds_at=2),
    ),
)
never_works = Workflow("never-works", root=Step(flaky, name="never", succeeds_at=99))
unknown_child = Workflow(
    "unknown-child",
    root=Sequence(
        DispatchWorkflow("no-such-workflow", wait=True, on={"DispatchFailed": Step(act, name="told")}),
        DispatchWorkflow("no-such-workflow"),
        Step(act, name="after"),
    ),
)
unknown_unhandled = Workflow("unknown-unhandled", root=DispatchWorkflow("no-such-workflow", wait=True))
queueing = Workflow(
    "queueing", root=Sequence(Step(queue, workflow="child", result="ids"), Step(act, name="after"))
)
bursting = Workflow(
    "bursting",
    commit="burst",
    root=Sequence(
        Step(act, name="one"),
        Step(act, name="two"),
        SetVariable("x", 1),
        _dispatch("child", wait=True, result="child"),
        Step(act, name="three"),
        Step(act, name="four"),
    ),
    output=var.child.told,
)
long_running = Workflow(
    "long-running",
    root=Sequence(*(Step(long, name=f"long-{number}") for number in range(4)), _dispatch("child", wait=True)),
)
slow = Workflow("slow", root=Sequence(Step(long, name="slow"), _dispatch("child"), Step(act, name="end")))
deployed_later = Workflow(
    "deployed-later", root=Sequence(Step(act, name="before"), Step("sim_later"), Step(act, name="after"))
)
killing = Workflow("killing", root=Sequence(Step(act, name="before"), Step(kill)))
killing_after_wait = Workflow(
    "killing-after-wait", root=Sequence(_dispatch("child", wait=True), Step(kill), Step(act, name="not"))
)
killing_first = Workflow("killing-first", commit="burst", root=Sequence(Step(act, name="x"), Step(kill)))
large = Workflow(
    "large",
    root=Sequence(
        Step(act, name="large-1", size=3_900, result="a"),
        Step(act, name="large-2", size=6_000, result="b"),
        DispatchWorkflow("large-child", input={"given": var.b}, wait=True, result="c"),
        Step(act, name="large-3", size=250_000),
        _dispatch("child", wait=True),
    ),
    output=var.c,
)
large_child = Workflow(
    "large-child",
    inputs={"given": dict},
    root=Sequence(
        Step(act, name="large-4", size=100_000, result="more"),
        Step(act, name="large-5", size=40_000, result="d"),
    ),
    output={"given": inputs.given, "more": var.more, "d": var.d},
)
outgrowing = Workflow(
    "outgrowing",
    root=Sequence(
        Step(act, name="a", size=200_000, result="a"), Step(act, name="b", size=200_000, result="b")
    ),
)
continuing = Workflow(
    "continuing", incidents="continue", root=Sequence(_dispatch("child"), Step(refuse), Step(act, name="not"))
)

delaying = Workflow(
    "delaying",
    root=Sequence(
        Fork(
            Sequence(Delay(30), Step(act, name="late")),
            Sequence(_dispatch("child", wait=True), Step(act, name="early")),
        ),
        Step(act, name="after"),
    ),
)
endless = Workflow("endless", root=Event("never"))
racing = Workflow(
    "racing",
    root=Sequence(
        Fork(
            Sequence(DispatchWorkflow("endless", wait=True), Step(act, name="not")),
            Sequence(Delay(20), Step(act, name="won")),
            wait="any",
        ),
        Step(act, name="after"),
    ),
)
hearing = Workflow(
    "hearing",
    root=Sequence(Event("said", payload={"n": 1}, result="heard"), Step(act, name="heard")),
    output=var.heard,
)
telling = Workflow(
    "telling",
    root=Sequence(
        Step(act, name="before"),
        PublishEvent("said", payload={"n": 2}),
        PublishEvent("said", payload={"n": 1}, input="hello"),
        Step(act, name="told"),
    ),
)
counting = Workflow(
    "counting",
    root=Sequence(
        SetVariable("n", 0),
        While(var.n < 2, Sequence(Event("tick"), Step(act, name="round"), SetVariable("n", var.n + 1))),
    ),
)
ticking = Workflow(
    "ticking", root=Sequence(PublishEvent("tick"), Step(act, name="between"), PublishEvent("tick"))
)
beginning = Workflow(
    "beginning", root=Sequence(Event("begin", starts=True, result="x"), Step(act, name="begun")), output=var.x
)
opening = Workflow(
    "opening",
    # Named so that it is published; it is the event that starts it.
    root=Sequence(PublishEvent("begin", input="go"), If(expr("1 = 2"), then=DispatchWorkflow("beginning"))),
)
late_child = Workflow("late-child", root=Step(act, name="late"))
dispatching_late = Workflow("dispatching-late", root=DispatchWorkflow("late-child"))
endless_middle = Workflow("endless-middle", root=DispatchWorkflow("endless", wait=True))
cancelled_tree = Workflow(
    "cancelled-tree",
    root=Sequence(
        DispatchWorkflow("endless-middle", cancel_with_parent=True),
        _dispatch("child"),
        DispatchWorkflow("endless-middle", wait=True),
        Step(act, name="not"),
    ),
)
told_of_unread = Workflow(
    "told-of-unread",
    root=Sequence(_dispatch("child", wait=True, on={"DispatchFailed": Step(act, name="told")})),
)
long_child = Workflow("long-child", root=Step(long, name="long-below"))
awaiting_long = Workflow(
    "awaiting-long", root=Sequence(DispatchWorkflow("long-child", wait=True), Step(act, name="after"))
)

announcing = Workflow(
    "announcing",
    root=Sequence(
        Step(act, name="before"),
        PublishEvent("sim/announced", input={"n": 1}, sinks=["queue"]),
        Step(act, name="after"),
    ),
)


def _tree(level: int, width: int) -> Workflow:
    below = DispatchWorkflow(f"tree-{level + 1}", wait=True)
    return Workflow(f"tree-{level}", root=ParallelForEach(list(range(width)), below))


tree_0, tree_1, tree_2 = _tree(0, 10), _tree(1, 10), _tree(2, 9)
tree_3 = Workflow("tree-3", root=Event("never"))

counted_child = Workflow(
    "counted-child",
    inputs={"item": {}, "index": int},
    root=Sequence(Step(act, name="counted"), If(inputs.item == "bad", then=Fault("bad item"))),
    output=inputs.index,
)
endless_child = Workflow("endless-child", inputs={"item": {}, "index": int}, root=Event("never"))


def _bulk(*items: str, workflow: str = "counted-child", **more: Any) -> BulkDispatchWorkflows:
    return BulkDispatchWorkflows(workflow, list(items), result="told", **more)


bulk = Workflow(
    "bulk", root=Sequence(_bulk("a", "b", "c", wait=True), Step(act, name="after")), output=var.told
)
bulk_unawaited = Workflow(
    "bulk-unawaited", root=Sequence(_bulk("a", "b", "c", concurrent_max=1), Step(act, name="after"))
)
bulk_in_lanes = Workflow(
    "bulk-in-lanes",
    root=Sequence(
        _bulk("a", "bad", "c", "d", wait=True, concurrent_max=2, tolerated_failures="50%"),
        Step(act, name="after"),
    ),
    output=var.told,
)
bulk_tolerating = Workflow(
    "bulk-tolerating",
    root=Sequence(_bulk("a", "bad", "c", wait=True, tolerated_failures=1), Step(act, name="after")),
    output=var.told,
)
bulk_failing = Workflow(
    "bulk-failing",
    root=Sequence(
        _bulk("a", "bad", "c", "d", wait=True, concurrent_max=1, on={"Faulted": Step(act, name="handled")}),
        Step(act, name="after"),
    ),
    output=var.told,
)
bulk_unknown = Workflow(
    "bulk-unknown",
    root=_bulk("a", "b", workflow="no-such-workflow", wait=True, concurrent_max=1, tolerated_failures=2),
    output=var.told,
)
bulk_handled = Workflow(
    "bulk-handled",
    root=Sequence(
        SetVariable("seen", []),
        _bulk(
            "a",
            "bad",
            "c",
            "d",
            wait=True,
            tolerated_failures=1,
            concurrent_max=3,
            batch_max=2,
            each_completed=Sequence(
                SetVariable("seen", expr("$append(var.seen, var.batch.index)")), Step(act, name="batch")
            ),
            each_faulted=SetVariable("bad", expr("$append(var.bad, var.batch.index)")),
        ),
        Step(act, name="after"),
    ),
    output={"seen": var.seen, "bad": var.bad, "told": var.told},
)
bulk_abandoned = Workflow(
    "bulk-abandoned",
    root=Sequence(
        Fork(
            _bulk("a", "b", "c", workflow="endless-child", wait=True, concurrent_max=2),
            Sequence(Delay(20), Step(act, name="won")),
            wait="any",
        ),
        Step(act, name="after"),
    ),
)
bulks_abandoned = Workflow(
    "bulks-abandoned",
    root=Fork(
        *(_bulk("a", workflow="endless-child", wait=True) for _ in range(3)),
        Sequence(Delay(20), Step(act, name="won")),
        wait="any",
    ),
)
bulk_endless = Workflow("bulk-endless", root=_bulk(*"abcde", workflow="endless-child", wait=True))
bulk_twice = Workflow(
    "bulk-twice",
    root=Sequence(Fork(_bulk("a", "b", wait=True), _bulk("c", "d", wait=True)), Step(act, name="after")),
)
listening = Workflow(
    "listening",
    root=Sequence(
        Event("ping", each=Sequence(Step(act, name="ping"), If(var.x.last == 1, then=Break())), result="x"),
        Step(act, name="after-pings"),
    ),
)
# With steps between, so that each has an instant of its own.
pinging = Workflow(
    "pinging",
    root=Sequence(
        PublishEvent("ping", input={"last": 0}),
        Step(act, name="between"),
        PublishEvent("ping", input={"last": 0}),
        Step(act, name="between"),
        PublishEvent("ping", input={"last": 1}),
    ),
)
overlapping = Workflow(
    "overlapping",
    root=Sequence(
        Fork(
            Event("ring", each=Sequence(Step(act, name="ring"), Delay(20), _dispatch("child"))),
            Event("stop"),
            wait="any",
        ),
        Step(act, name="stopped"),
    ),
)
ringing = Workflow(
    "ringing",
    root=Sequence(
        PublishEvent("ring", correlation_id="r"),
        PublishEvent("ring", correlation_id="r"),
        Delay(1_500),
        PublishEvent("stop"),
    ),
)
asked = Workflow("asked", root=Sequence(RunTask("t", result="x"), Step(act, name="answered")), output=var.x)
told = Workflow(
    "told",
    root=Sequence(
        Event("told", payload={"n": 1}, result="a"),
        Event("told", payload={"n": 1}, result="b"),
        Step(act, name="heard"),
        If(var.b.order == 2, then=Finish(), otherwise=Fault("out of order")),
    ),
)
acting = Workflow(
    "acting",
    root=Sequence(
        Step(tell, task_of="asked", run="lonely", workflow="child"), Step(act, name="after-telling")
    ),
)
only_one = Workflow(
    "only-one",
    activation="singleton",
    root=Sequence(Step(act, name="only"), Delay(20), Step(act, name="only-end")),
)
one_each = Workflow(
    "one-each", activation="correlation", root=Sequence(Step(act, name="each"), Delay(20), Finish())
)
# Lives longer than any fault holds up what comes after it.
long_one = Workflow(
    "long-one", activation="singleton", root=Sequence(Step(act, name="long-one"), Delay(6_000))
)
refused_child = Workflow(
    "refused-child",
    root=Sequence(
        DispatchWorkflow("long-one"),
        Delay(1_500),
        DispatchWorkflow("long-one"),
        DispatchWorkflow("long-one", wait=True, result="x", on={"DispatchFailed": Step(act, name="refused")}),
        If(
            var.x.error.type == "ActivationRefusedError",
            then=Step(act, name="after"),
            otherwise=Fault("the refusal was not told"),
        ),
    ),
)
beginning_once = Workflow(
    "beginning-once",
    activation="singleton",
    root=Sequence(Event("begin-once", starts=True), Step(act, name="begun-once"), Delay(6_000)),
)
opening_twice = Workflow(
    "opening-twice",
    root=Sequence(
        PublishEvent("begin-once"),
        Delay(1_500),
        PublishEvent("begin-once"),
        If(expr("1 = 2"), then=DispatchWorkflow("beginning-once")),
    ),
)
answering = Workflow(
    "answering",
    root=Sequence(
        HttpEndpoint("orders", methods=["POST"], starts=True, result="request"),
        Step(act, name="answered"),
        WriteHttpResponse(201, body=var.request.body),
        _dispatch("child", wait=True),
        Step(act, name="after"),
    ),
    output=var.request.body,
)
asking_early = Workflow(
    "asking-early",
    root=Sequence(
        Step(ask, name="x"), Delay(20), HttpEndpoint(name="x", result="x"), Step(act, name="called")
    ),
    output=var.x.body,
)
asking_late = Workflow(
    "asking-late",
    root=Sequence(
        Step(ask, name="x", answered_after=20),
        HttpEndpoint(name="x", result="x"),
        Step(act, name="called"),
    ),
    output=var.x.body,
)
rounding = Workflow(
    "rounding",
    root=Sequence(
        SetVariable("n", 0),
        While(
            var.n < 2,
            Sequence(Event("tick", result="got"), Step(act, name=var.got), SetVariable("n", var.n + 1)),
        ),
    ),
)
correlated = Workflow(
    "correlated",
    root=Sequence(Correlate("c-1"), Event("said", payload={"n": 1}), Step(act, name="heard")),
)
stepping = Workflow(
    "stepping",
    root=Sequence(Step(act, name="before"), Step(long, name="slow"), Event("never"), Step(act, name="not")),
)
heir = Workflow("heir", root=Sequence(Step(act, name="begun"), Event("never"), Step(act, name="not")))
testator = Workflow(
    "testator",
    root=Sequence(
        Fork(DispatchWorkflow("heir", wait=True), DispatchWorkflow("heir", wait=True)), Step(act, name="not")
    ),
)
brief = Workflow("brief", root=Step(act, name="brief", seconds=2, result="x"), output=var.x.done)
hasty = Workflow(
    "hasty", root=Sequence(DispatchWorkflow("brief", wait=True, result="told"), Step(act, name="after"))
)
tasked = Workflow(
    "tasked",
    root=Sequence(RunTask("approve", result="answer"), Step(act, name="answered")),
    output=var.answer,
)
waiting_for_begin = Workflow("waiting-for-begin", root=Sequence(Event("begin"), Step(act, name="heard")))
mortal = Workflow("mortal", root=Sequence(_dispatch("child", wait=True), Delay(5), Step(act, name="after")))

_DAYS_3 = 3 * 86_400
outliving = Workflow(
    "outliving", root=Sequence(_dispatch("child", wait=True), Delay(_DAYS_3), Step(act, name="after"))
)
long_liver = Workflow("long-liver", root=Sequence(Delay(_DAYS_3), Step(act, name="outlived")))
# Ends at once, and leaves the child alone that it has waited for, and a timer.
survived = Workflow(
    "survived",
    root=Fork(
        DispatchWorkflow("long-liver", wait=True, cancel_with_parent=False),
        Delay(10 * _DAYS_3),
        Step(act, name="won"),
        wait="any",
    ),
)


def _version(name: str) -> Workflow:
    """Return a version of one workflow that starts at an event, waits a while, and tells which it is."""
    return Workflow(
        "versioned",
        root=Sequence(Event("begin", starts=True), Step(act, name="begun"), Delay(30), Step(act, name=name)),
    )


version_a, version_b = _version("version-a"), _version("version-b")


def _clocked(name: str) -> Workflow:
    """Return a version of one workflow: it starts every ten minutes, and once after 1,500 seconds."""
    return Workflow(
        "clocked",
        root=Fork(
            Sequence(Timer(600, starts=True), Step(act, name=name)),
            StartAt("2030-03-17T18:11:40Z", starts=True),
            wait="any",
        ),
    )


clocked_a, clocked_b = _clocked("clock-a"), _clocked("clock-b")

BY_NAME = {name: each for name, each in list(globals().items()) if isinstance(each, Workflow)}
# Of several versions, the first: what else there is, scenarios publish themselves.
_BY_ID = {each.id: each for each in reversed(BY_NAME.values())}


def collect(definition_ids: set[str]) -> list[Workflow]:
    """Return the workflows of these ids and all that they dispatch, in the order of their ids."""
    found: dict[str, Workflow] = {}
    missing = sorted(definition_ids)
    while missing:
        workflow = _BY_ID.get(missing.pop())
        if workflow is not None and workflow.id not in found:
            found[workflow.id] = workflow
            missing += _named_in(workflow.data)
    return [found[definition_id] for definition_id in sorted(found)]


def _named_in(data: Any) -> list[str]:
    if isinstance(data, dict):
        named = [data["workflow"]] if isinstance(data.get("workflow"), str) else []
        return named + [name for each in data.values() for name in _named_in(each)]
    return [name for each in data for name in _named_in(each)] if isinstance(data, list) else []
