"""The bodies of the HTTP API, as JSON Schemas: what it takes, and what it answers.

Bounds and words are those that the code itself uses. A member of an answer that is not required is left out
where there is nothing to tell.
"""

from aftercommit import errors
from aftercommit.activities import TYPES
from aftercommit.catalogue import schema_of_type
from aftercommit.definition import NAME_PATTERN, OPTIONS
from aftercommit.keywords import Schema
from aftercommit.limits import (
    BULK_REQUESTS_MAX,
    DEFINITION_BYTES_MAX,
    FAULTS_MAX,
    INPUT_BYTES_MAX,
    LARGE_VALUE_BYTES_MAX,
    MESSAGE_CHARACTERS_MAX,
    NAME_CHARACTERS_MAX,
    PAGE_MAX,
    PATH_CHARACTERS_MAX,
    VERSION_MAX,
)
from aftercommit.statuses import InstanceStatus, ItemCommand, ItemStatus

TEXT: Schema = {"type": "string"}
NAME: Schema = {"type": "string", "minLength": 1, "maxLength": NAME_CHARACTERS_MAX}
ID: Schema = {**NAME, "pattern": f"^{NAME_PATTERN.pattern}$"}
FLAG: Schema = {"type": "boolean"}
COUNT: Schema = {"type": "integer", "minimum": 0}
NUMBER: Schema = {"type": "integer", "minimum": 1}
MOMENT: Schema = {"type": "string", "format": "date-time"}
ANYTHING: Schema = {}
OBJECT: Schema = {"type": "object"}

# What a caller is told; other errors stay inside.
_TOLD: tuple[type[errors.RefusedError], ...] = (
    errors.RefusedError,
    errors.MalformedRequestError,
    errors.InputRefusedError,
    errors.DefinitionRefusedError,
    errors.ForbiddenError,
    errors.NotFoundError,
    errors.ConflictError,
    errors.ActivationRefusedError,
    errors.MethodNotAllowedError,
    errors.KeyReusedError,
    errors.TooLargeError,
    errors.MalformedRowError,
)
ERROR_CODES = [*(each.code for each in _TOLD), "try_later", "internal"]


def schemas() -> dict[str, Schema]:
    """Return all schemas by name."""
    return {**_errors(), **_requests(), **_activities(), **_instances(), **_items(), **_definitions()}


def ref(name: str) -> Schema:
    """Return a reference to one of the schemas."""
    return {"$ref": f"#/components/schemas/{name}"}


def _object(required: dict[str, Schema], optional: dict[str, Schema] | None = None) -> Schema:
    written: Schema = {"type": "object", "properties": {**required, **(optional or {})}}
    return {**written, "required": list(required)} if required else written


def _closed(schema: Schema) -> Schema:
    """Return the schema of a body that is refused for a member that it does not name."""
    return {**schema, "additionalProperties": False}


def _list(items: Schema, most: int | None = None) -> Schema:
    return {"type": "array", "items": items, **({"maxItems": most} if most else {})}


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _page(name: str, items: str) -> Schema:
    return _object({name: _list(ref(items), PAGE_MAX)}, {"cursor": ref("Cursor")})


def _errors() -> dict[str, Schema]:
    message: Schema = {"type": "string", "maxLength": MESSAGE_CHARACTERS_MAX}
    fault = _object({"path": {"type": "string", "maxLength": PATH_CHARACTERS_MAX}, "message": message})
    field: Schema = {"type": "string", "description": "what to change"}
    told = {"field": field, "faults": _list(ref("DefinitionFault"), FAULTS_MAX + 1)}
    code: Schema = {"enum": ERROR_CODES, "description": "stable, for programs"}
    return {
        "DefinitionFault": fault,
        "ErrorDescription": _object({"code": code, "message": message}, told),
        "Error": _object({"error": ref("ErrorDescription")}),
        "GatewayError": {**_object({"message": TEXT}), "description": "what API Gateway itself answers"},
        "Forbidden": {"oneOf": [ref("GatewayError"), ref("Error")]},
    }


