"""Values for each kind of property, so that tests cover every activity type by its `properties` alone.

A new kind of property needs a line in GOOD and one in WRONG; a new activity type needs none.
"""

from hypothesis import strategies as st

from aftercommit.activities import TYPES
from tests.unit.trees import BRANCHES, NAMES, RETRIES, TEXTS, VALUE_MAPS, VALUES

LEAF = {"type": "Finish"}
_CHILDREN = st.sampled_from([LEAF, {"type": "Sequence", "activities": [LEAF]}])
_ENDS = st.fixed_dictionaries({"from": NAMES, "to": NAMES}, optional={"outcome": NAMES})

GOOD = {
    "value": VALUES,
    "value_map": VALUE_MAPS | st.just("{% inputs.a %}"),
    "text": TEXTS,
    "texts": st.lists(TEXTS, max_size=3),
    "number": st.integers(1, 9),
    "flag": st.booleans(),
    "variable": NAMES,
    "options": RETRIES,
    "connections": st.lists(_ENDS, max_size=2),
    "child": _CHILDREN,
    "children": st.lists(_CHILDREN, max_size=2),
    "branches": st.dictionaries(BRANCHES, _CHILDREN, max_size=2),
}
# What no property of the kind takes. A `value` may be any JSON: only an expression can be wrong.
WRONG = {
    "value": ["{% 1 + %}", "{% inputs.a", "{% nobody.a %}", {"deep": ["{% ( %}"]}],
    "value_map": [1, True, "text", [], [{"a": 1}], {"a": "{% 1 + %}"}],
    "text": [1, True, "", [], {}, ["text"]],
    "texts": [1, True, "text", {}, [1], ["a", None]],
    "number": [0, -1, 1.5, True, "1", [], {}, 10**30 * 1.0],
    "flag": [0, 1, "true", [], {}],
    "variable": [1, True, "", "1x", "a b", "a.b", [], {}],
    "options": [1, True, "text", []],
    "choice": [1, True, "", "other", [], {}, ["all"]],
    "connections": [1, True, "text", {}, [1], [{}], [{"from": "a"}], [{"from": 1, "to": "b"}]],
    "child": [1, True, "text", [], {}, {"type": 1}, {"type": "Nothing"}, {"type": []}],
    "children": [1, True, "text", {}, LEAF, [1], [{}], [None], [{"type": "Nothing"}]],
    "branches": [1, True, "text", [], [LEAF], {"a": 1}, {"a": {}}, {"a": {"type": "Nothing"}}],
}

SAMPLES = {
    "value": 1,
    "value_map": {"a": 1},
    "text": "text",
    "texts": ["text"],
    "number": 1,
    "flag": True,
    "variable": "a",
    "options": {},
    "connections": [],
    "child": LEAF,
    "children": [LEAF],
    "branches": {"a": LEAF},
}


def good(each):
    """Return a strategy for the values of one property."""
    return st.sampled_from(each.choices) if each.kind == "choice" else GOOD[each.kind]


def nodes(kind):
    """Return a strategy for nodes of one type, each property of which is of its kind."""
    properties = TYPES[kind].properties
    return st.fixed_dictionaries(
        {"type": st.just(kind), **{name: good(each) for name, each in properties.items() if each.required}},
        optional={name: good(each) for name, each in properties.items() if not each.required},
    )


def wrong_nodes():
    """Yield (type, property, node in which just that property has a wrong value)."""
    for kind, activity in TYPES.items():
        required = {name: SAMPLES[each.kind] for name, each in activity.properties.items() if each.required}
        for name, each in activity.properties.items():
            for value in WRONG[each.kind]:
                yield kind, name, {"type": kind, **required, name: value}
