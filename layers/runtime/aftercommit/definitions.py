"""Published definitions: stored once per version, found by name, kept in memory as versions never change."""

import json
from functools import lru_cache
from typing import Any

from aftercommit import clock
from aftercommit.definition import Definition, read_definition
from aftercommit.errors import ConditionFailedError, ConflictError, NotFoundError
from aftercommit.model import dumps
from aftercommit.tables import SHARED_TENANT, DefinitionRow, key_of, version_name
from aftercommit.writes import Put, Update, commit

PUBLISHED = "published"


def find_owner_and_version(tenant: str, definition_id: str, version: int | None = None) -> tuple[str, int]:
    """Return (owner, version) of the named version, or of the published one.

    A tenant's own definition hides the deployment's of the same name. Raises NotFoundError.
    """
    row = PUBLISHED if version is None else version_name(version)
    for owner in (tenant, SHARED_TENANT):
        for found in DefinitionRow.query(
            key_of(owner, definition_id), DefinitionRow.row == row, consistent_read=True, limit=1
        ):
            return owner, int(found.version)
    wanted = "" if version is None else f" version {version}"
    raise NotFoundError(f"no published workflow {definition_id!r}{wanted}", field="workflow")


@lru_cache(maxsize=256)
def load_definition(owner: str, definition_id: str, version: int) -> Definition:
    """Return a stored version, read and compiled; raises NotFoundError."""
    try:
        row = DefinitionRow.get(key_of(owner, definition_id), version_name(version), consistent_read=True)
    except DefinitionRow.DoesNotExist:
        raise NotFoundError(f"no workflow {definition_id!r} version {version}", field="version") from None
    return read_definition(json.loads(row.data), version=version)


def list_versions(tenant: str, definition_id: str) -> tuple[str, list[DefinitionRow]]:
    """Return (owner, its rows: the pointer and all versions); raises NotFoundError if there are none."""
    for owner in (tenant, SHARED_TENANT):
        rows = list(DefinitionRow.query(key_of(owner, definition_id), consistent_read=True))
        if rows:
            return owner, rows
    raise NotFoundError(f"no workflow {definition_id!r}", field="id")


def list_published(tenant: str) -> list[tuple[str, str]]:
    """Return (owner, definition_id) of everything a tenant can start, by name."""
    found: dict[str, str] = {}
    for owner in (SHARED_TENANT, tenant):
        for row in DefinitionRow.published.query(owner):
            found[row.definition_id] = owner
    return [(owner, definition_id) for definition_id, owner in sorted(found.items())]


def publish(owner: str, definition: Definition) -> bool:
    """Store a version and make it the published one; returns False if it was both already.

    Raises ConflictError if the version exists with another tree: a version never changes once it is stored.
    """
    at = clock.to_text(clock.now())
    key = key_of(owner, definition.definition_id)
    common: dict[str, Any] = {
        "definition_id": definition.definition_id,
        "version": definition.version,
        "fingerprint": definition.fingerprint,
        "created_at": at,
    }
    stored = DefinitionRow(key, version_name(definition.version), data=dumps(definition.data), **common)
    changed = True
    try:
        commit([Put("version", stored, DefinitionRow.definition_key.does_not_exist())])
    except ConditionFailedError:
        existing = DefinitionRow.get(key, version_name(definition.version), consistent_read=True)
        if existing.fingerprint != definition.fingerprint:
            raise ConflictError(
                f"workflow {definition.definition_id!r} version {definition.version} exists with another "
                "tree: give the changed tree a new version",
                field="version",
            ) from None
        changed = False
    pointer = DefinitionRow(key, PUBLISHED)
    actions = [
        DefinitionRow.version.set(definition.version),
        DefinitionRow.fingerprint.set(definition.fingerprint),
        DefinitionRow.definition_id.set(definition.definition_id),
        DefinitionRow.published_by.set(owner),
        DefinitionRow.created_at.set(at),
    ]
    # A pointer that already says so is left alone: publishing twice is no change.
    moved = DefinitionRow.version.does_not_exist() | (DefinitionRow.version != definition.version)
    try:
        commit([Update("pointer", pointer, actions, moved)])
    except ConditionFailedError:
        return changed
    return True