def _requests() -> dict[str, Schema]:
    value: Schema = {"description": f"JSON, at most {INPUT_BYTES_MAX} bytes"}
    most = f"{INPUT_BYTES_MAX} bytes, or {LARGE_VALUE_BYTES_MAX} with LargePayloads"
    large = {"description": f"JSON, at most {most}"}
    start = {
        "input": {**OBJECT, **large},
        "correlation_id": NAME,
        "instance_id": {**ID, "description": "of the new instance; never with an Idempotency-Key"},
        "channel": {**NAME, "description": "one that the deployment has"},
    }
    stimulus = {
        "payload": {**OBJECT, **value},
        "input": value,
        **dict.fromkeys(("correlation_id", "instance_id", "execution_id"), NAME),
    }
    return {
        "Start": _closed(_object({}, start)),
        "BulkStart": _closed(_object({"items": {**_list(ref("Start"), BULK_REQUESTS_MAX), "minItems": 1}})),
        "Event": _closed(_object({}, stimulus)),
        "NamedStimulus": _closed(_object({"name": NAME}, stimulus)),
        "Resume": _closed(_object({}, {"input": value})),
        "Draft": {
            **_closed(
                _object(
                    {"root": ref("Activity")},
                    {**_definition(), "id": ID, "version": {**NUMBER, "maximum": VERSION_MAX}},
                )
            ),
            "description": f"at most {DEFINITION_BYTES_MAX} bytes",
        },
    }


def _definition() -> dict[str, Schema]:
    options = {name: {"enum": list(words)} for name, words in OPTIONS.items()}
    inputs: Schema = {"type": "object", "description": "a JSON Schema by the name of each input"}
    return {"inputs": inputs, "output": ANYTHING, "options": _closed(_object({}, options))}


def _activities() -> dict[str, Schema]:
    """Return a schema per activity type, and that of any of them."""
    found = {f"{kind.__name__}Activity": schema_of_type(kind) for _, kind in sorted(TYPES.items())}
    return {**found, "Activity": {"oneOf": [ref(name) for name in found]}}


def _summary() -> dict[str, Schema]:
    return {
        "instance_id": TEXT,
        "definition_id": TEXT,
        "version": NUMBER,
        "status": {"enum": [each.value for each in InstanceStatus]},
        "correlation_id": _or_null(TEXT),
        "parent": _or_null(_object({}, {"instance_id": TEXT, "item_id": TEXT})),
        "revision": COUNT,
        "created_at": MOMENT,
        "updated_at": MOMENT,
        "ended_at": _or_null(MOMENT),
    }


def _left_out() -> Schema:
    told = "members that are empty here, as the answer would be too large; only with LargePayloads"
    return {**_list({"enum": ["variables", "bookmarks", "input", "output"]}), "description": told}


def _more() -> Schema:
    told = "lists that are longer: GET /incidents?instance_id= and /dispatches?owner_id= go on"
    return {**_list({"enum": ["incidents", "dispatches"]}), "description": told}


def _instances() -> dict[str, Schema]:
    incident = {
        "incident_id": TEXT,
        "error": ref("Failure"),
        "created_at": MOMENT,
        "open": FLAG,
    }
    of = dict.fromkeys(("activity_id", "execution_id", "item_id"), TEXT)
    age = {"age": _or_null(COUNT)}
    state = {
        "input": OBJECT,
        "output": ANYTHING,
        "response": _or_null(_object({"status": NUMBER, "headers": OBJECT, "body": ANYTHING})),
        "variables": OBJECT,
        "failure": _or_null(ref("Failure")),
        "bookmarks": _list(ref("Bookmark")),
        "incidents": _list(ref("Incident"), PAGE_MAX),
        "dispatches": _list(ref("Dispatch"), PAGE_MAX),
    }
    revision = {"revision": NUMBER, "committed_at": MOMENT, "nonce": TEXT}
    return {
        "Cursor": {
            "type": "string",
            "description": "where the next page begins, even behind an empty one; absent at the end",
        },
        "Failure": _object({"type": TEXT, "message": TEXT}),
        "InstanceSummary": _object(_summary()),
        "Instance": _object({**_summary(), **state}, {"left_out": _left_out(), "more": _more()}),
        "Instances": _page("instances", "InstanceSummary"),
        "Bookmark": _bookmark(),
        "Incident": _object(incident, of),
        "ListedIncident": _object({"instance_id": TEXT, **incident, **age}, of),
        "Incidents": _page("incidents", "ListedIncident"),
        "JournalLine": _journal_line(),
        "Revision": _object({**revision, "activities": _list(ref("JournalLine"))}),
        "Journal": _page("revisions", "Revision"),
        "Started": _object({"instance_id": TEXT}),
        "Cancelled": _object(
            {
                "instance_id": TEXT,
                "cancelled": {"type": "boolean", "description": "false: it had ended already"},
            }
        ),
        "BulkStarted": _object({"results": _list(ref("BulkResult"), BULK_REQUESTS_MAX)}),
        "BulkResult": {"oneOf": [ref("Started"), ref("Error")]},
    }


