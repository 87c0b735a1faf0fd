"""Expressions: how a definition computes with an instance's inputs and variables.

A text `{% ... %}` in a definition is a JSONata expression, as in AWS Step Functions. The first half builds
such texts from Python operators, the second half evaluates them: without effects, and the same each time.
Plain paths, and a path compared with a literal, are answered here; the rest runs in `sandbox`, which is
imported for the first expression that needs it (the JSONata library takes 110 ms).
"""

import json
import math
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NoReturn

from aftercommit.draws import Draws
from aftercommit.errors import ExpressionError
from aftercommit.limits import FAULTS_MAX, NESTING_MAX
from aftercommit.paths import INTEGER_MAX, KEYWORDS, NAME, UNUSUAL, Plan, follow, plan_of

if TYPE_CHECKING:
    from aftercommit.sandbox import Program

# Characters of one expression: the library takes a second to parse this, and four for twice as much.
EXPRESSION_CHARACTERS_MAX = 4_000
# Expressions kept compiled per process.
PROGRAMS_MAX = 1_024

# How tightly an operator binds, in JSONata's own numbers.
_ATOM, _UNARY, _PRODUCT, _SUM, _COMPARISON, _AND, _OR, _RAW = 100, 70, 60, 50, 40, 30, 25, 0


# --- building ---


class Expression:
    """A JSONata expression under construction; immutable.

    Attribute and item access extend the path (`var.items[0].sku`, `var["odd name"]`). The operators
    `== != < <= > >= + - * / %` compute, `&` is *and*, `|` is *or*, `~` is *not*; they build, so put
    comparisons in parentheses: `(var.a == 1) & (var.b == 2)`. `+` adds numbers; `concat` joins texts.
    A name that begins with an underscore is reached as an item.
    """

    __slots__ = ("_binding", "_text")
    _binding: int
    _text: str

    def __init__(self, text: str, binding: int = _RAW) -> None:
        object.__setattr__(self, "_text", text)
        object.__setattr__(self, "_binding", binding)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"an expression cannot be assigned to: {self._text}.{name}")

    def __getattr__(self, name: str) -> "Expression":
        if name.startswith("_"):  # Python's own protocols ask for such names (copy, pickle, numpy)
            raise AttributeError(name)
        return self[name]

    def __getitem__(self, key: str | int) -> "Expression":
        base = _operand(self, _ATOM)
        if isinstance(key, str):
            if "`" in key:  # JSONata's quoted names have no escape for it
                return call("lookup", self, key)
            return Expression(f"{base}.{_quoted(key)}", _ATOM)
        if type(key) is int:
            return Expression(f"{base}[{key}]", _ATOM)
        raise TypeError(
            f"{self._text} is indexed with a name or an integer, not {key!r}; "
            "for anything else write the JSONata yourself: expr('...')"
        )

    def __iter__(self) -> NoReturn:
        raise TypeError(f"{self._text} has no value yet, so it cannot be iterated; let an activity do that")

    def __contains__(self, item: object) -> NoReturn:
        raise TypeError(f"Python's `in` cannot build an expression; write is_in(..., {self._text})")

    def __bool__(self) -> NoReturn:
        raise TypeError(
            f"{self._text} has no value yet, so Python cannot branch on it. Use & for and, | for or, "
            "~ for not, with parentheses around comparisons: (var.a == 1) & (var.b == 2)"
        )

    def __format__(self, format_spec: str) -> NoReturn:
        raise TypeError(f"{self._text} has no value yet, so it cannot be put in a text; use concat(...)")

    def __str__(self) -> str:
        return f"{{% {self._text} %}}"

    def __repr__(self) -> str:
        return f"Expression({self._text!r})"

    def __copy__(self) -> "Expression":
        return self

    def __deepcopy__(self, memo: object) -> "Expression":
        return self

    def __reduce__(self) -> tuple[type["Expression"], tuple[str, int]]:
        return Expression, (self._text, self._binding)

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> "Expression":  # type: ignore[override]
        return _comparison(self, "=", other)

    def __ne__(self, other: object) -> "Expression":  # type: ignore[override]
        return _comparison(self, "!=", other)

    def __lt__(self, other: object) -> "Expression":
        return _comparison(self, "<", other)

    def __le__(self, other: object) -> "Expression":
        return _comparison(self, "<=", other)

    def __gt__(self, other: object) -> "Expression":
        return _comparison(self, ">", other)

    def __ge__(self, other: object) -> "Expression":
        return _comparison(self, ">=", other)

    def __add__(self, other: object) -> "Expression":
        return _arithmetic(self, "+", other, _SUM)

    def __radd__(self, other: object) -> "Expression":
        return _arithmetic(other, "+", self, _SUM)

    def __sub__(self, other: object) -> "Expression":
        return _arithmetic(self, "-", other, _SUM)

    def __rsub__(self, other: object) -> "Expression":
        return _arithmetic(other, "-", self, _SUM)

    def __mul__(self, other: object) -> "Expression":
        return _arithmetic(self, "*", other, _PRODUCT)

    def __rmul__(self, other: object) -> "Expression":
        return _arithmetic(other, "*", self, _PRODUCT)

    def __truediv__(self, other: object) -> "Expression":
        return _arithmetic(self, "/", other, _PRODUCT)

    def __rtruediv__(self, other: object) -> "Expression":
        return _arithmetic(other, "/", self, _PRODUCT)

    def __mod__(self, other: object) -> "Expression":
        return _arithmetic(self, "%", other, _PRODUCT)

    def __rmod__(self, other: object) -> "Expression":
        return _arithmetic(other, "%", self, _PRODUCT)

    def __neg__(self) -> "Expression":
        return Expression(f"-{_operand(self, _ATOM)}", _UNARY)

    def __and__(self, other: object) -> "Expression":
        return _binary(self, "and", other, _AND)

    def __rand__(self, other: object) -> "Expression":
        return _binary(other, "and", self, _AND)

    def __or__(self, other: object) -> "Expression":
        return _binary(self, "or", other, _OR)

    def __ror__(self, other: object) -> "Expression":
        return _binary(other, "or", self, _OR)

    def __invert__(self) -> "Expression":
        # Not $not(...): that leaves undefined undefined, hence false, where one means true.
        return Expression(f"({_operand(self, _OR)} ? false : true)", _ATOM)


