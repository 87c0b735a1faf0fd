"""Plain paths, and a plain path compared with a literal: the expressions that need no library.

What is answered here is exactly what JSONata would answer; where that takes more than following objects
(a list on the way, a comparison of unlike things), the answer is UNUSUAL, and the library is asked.
"""

import json
import re
from collections.abc import Callable
from operator import ge, gt, le, lt
from typing import Any, Final, NamedTuple

KEYWORDS = frozenset({"and", "or", "in", "true", "false", "null", "function"})
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

# JSONata counts in doubles: above this, neighbouring integers look alike.
INTEGER_MAX = 2**53


class Plan(NamedTuple):
    """A path, perhaps compared with a literal: what needs no library."""

    steps: tuple[str | int, ...]
    operator: str | None = None
    literal: str | float | bool | None = None


_STEP = r"(?:\.(?:[A-Za-z_][A-Za-z0-9_]*+|`[^`]+`)|\[-?[0-9]{1,9}\])"
_PLAIN = re.compile(
    rf"(?P<path>[A-Za-z_][A-Za-z0-9_]*+{_STEP}*+)"
    r"(?: *(?P<operator>=|!=|<=|>=|<|>) *"
    r"(?P<literal>\"[^\"\\]*\"|'[^'\\]*'|-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,15})?|true|false))?"
)
_STEPS = re.compile(r"`(?P<quoted>[^`]+)`|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|\[(?P<index>-?[0-9]+)\]")

_MISSING: Final = object()  # JSONata's undefined
UNUSUAL: Final = object()  # met something that only the library answers for certain
_ORDERS: Final[dict[str, Callable[[Any, Any], bool]]] = {"<": lt, "<=": le, ">": gt, ">=": ge}


def plan_of(text: str) -> Plan | None:
    """Read a plain path, or a plain path compared with a literal; None if it is anything else."""
    plain = _PLAIN.fullmatch(text)
    if plain is None:
        return None
    steps: list[str | int] = []
    for step in _STEPS.finditer(plain["path"]):
        if step["name"] in KEYWORDS:
            return None
        steps.append(int(step["index"]) if step["index"] else step["quoted"] or step["name"])
    written = plain["literal"]
    if written is None:
        return Plan(tuple(steps))
    if plain["operator"] in _ORDERS and written in ("true", "false"):
        return None  # an error, but only the library's to word
    if written[0] in "\"'":
        return Plan(tuple(steps), plain["operator"], written[1:-1])
    return Plan(tuple(steps), plain["operator"], json.loads(written))


def follow(plan: Plan, scope: dict[str, Any]) -> Any:
    """Answer a plan, or say UNUSUAL: a list on the way, unless indexed, is the library's to answer."""
    steps, operator, literal = plan
    current: Any = scope
    for step in steps:
        kind = type(current)
        if kind is dict and type(step) is str:
            current = current.get(step, _MISSING)
        elif kind is list and type(step) is int:
            current = current[step] if -len(current) <= step < len(current) else _MISSING
        elif kind is dict or kind is list or type(step) is int:
            return UNUSUAL
        else:
            current = _MISSING  # a member of a scalar
    if operator is not None:
        return _compare(current, operator, literal)
    if current is _MISSING:
        return None
    return _copied(current) if type(current) is dict or type(current) is list else current


def _compare(found: Any, operator: str, literal: Any) -> Any:
    """Compare as JSONata does; UNUSUAL where it would raise, convert or look into a structure."""
    ordered = _ORDERS.get(operator)
    if found is _MISSING:
        return False if ordered is None else None
    kind = type(found)
    if kind is int and abs(found) > INTEGER_MAX:
        return UNUSUAL
    number = kind is int or kind is float
    alike = (number and type(literal) in (int, float)) or kind is type(literal)
    if ordered is not None:
        return ordered(found, literal) if alike and kind is not bool else UNUSUAL
    if kind is dict or kind is list:
        return UNUSUAL
    return (alike and found == literal) is (operator == "=")


def _copied(value: Any) -> Any:
    if type(value) is dict:
        return {key: _copied(item) for key, item in value.items()}
    if type(value) is list:
        return [_copied(item) for item in value]
    return value
