"""Expressions built with Python operators, and values written as they are."""

import copy
import math
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aftercommit.expressions import call, concat, expr, find_faults, inputs, is_in, literal, to_json, var
from tests.unit.evaluations import value_of


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (inputs.order_id, "inputs.order_id"),
        (var.items[0].sku, "var.items[0].sku"),
        (var.items[-1], "var.items[-1]"),
        (var["odd name"].x, "var.`odd name`.x"),
        (var["and"]["null"], "var.`and`.`null`"),
        (var["_x"], "var._x"),
        (var["back`tick"].y, '$lookup(var, "back`tick").y'),
        (var.a == "ok", 'var.a = "ok"'),
        (var.a != None, "var.a != null"),  # noqa: E711
        (var.a < 1, "var.a < 1"),
        (1 < var.a, "var.a > 1"),  # noqa: SIM300
        (var.a <= var.b, "var.a <= var.b"),
        (var.a >= -1, "var.a >= (-1)"),
        (var.a + var.b * 2, "var.a + var.b * 2"),
        ((var.a + var.b) * 2, "(var.a + var.b) * 2"),
        (var.a - (var.b - 1), "var.a - (var.b - 1)"),
        (var.a - var.b - 1, "var.a - var.b - 1"),
        (10 - var.a, "10 - var.a"),
        (2 * var.a / 3 % 4, "2 * var.a / 3 % 4"),
        (12 / var.a, "12 / var.a"),
        (12 % var.a, "12 % var.a"),
        (1 + var.a, "1 + var.a"),
        (-var.a, "-var.a"),
        (-(var.a + 1), "-(var.a + 1)"),
        ((-var.a) + 1, "-var.a + 1"),
        ((var.a == 1) & (var.b == 2), "var.a = 1 and var.b = 2"),
        ((var.a == 1) | (var.b == 2) & var.c, "var.a = 1 or var.b = 2 and var.c"),
        (((var.a == 1) | var.b) & var.c, "(var.a = 1 or var.b) and var.c"),
        (True & var.a, "true and var.a"),
        (False | var.a, "false or var.a"),
        (~(var.a & var.b), "(var.a and var.b ? false : true)"),
        ((var.a == 1) == (var.b == 2), "(var.a = 1) = (var.b = 2)"),
        ((var.a + 1).x, "(var.a + 1).x"),
        (expr("var.a ~> $sum") + 1, "(var.a ~> $sum) + 1"),
        (expr("{% var.a %}"), "var.a"),
        (call("sum", var.prices) > 3, "$sum(var.prices) > 3"),
        (call("now"), "$now()"),
        (concat("order ", var.a, 1), '"" & "order " & var.a & 1'),
        (concat(), '""'),
        (is_in(var.a, ["x", 1, None]), 'var.a in ["x", 1, null]'),
        (var.a == {"b": [var.c + 1]}, 'var.a = {"b": [var.c + 1]}'),
    ],
)
def test_operators_write_jsonata_with_the_parentheses_it_needs(expression, text):
    assert str(expression) == f"{{% {text} %}}"
    assert find_faults(str(expression), "x") == []


@settings(deadline=None)  # the first example may import the library
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text() | st.floats(-1e15, 1e15),
        lambda inner: st.lists(inner, min_size=2, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
        max_leaves=10,
    )
)
def test_literal_values_reach_jsonata_unharmed(value):
    assert value_of(call("append", [value], 1))[0] == value


@pytest.mark.parametrize("text", ["{% 1 %}", 'a "quoted" \\ text', "\n\t\x00", "😀", "", "$eval('1')"])
def test_literal_text_stays_what_it_is_whatever_it_looks_like(text):
    assert value_of(literal(text)) == text


def test_integer_that_jsonata_cannot_count_is_refused_when_written():
    with pytest.raises(ValueError, match=r"2\*\*53"):
        _ = var.a == 2**53 + 1


@pytest.mark.parametrize(
    "use",
    [
        lambda: bool(var.a),
        lambda: var.a and var.b,
        lambda: not var.a,
        lambda: 1 < var.a < 3,
        lambda: "a" in var.items,
        lambda: list(var.items),
        lambda: f"order {inputs.order_id}",
        lambda: var.items[var.i],
        lambda: var.items[1:2],
        lambda: var.items[True],
        lambda: "order " + inputs.order_id,
        lambda: inputs.order_id + "x",
        lambda: var.a * None,
        lambda: var.a == b"bytes",
    ],
)
def test_what_python_cannot_build_is_refused_with_advice(use):
    with pytest.raises(TypeError):
        use()


def test_expression_cannot_be_changed():
    with pytest.raises(AttributeError):
        var.a = 1
    with pytest.raises(AttributeError):
        var._a  # noqa: B018


def test_expression_can_be_copied_pickled_and_used_as_a_key():
    assert copy.deepcopy([var.a])[0] is not None
    assert str(pickle.loads(pickle.dumps(var.a + 1))) == str(var.a + 1)  # noqa: S301
    assert {inputs: 1}[inputs] == 1


def test_call_takes_only_function_names():
    with pytest.raises(ValueError, match="without the"):
        call("$sum", var.a)


def test_tree_of_python_values_becomes_plain_json():
    tree = {"a": (1, 2.5, None, True), "b": [inputs.x, {"c": var.y == 1}], "d": "{% var.z %}"}
    assert to_json(tree) == {
        "a": [1, 2.5, None, True],
        "b": ["{% inputs.x %}", {"c": "{% var.y = 1 %}"}],
        "d": "{% var.z %}",
    }


@pytest.mark.parametrize(
    ("value", "place"),
    [({"a": [b"x"]}, "value.a[0]"), ({1: 2}, "value"), ({"a": math.inf}, "value.a"), ({1, 2}, "value")],
)
def test_value_without_a_form_in_json_is_refused_by_its_place(value, place):
    with pytest.raises(TypeError) as raised:
        to_json(value)
    assert str(raised.value).startswith(f"{place}: ")
