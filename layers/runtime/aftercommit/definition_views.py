"""Views of definitions: what can be started, and each version with where it starts. Reading only."""

from aftercommit.definition import Definition
from aftercommit.definitions import PUBLISHED, list_published, list_versions, load_definition
from aftercommit.errors import NotFoundError
from aftercommit.jsons import Json
from aftercommit.occurrences import next_times
from aftercommit.paging import Page, from_cursor, to_cursor
from aftercommit.tables import DefinitionRow, key_of, split_key
from aftercommit.triggers import list_start_points


def list_workflows(tenant: str, page: Page) -> dict[str, Json]:
    """Return what a tenant can start, by name."""
    place = from_cursor(page.cursor, 1)
    listed = list_published(tenant, after=place[0] if place else None, limit=page.limit + 1)
    shown: list[Json] = []
    for owner, definition_id in listed[: page.limit]:
        try:
            row = DefinitionRow.get(key_of(owner, definition_id), PUBLISHED)
        except DefinitionRow.DoesNotExist:
            continue  # retracted just now: the index is a moment behind
        shown.append({"id": definition_id, "version": int(row.version), "published_at": row.created_at})
    if len(listed) == page.limit + 1:
        return {"workflows": shown, "cursor": to_cursor([listed[page.limit - 1][1]])}
    return {"workflows": shown}


def show_workflow(tenant: str, definition_id: str, version: int | None) -> dict[str, Json]:
    """Return a definition (the published version unless another is named) and which versions there are.

    `triggers` are where the published one starts: at a stimulus, or by the clock.
    """
    definition, published, rows = _find_version(tenant, definition_id, version)
    return {
        **definition.data,
        "version": definition.version,
        "fingerprint": definition.fingerprint,
        "published_version": published,
        "versions": sorted(int(row.version) for row in rows if row.row != PUBLISHED),
        "triggers": _triggers(split_key(rows[0].definition_key)[0], definition_id, published),
    }


def export_workflow(tenant: str, definition_id: str, version: int | None) -> dict[str, Json]:
    """Return a definition just as a draft of it is put; raises NotFoundError."""
    return _find_version(tenant, definition_id, version)[0].data


def _find_version(
    tenant: str, definition_id: str, version: int | None
) -> tuple[Definition, int | None, list[DefinitionRow]]:
    owner, rows = list_versions(tenant, definition_id)
    published = next((int(row.version) for row in rows if row.row == PUBLISHED), None)
    shown = version or published
    if shown is None:
        raise NotFoundError(f"no published workflow {definition_id!r}", field="id")
    return load_definition(owner, definition_id, shown), published, rows


def _triggers(owner: str, definition_id: str, published: int | None) -> list[dict[str, Json]]:
    if published is None:
        return []
    definition = load_definition(owner, definition_id, published)
    times = next_times(owner, definition_id)
    return list_start_points(definition) + [
        {"activity_id": path, "schedule": schedule, "next_at": times.get(path)}
        for path, schedule in definition.schedules().items()
    ]
