"""The catalogue as data: each activity type with a JSON Schema of its properties, to draw trees by."""

from collections.abc import Callable

from aftercommit.activities import TYPES
from aftercommit.activities.activity import Activity, Property
from aftercommit.jsons import Json
from aftercommit.keywords import Schema

_TEXT: Schema = {"type": "string", "minLength": 1}
_TEXTS: Schema = {"type": "array", "items": {"type": "string"}}
_EXPRESSION: Schema = {"type": "string", "pattern": r"^\{%[\s\S]*%\}$"}
_CONNECTION: Schema = {
    "type": "object",
    "properties": {name: {"type": "string"} for name in ("from", "to", "outcome")},
    "required": ["from", "to"],
    "additionalProperties": False,
}
# By the kind of a property. A child is any activity: its own type's schema says the rest.
_SCHEMAS: dict[str, Callable[[Property], Schema]] = {
    "value": lambda _: {"description": "JSON; a text {% ... %} in it is an expression"},
    "value_map": lambda _: {"anyOf": [{"type": "object"}, _EXPRESSION]},
    "text": lambda _: _TEXT,
    "number": lambda _: {"type": "integer", "minimum": 1},
    "flag": lambda _: {"type": "boolean"},
    "choice": lambda each: {"enum": list(each.choices)},
    "texts": lambda _: _TEXTS,
    "connections": lambda _: {"type": "array", "items": _CONNECTION},
    "variable": lambda _: {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$"},
    "options": lambda _: {"type": "object"},
    "child": lambda _: _any_activity(),
    "children": lambda _: {"type": "array", "items": _any_activity()},
    "branches": lambda _: {"type": "object", "additionalProperties": _any_activity()},
}


def describe_types() -> list[dict[str, Json]]:
    """Return {type, description, schema} of each activity type a tree may name, by name."""
    return [
        {"type": name, "description": _first_line(kind), "schema": schema_of_type(kind)}
        for name, kind in sorted(TYPES.items())
    ]


def schema_of_type(kind: type[Activity]) -> Schema:
    """Return the JSON Schema of a node of this type."""
    properties = {name: _SCHEMAS[each.kind](each) for name, each in kind.properties.items()}
    return {
        "type": "object",
        "properties": {"type": {"const": kind.__name__}, **properties},
        "required": ["type", *(name for name, each in kind.properties.items() if each.required)],
        "additionalProperties": False,
    }


def _any_activity() -> Schema:
    return {"type": "object", "properties": {"type": {"enum": sorted(TYPES)}}, "required": ["type"]}


def _first_line(kind: type[Activity]) -> str:
    return (kind.__doc__ or "").partition("\n")[0]
