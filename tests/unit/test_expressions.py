"""Expressions, evaluated: what they give, that they are bounded, and that nothing escapes them."""

import copy
import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aftercommit import sandbox
from aftercommit.draws import Draws
from aftercommit.errors import ExpressionError
from aftercommit.expressions import (
    EXPRESSION_CHARACTERS_MAX,
    call,
    concat,
    evaluate,
    find_faults,
    inputs,
    is_in,
    var,
)
from tests.unit.evaluations import AT, SCOPE, value_of


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (inputs.order_id, "o-1"),
        (inputs.big, 2**53 + 1),
        (inputs.whole, 1.0),
        (inputs.nothing, None),
        (inputs.nothing.x, None),
        (inputs.absent, None),
        (inputs.absent.deeper[0], None),
        (inputs.empty, []),
        (inputs.codes, [1, 2, 3]),
        (inputs.codes[0], 1),
        (inputs.codes[-1], 3),
        (inputs.codes[9], None),
        (inputs["items"][1].sku, "b"),
        (inputs["items"].sku, ["a", "b"]),
        (inputs.nested[0][1], 2),
        (inputs["odd name"]["in"], "x"),
        (inputs["odd name"]["back`tick"], "y"),
        (var.payment.status == "ok", True),
        (var.payment.status != "ok", False),
        (inputs.absent == "ok", False),
        (inputs.absent != "ok", False),
        (inputs.nothing != "ok", True),
        (inputs.absent < 1, None),
        (inputs.gift == 1, False),
        (inputs.gift == True, True),  # noqa: E712
        (inputs.whole == 1, True),
        (inputs.amount * inputs.price - 1, 113),
        (inputs.amount / 5, 2.4),
        (inputs.price % 2, 1.5),
        (-inputs.amount % 5, -2),
        (concat("#", inputs.order_id, inputs.amount, inputs.absent), "#o-112"),
        (is_in("a", inputs["items"].sku), True),
        (~inputs.absent, True),
        (~inputs.gift, False),
        ((inputs.gift == True) & (inputs.amount > 20), False),  # noqa: E712
        (call("sum", inputs["items"].size), 5),
        (call("count", inputs.empty), 0),
    ],
)
def test_expression_gives_what_it_says(expression, value):
    got = value_of(expression)
    assert got == value
    assert type(got) is type(value)


def test_everything_that_is_no_expression_is_copied_through():
    value = {
        "a": [1, "x", {"b": "{% inputs.codes %}"}],
        "c": "{% inputs.order_id",
        "d": " {% 1 %}",
        "e": None,
    }
    got = evaluate(value, SCOPE, at=AT, seed="s")
    assert got == value | {"a": [1, "x", {"b": [1, 2, 3]}]}


@pytest.mark.parametrize(
    "expression", ["inputs.codes", "inputs.items[0]", "(inputs.codes)", "[inputs.items]", "$$"]
)
def test_answer_shares_nothing_with_the_scope(expression):
    scope = copy.deepcopy(SCOPE)
    got = evaluate(f"{{% {expression} %}}", scope, at=AT, seed="s")
    containers, pending = [], [got]
    while pending:
        each = pending.pop()
        assert type(each) in (dict, list, str, int, float, bool, type(None))
        if isinstance(each, dict | list):
            containers.append(id(each))
            pending.extend(each.values() if isinstance(each, dict) else each)
    pending = [scope]
    while pending:
        each = pending.pop()
        if isinstance(each, dict | list):
            assert id(each) not in containers
            pending.extend(each.values() if isinstance(each, dict) else each)


@pytest.mark.parametrize(
    "expression",
    [
        'inputs.empty{"a": 1}',
        "inputs ~> |items|{'x': 1}|",
        "$append(inputs.codes, 4)",
        "$sort(inputs.codes, function($a, $b) { $a < $b })",
        "inputs.items^(>size)",
        "$reverse(inputs.codes)",
        "$shuffle(inputs.codes)",
        "$merge([inputs, {'order_id': 2}])",
        "inputs.items@$i#$n.{'i': $i, 'n': $n}",
        "inputs.codes[]",
    ],
)
def test_no_expression_changes_the_scope(expression):
    scope = copy.deepcopy(SCOPE)
    evaluate(f"{{% {expression} %}}", scope, at=AT, seed="s")
    assert scope == SCOPE


def test_time_is_the_instant_given():
    assert value_of("$millis()") == 1_700_000_000_250
    assert value_of("$now()") == "2023-11-14T22:13:20.250Z"
    assert value_of("$now('[Y]')") == "2023"


