"""Any tree of the catalogue, as data, for property tests."""

from hypothesis import strategies as st

import aftercommit.sandbox  # noqa: F401 - its library sets the recursion limit, which must not change midway

NAMES = st.sampled_from(["a", "b", "total", "order_id"])
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="{%"), min_size=1, max_size=8)
SCALARS = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e9, 1e9) | TEXTS
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=4,
)
EXPRESSIONS = st.sampled_from(["{% inputs.a %}", "{% var.total %}", "{% var.total > 3 %}", "{% 1 + 1 %}"])
VALUES = JSON.filter(lambda value: value is not None) | EXPRESSIONS
VALUE_MAPS = st.dictionaries(NAMES, VALUES, min_size=1, max_size=3)
RETRIES = st.fixed_dictionaries(
    {"attempts_max": st.integers(1, 9)},
    optional={"backoff": st.integers(1, 3), "non_retryable": st.lists(TEXTS, max_size=2)},
)
BAD_ENDINGS = ["Faulted", "Cancelled", "DispatchFailed"]
INSTANTS = st.sampled_from(["2026-11-30T21:45:25Z", "2026-12-01T01:45:25+03:00"])
# Names of branches: without dots, which could make two activities one path.
BRANCHES = TEXTS.filter(lambda text: "." not in text)
ERRORS = st.lists(st.sampled_from(["E", "Fault", "OSError", "Wrong"]), max_size=2)


def _node(kind, required, optional):
    return st.fixed_dictionaries({"type": st.just(kind), **required}, optional=optional)


EVENTS = {
    "payload": VALUE_MAPS,
    "starts": st.booleans(),
    "scope": st.sampled_from(["all", "activity"]),
    "result": NAMES,
}
LEAVES = (
    _node("Step", {"activity": NAMES}, {"inputs": VALUE_MAPS, "retry": RETRIES, "result": NAMES})
    | _node("SetVariable", {"variable": NAMES}, {"value": VALUES})
    | _node("Fault", {"message": VALUES}, {"code": TEXTS})
    | _node("Finish", {}, {"output": VALUES})
    | _node("Correlate", {"correlation_id": TEXTS | EXPRESSIONS}, {})
    | _node("Delay", {"seconds": st.integers(0, 99) | EXPRESSIONS}, {})
    | _node("StartAt", {"at": INSTANTS | EXPRESSIONS}, {})
    | _node("Event", {"name": NAMES}, EVENTS)
    | _node(
        "PublishEvent",
        {"name": NAMES},
        {"payload": VALUE_MAPS, "input": VALUES, "correlation_id": TEXTS, "local": st.booleans()},
    )
    | _node("RunTask", {"name": NAMES}, {"inputs": VALUE_MAPS, "result": NAMES})
    | _node("HttpEndpoint", {"name": NAMES | EXPRESSIONS}, {"result": NAMES})
    | _node(
        "HttpEndpoint",
        {"starts": st.just(value=True), "path": st.sampled_from(["a", "orders/new", "v1.0/~x"])},
        {"methods": st.just(["PUT", "POST"]), "registers_none": st.just(value=True), "result": NAMES},
    )
    | _node("WriteHttpResponse", {}, {"status": st.integers(100, 700), "headers": VALUE_MAPS, "body": VALUES})
)
ITEMS = st.lists(SCALARS, max_size=3)
CONDITIONS = st.booleans() | EXPRESSIONS


def _with_break(body):
    """Bodies of loops: what may be anywhere, alone or before a Break."""
    stop = st.just({"type": "Break"})
    return (
        body
        | st.lists(body, max_size=2).map(
            lambda some: {"type": "Sequence", "activities": [*some, {"type": "Break"}]}
        )
        | st.builds(lambda guarded, last: {"type": "Try", "body": guarded, "finally": last}, stop, body)
    )


def _dispatches(inner, *, wait, endings):
    return _node(
        "DispatchWorkflow",
        {"workflow": NAMES, **({"wait": st.just(wait)} if wait else {})},
        {
            "input": VALUE_MAPS,
            "version": st.integers(1, 99),
            "correlation_id": EXPRESSIONS,
            "channel": TEXTS,
            "cancel_with_parent": st.booleans(),
            "on": st.dictionaries(st.sampled_from(endings), inner, max_size=2),
            "result": NAMES,
        },
    )


