"""Triggers: the start points of published definitions, found by the stimulus that starts there."""

from collections.abc import Collection
from contextlib import suppress

from aftercommit.activities import Activity
from aftercommit.bookmarks import stimulus_id_of
from aftercommit.definition import Definition
from aftercommit.definitions import find_published_version
from aftercommit.errors import DefinitionRefusedError, ExpressionError, InputRefusedError
from aftercommit.expressions import evaluate
from aftercommit.jsons import Json
from aftercommit.limits import START_POINTS_MAX
from aftercommit.schema import check_inputs
from aftercommit.tables import SHARED_TENANT, TriggerRow, key_of, version_name
from aftercommit.writes import Delete, Put, Write


def triggers_of(owner: str, definition: Definition) -> list[TriggerRow]:
    """Return the trigger rows of a definition.

    A payload is evaluated once, at publish, where there are no inputs and no variables yet. Raises
    DefinitionRefusedError naming the activities whose payload gives nothing then, that give none without
    saying that they register none, or that start where another one does and may not; or if there are too
    many.
    """
    rows, faults, claimed = {}, [], set()
    for path, activity in definition.activities.items():
        try:
            stimuli = _stimuli(activity)
        except ExpressionError as error:
            faults.append((path, f"has no payload to start at: {error}"))
            continue
        if stimuli is not None and bool(stimuli) == bool(activity.registers_none):
            faults.append((path, _NONE_TOLD if not stimuli else _SOME_TOLD))
        for stimulus in stimuli or []:
            if activity.is_exclusive and stimulus_id_of(stimulus) in claimed:
                faults.append((path, f"starts at {_told(stimulus)}, as another activity here does"))
            claimed.add(stimulus_id_of(stimulus))
            row = TriggerRow(
                key_of(owner, stimulus_id_of(stimulus)),
                f"{definition.definition_id}#{version_name(definition.version)}#{path}",
                owner=owner,
                definition_id=definition.definition_id,
                version=definition.version,
                activity_id=path,
            )
            rows[row.stimulus_key, row.row] = row
    points = len(rows) + len(definition.schedules())
    if points and not faults:
        faults = _find_input_faults(definition)
    if not faults and points > START_POINTS_MAX:
        faults = [("root", f"has {points} start points; at most {START_POINTS_MAX} can be published")]
    if faults:
        raise DefinitionRefusedError(faults)
    return list(rows.values())


def list_start_points(definition: Definition) -> list[dict[str, Json]]:
    """Return {activity_id, name, payload} of each stimulus that starts a definition once it is published."""
    found = []
    for path, activity in definition.activities.items():
        with suppress(ExpressionError):  # published before it was checked like that; it starts at nothing
            found += [{"activity_id": path, **stimulus} for stimulus in _stimuli(activity) or []]
    return found


_NONE_TOLD = "starts the workflow, and gives nothing to start at; say registers_none if that is meant"
_SOME_TOLD = "says registers_none, and gives something to start at all the same"


def _stimuli(activity: Activity) -> list[dict[str, Json]] | None:
    given = activity.payloads()
    if given is None:
        return None
    return [{"name": name, "payload": _payload(payload)} for name, payload in given]


def _told(stimulus: dict[str, Json]) -> str:
    return " ".join(str(each) for each in stimulus["payload"].values())


def check_claims(owner: str, definitions: Collection[Definition]) -> None:
    """Refuse definitions that start where only one may, and another one does; raises DefinitionRefusedError.

    Those that are published together are judged by what they will be. Two publishers at once may both pass:
    then requests are refused.
    """
    faults: list[tuple[str, str]] = []
    claims: dict[str, str] = {}  # definition id by stimulus id
    names = {each.definition_id for each in definitions}
    for definition in definitions:
        triggers_of(owner, definition)  # what is wrong with one alone is told first
        for path, activity in definition.activities.items():
            for stimulus in (_stimuli(activity) or []) if activity.is_exclusive else []:
                key = stimulus_id_of(stimulus)
                found = [row.definition_id for row in find_triggers(owner, key)]
                others = {each for each in found if each not in names} | {
                    claims.setdefault(key, definition.definition_id)
                } - {definition.definition_id}
                faults += [
                    (path, f"starts at {_told(stimulus)}, as workflow {other!r} does")
                    for other in sorted(others)
                ]
    if faults:
        raise DefinitionRefusedError(faults)


def _find_input_faults(definition: Definition) -> list[tuple[str, str]]:
    try:
        check_inputs(definition.inputs, {})
    except InputRefusedError as error:
        told = "is required, but what starts at a start point gives no inputs; give it a default"
        return [(error.field or "inputs", told)]
    return []


def _payload(payload: Json) -> dict[str, Json]:
    given = evaluate(payload, {"inputs": {}, "var": {}}, at=0, seed="publish")
    if not isinstance(given, dict) or any(value is None for value in given.values()):
        raise ExpressionError(str(payload), "a start point's payload must be known when it is published")
    return given


def trigger_writes(rows: list[TriggerRow], before: list[TriggerRow]) -> list[Write]:
    """Return the writes that index the rows of a version in place of those of the one before."""
    return [
        *(Put("trigger", row) for row in rows),
        *(Delete("trigger", TriggerRow(row.stimulus_key, row.row)) for row in before),
    ]


def find_triggers(tenant: str, stimulus_id: str) -> list[TriggerRow]:
    """Return the start points of a stimulus: only those of versions that are published now."""
    rows = [
        row
        for owner in (tenant, SHARED_TENANT)
        for row in TriggerRow.query(key_of(owner, stimulus_id), consistent_read=True)
    ]
    return [
        row
        for row in rows
        if find_published_version(tenant, row.definition_id) == (row.owner, int(row.version))
    ]
