"""Published definitions: stored once per version, found by name, kept in memory as versions never change."""

import json
from functools import lru_cache
from typing import Any

from pynamodb.expressions.condition import Condition

from aftercommit import clock
from aftercommit.definition import Definition, fingerprint_of, read_definition
from aftercommit.errors import (
    ConditionFailedError,
    ConflictError,
    DefinitionRefusedError,
    MalformedRowError,
    NewerFormError,
    NotFoundError,
)
from aftercommit.jsons import Json, dumps
from aftercommit.tables import SHARED_TENANT, DefinitionRow, key_of, version_name
from aftercommit.writes import Delete, Put, commit

PUBLISHED = "published"
DRAFT = "draft"


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


def find_published_version(tenant: str, definition_id: str) -> tuple[str, int] | None:
    """Return (owner, version) of what a tenant starts under a name, or None."""
    try:
        return find_owner_and_version(tenant, definition_id)
    except NotFoundError:
        return None


@lru_cache(maxsize=256)
def load_definition(owner: str, definition_id: str, version: int) -> Definition:
    """Return a stored version, read and compiled; raises NotFoundError, NewerFormError."""
    try:
        row = DefinitionRow.get(key_of(owner, definition_id), version_name(version), consistent_read=True)
    except DefinitionRow.DoesNotExist:
        raise NotFoundError(f"no workflow {definition_id!r} version {version}", field="version") from None
    try:
        return read_definition(json.loads(row.data), version=version)
    except (ValueError, TypeError, DefinitionRefusedError) as error:
        if (
            isinstance(error, DefinitionRefusedError)
            and fingerprint_of(json.loads(row.data)) == row.fingerprint
        ):
            # Undamaged: it was accepted by code that knew more activities or properties than this.
            raise NewerFormError(f"workflow {definition_id!r} version {version}: {error}") from error
        raise MalformedRowError(
            f"workflow {definition_id!r} version {version} cannot be read: {error}", field="data"
        ) from error


def list_versions(tenant: str, definition_id: str) -> tuple[str, list[DefinitionRow]]:
    """Return (owner, its rows: the pointer and all versions); raises NotFoundError if there are none.

    The owner is whose version a tenant starts, else whose versions there are.
    """
    found = []
    for owner in (tenant, SHARED_TENANT):
        stored = DefinitionRow.query(key_of(owner, definition_id), consistent_read=True)
        rows = [row for row in stored if row.row != DRAFT]
        if any(row.row == PUBLISHED for row in rows):
            return owner, rows
        if rows:
            found.append((owner, rows))
    if not found:
        raise NotFoundError(f"no workflow {definition_id!r}", field="id")
    return found[0]


def list_published(tenant: str, *, after: str | None, limit: int) -> list[tuple[str, str]]:
    """Return (owner, definition_id) of what a tenant can start, up to `limit`, by name."""
    behind = DefinitionRow.definition_id > after if after else None
    found: dict[str, str] = {}
    for owner in (SHARED_TENANT, tenant):  # a tenant's own hides the shared one
        rows = DefinitionRow.published.query(owner, behind, limit=limit, page_size=limit)
        found |= {row.definition_id: owner for row in rows}
    return [(owner, definition_id) for definition_id, owner in sorted(found.items())[:limit]]


def store(owner: str, definition: Definition) -> bool:
    """Store a version; returns False if it was there already.

    Raises ConflictError if it is there with another tree: a version never changes once it is stored.
    """
    row = _row(owner, definition, version_name(definition.version), data=dumps(definition.data))
    try:
        commit([Put("version", row, DefinitionRow.definition_key.does_not_exist())])
    except ConditionFailedError:
        existing = DefinitionRow.get(row.definition_key, row.row, consistent_read=True)
        if existing.fingerprint == definition.fingerprint:
            return False
        raise ConflictError(
            f"workflow {definition.definition_id!r} version {definition.version} exists with another "
            "tree: give the changed tree a new version",
            field="version",
        ) from None
    return True


def find_pointer(owner: str, definition_id: str) -> int | None:
    """Return the version that an owner has published under a name, or None."""
    try:
        row = DefinitionRow.get(key_of(owner, definition_id), PUBLISHED, consistent_read=True)
    except DefinitionRow.DoesNotExist:
        return None
    return int(row.version)


def pointer_put(owner: str, definition: Definition, before: int | None) -> Put:
    """Return the write that makes a stored version the published one, in place of the one before."""
    row = _row(owner, definition, PUBLISHED, published_by=owner)
    # Closes: another publisher, or a retraction, since that was read.
    return Put("pointer", row, _is_published(before))


def pointer_delete(owner: str, definition_id: str, before: int) -> Delete:
    """Return the write that takes back what is published, if it still is this version."""
    return Delete("pointer", DefinitionRow(key_of(owner, definition_id), PUBLISHED), _is_published(before))


def _is_published(version: int | None) -> Condition:
    return DefinitionRow.version.does_not_exist() if version is None else DefinitionRow.version == version


def store_draft(owner: str, definition: Definition) -> None:
    """Store a checked draft, in place of an earlier one."""
    commit([Put("draft", _row(owner, definition, DRAFT, data=dumps(definition.data)))])


def load_draft(owner: str, definition_id: str) -> Json:
    """Return the data of a draft; raises NotFoundError."""
    try:
        return json.loads(DefinitionRow.get(key_of(owner, definition_id), DRAFT, consistent_read=True).data)
    except DefinitionRow.DoesNotExist:
        raise NotFoundError(f"no draft of workflow {definition_id!r}", field="id") from None


def stored_versions(owner: str, definition_id: str) -> dict[int, str]:
    """Return the fingerprint of each stored version."""
    rows = DefinitionRow.query(
        key_of(owner, definition_id), DefinitionRow.row.startswith("version#"), consistent_read=True
    )
    return {int(row.version): row.fingerprint for row in rows}


def _row(owner: str, definition: Definition, name: str, **more: Any) -> DefinitionRow:
    return DefinitionRow(
        key_of(owner, definition.definition_id),
        name,
        definition_id=definition.definition_id,
        version=definition.version,
        fingerprint=definition.fingerprint,
        created_at=clock.to_text(clock.now()),
        **more,
    )