inputs: Final = Expression("inputs", _ATOM)
var: Final = Expression("var", _ATOM)


def expr(text: str) -> Expression:
    """Make an expression of JSONata text, with or without the `{% %}` around it."""
    inner = text[2:-2] if is_expression(text) else text
    return Expression(inner.strip())


def literal(text: str) -> Expression:
    """Make an expression whose value is `text` itself, whatever it looks like (even `{% ... %}`)."""
    return Expression(_written(text), _ATOM)


def call(function: str, *arguments: object) -> Expression:
    """Call a JSONata function by its name without `$`: `call("sum", var.prices)`."""
    if not NAME.fullmatch(function):
        raise ValueError(f"{function!r} is not the name of a JSONata function (give it without the $)")
    return Expression(f"${function}({', '.join(_operand(argument, _RAW) for argument in arguments)})", _ATOM)


def concat(*parts: object) -> Expression:
    """Join texts; anything else is first written as JSON, and what is undefined adds nothing."""
    if not parts:
        return literal("")
    return Expression(" & ".join(_operand(part, _SUM + 1) for part in ("", *parts)), _SUM)


def is_in(item: object, choices: object) -> Expression:
    """Tell whether `item` is among `choices` (a list, or an expression that gives one)."""
    return _binary(item, "in", choices, _COMPARISON, chains=False)


def is_expression(text: str) -> bool:
    """Tell whether a JSON string is an expression: it starts with `{%` and ends with `%}`."""
    return text[:2] == "{%" and text[-2:] == "%}" and len(text) >= 4  # noqa: PLR2004 (the two marks)


