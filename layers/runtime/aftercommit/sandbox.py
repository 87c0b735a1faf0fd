"""JSONata, bounded and repeatable: the one place that touches the library.

An evaluation reaches nothing but its scope. Time and chance are given; `$eval` is refused, since it would
run data as code (`$parse` reads JSON instead). It has an amount of work and a depth of nesting rather than
a time, so a runaway ends the same way on every machine and in every replay. Not bounded is one regular
expression inside `re`: what backtracks for ever lasts until the worker's deadline.
"""

import json
import math
import re
from typing import Any, NoReturn

from jsonata.functions import Functions
from jsonata.jexception import JException
from jsonata.jsonata import Jsonata
from jsonata.utils import Utils

from aftercommit import ids
from aftercommit.draws import Draws
from aftercommit.errors import ExpressionError
from aftercommit.limits import NESTING_MAX

# One evaluation may cost this much in all: a node visited costs 100, an element of what it builds 10, a
# character 1. Hence at most 100,000 nodes or a million elements, a second or two, and some 20 MB.
WORK_MAX = 10_000_000
_STEP_COST, _ELEMENT_COST = 100, 10
# Nested evaluations. Each takes at most 14 Python frames, and the library sets the interpreter's limit to
# 10,000 when it is imported.
DEPTH_MAX = 500

# Nodes that hand on a value which something else has built (and paid for).
_PASSING = frozenset(
    {"block", "condition", "bind", "variable", "parent", "string", "number", "value", "regex"}
)
_FINDING = frozenset({"path", "name"})
_SURROGATES = re.compile(r"(?<!\\)((?:\\\\)*)\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")


class _Run(Jsonata):  # type: ignore[misc]  # the library is published without types
    """One evaluation.

    The library evaluates through whatever instance its thread made last, counts with callbacks that lose
    count, and fixes its deadline when it compiles. Here each evaluation is an instance of its own, so that
    a compiled program may be used by any number of threads at once.
    """

    draws: Draws
    work: int
    depth: int

    def get_per_thread_instance(self) -> "_Run":
        return self

    def charge(self, cost: int) -> None:
        self.work += cost
        if self.work > WORK_MAX:
            raise JException("does too much work: the limit is 100,000 steps, or 10 MB of text built", -1)

    def eval(self, expr: Any, input: Any, environment: Any) -> Any:  # noqa: A002 (the library's name)
        self.charge(_STEP_COST)
        if self.depth == DEPTH_MAX:
            raise JException(f"nests deeper than {DEPTH_MAX} evaluations", -1)
        self.depth += 1
        result = self._eval(expr, input, environment)
        self.depth -= 1
        kind = type(result)
        if kind is str:
            if expr.type not in _PASSING and expr.type not in _FINDING:
                self.charge(len(result))
        elif isinstance(result, list | dict) and (
            expr.group is not None
            or (expr.type in _FINDING and isinstance(result, Utils.JList))
            or (expr.type not in _PASSING and expr.type not in _FINDING)
        ):
            self._weigh(result)
        return result

    def _weigh(self, built: Any) -> None:
        """Charge a built value at its full size, so that sharing parts does not hide exponential growth."""
        pending = [built]
        while pending:
            value = pending.pop()
            if isinstance(value, str):
                self.charge(_ELEMENT_COST + len(value))
            elif isinstance(value, dict):
                self.charge(_ELEMENT_COST * (1 + len(value)))
                pending.extend(value.values())
            elif isinstance(value, list):
                self.charge(_ELEMENT_COST * (1 + len(value)))
                pending.extend(item for item in value if isinstance(item, str | list | dict))

    # --- corrections of the library ---

    def apply_inner(self, proc: Any, args: Any, input: Any, environment: Any) -> Any:  # noqa: A002
        # The library prints what was called to stdout, data and all.
        if not self.is_function_like(proc):
            raise JException("T1006", 0)
        return super().apply_inner(proc, args, input, environment)

    def evaluate_group_expression(self, expr: Any, input: Any, environment: Any) -> Any:  # noqa: A002
        # The library appends None to an empty list, which may be one of the scope.
        if isinstance(input, list) and not input:
            input = Utils.create_sequence()  # noqa: A001
        return super().evaluate_group_expression(expr, input, environment)

    def evaluate_range_expression(self, lhs: Any, rhs: Any) -> Any:
        # The library's lazy range says it is one longer than it is.
        if type(lhs) is int and type(rhs) is int and lhs <= rhs:
            self.charge(_ELEMENT_COST * (rhs - lhs + 1))
            return Utils.create_sequence_from_iter(range(lhs, rhs + 1))
        return super().evaluate_range_expression(lhs, rhs)

    def evaluate_numeric_expression(self, lhs: Any, rhs: Any, op: str | None) -> Any:
        # The library cuts the fraction off a remainder.
        if op == "%" and Utils.is_numeric(lhs) and Utils.is_numeric(rhs):
            return Utils.convert_number(math.fmod(lhs, rhs))
        return super().evaluate_numeric_expression(lhs, rhs, op)


