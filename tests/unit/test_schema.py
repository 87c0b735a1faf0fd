import contextlib
import dataclasses
import enum
import json
from typing import Annotated, Any, Literal, NewType, NotRequired, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercommit.errors import InputRefusedError
from aftercommit.schema import (
    check_inputs,
    describe,
    find_schema_faults,
    inputs_schema,
    is_required,
    schema_of,
)


class Colour(enum.StrEnum):
    RED = "red"
    BLUE = "blue"


class Line(TypedDict):
    sku: str
    count: NotRequired[int]


@dataclasses.dataclass
class Address:
    street: str
    country: str = "NL"


class Loop(TypedDict):
    inner: "Loop"


LINE = {
    "type": "object",
    "properties": {"sku": {"type": "string"}, "count": {"type": "integer"}},
    "required": ["sku"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (None, {"type": "null"}),
        (dict, {"type": "object"}),
        (list, {"type": "array"}),
        (Any, {}),
        (object, {}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (dict[str, Any], {"type": "object", "additionalProperties": {}}),
        (str | None, {"type": ["string", "null"]}),
        (int | list[str], {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "string"}}]}),
        (Literal["a", 1], {"enum": ["a", 1]}),
        (Literal["a"] | None, {"anyOf": [{"enum": ["a"]}, {"type": "null"}]}),
        (Colour, {"enum": ["red", "blue"]}),
        (Annotated[int, "cents"], {"type": "integer"}),
        (NewType("OrderId", str), {"type": "string"}),
        (Line, LINE),
        (list[Line], {"type": "array", "items": LINE}),
        (
            Address,
            {
                "type": "object",
                "properties": {"street": {"type": "string"}, "country": {"type": "string", "default": "NL"}},
                "required": ["street"],
                "additionalProperties": False,
            },
        ),
    ],
)
def test_hint_becomes_its_schema(hint, schema):
    assert schema_of(hint) == schema
    assert find_schema_faults({"x": schema_of(hint)}, "inputs") == []


@pytest.mark.parametrize(
    ("hint", "place"),
    [
        (bytes, "total"),
        (list[bytes], "total[]"),
        (dict[int, str], "total"),
        (dict[str, bytes], "total.*"),
        (tuple[int, str], "total"),
        (set, "total"),
        (Loop, "total.inner"),
        (complex | None, "total"),
    ],
)
def test_hint_that_json_cannot_say_is_refused_by_name(hint, place):
    with pytest.raises(TypeError, match=rf"^{place.replace('[', '.').replace('*', '.')[:5]}") as raised:
        schema_of(hint, "total")
    assert str(raised.value).startswith(f"{place}: ")


def test_function_is_described_without_its_context():
    def charge_card(order_id: str, amount: int, context: object, note: str | None = None, retries=3) -> dict:
        """Charge the card.

        More about it.
        """

    assert describe(charge_card) == {
        "inputs": {
            "type": "object",
            "properties": {
                "order_id": {"type": "string"},
                "amount": {"type": "integer"},
                "note": {"type": ["string", "null"], "default": None},
                "retries": {"default": 3},
            },
            "required": ["order_id", "amount"],
            "additionalProperties": False,
        },
        "output": {"type": "object"},
        "description": "Charge the card.",
    }


def test_function_without_hints_or_docstring_takes_anything():
    assert describe(lambda thing: thing) == {
        "inputs": {
            "type": "object",
            "properties": {"thing": {}},
            "required": ["thing"],
            "additionalProperties": False,
        },
        "output": {},
        "description": "",
    }


def test_default_that_json_cannot_show_still_makes_a_parameter_optional():
    def act(thing=object()):  # noqa: B008
        pass

    assert describe(act)["inputs"]["required"] == []


def test_parameter_that_cannot_be_described_is_named():
    def act(ok: str, picture: bytes):
        pass

    with pytest.raises(TypeError, match="parameter 'picture' of act"):
        describe(act)


def test_return_value_that_cannot_be_described_is_named():
    def act() -> bytes:
        pass

    with pytest.raises(TypeError, match="return value of act"):
        describe(act)


def test_parameters_that_cannot_be_passed_by_name_are_refused():
    with pytest.raises(TypeError, match="passed by name"):
        describe(lambda *things: things)
    with pytest.raises(TypeError, match="passed by name"):
        describe(lambda thing, /: thing)


def test_hint_that_names_nothing_is_refused():
    def act(thing: "Nowhere"):  # noqa: F821
        pass

    with pytest.raises(TypeError, match="Nowhere"):
        describe(act)


