"""Definitions: trees of activities as data, read and checked whole; every fault is named with its path."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aftercommit import expressions, schema
from aftercommit.activities import TYPES, Activity, Break, Step
from aftercommit.activities.activity import CHILD_KINDS, Property
from aftercommit.activities.flowchart import are_connections
from aftercommit.errors import DefinitionRefusedError
from aftercommit.ids import derive_fingerprint, derive_id
from aftercommit.jsons import Json, dumps, size_of
from aftercommit.limits import (
    DEFINITION_BYTES_MAX,
    EXPRESSIONS_WORK_MAX,
    FAULTS_MAX,
    NAME_CHARACTERS_MAX,
    PATH_CHARACTERS_MAX,
    VERSION_MAX,
)

LEVELS_MAX = 100
NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_VARIABLE_PATTERN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
OPTIONS: dict[str, tuple[str, ...]] = {
    "commit": ("step", "burst"),
    "incidents": ("fault", "continue"),
    "activation": ("always", "singleton", "correlation"),
}
_ROOTS = ("inputs", "var")  # what an expression can speak of
_TOP = {"id", "version", "inputs", "root", "output", "options"}

Faults = list[tuple[str, str]]


@dataclass(frozen=True)
class Definition:
    """A read and checked definition. `activities` maps each path (as `root.activities[2]`) to its node."""

    definition_id: str
    version: int
    inputs: dict[str, Json]
    output: Json
    commit: str
    incidents: str
    activation: str
    root: Activity
    data: dict[str, Json]  # the tree as it was written, without its version
    activities: dict[str, Activity] = field(default_factory=dict)

    @property
    def fingerprint(self) -> str:
        """A digest of everything but the version: equal trees have equal ones."""
        return fingerprint_of(self.data)

    def derive_activation_id(self, correlation_id: str | None) -> str | None:
        """Derive what one live instance at a time may hold; None for a start that nothing limits.

        The version has no part in it: a new one waits for the end of what runs on an old one.
        """
        if self.activation == "singleton":
            return derive_id("activation", self.definition_id, "")
        if self.activation == "correlation" and correlation_id:
            return derive_id("activation", self.definition_id, correlation_id)
        return None

    @property
    def gives_tokens(self) -> bool:
        """Whether its instances may give tokens out, and so need a secret to prove them by."""
        return any(each.gives_tokens() for each in self.activities.values())

    def schedules(self) -> dict[str, dict[str, Json]]:
        """Return the schedule of each start point that has one, by activity id."""
        found = {path: activity.schedule() for path, activity in self.activities.items()}
        return {path: schedule for path, schedule in found.items() if schedule}


def read_definition(
    data: Json,
    *,
    version: int | None = None,
    known: frozenset[str] | None = None,
    channels: frozenset[str] | None = None,
) -> Definition:
    """Read a definition from its data.

    `version` overrides the one in the data. `known` are the names of the deployed activity functions; when
    given, a step that names another is a fault; so is a channel that `channels` has not.
    Raises DefinitionRefusedError with all faults at once.
    """
    if not isinstance(data, dict):
        raise DefinitionRefusedError([("definition", f"expected an object, got {type(data).__name__}")])
    if size_of(data) > DEFINITION_BYTES_MAX:
        raise DefinitionRefusedError(
            [("definition", f"is {size_of(data)} bytes; at most {DEFINITION_BYTES_MAX} are stored")]
        )
    if (work := expressions.work_of(data)) > EXPRESSIONS_WORK_MAX:
        told = f"the lengths of its expressions, squared, sum up to {work}; at most {EXPRESSIONS_WORK_MAX}"
        raise DefinitionRefusedError([("definition", f"{told}: let an activity do a part of it")])
    reader = _Reader(known, channels)
    reader.check_top(data)
    root = reader.read_activity(data["root"], "root", 1) if "root" in data else None
    if reader.faults or root is None:
        raise DefinitionRefusedError(reader.faults)
    options = data.get("options", {})
    return Definition(
        definition_id=data["id"],
        version=version or data.get("version", 1),
        inputs=data.get("inputs", {}),
        output=data.get("output"),
        commit=options.get("commit", "step"),
        incidents=options.get("incidents", "fault"),
        activation=options.get("activation", "always"),
        root=root,
        data={key: value for key, value in data.items() if key != "version"},
        activities=reader.activities,
    )


class _Reader:
    def __init__(self, known: frozenset[str] | None, channels: frozenset[str] | None) -> None:
        self.known = known
        self.channels = channels
        self.faults: Faults = []
        self.activities: dict[str, Activity] = {}
        self.loops = 0  # around the activity being read

    def fault(self, path: str, message: str) -> None:
        if len(self.faults) < FAULTS_MAX:
            self.faults.append((path[:PATH_CHARACTERS_MAX], message))
        elif len(self.faults) == FAULTS_MAX:
            self.faults.append(("definition", f"has more faults than these {FAULTS_MAX}"))

    def fault_all(self, faults: Faults) -> None:
        for path, message in faults:
            self.fault(path, message)

    def check_top(self, data: dict[str, Json]) -> None:
        for key in sorted(data.keys() - _TOP):
            self.fault(key, "unknown property")
        if "root" not in data:
            self.fault("root", "is missing")
        if message := find_name_fault(data.get("id")):
            self.fault("id", message)
        version = data.get("version", 1)
        if not isinstance(version, int) or isinstance(version, bool) or not 1 <= version <= VERSION_MAX:
            self.fault("version", f"must be a whole number from 1 to {VERSION_MAX}")
        self.fault_all(schema.find_schema_faults(data.get("inputs", {}), "inputs"))
        self.fault_all(expressions.find_faults(data.get("output"), "output", _ROOTS))
        self._check_options(data.get("options", {}))

    def _check_options(self, options: Json) -> None:
        if not isinstance(options, dict):
            self.fault("options", "must be an object")
            return
        for name, value in options.items():
            allowed = OPTIONS.get(name)
            if allowed is None:
                self.fault(f"options.{name}", "unknown option")
            elif value not in allowed:
                self.fault(f"options.{name}", f"must be one of {', '.join(allowed)}")

    def read_activity(self, data: Json, path: str, level: int) -> Activity | None:
        if level > LEVELS_MAX:
            self.fault(path, f"is nested deeper than {LEVELS_MAX} levels")
            return None
        if len(path) > PATH_CHARACTERS_MAX:
            self.fault(path, f"its place in the tree takes more than {PATH_CHARACTERS_MAX} characters")
            return None
        if not isinstance(data, dict) or "type" not in data:
            self.fault(path, 'expected an activity: an object with a "type"')
            return None
        kind = TYPES.get(data["type"]) if isinstance(data["type"], str) else None
        if kind is None:
            self.fault(path, f'unknown activity type "{str(data["type"])[:NAME_CHARACTERS_MAX]}"')
            return None
        properties = kind.properties
        for name in sorted(data.keys() - properties.keys() - {"type"}):
            self.fault(f"{path}.{name}", f"{data['type']} has no such property")
        self.loops += kind.is_loop
        values = {
            name: self._read_property(each, data.get(name), f"{path}.{name}", level)
            for name, each in properties.items()
        }
        self.loops -= kind.is_loop
        read = kind.__new__(kind)
        Activity.__init__(read, **values)
        if path in self.activities:  # as `cases.a.cases.b`, which a case named "a.cases.b" has, too
            self.fault(path, "two activities have this path; name a branch without dots")
        self.activities[path] = read
        self._check_whole(read, path)
        return read

    def _check_whole(self, read: Activity, path: str) -> None:
        """Check what no single property can tell."""
        self.fault_all([(f"{path}.{place}", message) for place, message in read.find_faults()])
        name: Json = read.activity if isinstance(read, Step) and "activity" in read.properties else None
        if isinstance(name, str) and self.known is not None and name not in self.known:
            self.fault(f"{path}.activity", f'the deployed code has no activity named "{name}"')
        channel: Json = getattr(read, "channel", None)
        if isinstance(channel, str) and self.channels is not None and channel not in self.channels:
            self.fault(f"{path}.channel", f'the deployment has no channel named "{channel}"')
        if isinstance(read, Break) and not self.loops:
            self.fault(path, "there is no loop around this Break")

    def _read_property(self, each: Property, value: Json, path: str, level: int) -> Any:
        if value is None:
            if each.required:
                self.fault(path, "is missing")
            return None
        if each.kind == "child":
            return self.read_activity(value, path, level + 1)
        if each.kind == "children" and isinstance(value, list):
            return [self.read_activity(child, f"{path}[{i}]", level + 1) for i, child in enumerate(value)]
        if each.kind == "branches" and isinstance(value, dict):
            return {
                key: self.read_activity(child, f"{path}.{key}", level + 1) for key, child in value.items()
            }
        if each.kind in ("value", "value_map"):
            if each.kind == "value_map" and not (isinstance(value, dict) or _is_expression(value)):
                self.fault(path, "must be an object, or an expression that gives one")
            self.fault_all(expressions.find_faults(value, path, _ROOTS))
        elif each.kind == "choice":
            if value not in each.choices:
                self.fault(path, f"must be one of {', '.join(each.choices)}")
        elif message := _PLAIN_FAULTS[each.kind](value):
            self.fault(path, message)
            return None if each.kind in CHILD_KINDS else value
        return value


def _is_expression(value: Json) -> bool:
    return isinstance(value, str) and expressions.is_expression(value)


_PLAIN_FAULTS: dict[str, Callable[[Json], str | None]] = {
    "children": lambda _: "must be a list of activities",
    "branches": lambda _: "must be an object of activities by outcome",
    "text": lambda value: None if isinstance(value, str) and value else "must be a text that is not empty",
    "flag": lambda value: None if isinstance(value, bool) else "must be true or false",
    "number": lambda value: None if type(value) is int and value >= 1 else "must be a whole number from 1",
    "texts": lambda value: None if _are_texts(value) else "must be a list of texts",
    "connections": lambda value: None if are_connections(value) else "must be a list of {from, to, outcome?}",
    "options": lambda value: None if isinstance(value, dict) else "must be an object",
    "variable": lambda value: (
        None
        if isinstance(value, str) and _VARIABLE_PATTERN.fullmatch(value)
        else "must be a variable's name: letters, digits and _, not beginning with a digit"
    ),
}


def _are_texts(value: Json) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def find_name_fault(name: Json) -> str | None:
    """Say what is wrong with the id of a definition or an instance, or None."""
    if isinstance(name, str) and NAME_PATTERN.fullmatch(name) and len(name) <= NAME_CHARACTERS_MAX:
        return None
    return f"must be 1 to {NAME_CHARACTERS_MAX} letters, digits and . _ - and begin with a letter or digit"


def fingerprint_of(data: Json) -> str:
    """Return the fingerprint of a tree as it is stored."""
    return derive_fingerprint(dumps(_sorted(data)))


def _sorted(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_sorted(each) for each in value]
    return value