class Program:
    """A parsed expression; immutable, and safe to run from several threads at once."""

    def __init__(self, text: str) -> None:
        """Parse; raises ExpressionError."""
        self.text = text
        try:
            self._parsed = _Run(_join_surrogates(text))
        except (Exception, RecursionError) as error:  # noqa: BLE001 (the parser fails with any)
            raise ExpressionError(text, _explain(error, parsing=True)) from None
        if self._parsed.errors is not None:
            raise ExpressionError(text, "does not parse")

    def run(self, scope: dict[str, Any], draws: Draws) -> Any:
        """Return the value in `scope` as plain JSON that shares nothing with it; raises ExpressionError."""
        run = _Run.__new__(_Run)
        run.__dict__.update(self._parsed.__dict__)
        run.draws, run.work, run.depth = draws, 0, 0
        frame = run.create_frame(_GIVEN)
        frame.bind("$", scope)
        previous = getattr(Jsonata.CURRENT, "jsonata", None)
        Jsonata.CURRENT.jsonata = run  # the library's functions find their evaluation there
        try:
            return _plain(run.eval(run.ast, scope, frame), 0, run)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 (the library fails with any, on values it did not expect)
            raise ExpressionError(self.text, _explain(error)) from None
        finally:
            Jsonata.CURRENT.jsonata = previous


def _join_surrogates(text: str) -> str:
    """Write escaped surrogate pairs as the characters they mean; the library reads them as two."""
    if "\\u" not in text:
        return text

    def joined(pair: re.Match[str]) -> str:
        units = bytes.fromhex(pair[2] + pair[3])
        return pair[1] + units.decode("utf-16-be")

    return _SURROGATES.sub(joined, text)


def _explain(error: BaseException, *, parsing: bool = False) -> str:
    if isinstance(error, RecursionError):
        return "is nested too deeply"
    if isinstance(error, JException):
        place = f" (at character {error.location})" if error.location >= 0 and parsing else ""
        message = str(error).removeprefix("JSonataException ")
        return f"{message}{place}"
    if isinstance(error, ZeroDivisionError):
        return "divides by zero"
    if isinstance(error, OverflowError):
        return "computes a number out of range"
    if parsing:
        return "does not parse" if not isinstance(error, re.error) else f"has a faulty pattern: {error}"
    return f"fails: {error}" if str(error) else f"fails: {type(error).__name__}"


def _plain(value: Any, depth: int, run: _Run) -> Any:
    """Copy a result out of the library as plain JSON."""
    if value is None or value is Utils.NULL_VALUE:
        return None
    if isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise JException("gives a number out of range", -1)
        return value
    if depth == NESTING_MAX:
        raise JException(f"gives values nested deeper than {NESTING_MAX} levels", -1)
    if isinstance(value, dict):
        run.charge(_ELEMENT_COST * len(value))
        return {key: _plain(item, depth + 1, run) for key, item in value.items()}
    if isinstance(value, list):
        run.charge(_ELEMENT_COST * len(value))
        return [_plain(item, depth + 1, run) for item in value]
    raise JException("gives a function where a value is needed", -1)