def test_inputs_are_declared_by_types_or_by_schemas():
    declared = {"order_id": str, "note": {"type": "string", "default": "-"}, "gift": bool | None}
    assert inputs_schema(declared) == {
        "order_id": {"type": "string"},
        "note": {"type": "string", "default": "-"},
        "gift": {"type": ["boolean", "null"]},
    }


def test_faulty_declaration_is_refused_where_it_is_written():
    with pytest.raises(ValueError, match=r"inputs\.amount\.type"):
        inputs_schema({"amount": {"type": "money"}})
    with pytest.raises(TypeError, match="input 'amount'"):
        inputs_schema({"amount": bytes})


@pytest.mark.parametrize(
    ("schema", "required"),
    [
        ({"type": "string"}, True),
        ({}, True),
        ({"enum": ["a"]}, True),
        ({"type": "string", "default": "a"}, False),
        ({"type": "null"}, False),
        ({"type": ["string", "null"]}, False),
        ({"enum": ["a", None]}, False),
        ({"anyOf": [{"type": "array"}, {"type": "null"}]}, False),
    ],
)
def test_input_is_required_unless_it_has_a_default_or_names_null(schema, required):
    assert is_required(schema) is required


def test_what_is_left_out_is_filled_in():
    declared = inputs_schema({"a": int, "b": {"type": "array", "default": [1]}, "c": str | None})
    checked = check_inputs(declared, {"a": 1})
    assert checked == {"a": 1, "b": [1], "c": None}
    checked["b"].append(2)
    assert check_inputs(declared, {"a": 1})["b"] == [1]


def test_checked_inputs_are_a_copy():
    value = {"a": {"b": [1]}}
    checked = check_inputs({"a": {"type": "object"}}, value)
    value["a"]["b"].append(2)
    assert checked == {"a": {"b": [1]}}


DECLARED = inputs_schema(
    {
        "order_id": {"type": "string", "minLength": 1, "pattern": "^[a-z0-9-]+$"},
        "amount": {"type": "integer", "minimum": 1, "exclusiveMaximum": 1000},
        "items": {"type": "array", "items": LINE, "maxItems": 3, "default": []},
        "colour": {"enum": ["red", 1], "default": "red"},
        "rates": {"type": "object", "additionalProperties": {"type": "number"}, "default": {}},
        "to": {"anyOf": [{"type": "string"}, {"type": "object", "required": ["street"]}], "default": ""},
        "any": {"default": None},
        "kind": {"const": True, "default": True},
    }
)


@pytest.mark.parametrize(
    ("change", "field", "message"),
    [
        ({"order_id": 3}, "input.order_id", "must be a text, not a whole number"),
        ({"order_id": None}, "input.order_id", "must be a text, not null"),
        ({"order_id": ""}, "input.order_id", "must have at least 1 characters, not 0"),
        ({"order_id": "A b"}, "input.order_id", "must match the pattern ^[a-z0-9-]+$"),
        ({"amount": True}, "input.amount", "must be a whole number, not true or false"),
        ({"amount": 1.5}, "input.amount", "must be a whole number, not a number"),
        ({"amount": "1"}, "input.amount", "must be a whole number, not a text"),
        ({"amount": 0}, "input.amount", "must be at least 1"),
        ({"amount": 1000}, "input.amount", "must be less than 1000"),
        ({"items": {}}, "input.items", "must be a list, not an object"),
        ({"items": [{"sku": "a"}] * 4}, "input.items", "must have at most 3 items, not 4"),
        ({"items": [{"sku": "a"}, {"sku": "b"}, {"sku": 1}]}, "input.items[2].sku", "must be a text"),
        ({"items": [{}]}, "input.items[0].sku", "is missing"),
        (
            {"items": [{"sku": "a", "size": 1}]},
            "input.items[0].size",
            "is not a known field (known: sku, count)",
        ),
        ({"colour": "green"}, "input.colour", 'must be one of "red", 1'),
        ({"colour": True}, "input.colour", "must be one of"),
        ({"rates": {"eu": "x"}}, "input.rates.eu", "must be a number"),
        ({"to": 3}, "input.to", "must be a text, not a whole number"),
        ({"to": {"city": "x"}}, "input.to.street", "is missing"),
        ({"kind": 1}, "input.kind", "must be true"),
        ({"any": float("nan")}, "input.any", "must be a finite number"),
        ({"any": [{"x": "\ud800"}]}, "input.any[0].x", "lone surrogate"),
        ({"any": {"\ud800": 1}}, "input.any", "lone surrogate"),
        ({"clour": "red"}, "input.clour", "is not an input of this workflow (its inputs: order_id, amount"),
    ],
)
def test_input_that_does_not_fit_is_refused_by_its_field(change, field, message):
    with pytest.raises(InputRefusedError) as raised:
        check_inputs(DECLARED, {"order_id": "o-1", "amount": 1} | change)
    assert raised.value.field == field
    assert message in raised.value.message