@pytest.mark.filterwarnings("ignore:datetime.datetime.utcnow")
@pytest.mark.parametrize(
    ("text", "picture", "value"),
    [
        ("10:30", "[H01]:[m01]", "2023-11-14T10:30:00.000Z"),
        ("10:30 pm", "[h01]:[m01] [P]", "2023-11-14T22:30:00.000Z"),
        ("02-03", "[M01]-[D01]", "2023-02-03T00:00:00.000Z"),
        ("05", "[D01]", "2023-11-05T00:00:00.000Z"),
        ("15", "[m01]", "2023-11-14T22:15:00.000Z"),
        ("07", "[s01]", "2023-11-14T22:13:07.000Z"),
        ("2020 32", "[Y0001] [d001]", "2020-02-01T00:00:00.000Z"),
        ("2020-01-02 03", "[Y]-[M01]-[D01] [H01]", "2020-01-02T03:00:00.000Z"),
    ],
)
def test_date_that_a_picture_leaves_out_is_that_of_the_instant_given(text, picture, value):
    assert value_of(f"$fromMillis($toMillis('{text}', '{picture}'))") == value


def test_chance_follows_from_the_seed():
    draw = "[$random(), $random(), $shuffle([1..20])]"
    assert value_of(draw, seed="a") == value_of(draw, seed="a")
    assert value_of(draw, seed="a") != value_of(draw, seed="b")
    first, second, *shuffled = value_of(draw, seed="a")
    assert first != second
    assert 0 <= first < 1
    assert sorted(shuffled) == list(range(1, 21))


def test_draws_of_one_evaluation_differ_from_one_another():
    got = evaluate({"a": "{% $random() %}", "b": "{% $random() %}"}, SCOPE, at=AT, seed="s")
    assert got["a"] != got["b"]


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("($f := function() { $f() }; $f())", "too much work"),
        ("($f := function($n) { 1 + $f($n) }; $f(1))", "nests deeper"),
        ("($f := function($s, $n) { $n = 0 ? $s : $f($s & $s, $n - 1) }; $f('x', 60))", "too much work"),
        ("($f := function($x, $n) { $n = 0 ? $x : $f([$x, $x], $n - 1) }; $f([1], 60))", "too much work"),
        ("$reduce([1..60], function($a, $i) { {'a': $a, 'b': $a} }, 1)", "too much work"),
        ("$reduce([1..60], function($a, $i) { $zip($a, $a) }, [1])", "too much work"),
        ("(  $x := [1]; $reduce([1..60], function($a, $i) { $a{'a': $a, 'b': $a} }, $x))", "too much work"),
        ("$pad('x', 1000000000)", "too much work"),
        ("$pad('x', -1000000000)", "too much work"),
        ("[1..10000000]", "too much work"),
        ("[1..9999].([1..9999])", "too much work"),
        ("$join($pad('', 5000, 'x') ~> $split(''), $pad('', 5000, 'y'))", "too much work"),
        ("$replace($pad('', 5000, 'x'), 'x', $pad('', 5000, 'y'))", "too much work"),
        ("$map([1..100000], function($i) { $i })", "too much work"),
        ("-" * 3_900 + "1", "nested too deeply"),
        ("1" + "+1" * 1_900, "nests deeper"),
        ("[" * 300 + "1" + "]" * 300, "nested deeper"),
        ("x" * (EXPRESSION_CHARACTERS_MAX + 1) + "+1", "longer than"),
    ],
)
def test_runaway_ends_as_a_fault_of_the_expression(expression, message, monkeypatch):
    monkeypatch.setattr(sandbox, "WORK_MAX", sandbox.WORK_MAX // 10)  # to be told sooner
    with pytest.raises(ExpressionError, match=message):
        value_of(expression)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("1 / 0", "divides by zero"),
        ("$power(10, 400)", "out of range"),
        ("1e308 * 10", "out of range"),
        ("'a' + 1", "must evaluate to a number"),
        ("'a' < 1", "same data type"),
        ("$error('no stock')", "no stock"),
        ("$sum", "gives a function"),
        ("[function($x) { $x }]", "gives a function"),
        ("{'a': /x/}", "gives a function"),
        ("'x'()", "non-function"),
        ("$nothing()", "non-function"),
        ("$eval('1 + 1')", "refused"),
        ("['1'].$eval($)", "refused"),
        ("$map(['1'], $eval)", "refused"),
        ("$parse('{')", "fails"),
        ("$parse('NaN')", "not JSON"),
        ("(((", "Expected"),
        ("", "Unexpected end"),
    ],
)
def test_failing_expression_says_why(expression, message):
    with pytest.raises(ExpressionError, match=message) as raised:
        value_of(expression)
    assert raised.value.expression == expression