def _bookmark() -> Schema:
    waits = ["child", "children", "retry", "timer", "stimulus", "callback", "task", "request"]
    stimulus = _object({"name": TEXT, "payload": OBJECT}, {"execution_id": TEXT})
    return _object(
        {"bookmark_id": TEXT, "execution_id": TEXT, "waits_for": {"enum": waits}},
        {
            "until": MOMENT,
            "stimulus": stimulus,
            "multi_use": {"const": True},
            "inputs": {**OBJECT, "description": "of a task"},
            "activity_id": TEXT,
            "token": {**TEXT, "description": "completes the task"},
            "callback_path": TEXT,
            "instance_id": {**TEXT, "description": "of the child"},
            "total": {**COUNT, "description": "of the children"},
        },
    )


def _journal_line() -> Schema:
    statuses = ["intended", "completed", "retrying", "faulted", "cancelled"]
    return _object(
        {"at": MOMENT, "activity_id": TEXT, "type": TEXT, "status": {"enum": statuses}, "execution_id": TEXT},
        {
            "activity": TEXT,
            "outcome": TEXT,
            "attempt": NUMBER,
            "error": ref("Failure"),
            "item_id": TEXT,
            "instance_id": TEXT,
            "count": {**NUMBER, "description": "so many, from this one on"},
            "started_at": MOMENT,
            "retry_at": MOMENT,
        },
    )


def _items() -> dict[str, Schema]:
    identity = {"owner_id": TEXT, "item_id": TEXT, "attempts": COUNT, "sends": COUNT, "generation": NUMBER}
    # Of a row that cannot be read whole, any of these may be missing.
    more: dict[str, Schema] = {
        "command": {"enum": [each.value for each in ItemCommand]},
        "status": {"enum": [each.value for each in ItemStatus]},
        **dict.fromkeys(("outcome", "instance_id", "definition_id", "channel", "last_error"), TEXT),
        "version": NUMBER,
        **dict.fromkeys(("asleep", "wait"), FLAG),
        **dict.fromkeys(("created_at", "due_at", "settled_at"), MOMENT),
    }
    age: Schema = {**COUNT, "description": "seconds since it was made"}
    stimulus: dict[str, Schema] = {
        **dict.fromkeys(("name", "correlation_id", "instance_id", "execution_id", "last_error"), TEXT),
        "replayed_as": TEXT,
        **dict.fromkeys(("created_at", "due_at", "settled_at"), MOMENT),
    }
    is_open: Schema = {"enum": ["open", "dead"]}
    return {
        "Dispatch": _object(identity, more),
        "Dispatches": _page("dispatches", "Dispatch"),
        "OutboxItem": _object(identity, {**more, "deliver_at": MOMENT, "age": age}),
        "OutboxItems": _page("items", "OutboxItem"),
        "Stimulus": _object({"stimulus_id": TEXT, "status": is_open, "attempts": COUNT}, stimulus),
        "OpenStimuli": _page("stimuli", "Stimulus"),
        "DeadLetters": _page("dead_letters", "Stimulus"),
        "Sent": _object({"stimulus_id": TEXT}),
        "Nothing": _object({}),
    }


def _definitions() -> dict[str, Schema]:
    tree = {**OBJECT, "description": "an activity, as it was put"}
    export = {"id": TEXT, "root": tree}
    versions = {"published_version": _or_null(NUMBER), "versions": _list(NUMBER)}
    shown = {"version": NUMBER, "fingerprint": TEXT, **versions, "triggers": _list(ref("Trigger"))}
    of_stimulus = _object({"activity_id": TEXT, "name": TEXT, "payload": OBJECT})
    by_clock = _object({"activity_id": TEXT, "schedule": OBJECT, "next_at": _or_null(MOMENT)})
    function = {"name": TEXT, "description": TEXT, "inputs": OBJECT, "output": OBJECT, "retry": OBJECT}
    activity_type = {"type": TEXT, "description": TEXT, "schema": OBJECT}
    return {
        "Health": _object({"status": {"const": "ok"}}),
        "Catalogue": _object(
            {"activities": _list(_object(function)), "types": _list(_object(activity_type))}
        ),
        "Workflows": _page("workflows", "Workflow"),
        "Workflow": _object({"id": TEXT, "version": NUMBER, "published_at": MOMENT}),
        "Trigger": {"oneOf": [of_stimulus, by_clock]},
        "Export": {**_object(export, _definition()), "description": "just what PUT takes"},
        "Definition": _object({**export, **shown}, _definition()),
        "ShownOrExport": {"anyOf": [ref("Definition"), ref("Export")]},
        "Stored": _object({"id": TEXT, "fingerprint": TEXT}),
        "Published": _object({"id": TEXT, "version": NUMBER}),
        "Retracted": _object({"id": TEXT}),
    }
