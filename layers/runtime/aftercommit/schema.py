"""JSON Schema: what activities take and give, and what a workflow accepts as input.

Type hints become schemas; definitions that come as data bring their own. Inputs are checked against them
before anything is stored.
"""

import collections.abc
import copy
import dataclasses
import enum
import inspect
import math
import types
import typing
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, Final, Union

from aftercommit.errors import InputRefusedError
from aftercommit.expressions import to_json
from aftercommit.keywords import Fault, Schema, find_keyword_faults, find_misfits, kind_of
from aftercommit.limits import FAULTS_MAX, NESTING_MAX

_PLAIN: Final[dict[Any, str]] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    None: "null",
    types.NoneType: "null",
    dict: "object",
    list: "array",
    collections.abc.Mapping: "object",
    collections.abc.Sequence: "array",
}


# --- from Python to schemas ---


def schema_of(hint: Any, name: str = "value") -> Schema:
    """Return the JSON Schema of a type hint.

    Expressible are str, int, float, bool, None, dict, list, `list[T]`, `dict[str, T]`, unions, Literal,
    enumerations of texts or integers, TypedDict, dataclasses, and Any. Objects with declared fields admit
    no others. Raises TypeError, naming `name` and the place inside it, for any other hint.
    """
    return _schema_of(hint, name, ())


