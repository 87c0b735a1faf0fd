"""Faults of expressions, found before anything is evaluated."""

import pytest

from aftercommit.errors import ExpressionError
from aftercommit.expressions import evaluate, find_faults, is_expression
from tests.unit.evaluations import AT, SCOPE


def test_every_fault_is_found_with_its_path():
    value = {
        "activities": [
            {"type": "Step", "inputs": {"ok": "{% inputs.a %}", "order_id": "{% inputs. %}"}},
            {"condition": "{% ((1 %}"},
        ],
        "plain": "{ % x",
        "slip": "{% inputs.a }",
    }
    faults = find_faults(value, "root")
    assert [path for path, _ in faults] == [
        "root.activities[0].inputs.order_id",
        "root.activities[1].condition",
        "root.slip",
    ]
    assert all(message for _, message in faults)


def test_path_that_starts_with_an_unknown_name_is_a_fault():
    assert find_faults("{% input.order_id %}", "x", {"inputs", "var"}) == [
        ("x", "unknown name 'input'; an expression starts with inputs or var")
    ]
    assert find_faults("{% inputs.order_id %}", "x", {"inputs", "var"}) == []


def test_nesting_without_end_is_a_fault_and_ends_an_evaluation():
    value = 1
    for _ in range(900):
        value = [value]
    assert "nested deeper" in find_faults(value, "x")[0][1]
    with pytest.raises(ExpressionError, match="nested deeper"):
        evaluate(value, SCOPE, at=AT, seed="s")


def test_finding_faults_evaluates_nothing():
    assert find_faults("{% $error('x') %}", "x") == []


def test_marks_alone_make_an_expression():
    assert is_expression("{% 1 %}")
    assert is_expression("{%1%}")
    assert not is_expression("{%}")
    assert not is_expression("x {% 1 %}")
