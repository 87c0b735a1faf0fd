"""The index of bookmarks: which instances wait for a stimulus. Perhaps in excess, never missing.

A row is put in the commit that makes its bookmark. It is removed after the commit that consumes it: one left
behind by a death in between is found by the next stimulus, which meets no such bookmark, and removes it.
"""

from pynamodb.exceptions import PynamoDBException

from aftercommit import clock
from aftercommit.ids import derive_id
from aftercommit.jsons import Json, canonical
from aftercommit.log import logger, reason_of
from aftercommit.model import Bookmark
from aftercommit.tables import BookmarkRow, key_of
from aftercommit.writes import Put


def stimulus_id_of(stimulus: dict[str, Json]) -> str:
    """Derive what a stimulus is matched by: its name, and its payload whatever the order of its members.

    And the waiting execution, if it is for one only.
    """
    named = [stimulus["execution_id"]] if "execution_id" in stimulus else []
    return derive_id("stimulus", stimulus["name"], canonical(stimulus["payload"]), *named)


def bookmark_put(
    tenant: str, instance_id: str, correlation_id: str | None, bookmark: Bookmark, at: float
) -> Put:
    """Return the write that lets stimuli find a bookmark; it belongs into the commit that makes it."""
    row = BookmarkRow(
        key_of(tenant, stimulus_id_of(bookmark.stimulus or {})),
        bookmark.bookmark_id,
        instance_id=instance_id,
        correlation_id=correlation_id,
        created_at=clock.to_text(at),
    )
    return Put("bookmark", row)


def find_bookmarks(tenant: str, stimulus_id: str) -> list[BookmarkRow]:
    """Return the rows of a stimulus, as they are now."""
    return list(BookmarkRow.query(key_of(tenant, stimulus_id), consistent_read=True))


def remove_bookmarks(tenant: str, bookmarks: list[Bookmark]) -> None:
    """Remove the rows of bookmarks that are gone; what fails stays in excess."""
    for bookmark in bookmarks:
        remove_row(BookmarkRow(key_of(tenant, stimulus_id_of(bookmark.stimulus or {})), bookmark.bookmark_id))


def remove_row(row: BookmarkRow) -> None:
    """Remove a row of a bookmark that is gone for good: its id is never used again."""
    try:
        row.delete()
    except PynamoDBException as error:
        logger.warning(
            "bookmark row not removed", extra={"bookmark_id": row.bookmark_id, "reason": reason_of(error)}
        )
