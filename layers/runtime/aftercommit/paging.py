"""Paging: lists come in pages, each with a cursor by which the next one is asked for."""

import base64
import json
from dataclasses import dataclass
from typing import Any

from aftercommit.errors import MalformedRequestError
from aftercommit.jsons import Json, dumps
from aftercommit.limits import KEY_BYTES_MAX, PAGE_MAX
from aftercommit.requests import read_number


@dataclass(frozen=True)
class Page:
    """How much of a list to show, from where."""

    limit: int = 50
    cursor: str | None = None


def read_page(limit: str | None, cursor: str | None) -> Page:
    """Read a list's parameters; raises MalformedRequestError naming the one that is wrong."""
    if limit is None:
        return Page(cursor=cursor)
    return Page(read_number(limit, "limit", most=PAGE_MAX), cursor)


def to_cursor(place: list[Json]) -> str:
    """Return a place in a list as callers hand it back."""
    return base64.urlsafe_b64encode(dumps(place).encode()).decode()


def from_cursor(cursor: str | None, parts: int) -> list[str] | None:
    """Read a cursor: it holds sort keys only, so that none can lead into another tenant's partition."""
    if cursor is None:
        return None
    try:
        place = json.loads(base64.urlsafe_b64decode(cursor.encode()))
        if isinstance(place, list) and len(place) == parts and all(map(_is_key, place)):
            return place
    except (ValueError, RecursionError):  # half a character, too
        pass
    raise foreign_cursor()


def _is_key(text: Json) -> bool:
    return isinstance(text, str) and 1 <= len(text.encode()) <= KEY_BYTES_MAX


def foreign_cursor() -> MalformedRequestError:
    """Return the error for a cursor that no list has given."""
    return MalformedRequestError("is none that a list has given", field="cursor")


def page_of(rows: list[Json], page: Page, name: str, place: Any) -> dict[str, Json]:
    """Return a list's answer from its rows, one more than asked for if it goes on behind `place`."""
    shown: dict[str, Json] = {name: rows[: page.limit]}
    if len(rows) > page.limit:
        shown["cursor"] = to_cursor(place)
    return shown