def to_json(value: object, path: str = "value") -> Any:  # noqa: PLR0911 (one per kind of JSON)
    """Turn nested Python values into plain JSON, expressions into their `{% ... %}` text.

    Tuples become lists, enumerations of texts and integers their values. A str that looks like `{% ... %}`
    is an expression; `literal` makes one that is not. Raises TypeError, naming the place, for a value that
    JSON has no form for.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Expression):
        return str(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise TypeError(f"{path}: a name in JSON is a text, not {key!r}")
        return {str.__str__(key): to_json(item, f"{path}.{key}") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item, f"{path}[{index}]") for index, item in enumerate(value)]
    raise TypeError(f"{path}: JSON has no form for {value!r} ({type(value).__name__})")


def _quoted(name: str) -> str:
    return name if NAME.fullmatch(name) and name not in KEYWORDS else f"`{name}`"


def _written(value: object, path: str = "literal") -> str:
    """Write a Python value as a JSONata literal."""
    if isinstance(value, Expression):
        return _operand(value, _RAW)
    if isinstance(value, Mapping):
        members = (f"{_written(str(key))}: {_written(item)}" for key, item in value.items())
        return f"{{{', '.join(members)}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_written(item) for item in value)}]"
    if isinstance(value, int) and abs(value) > INTEGER_MAX:
        raise ValueError(f"{value} is more than JSONata can count exactly (2**53); pass it as an input")
    # Characters stay as they are: JSONata reads \ud83d\ude00 as two halves, not as one character.
    return json.dumps(to_json(value, path), ensure_ascii=False)


def _operand(value: object, binding: int) -> str:
    """Write an operand, in parentheses if it binds less tightly than `binding`."""
    if not isinstance(value, Expression):
        text = _written(value)
        return f"({text})" if text.startswith("-") and binding > _RAW else text
    return f"({value._text})" if value._binding < binding else value._text  # noqa: SLF001 (attributes are paths)


def _binary(left: object, operator: str, right: object, binding: int, *, chains: bool = True) -> Expression:
    first = _operand(left, binding if chains else binding + 1)
    return Expression(f"{first} {operator} {_operand(right, binding + 1)}", binding)


def _comparison(left: object, operator: str, right: object) -> Expression:
    return _binary(left, operator, right, _COMPARISON, chains=False)


def _arithmetic(left: object, operator: str, right: object, binding: int) -> Expression:
    for side in (left, right):
        if isinstance(side, str | bool) or side is None:
            raise TypeError(f"{operator} computes with numbers, not {side!r}; concat(...) joins texts")
    return _binary(left, operator, right, binding)


# --- evaluating ---


def evaluate(value: Any, scope: dict[str, Any], *, at: float, seed: str) -> Any:
    """Return `value` (nested JSON) with every `{% ... %}` in it replaced by its value in `scope`.

    `scope` maps the names that expressions may start with (`inputs`, `var`) to plain JSON. The answer is
    plain JSON that shares no list or object with `scope` or `value`; what JSONata leaves undefined becomes
    None. `$now()` and `$millis()` say `at` (seconds since the epoch); `$random()` and `$shuffle()` follow
    from `seed`, so the same arguments always give the same answer.

    Numbers: a path carries any integer exactly; arithmetic and comparison work in doubles, exact to 2**53.
    Raises ExpressionError for an expression that does not parse, fails, gives a function, or exceeds its
    bounds (`sandbox` lists them).
    """
    return _evaluated(value, scope, Draws(at, seed), 0)


def find_faults(value: Any, path: str, roots: Collection[str] | None = None) -> list[tuple[str, str]]:
    """List (path, message) of every expression in `value` that cannot be evaluated, without evaluating.

    `path` names `value` itself; places inside read like `root.activities[2].inputs.order_id`. Given `roots`,
    a plain path that starts with another name is a fault too: it would always be undefined. So is a text
    that starts with `{%` but does not end with `%}`, since it is a slip far more often than it is meant.
    """
    found = islice(_find_faults(value, roots, 0), FAULTS_MAX + 1)
    return [(path + place, message) for place, message in found]


def work_of(value: Any) -> int:
    """Return how much there is to parse in nested JSON: the sum of its expressions' squared lengths."""
    work, pending = 0, [value]
    while pending:
        each = pending.pop()
        if isinstance(each, dict):
            pending.extend(each.values())
        elif isinstance(each, list):
            pending.extend(each)
        elif isinstance(each, str) and each.startswith("{%"):
            work += len(each) ** 2
    return work


def _find_faults(value: Any, roots: Collection[str] | None, depth: int) -> Iterator[tuple[str, str]]:
    # Places are put together on the way back: most values have no fault, and names may be long.
    if isinstance(value, str):
        message = _find_fault(value, roots)
        if message:
            yield "", message
    elif isinstance(value, dict | list):
        if depth == NESTING_MAX:
            yield "", f"is nested deeper than {NESTING_MAX} levels"
            return
        steps = (
            (f".{key}" for key in value) if isinstance(value, dict) else (f"[{i}]" for i in range(len(value)))
        )
        items = value.values() if isinstance(value, dict) else value
        for step, item in zip(steps, items, strict=True):
            for place, message in _find_faults(item, roots, depth + 1):
                yield step + place, message


def _find_fault(text: str, roots: Collection[str] | None) -> str | None:
    if not text.startswith("{%"):
        return None
    if not is_expression(text):
        return 'starts with {% but does not end with %}; a text of this look is written {% "..." %}'
    try:
        program = _program(text)
    except ExpressionError as error:
        return error.message
    if roots is not None and isinstance(program, Plan) and program.steps[0] not in roots:
        return f"unknown name {program.steps[0]!r}; an expression starts with {' or '.join(sorted(roots))}"
    return None


def _evaluated(value: Any, scope: dict[str, Any], draws: Draws, depth: int) -> Any:
    if type(value) is str:
        if value[:2] != "{%":
            return value
        program = _program(value)
        if isinstance(program, Plan):
            found = follow(program, scope)
            if found is not UNUSUAL:
                return found
            program = _compiled(value)
        return value if program is None else program.run(scope, draws)
    if isinstance(value, dict | list):
        if depth == NESTING_MAX:
            raise ExpressionError("...", f"values are nested deeper than {NESTING_MAX} levels")
        if isinstance(value, dict):
            return {key: _evaluated(item, scope, draws, depth + 1) for key, item in value.items()}
        return [_evaluated(item, scope, draws, depth + 1) for item in value]
    return value


@lru_cache(maxsize=PROGRAMS_MAX)
def _program(text: str) -> "Plan | Program | None":
    """Compile a text that starts with `{%`; None if it is no expression after all."""
    if not is_expression(text):
        return None
    return plan_of(text[2:-2].strip()) or _compiled(text)


@lru_cache(maxsize=PROGRAMS_MAX)
def _compiled(text: str) -> "Program":
    inner = text[2:-2].strip()
    if len(inner) > EXPRESSION_CHARACTERS_MAX:
        raise ExpressionError(inner[:100] + "...", f"longer than {EXPRESSION_CHARACTERS_MAX} characters")
    from aftercommit.sandbox import Program  # 110 ms, and many workflows never need it  # noqa: PLC0415

    return Program(inner)