def _bulks(inner):
    common = {
        "input": VALUE_MAPS,
        "item": st.just("each"),
        "index": NAMES,
        "version": st.integers(1, 99),
        "correlation_id": EXPRESSIONS,
        "channel": TEXTS,
        "concurrent_max": st.integers(1, 3) | EXPRESSIONS,
        "result": NAMES,
    }
    required = {"workflow": NAMES, "items": ITEMS | EXPRESSIONS}
    waiting = {
        "tolerated_failures": st.integers(0, 3) | st.sampled_from(["0%", "33.3%", "100%"]) | EXPRESSIONS,
        "each_completed": inner,
        "each_faulted": inner,
        "batch": NAMES,
        "batch_max": st.integers(1, 100),
        "on": st.dictionaries(st.sampled_from(["Completed", "Faulted"]), inner, max_size=2),
    }
    not_waiting = {"on": st.dictionaries(st.just("Dispatched"), inner, max_size=1)}
    return _node(
        "BulkDispatchWorkflows", {**required, "wait": st.just(value=True)}, {**common, **waiting}
    ) | _node("BulkDispatchWorkflows", required, {**common, **not_waiting})


@st.composite
def _flowcharts(draw, inner):
    """Flowcharts whose connections lead onwards, save those out of a task, which takes time."""
    names = ["start", "middle", "last"]
    places = st.integers(0, 2)
    connections = [
        {"from": names[min(ends)], "to": names[max(ends)], **draw(st.sampled_from([{}, {"outcome": "Done"}]))}
        for ends in draw(st.lists(st.tuples(places, places), max_size=4))
        if ends[0] != ends[1]
    ]
    activities = {name: draw(inner) for name in names}
    if draw(st.booleans()):
        activities["task"] = {"type": "RunTask", "name": "t"}
        connections += [{"from": "last", "to": "task"}, {"from": "task", "to": "start", "outcome": "Done"}]
    return {
        "type": "Flowchart",
        "activities": activities,
        "start": draw(st.sampled_from(names)),
        "connections": connections,
        **draw(st.sampled_from([{}, {"joins": {"last": "all"}}, {"joins": {"middle": "any"}}])),
    }


def _composites(inner):
    loop = {"item": NAMES, "index": st.just("number")}
    return (
        _node("Sequence", {"activities": st.lists(inner, max_size=4)}, {})
        | _node("If", {"condition": CONDITIONS, "then": inner}, {"otherwise": inner})
        | _node(
            "Switch",
            {"value": VALUES, "cases": st.dictionaries(BRANCHES, inner, max_size=2)},
            {"otherwise": inner},
        )
        | _node("Fork", {"branches": st.lists(inner, max_size=3)}, {"wait": st.sampled_from(["all", "any"])})
        | _node("While", {"condition": st.just(value=False) | EXPRESSIONS, "body": _with_break(inner)}, {})
        | _node("ForEach", {"items": ITEMS | EXPRESSIONS, "body": _with_break(inner)}, loop)
        | _node("ParallelForEach", {"items": ITEMS | EXPRESSIONS, "body": _with_break(inner)}, loop)
        | _node("Event", {"name": NAMES, "each": _with_break(inner)}, EVENTS)
        | _node("Try", {"body": inner}, {"handler": inner, "finally": inner, "errors": ERRORS})
        | _dispatches(inner, wait=True, endings=["Completed", *BAD_ENDINGS])
        | _dispatches(inner, wait=False, endings=["Dispatched"])
        | _bulks(inner)
        | _node(
            "SendHttpRequest",
            {"url": st.sampled_from(["https://example.com/a?b=c", "{% inputs.a %}"])},
            {
                "method": st.sampled_from(["GET", "POST"]),
                "headers": st.just({"x-a": "b"}) | VALUE_MAPS,
                "body": VALUES,
                "timeout_seconds": st.integers(1, 600),
                "retry": RETRIES,
                "on": st.dictionaries(
                    st.sampled_from(["200", "4xx", "Timeout", "Failed"]), inner, max_size=3
                ),
                "result": NAMES,
            },
        )
        | _flowcharts(inner)
    )


TREES = st.recursive(LEAVES, _composites, max_leaves=8)
DEFINITIONS = st.fixed_dictionaries(
    {"id": st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True), "root": TREES},
    optional={
        "version": st.integers(1, 1000),
        "inputs": st.dictionaries(NAMES, st.just({"type": "string"}), max_size=2),
        "output": VALUES,
        "options": st.fixed_dictionaries(
            {},
            optional={
                "commit": st.sampled_from(["step", "burst"]),
                "incidents": st.sampled_from(["fault", "continue"]),
                "activation": st.sampled_from(["always", "singleton", "correlation"]),
            },
        ),
    },
)