# --- functions that differ from the library's ---


class _Given:
    """Functions of time and chance, and those that could build without bound."""

    @staticmethod
    def now(picture: str | None, timezone: str | None) -> Any:
        return Functions.datetime_from_millis(_Given.millis(), picture, timezone)

    @staticmethod
    def millis() -> int:
        return int(_current().draws.at * 1000)

    @staticmethod
    def random() -> float:
        draws = _current().draws
        draws.drawn += 1
        return ids.derive_fraction(draws.seed, draws.drawn)

    @staticmethod
    def shuffle(array: list[Any] | None) -> list[Any] | None:
        if array is None:
            return None
        shuffled = list(array)
        for last in range(len(shuffled) - 1, 0, -1):
            other = int(_Given.random() * (last + 1))
            shuffled[last], shuffled[other] = shuffled[other], shuffled[last]
        return shuffled

    @staticmethod
    def eval(_text: str | None, _focus: Any) -> NoReturn:
        raise JException("$eval is refused: it would run data as code; $parse reads JSON", -1)

    @staticmethod
    def parse(text: str | None) -> Any:
        if text is None:
            return None
        parsed = json.loads(text, parse_constant=_refuse_constant)
        return Utils.NULL_VALUE if parsed is None else parsed

    @staticmethod
    def to_millis(timestamp: str | None, picture: str | None) -> Any:
        if timestamp is not None and picture is not None:
            timestamp, picture = _complete(timestamp, picture)
        return Functions.datetime_to_millis(timestamp, picture)

    @staticmethod
    def pad(string: str | None, width: float | None, char: str | None) -> Any:
        if isinstance(width, int | float):
            _current().charge(abs(int(width)))
        return Functions.pad(string, width, char)

    @staticmethod
    def join(strings: Any, separator: str | None) -> Any:
        if isinstance(strings, list):
            _current().charge(len(strings) * len(separator or ""))
        return Functions.join(strings, separator)

    @staticmethod
    def replace(string: str | None, pattern: Any, replacement: Any, limit: Any) -> Any:
        if isinstance(string, str) and isinstance(replacement, str):
            # Most is built where every character matches: the replacement, between all of them.
            _current().charge((len(string) + 1) * (len(replacement) + 1))
        return Functions.replace(string, pattern, replacement, limit)


def _current() -> _Run:
    run: _Run = Jsonata.CURRENT.jsonata
    return run


def _refuse_constant(name: str) -> NoReturn:
    raise JException(f"$parse: {name} is not JSON", -1)


def _complete(timestamp: str, picture: str) -> tuple[str, str]:
    """Prefix what a picture leaves out before its first component, from the given time.

    The library would take it from the machine's clock.
    """
    given = set(re.findall(r"\[\s*([A-Za-z])", picture))
    if given & set("YXxWw"):
        return timestamp, picture
    stops = ({"M", "d"}, {"D"}, {"H", "h", "P"}, {"m"}, {"s"})
    left_out = next((index for index, stop in enumerate(stops) if given & stop), len(stops) - 1) + 1
    written = " ".join(("[Y0001]", "[M01]", "[D01]", "[H01]", "[m01]")[:left_out])
    moment = Functions.datetime_from_millis(_Given.millis(), written, None)
    return f"{moment} {timestamp}", f"{written} {picture}"


_GIVEN = Jsonata.Frame(Jsonata.static_frame)
for _name, _signature, _method in (
    ("now", "<s?s?:s>", "now"),
    ("millis", "<:n>", "millis"),
    ("random", "<:n>", "random"),
    ("shuffle", "<a:a>", "shuffle"),
    ("eval", "<sx?:x>", "eval"),
    ("parse", "<s-:x>", "parse"),
    ("toMillis", "<s-s?:n>", "to_millis"),
    ("pad", "<s-ns?:s>", "pad"),
    ("join", "<a<s>s?:s>", "join"),
    ("replace", "<s-(sf)(sf)n?:s>", "replace"),
):
    _GIVEN.bind(_name, Jsonata.function(_name, _signature, _Given, _method))
