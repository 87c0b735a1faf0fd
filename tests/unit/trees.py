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
OUTCOMES = st.sampled_from(["Dispatched", "Completed", "Faulted", "Cancelled", "DispatchFailed"])


def _node(kind, required, optional):
    optional = {**optional, "result": NAMES}
    return st.fixed_dictionaries({"type": st.just(kind), **required}, optional=optional)


LEAVES = (
    _node("Step", {"activity": NAMES}, {"inputs": VALUE_MAPS, "retry": RETRIES})
    | _node("SetVariable", {"variable": NAMES}, {"value": VALUES})
    | _node("Fault", {"message": VALUES}, {"code": TEXTS})
    | _node("Finish", {}, {"output": VALUES})
)


def _composites(inner):
    return (
        _node("Sequence", {"activities": st.lists(inner, max_size=4)}, {})
        | _node("If", {"condition": VALUES, "then": inner}, {"otherwise": inner})
        | _node(
            "DispatchWorkflow",
            {"workflow": NAMES},
            {
                "input": VALUE_MAPS,
                "version": st.integers(1, 99),
                "correlation_id": EXPRESSIONS,
                "channel": TEXTS,
                "wait": st.booleans(),
                "on": st.dictionaries(OUTCOMES, inner, max_size=2),
            },
        )
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
            },
        ),
    },
)
