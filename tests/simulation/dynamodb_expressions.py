"""The expressions of DynamoDB, as far as PynamoDB writes them: conditions, key conditions and updates.

Each text is compiled once into closures over (item, names, values), where an item is DynamoDB JSON. Texts
repeat from call to call, as only placeholders stand in them, so compiling costs nothing in the long run.
"""

import re
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from typing import Any

Typed = dict[str, Any]  # an attribute's value, as {"S": "text"}
Item = dict[str, Typed]
Names = dict[str, str]
Values = dict[str, Typed]
Operand = Callable[[Item, Names, Values], "Typed | None"]
Condition = Callable[[Item, Names, Values], bool]

_TOKEN = re.compile(r"\s*(#\w+|:\w+|[A-Za-z_]\w*|<=|>=|<>|\d+|[=<>(),.+\-\[\]])")
_FUNCTIONS = {"attribute_exists", "attribute_not_exists", "attribute_type", "begins_with", "contains"}


class InvalidExpressionError(Exception):
    """DynamoDB would refuse the request with a ValidationException of this message."""


class Tokens:
    """The tokens of one expression, read from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.left: list[str] = []
        position = 0
        while position < len(text.rstrip()):
            match = _TOKEN.match(text, position)
            if not match:
                raise InvalidExpressionError(f"Syntax error at {text[position:]!r}")
            self.left.append(match[1])
            position = match.end()
        self.left.reverse()

    def peek(self) -> str:
        return self.left[-1] if self.left else ""

    def peek_word(self) -> str:
        return self.peek().upper()

    def take(self, expected: str | None = None) -> str:
        if not self.left or (expected is not None and self.peek_word() != expected):
            raise InvalidExpressionError(f"Syntax error in {self.text!r} at {self.peek()!r}")
        return self.left.pop()


# --- paths and values ---


def resolve(name: str, names: Names) -> str:
    if not name.startswith("#"):
        return name
    try:
        return names[name]
    except KeyError:
        raise InvalidExpressionError(f"attribute name {name} is not defined") from None


def _read_path(tokens: Tokens) -> tuple[str | int, ...]:
    steps: list[str | int] = [tokens.take()]
    while tokens.peek() in (".", "["):
        if tokens.take() == ".":
            steps.append(tokens.take())
        else:
            steps.append(int(tokens.take()))
            tokens.take("]")
    return tuple(steps)


def find_at(item: Item, path: tuple[str | int, ...], names: Names) -> Typed | None:
    """Return what stands at a path, or None."""
    found = item.get(resolve(str(path[0]), names))
    for step in path[1:]:
        if found is None:
            return None
        if isinstance(step, int):
            elements = found.get("L", [])
            found = elements[step] if step < len(elements) else None
        else:
            found = found.get("M", {}).get(resolve(step, names))
    return found


def _operand(tokens: Tokens) -> Operand:
    token = tokens.peek()
    if token.startswith(":"):
        tokens.take()
        return lambda item, names, values: _value(token, values)
    if token == "size":
        tokens.take()
        tokens.take("(")
        path = _read_path(tokens)
        tokens.take(")")
        return lambda item, names, values: _size(find_at(item, path, names))
    path = _read_path(tokens)
    return lambda item, names, values: find_at(item, path, names)


def _value(token: str, values: Values) -> Typed:
    try:
        return values[token]
    except KeyError:
        raise InvalidExpressionError(f"attribute value {token} is not defined") from None


def _size(value: Typed | None) -> Typed | None:
    if value is None:
        return None
    [(kind, content)] = value.items()
    return {"N": str(len(content.encode() if kind == "S" else content))}


def compare(left: Typed, right: Typed) -> int | None:
    """Return the order of two values, or None if their types have none in common."""
    [(kind, a)] = left.items()
    [(other_kind, b)] = right.items()
    if kind != other_kind or kind not in ("S", "N", "B"):
        return None
    if kind == "N":
        a, b = Decimal(a), Decimal(b)
    elif kind == "S":
        a, b = a.encode(), b.encode()
    return (a > b) - (a < b)


def equal(left: Typed | None, right: Typed | None) -> bool:
    if left is None or right is None:
        return False
    order = compare(left, right)
    return left == right if order is None else order == 0


# --- conditions ---


@cache
def condition(text: str) -> Condition:
    """Compile a condition; raises InvalidExpressionError."""
    tokens = Tokens(text)
    compiled = _either(tokens)
    if tokens.left:
        raise InvalidExpressionError(f"Syntax error in {text!r} at {tokens.peek()!r}")
    return compiled


def _either(tokens: Tokens) -> Condition:
    parts = [_all(tokens)]
    while tokens.peek_word() == "OR":
        tokens.take()
        parts.append(_all(tokens))
    return parts[0] if len(parts) == 1 else lambda *given: any(part(*given) for part in parts)


def _all(tokens: Tokens) -> Condition:
    parts = [_single(tokens)]
    while tokens.peek_word() == "AND":
        tokens.take()
        parts.append(_single(tokens))
    return parts[0] if len(parts) == 1 else lambda *given: all(part(*given) for part in parts)


def _single(tokens: Tokens) -> Condition:
    if tokens.peek_word() == "NOT":
        tokens.take()
        negated = _single(tokens)
        return lambda *given: not negated(*given)
    if tokens.peek() == "(":
        tokens.take()
        inner = _either(tokens)
        tokens.take(")")
        return inner
    if tokens.peek() in _FUNCTIONS:
        return _function(tokens)
    return _comparison(tokens)


def _function(tokens: Tokens) -> Condition:
    name = tokens.take()
    tokens.take("(")
    path = _read_path(tokens)
    argument: Operand | None = None
    if tokens.peek() == ",":
        tokens.take()
        argument = _operand(tokens)
    tokens.take(")")
    if name == "attribute_exists":
        return lambda item, names, values: find_at(item, path, names) is not None
    if name == "attribute_not_exists":
        return lambda item, names, values: find_at(item, path, names) is None
    if argument is None:
        raise InvalidExpressionError(f"{name} takes two operands")
    test = {"attribute_type": _is_of_type, "begins_with": _begins_with, "contains": _contains}[name]

    def call(item: Item, names: Names, values: Values) -> bool:
        given, found = argument(item, names, values), find_at(item, path, names)
        return found is not None and given is not None and test(found, given)

    return call


def _is_of_type(found: Typed, given: Typed) -> bool:
    return given["S"] in found


def _begins_with(found: Typed, given: Typed) -> bool:
    return "S" in found and "S" in given and found["S"].startswith(given["S"])


def _contains(found: Typed, given: Typed) -> bool:
    [(kind, content)] = found.items()
    if kind == "S":
        return "S" in given and given["S"] in content
    if kind == "L":
        return any(equal(each, given) for each in content)
    return kind in ("SS", "NS", "BS") and next(iter(given.values())) in content


_ORDERS: dict[str, Callable[[int], bool]] = {
    "<": lambda order: order < 0,
    "<=": lambda order: order <= 0,
    ">": lambda order: order > 0,
    ">=": lambda order: order >= 0,
}


def _comparison(tokens: Tokens) -> Condition:
    left = _operand(tokens)
    operator = tokens.take().upper()
    if operator == "IN":
        tokens.take("(")
        choices = [_operand(tokens)]
        while tokens.peek() == ",":
            tokens.take()
            choices.append(_operand(tokens))
        tokens.take(")")
        return lambda *given: any(equal(left(*given), each(*given)) for each in choices)
    if operator == "BETWEEN":
        low = _operand(tokens)
        tokens.take("AND")
        high = _operand(tokens)
        return lambda *given: (
            _ordered(">=", left(*given), low(*given)) and _ordered("<=", left(*given), high(*given))
        )
    right = _operand(tokens)
    if operator == "=":
        return lambda *given: equal(left(*given), right(*given))
    if operator == "<>":
        return lambda *given: not equal(left(*given), right(*given))
    if operator not in _ORDERS:
        raise InvalidExpressionError(f"Syntax error in {tokens.text!r} at {operator!r}")
    return lambda *given: _ordered(operator, left(*given), right(*given))


def _ordered(operator: str, left: Typed | None, right: Typed | None) -> bool:
    if left is None or right is None:
        return False
    order = compare(left, right)
    return order is not None and _ORDERS[operator](order)


# --- updates ---

Action = tuple[str, tuple[str | int, ...], Operand | None]  # (clause, path, operand)


@cache
def update(text: str) -> tuple[Action, ...]:
    """Compile an update; raises InvalidExpressionError."""
    tokens = Tokens(text)
    actions: list[Action] = []
    while tokens.left:
        clause = tokens.take().upper()
        if clause not in ("SET", "REMOVE", "ADD", "DELETE"):
            raise InvalidExpressionError(f"Syntax error in {text!r} at {clause!r}")
        actions.append(_action(clause, tokens))
        while tokens.peek() == ",":
            tokens.take()
            actions.append(_action(clause, tokens))
    return tuple(actions)


def _action(clause: str, tokens: Tokens) -> Action:
    path = _read_path(tokens)
    if clause == "REMOVE":
        return clause, path, None
    if clause == "SET":
        tokens.take("=")
        return clause, path, _sum(tokens)
    return clause, path, _operand(tokens)


def _sum(tokens: Tokens) -> Operand:
    left = _term(tokens)
    if tokens.peek() not in ("+", "-"):
        return left
    sign = 1 if tokens.take() == "+" else -1
    right = _term(tokens)

    def add(item: Item, names: Names, values: Values) -> Typed:
        return _plus(left(item, names, values), right(item, names, values), sign)

    return add


def _term(tokens: Tokens) -> Operand:
    if tokens.peek() == "if_not_exists":
        tokens.take()
        tokens.take("(")
        path = _read_path(tokens)
        tokens.take(",")
        otherwise = _term(tokens)
        tokens.take(")")

        def choose(item: Item, names: Names, values: Values) -> Typed | None:
            found = find_at(item, path, names)
            return otherwise(item, names, values) if found is None else found

        return choose
    if tokens.peek() == "list_append":
        tokens.take()
        tokens.take("(")
        first = _term(tokens)
        tokens.take(",")
        second = _term(tokens)
        tokens.take(")")

        def append(item: Item, names: Names, values: Values) -> Typed:
            a, b = first(item, names, values), second(item, names, values)
            if a is None or b is None or "L" not in a or "L" not in b:
                raise InvalidExpressionError("list_append takes two lists")
            return {"L": a["L"] + b["L"]}

        return append
    return _operand(tokens)


def _plus(left: Typed | None, right: Typed | None, sign: int) -> Typed:
    if left is None or right is None or "N" not in left or "N" not in right:
        raise InvalidExpressionError("An operand in the update expression has an incorrect data type")
    return {"N": str(Decimal(left["N"]) + sign * Decimal(right["N"]))}


def apply_update(text: str, item: Item, names: Names, values: Values) -> Item:
    """Return a changed copy of an item. All operands are read before anything changes, as DynamoDB does."""
    actions = update(text)
    _refuse_overlaps(actions, names)
    computed = [each and each(item, names, values) for _, _, each in actions]
    changed = dict(item)
    for (clause, path, _), value in zip(actions, computed, strict=True):
        if clause == "SET" and value is None:
            raise InvalidExpressionError(
                "The provided expression refers to an attribute that does not exist in the item"
            )
        if len(path) > 1:
            raise InvalidExpressionError("this model updates whole attributes only")
        name = resolve(str(path[0]), names)
        if clause == "SET":
            changed[name] = value
        elif clause == "REMOVE":
            changed.pop(name, None)
        else:
            _change_in_place(clause, changed, name, value)
    return changed


def _refuse_overlaps(actions: tuple[Action, ...], names: Names) -> None:
    paths = [tuple(resolve(str(step), names) for step in path) for _, path, _ in actions]
    if len(set(paths)) < len(paths):
        raise InvalidExpressionError("Two document paths overlap with each other")


def _change_in_place(clause: str, item: Item, name: str, value: Typed | None) -> None:
    if value is None:
        raise InvalidExpressionError(f"{clause} takes a value")
    [(kind, content)] = value.items()
    current = item.get(name)
    if clause == "ADD" and kind == "N":
        item[name] = _plus(current or {"N": "0"}, value, 1)
        return
    if kind not in ("SS", "NS", "BS") or (current is not None and kind not in current):
        raise InvalidExpressionError("An operand in the update expression has an incorrect data type")
    members = set(current[kind]) if current else set()
    members = members | set(content) if clause == "ADD" else members - set(content)
    if members:
        item[name] = {kind: sorted(members)}
    else:
        item.pop(name, None)


def placeholders(*texts: str | None) -> set[str]:
    """Return the placeholders that stand in these expressions."""
    return {each for text in texts if text for each in _placeholders(text)}


@cache
def _placeholders(text: str) -> frozenset[str]:
    return frozenset(token for token in Tokens(text).left if token[0] in "#:")