def describe(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the descriptor of an activity function.

    Its form is `{"inputs": schema of an object with the parameters, "output": schema, "description": first
    line of the docstring}`. A parameter without a hint takes anything; one named `context` is left out, as
    the runtime provides it. Raises TypeError, naming the parameter, for a hint that JSON Schema cannot say
    and for parameters that cannot be passed by name.
    """
    name = getattr(function, "__name__", repr(function))
    try:
        hints = typing.get_type_hints(function)
    except NameError as error:
        raise TypeError(f"{name}: a type hint names something that is not there: {error}") from None
    properties: dict[str, Schema] = {}
    required = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in {parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY}:
            raise TypeError(f"{name}({parameter}): an activity's parameters are passed by name, one by one")
        if parameter.name == "context":
            continue
        place = f"parameter {parameter.name!r} of {name}"
        properties[parameter.name] = schema_of(hints.get(parameter.name, Any), place)
        if parameter.default is parameter.empty:
            required.append(parameter.name)
        else:
            properties[parameter.name] |= _default_of(parameter.default)
    return {
        "inputs": _object_schema(properties, required),
        "output": schema_of(hints.get("return", Any), f"return value of {name}"),
        "description": (inspect.getdoc(function) or "").partition("\n")[0],
    }


def inputs_schema(declared: Mapping[str, Any]) -> dict[str, Schema]:
    """Return `{name: schema}`, as definitions store it, for a workflow's declared inputs.

    Each is declared by a type hint (`str | None`) or as a schema (`{"type": "string", "default": "x"}`).
    An input is required unless its schema has a default or names null among what it admits. Raises
    TypeError for a hint without a schema, ValueError for a faulty schema.
    """
    schemas = {
        name: to_json(hint, f"inputs.{name}")
        if isinstance(hint, Mapping)
        else schema_of(hint, f"input {name!r}")
        for name, hint in declared.items()
    }
    faults = find_schema_faults(schemas, "inputs")
    if faults:
        raise ValueError("; ".join(f"{path}: {message}" for path, message in faults))
    return schemas


def _schema_of(hint: Any, name: str, within: tuple[type, ...]) -> Schema:
    if hint in (Any, object):
        return {}
    if isinstance(hint, typing.NewType):
        return _schema_of(hint.__supertype__, name, within)
    if typing.get_origin(hint) is not None:
        return _schema_of_generic(hint, name, within)
    if isinstance(hint, collections.abc.Hashable) and hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    if isinstance(hint, type):
        return _schema_of_class(hint, name, within)
    raise TypeError(f"{name}: {hint!r} has no form in JSON Schema")


def _schema_of_generic(hint: Any, name: str, within: tuple[type, ...]) -> Schema:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return _schema_of(arguments[0], name, within)
    if origin in (Union, types.UnionType):
        return _union([_schema_of(argument, name, within) for argument in arguments])
    if origin is typing.Literal:
        return {"enum": to_json(list(arguments), name)}
    if origin in (list, collections.abc.Sequence):
        return {"type": "array", "items": _schema_of(arguments[0], f"{name}[]", within)}
    if origin in (dict, collections.abc.Mapping) and arguments[0] is str:
        return {"type": "object", "additionalProperties": _schema_of(arguments[1], f"{name}.*", within)}
    raise TypeError(f"{name}: {hint!r} has no form in JSON Schema")


def _schema_of_class(cls: type, name: str, within: tuple[type, ...]) -> Schema:
    if cls in within:
        raise TypeError(f"{name}: {cls.__name__} contains itself; declare the inner one as dict")
    if issubclass(cls, enum.Enum) and all(isinstance(member.value, str | int) for member in cls):
        return {"enum": [member.value for member in cls]}
    if typing.is_typeddict(cls):
        required = [key for key in cls.__annotations__ if key in cls.__required_keys__]  # type: ignore[attr-defined]
        defaults: dict[str, Schema] = {}
    elif dataclasses.is_dataclass(cls):
        fields = [field for field in dataclasses.fields(cls) if field.init]
        absent = dataclasses.MISSING
        required = [field.name for field in fields if field.default is field.default_factory is absent]
        defaults = {field.name: _default_of(field.default) for field in fields if field.default is not absent}
    else:
        raise TypeError(f"{name}: {cls.__name__} has no form in JSON Schema")
    properties = {
        key: _schema_of(hint, f"{name}.{key}", (*within, cls)) | defaults.get(key, {})
        for key, hint in typing.get_type_hints(cls).items()
    }
    return _object_schema(properties, required)


def _union(schemas: list[Schema]) -> Schema:
    if all(not schema for schema in schemas):
        return {}
    if all(schema.keys() == {"type"} for schema in schemas):
        return {"type": [schema["type"] for schema in schemas]}
    return {"anyOf": schemas}


def _object_schema(properties: dict[str, Schema], required: list[str]) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _default_of(default: Any) -> Schema:
    try:
        return {"default": to_json(default)}
    except TypeError:  # still a default, only not one that can be shown
        return {}


# --- checking ---


def find_schema_faults(declared: Any, path: str) -> list[Fault]:
    """List (path, message) of every fault in declared inputs `{name: schema}` that came as data.

    Only the keywords of `keywords` are known; any other is a fault, since it would silently not be checked.
    A default must fit its own schema.
    """
    if not isinstance(declared, dict):
        return [(path, f"must be an object of schemas, not {kind_of(declared)}")]
    faults: list[Fault] = []
    for name, schema in declared.items():
        place = f"{path}.{name}"
        found = list(islice(find_keyword_faults(schema, place), FAULTS_MAX + 1))
        if not found and "default" in schema:
            found = [
                (f"{place}.default", message) for _, message in find_misfits(schema, schema["default"], "")
            ]
        faults += found
    return faults


def check_inputs(declared: dict[str, Schema], value: Any) -> dict[str, Any]:
    """Return the inputs of a new instance: a copy of `value`, with what is left out filled in.

    Left out may be what has a default, and what admits null (it becomes None). Defaults inside objects are
    not filled in. Raises InputRefusedError, whose field (`input.items[2].sku`) is the first that does not
    fit: of a wrong kind, missing, or not declared. A message never repeats the refused value.
    """
    if not isinstance(value, dict):
        raise InputRefusedError("input", f"must be an object, not {kind_of(value)}")
    for name in value:
        if name not in declared:
            known = ", ".join(declared) or "none"
            raise InputRefusedError(
                f"input.{name}", f"is not an input of this workflow (its inputs: {known})"
            )
    checked = {}
    for name, schema in declared.items():
        if name not in value:
            if is_required(schema):
                raise InputRefusedError(f"input.{name}", "is missing")
            checked[name] = copy.deepcopy(schema.get("default"))
            continue
        place = f"input.{name}"
        if unstorable := _find_unstorable(value[name], 1):
            raise InputRefusedError(place + unstorable[0], unstorable[1])
        if misfit := next(find_misfits(schema, value[name], place), None):
            raise InputRefusedError(*misfit)
        checked[name] = copy.deepcopy(value[name])
    return checked


def check_storable(value: Any, name: str, *, levels: int = NESTING_MAX) -> None:
    """Refuse what JSON itself or UTF-8 cannot hold, or what is nested deeper than `levels`.

    Raises InputRefusedError naming the place.
    """
    if fault := _find_unstorable(value, NESTING_MAX - levels):
        raise InputRefusedError(name + fault[0], fault[1])


def is_required(schema: Schema) -> bool:
    """Tell whether an input must be given: it has no default, and does not name null among what it admits."""
    return "default" not in schema and not _names_null(schema)


def _names_null(schema: Schema) -> bool:
    kinds = schema.get("type", ())
    return (
        kinds == "null"
        or (isinstance(kinds, list) and "null" in kinds)
        or None in schema.get("enum", ())
        or any(_names_null(option) for option in schema.get("anyOf", ()))
    )


def _find_unstorable(value: Any, depth: int) -> Fault | None:
    """Find what Python's JSON reader lets pass, but JSON itself, UTF-8 or an expression does not.

    The place is told from here on, as `.items[2]`, and put together on the way back only: names may be long.
    """
    if not isinstance(value, dict | list):
        message = _find_unstorable_leaf(value)
        return ("", message) if message else None
    if depth == NESTING_MAX:
        return "", f"is nested deeper than {NESTING_MAX} levels"
    if isinstance(value, dict) and not all(_encodes(key) for key in value):
        return "", "has a name with half a character (a lone surrogate)"
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        if fault := _find_unstorable(item, depth + 1):
            step = f".{key}" if isinstance(value, dict) else f"[{key}]"
            return step + fault[0], fault[1]
    return None


def _find_unstorable_leaf(value: Any) -> str | None:
    if isinstance(value, str) and not (value.isascii() or _encodes(value)):
        return "has half a character (a lone surrogate)"
    return "must be a finite number" if isinstance(value, float) and not math.isfinite(value) else None


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