def test_missing_input_is_named():
    with pytest.raises(InputRefusedError) as raised:
        check_inputs(DECLARED, {"order_id": "o-1"})
    assert (raised.value.field, raised.value.message) == ("input.amount", "is missing")


@pytest.mark.parametrize("value", [None, [], "x", 3])
def test_input_that_is_no_object_is_refused(value):
    with pytest.raises(InputRefusedError) as raised:
        check_inputs(DECLARED, value)
    assert raised.value.field == "input"


def test_message_never_repeats_the_refused_value():
    with pytest.raises(InputRefusedError) as raised:
        check_inputs({"pin": {"type": "string", "pattern": "^[0-9]+$"}}, {"pin": "secret"})
    assert "secret" not in str(raised.value)


def test_nesting_without_end_is_refused_before_it_breaks_anything():
    value: Any = 1
    for _ in range(900):
        value = [value]
    with pytest.raises(InputRefusedError, match="nested deeper"):
        check_inputs({"any": {}}, {"any": value})


def test_whole_float_is_a_whole_number():
    assert check_inputs({"n": {"type": "integer"}}, {"n": 3.0}) == {"n": 3.0}


@pytest.mark.parametrize(
    ("declared", "path"),
    [
        ([], "inputs"),
        ({"a": "string"}, "inputs.a"),
        ({"a": {"type": "money"}}, "inputs.a.type"),
        ({"a": {"type": []}}, "inputs.a.type"),
        ({"a": {"typ": "string"}}, "inputs.a.typ"),
        ({"a": {"$ref": "http://example.com/x"}}, "inputs.a.$ref"),
        ({"a": {"properties": []}}, "inputs.a.properties"),
        ({"a": {"properties": {"b": {"type": 3}}}}, "inputs.a.properties.b.type"),
        ({"a": {"items": [{}]}}, "inputs.a.items"),
        ({"a": {"items": {"items": {"minimum": "1"}}}}, "inputs.a.items.items.minimum"),
        ({"a": {"anyOf": []}}, "inputs.a.anyOf"),
        ({"a": {"anyOf": [{}, {"x": 1}]}}, "inputs.a.anyOf[1].x"),
        ({"a": {"additionalProperties": {"x": 1}}}, "inputs.a.additionalProperties.x"),
        ({"a": {"required": "b"}}, "inputs.a.required"),
        ({"a": {"pattern": "("}}, "inputs.a.pattern"),
        ({"a": {"minLength": True}}, "inputs.a.minLength"),
        ({"a": {"maxItems": -1}}, "inputs.a.maxItems"),
        ({"a": {"maximum": float("inf")}}, "inputs.a.maximum"),
        ({"a": {"enum": []}}, "inputs.a.enum"),
        ({"a": {"type": "string", "default": 1}}, "inputs.a.default"),
    ],
)
def test_faulty_schema_is_found_where_it_is(declared, path):
    assert [fault for fault, _ in find_schema_faults(declared, "inputs")] == [path]


def test_all_faults_are_found_not_only_the_first():
    assert len(find_schema_faults({"a": {"type": 1}, "b": {"x": 1, "y": 2}}, "inputs")) == 3


def test_schema_nested_without_end_is_a_fault():
    schema: Any = {}
    for _ in range(900):
        schema = {"items": schema}
    assert "nested deeper" in find_schema_faults({"a": schema}, "inputs")[0][1]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(json_values)
def test_any_data_as_declaration_or_input_is_answered_with_faults_never_a_crash(data):
    if not find_schema_faults(data, "inputs"):
        with contextlib.suppress(InputRefusedError):
            check_inputs(data, {})
    with contextlib.suppress(InputRefusedError):
        check_inputs(DECLARED, data)


keyword_values = st.dictionaries(
    st.sampled_from(
        ["type", "enum", "items", "properties", "required", "anyOf", "minimum", "maxLength", "default"]
    ),
    st.sampled_from(
        ["string", "array", ["null", "object"], {}, {"a": {}}, [{}], ["a"], 1, -1, True, None, [None]]
    ),
)


@given(
    st.dictionaries(st.sampled_from("ab"), keyword_values),
    st.dictionaries(st.sampled_from("ab"), json_values),
)
def test_schema_without_faults_can_check_anything(declared, value):
    if find_schema_faults(declared, "inputs"):
        return
    try:
        checked = check_inputs(declared, value)
    except InputRefusedError:
        return
    assert checked.keys() == declared.keys()
    json.dumps(checked, allow_nan=False)