def test_calling_what_is_no_function_prints_nothing(capsys):
    with pytest.raises(ExpressionError):
        value_of("inputs.order_id()")
    assert capsys.readouterr().out == ""


def test_parse_reads_json():
    assert value_of("""$parse('{"a": [1, null, 2.5]}')""") == {"a": [1, None, 2.5]}
    assert value_of("$parse('null')") is None
    assert value_of("$parse(inputs.absent)") is None


@pytest.mark.parametrize(
    "expression",
    [
        "inputs.__class__",
        "inputs.order_id.__class__.__mro__",
        "$.__init__",
        "$sum.__globals__",
        "$lookup(inputs, '__class__')",
        "$lookup($sum, '__globals__')",
        "inputs.keys",
        "`__builtins__`",
        "$__import__",
        "$__evaluate_entry",
        "$open",
        "$keys($sum)",
    ],
)
def test_nothing_of_python_can_be_reached(expression):
    assert value_of(f"[{expression}, 0]") == [0]


def test_escaped_surrogate_pair_is_one_character():
    assert value_of(r'"\ud83d\ude00"') == "😀"
    assert value_of(r'"\\ud83d"') == r"\ud83d"
    assert value_of(r"$length('\ud83d\ude00')") == 1


def test_range_is_as_long_as_it_says():
    assert value_of("$count([1..3])") == 3
    assert value_of("[3..1]") == []


def test_one_program_serves_many_threads_at_once():
    text = "{% $reduce($map([1..n], function($i) { $i * k }), function($a, $b) { $a + $b }) & $random() %}"
    barrier = threading.Barrier(8)

    def work(k):
        barrier.wait()
        return [evaluate(text, {"n": 20, "k": k}, at=AT, seed=str(k)) for _ in range(20)]

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(work, range(8)))
    for k, answer in enumerate(answers):
        assert answer == [evaluate(text, {"n": 20, "k": k}, at=AT, seed=str(k))] * 20
        assert answer[0].startswith(f"{210 * k}0.")


def test_plain_paths_never_import_the_library():
    code = (
        "import sys; from aftercommit.expressions import evaluate, find_faults\n"
        "scope = {'inputs': {'a': {'b': [1, {'c': 2}]}}, 'var': {}}\n"
        "value = ['{% inputs.a.b[1].c %}', '', '{% inputs.a.b[0] >= 1 %}', '{% var.x %}']\n"
        "assert evaluate(value, scope, at=0.0, seed='') == [2, '', True, None]\n"
        "assert not find_faults(value, 'x')\n"
        "assert not 'jsonata' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# --- the short cut equals the library ---

names = st.sampled_from(["a", "b", "in", "odd name"])
leaves = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.integers(2**53 - 2, 2**53 + 2)
    | st.floats(-3, 3)
    | st.sampled_from(["", "a", "b", "é"])
)
data = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4),
    max_leaves=12,
)
steps = st.lists(
    st.sampled_from([".a", ".b", ".`in`", ".`odd name`", "[0]", "[1]", "[-1]", "[-2]"]),
    min_size=1,
    max_size=5,
)
compared = st.just("") | st.builds(
    "{}{}{}".format,
    st.sampled_from([" = ", " != ", " < ", "<=", " >", " >= "]),
    st.just(""),
    st.sampled_from(["1", "0", "-1", "1.5", "2.0", '"a"', "'b'", '""', "true", "false", "9007199254740"]),
)


def outcome_of(run):
    try:
        got = run()
    except ExpressionError as error:
        return error.message
    return json.dumps(got), type(got)


@settings(deadline=None)  # the first example may import the library
@given(data, steps, compared)
def test_short_cut_answers_exactly_as_the_library(value, path, comparison):
    text = f"inputs{''.join(path)}{comparison}"
    scope = {"inputs": value, "var": {}}
    short = outcome_of(lambda: evaluate(f"{{% {text} %}}", scope, at=AT, seed="s"))
    long = outcome_of(lambda: sandbox.Program(text).run(copy.deepcopy(scope), Draws(AT, "s")))
    assert short == long


@settings(deadline=None)  # the first example may import the library
@given(st.text(alphabet="abx.[]{}()$%^*+-/&|'\"`\\1 0,;:=<>!?~@#\n", max_size=30))
def test_any_text_either_parses_or_is_a_fault(text):
    faults = find_faults(f"{{% {text} %}}", "p")
    try:
        evaluate(f"{{% {text} %}}", SCOPE, at=AT, seed="s")
    except ExpressionError:
        return
    assert faults == []
