"""Publish: what a deploy defines, for all its tenants, and the drafts that a tenant puts; or take it back.

What starts changes in one transaction: of two publishers at once, each decides on what the other has left.
"""

import importlib
from typing import NamedTuple

from aftercommit.definition import Definition, read_definition
from aftercommit.definitions import (
    find_pointer,
    load_definition,
    load_draft,
    pointer_delete,
    pointer_put,
    store,
    store_draft,
    stored_versions,
)
from aftercommit.errors import (
    ConditionFailedError,
    ConflictError,
    ContentionError,
    DefinitionRefusedError,
    InputRefusedError,
    NewerFormError,
    NotFoundError,
    RefusedError,
)
from aftercommit.functions import registered_names
from aftercommit.jsons import Json
from aftercommit.limits import NESTING_MAX, PATH_CHARACTERS_MAX
from aftercommit.log import count, logger, reason_of
from aftercommit.occurrences import occurrence_writes
from aftercommit.schema import check_storable
from aftercommit.settings import settings
from aftercommit.tables import SHARED_TENANT, TriggerRow
from aftercommit.triggers import check_claims, trigger_writes, triggers_of
from aftercommit.workflow import Workflow
from aftercommit.writes import Delete, Write, commit

_TRIES_MAX = 10


def load_workflows(module_name: str) -> list[Workflow]:
    """Import a workflows module, and return the workflows it holds, by id and version.

    The import also registers its activity functions. Raises ImportError, or DefinitionRefusedError naming
    what is wrong with a tree.
    """
    module = importlib.import_module(module_name)
    found = {(each.id, each.version): each for each in vars(module).values() if isinstance(each, Workflow)}
    return [found[key] for key in sorted(found)]


def publish_workflows(module_name: str) -> list[str]:
    """Publish every workflow of a module; returns `id version` of those that changed something.

    All are checked and stored before any becomes the published version, which is each id's highest. Raises
    ConflictError for a changed tree under a version that is stored already.
    """
    workflows = load_workflows(module_name)
    definitions = [_read_known(each.data) for each in workflows]  # only now: the import registers functions
    highest = {each.definition_id: each for each in definitions}  # in order of version
    check_claims(SHARED_TENANT, highest.values())
    changed = {(each.definition_id, each.version) for each in definitions if store(SHARED_TENANT, each)}
    changed |= {
        (each.definition_id, each.version) for each in highest.values() if publish(SHARED_TENANT, each)
    }
    told = [f"{definition_id} {version}" for definition_id, version in sorted(changed)]
    logger.info("published", extra={"changed": told, "found": len(definitions)})
    return told


def _read_known(data: Json) -> Definition:
    """Read a definition that is to be published: it names only what the deployment has."""
    return read_definition(data, known=registered_names(), channels=frozenset(settings().channels))


def publish(owner: str, definition: Definition) -> bool:
    """Make a stored version the published one, with its start points; returns False if it was already.

    The pointer and the start points of both versions change in one transaction, or not at all.
    """
    now = Version(definition, triggers_of(owner, definition), definition.schedules())
    for _ in range(_TRIES_MAX):
        before = find_pointer(owner, definition.definition_id)
        if before == definition.version:
            return False
        replaced = _find_version(owner, definition.definition_id, before)
        writes = _start_writes(owner, definition.definition_id, now, replaced)
        try:
            commit([*writes, pointer_put(owner, definition, before)])
        except ConditionFailedError:
            continue  # others have published meanwhile
        _tell_removed(definition.definition_id, writes, f"version {definition.version} is published now")
        return True
    raise ContentionError(f"workflow {definition.definition_id!r} is being published by others")


def _tell_removed(definition_id: str, writes: list[Write], reason: str) -> None:
    """Tell of the times of schedules that will not come, as what is published has changed."""
    if number := sum(isinstance(each, Delete) and each.purpose == "occurrence" for each in writes):
        told = {"definition_id": definition_id, "number": number, "reason": reason}
        logger.info("times of schedules removed", extra=told)
        count("OccurrencesRemoved", number)


