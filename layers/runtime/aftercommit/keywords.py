"""The JSON Schema keywords that inputs are checked by.

By hand rather than by a library: those for Python compile schemas to code and fetch what `$ref` names, and
schemas come from whoever may publish a definition. It also saves 50 ms at a cold start.
"""

import json
import math
import re
import types
from collections.abc import Callable, Iterator
from operator import ge, gt, le, lt
from typing import Any, Final

from aftercommit.limits import NESTING_MAX

Schema = dict[str, Any]
Fault = tuple[str, str]

_KINDS: Final[dict[str, str]] = {
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
    "object": "an object",
    "array": "a list",
}
_CLASSES: Final[dict[str, Any]] = {
    "string": str,
    "number": int | float,
    "boolean": bool,
    "null": types.NoneType,
    "object": dict,
    "array": list,
}


def kind_of(value: Any) -> str:
    """Name the kind of a JSON value, for people: "a text", "a list"."""
    return next((words for kind, words in _KINDS.items() if _is_kind(value, kind)), type(value).__name__)


def _is_kind(value: Any, kind: str) -> bool:
    if isinstance(value, bool):  # to Python also an int
        return kind == "boolean"
    if kind == "integer":  # 3.0 is one, as JSON Schema has it
        return isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return isinstance(value, _CLASSES[kind])


def _same(left: Any, right: Any) -> bool:
    """Compare as JSON, where true is not 1."""
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(item, right[key]) for key, item in left.items())
    return bool(left == right) and isinstance(left, bool) is isinstance(right, bool)


def find_misfits(schema: Schema, value: Any, path: str) -> Iterator[Fault]:
    """Say where and how `value` does not fit, first things first; `schema` itself must be without faults."""
    kinds = schema.get("type")
    if kinds is not None:
        kinds = [kinds] if isinstance(kinds, str) else kinds
        if not any(_is_kind(value, kind) for kind in kinds):
            yield path, f"must be {' or '.join(_KINDS[kind] for kind in kinds)}, not {kind_of(value)}"
            return
    for keyword, argument in schema.items():
        check = _CHECKS.get(keyword)
        if check is not None:
            yield from check(argument, value, path, schema)


def _check_enum(choices: list[Any], value: Any, path: str, _: Schema) -> Iterator[Fault]:
    if not any(_same(value, choice) for choice in choices):
        yield (
            path,
            f"must be one of {', '.join(json.dumps(choice, ensure_ascii=False) for choice in choices)}",
        )


def _check_const(constant: Any, value: Any, path: str, _: Schema) -> Iterator[Fault]:
    if not _same(value, constant):
        yield path, f"must be {json.dumps(constant, ensure_ascii=False)}"


def _check_any_of(options: list[Schema], value: Any, path: str, _: Schema) -> Iterator[Fault]:
    misfits = [list(find_misfits(option, value, path)) for option in options]
    if all(misfits):
        # The deepest fault belongs to the option that was most likely meant.
        yield max((faults[0] for faults in misfits), key=lambda fault: len(fault[0]))


def _check_properties(properties: dict[str, Schema], value: Any, path: str, _: Schema) -> Iterator[Fault]:
    if isinstance(value, dict):
        for name, schema in properties.items():
            if name in value:
                yield from find_misfits(schema, value[name], f"{path}.{name}")


def _check_required(names: list[str], value: Any, path: str, _: Schema) -> Iterator[Fault]:
    if isinstance(value, dict):
        yield from ((f"{path}.{name}", "is missing") for name in names if name not in value)


def _check_additional(allowed: bool | Schema, value: Any, path: str, schema: Schema) -> Iterator[Fault]:  # noqa: FBT001 (a JSON Schema value)
    if isinstance(value, dict) and allowed is not True:
        for name in value:
            if name in schema.get("properties", {}):
                continue
            if allowed is False:
                known = ", ".join(schema.get("properties", {})) or "none"
                yield f"{path}.{name}", f"is not a known field (known: {known})"
            else:
                yield from find_misfits(allowed, value[name], f"{path}.{name}")


def _check_items(schema: Schema, value: Any, path: str, _: Schema) -> Iterator[Fault]:
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from find_misfits(schema, item, f"{path}[{index}]")


def _check_pattern(pattern: str, value: Any, path: str, _: Schema) -> Iterator[Fault]:
    if isinstance(value, str) and not re.search(pattern, value):
        yield path, f"must match the pattern {pattern}"


def _check_range(words: str, fits: Callable[[Any, Any], bool]) -> "_Check":
    def check(bound: float, value: Any, path: str, _: Schema) -> Iterator[Fault]:
        if _is_kind(value, "number") and not fits(value, bound):
            yield path, f"must be {words} {bound}"

    return check