class Version(NamedTuple):
    """What is published, or was: what starts it. `schedules` are None if nobody can tell."""

    definition: Definition | None
    rows: list[TriggerRow]
    schedules: dict[str, dict[str, Json]] | None


NONE = Version(None, [], {})


def _start_writes(owner: str, definition_id: str, now: Version, before: Version) -> list[Write]:
    return [
        *trigger_writes(now.rows, before.rows),
        *occurrence_writes(owner, definition_id, now.definition, before.schedules),
    ]


def _find_version(owner: str, definition_id: str, version: int | None) -> Version:
    """Return the version that goes, with its trigger rows; without them if it cannot be read.

    It goes all the same, be it damaged or of newer code than this, which has come back: the pointer goes by
    its number, and the times that it has armed are found by its name. Trigger rows that are left behind
    start nothing, and go when code that can read it has published it again, and replaces it.
    """
    if version is None:
        return NONE
    try:
        definition = load_definition(owner, definition_id, version)
        return Version(definition, triggers_of(owner, definition), definition.schedules())
    except (RefusedError, NewerFormError) as error:
        logger.warning(
            "start points left behind",
            extra={"definition_id": definition_id, "version": version, "reason": reason_of(error)},
        )
        return Version(None, [], None)


def put_draft(tenant: str, definition_id: str, data: Json) -> dict[str, Json]:
    """Check and store a draft under its id; raises DefinitionRefusedError with every fault."""
    if isinstance(data, dict) and data.setdefault("id", definition_id) != definition_id:
        raise DefinitionRefusedError([("id", f"must be {definition_id!r}, as in the path")])
    try:
        for name, value in data.items() if isinstance(data, dict) else ():
            check_storable(value, name, levels=2 * NESTING_MAX)  # each level of the tree has two
    except InputRefusedError as error:
        raise DefinitionRefusedError([(str(error.field)[:PATH_CHARACTERS_MAX], error.message)]) from None
    definition = _read_known(data)
    triggers_of(tenant, definition)
    store_draft(tenant, definition)
    return {"id": definition_id, "fingerprint": definition.fingerprint}


def publish_draft(tenant: str, definition_id: str) -> int:
    """Publish the draft as the next version, or as the one it already is; returns the version.

    Of two callers at once, both find the same tree under the number that one of them has stored.
    """
    data = load_draft(tenant, definition_id)
    for _ in range(_TRIES_MAX):
        versions = stored_versions(tenant, definition_id)
        draft = _read_known(data)
        same = [version for version, fingerprint in versions.items() if fingerprint == draft.fingerprint]
        version = max(same) if same else max(versions, default=0) + 1
        definition = read_definition(data, version=version)
        check_claims(tenant, [definition])
        try:
            store(tenant, definition)
        except ConflictError:
            continue  # another draft took the number
        publish(tenant, definition)
        return version
    raise ContentionError(f"workflow {definition_id!r} is being published by others")


def retract(tenant: str, definition_id: str) -> None:
    """Take the published version back: nothing starts it any more, and what runs goes on."""
    for _ in range(_TRIES_MAX):
        before = find_pointer(tenant, definition_id)
        if before is None:
            raise NotFoundError(f"no published workflow {definition_id!r}", field="id")
        replaced = _find_version(tenant, definition_id, before)
        writes = _start_writes(tenant, definition_id, NONE, replaced)
        try:
            commit([*writes, pointer_delete(tenant, definition_id, before)])
        except ConditionFailedError:
            continue  # others have published meanwhile
        reason = "a caller has retracted it"
        logger.info("retracted", extra={"definition_id": definition_id, "version": before, "reason": reason})
        count("DefinitionsRetracted")
        _tell_removed(definition_id, writes, reason)
        return
    raise ContentionError(f"workflow {definition_id!r} is being published by others")