def _check_length(
    kind: type[str] | type[list[Any]], words: str, fits: Callable[[Any, Any], bool]
) -> "_Check":
    def check(bound: int, value: Any, path: str, _: Schema) -> Iterator[Fault]:
        if isinstance(value, kind) and not fits(len(value), bound):
            yield path, f"must have {words.format(bound)}, not {len(value)}"

    return check


_Check = Callable[[Any, Any, str, Schema], Iterator[Fault]]
_CHECKS: Final[dict[str, _Check]] = {
    "enum": _check_enum,
    "const": _check_const,
    "anyOf": _check_any_of,
    "properties": _check_properties,
    "required": _check_required,
    "additionalProperties": _check_additional,
    "items": _check_items,
    "pattern": _check_pattern,
    "minimum": _check_range("at least", ge),
    "maximum": _check_range("at most", le),
    "exclusiveMinimum": _check_range("more than", gt),
    "exclusiveMaximum": _check_range("less than", lt),
    "minLength": _check_length(str, "at least {} characters", ge),
    "maxLength": _check_length(str, "at most {} characters", le),
    "minItems": _check_length(list, "at least {} items", ge),
    "maxItems": _check_length(list, "at most {} items", le),
}


# --- faults of schemas ---


def find_keyword_faults(schema: Any, path: str, depth: int = 0) -> Iterator[Fault]:
    """Say where and how a schema itself is faulty: not an object, an unknown keyword, a wrong argument."""
    if not isinstance(schema, dict):
        yield path, f"must be a JSON Schema (an object), not {kind_of(schema)}"
        return
    if depth == NESTING_MAX:
        yield path, f"is nested deeper than {NESTING_MAX} levels"
        return
    for keyword, argument in schema.items():
        place = f"{path}.{keyword}"
        if keyword in _NOTES:
            continue
        if keyword not in _FORMS:
            yield place, f"unknown keyword; known are {', '.join([*_FORMS, *_NOTES])}"
            continue
        form, words = _FORMS[keyword]
        if not form(argument):
            yield place, f"must be {words}"
            continue
        yield from _find_inner_faults(keyword, argument, place, depth + 1)


def _find_inner_faults(keyword: str, argument: Any, place: str, depth: int) -> Iterator[Fault]:
    if keyword == "properties":
        for name, inner in argument.items():
            yield from find_keyword_faults(inner, f"{place}.{name}", depth)
    elif keyword == "anyOf":
        for index, inner in enumerate(argument):
            yield from find_keyword_faults(inner, f"{place}[{index}]", depth)
    elif keyword == "items" or (keyword == "additionalProperties" and not isinstance(argument, bool)):
        yield from find_keyword_faults(argument, place, depth)


def _is_type(argument: Any) -> bool:
    names = argument if isinstance(argument, list) else [argument]
    return bool(names) and all(isinstance(name, str) and name in _KINDS for name in names)


def _is_number(argument: Any) -> bool:
    return _is_kind(argument, "number") and math.isfinite(argument)


def _is_count(argument: Any) -> bool:
    return type(argument) is int and argument >= 0


def _is_pattern(argument: Any) -> bool:
    try:
        return isinstance(argument, str) and bool(re.compile(argument))
    except re.error:
        return False


def _is_names(argument: Any) -> bool:
    return isinstance(argument, list) and all(isinstance(name, str) for name in argument)


def _is_choices(argument: Any) -> bool:
    return isinstance(argument, list) and bool(argument)


_NUMBER, _COUNT = (_is_number, "a number"), (_is_count, "a whole number of at least 0")
# Keywords that say something to people only.
_NOTES = ("default", "title", "description", "examples", "format")
_FORMS: Final[dict[str, tuple[Callable[[Any], bool], str]]] = {
    "type": (_is_type, f"one of {', '.join(_KINDS)}, or a list of them"),
    "enum": (_is_choices, "a list of at least one value"),
    "const": (lambda _: True, ""),
    "anyOf": (_is_choices, "a list of at least one schema"),
    "properties": (lambda argument: isinstance(argument, dict), "an object of schemas"),
    "required": (_is_names, "a list of names"),
    "additionalProperties": (lambda argument: isinstance(argument, bool | dict), "true, false or a schema"),
    "items": (lambda argument: isinstance(argument, dict), "a schema"),
    "pattern": (_is_pattern, "a regular expression"),
    "minimum": _NUMBER,
    "maximum": _NUMBER,
    "exclusiveMinimum": _NUMBER,
    "exclusiveMaximum": _NUMBER,
    "minLength": _COUNT,
    "maxLength": _COUNT,
    "minItems": _COUNT,
    "maxItems": _COUNT,
}
