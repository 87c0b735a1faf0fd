"""The bodies of outbox items: what each command must have, and what of it may stand in an object.

What decides about an item stays in its row. Only what its effect is given can be large, and is read with it.
"""

import json
from typing import cast

from aftercommit.errors import MalformedRowError
from aftercommit.jsons import Json, dumps
from aftercommit.model import Intention, join_from_json
from aftercommit.payloads import PayloadMissingError, Payloads, read_payload
from aftercommit.places import Join
from aftercommit.statuses import ItemCommand
from aftercommit.tables import ItemRow

# What the body of a command must have.
_PARTS: dict[str, dict[str, type]] = {
    ItemCommand.START.value: {"instance_id": str, "definition_id": str, "input": dict, "depth": int},
    ItemCommand.RESUME.value: {"instance_id": str, "bookmark_id": str, "outcome": str},
    ItemCommand.RUN.value: {"instance_id": str},
    ItemCommand.CANCEL.value: {"instance_id": str, "item_id": str},
    ItemCommand.STIMULUS.value: {"stimulus": dict},
    ItemCommand.EVENT.value: {"id": str, "name": str, "ts": int},
    ItemCommand.JOIN.value: {
        "instance_id": str,
        "join_id": str,
        "total": int,
        "rows": int,
        "tolerated": int,
        "outputs": bool,
    },
}
# Which part of it may be large: a child's input, and how a child has ended.
_LARGE = {ItemCommand.START.value: "input", ItemCommand.RESUME.value: "value"}


def write_body(intention: Intention, payloads: Payloads | None) -> tuple[str, str | None]:
    """Return the JSON of an intention's body for its row, and the name of the payloads that its rest is in.

    Without `payloads`, all of it stays in the row. Code that knows none refuses a start without its input.
    """
    body, text = intention.body, dumps(intention.body)
    part = _LARGE.get(intention.command.value)
    # The whole first: only where that is large is its part written by itself, to see whether it is.
    if payloads is None or part not in body or not payloads.is_large(text):
        return text, None
    if not payloads.take(intention.item_id, dumps(body[part])):
        return text, None
    return dumps({name: each for name, each in body.items() if name != part}), payloads.name


def whole_body_of(item: ItemRow) -> dict[str, Json]:
    """Return an item's command with its large part; raises as `body_of` and `read_payload` do."""
    body = body_of(item)
    if item.payloads:
        try:
            text = read_payload(item.owner_key, item.payloads, item.item_id)
        except PayloadMissingError as error:
            told = f"the {_LARGE[item.command]} of outbox item {item.owner_id}/{item.item_id} is missing"
            raise MalformedRowError(told, field=str(error)) from None
        body[_LARGE[item.command]] = json.loads(text)
    return body


def body_of(item: ItemRow) -> dict[str, Json]:
    """Return an item's command; raises MalformedRowError if it cannot be read, NewerFormError if not yet."""
    told = f"the body of outbox item {item.owner_id}/{item.item_id}"
    try:
        body = json.loads(item.body)
        parts = _PARTS.get(item.command, {"instance_id": str})
        if item.payloads:
            parts = {name: kind for name, kind in parts.items() if name != _LARGE.get(item.command)}
        if item.wait:
            parts = parts | ({} if "join" in body else {"bookmark_id": str})
        if item.command == ItemCommand.RESUME.value and "token" in body:
            parts = {"token": str}
        faulty = [name for name, kind in parts.items() if not isinstance(body[name], kind)]
        faulty += [f"join.{name}" for name in _find_faults_of_place(body)]
    except (ValueError, KeyError, TypeError) as error:
        raise MalformedRowError(f"{told} cannot be read: {error!r}", field="body") from error
    if faulty:
        raise MalformedRowError(f"{told} has a faulty {faulty[0]}", field="body")
    return cast("dict[str, Json]", body)


def _find_faults_of_place(body: dict[str, Json]) -> list[str]:
    place = read_join(body)
    numbers = ("index", "total", "rows") if place else ()
    return [name for name in numbers if not isinstance(getattr(place, name), int)]


def read_join(body: dict[str, Json]) -> Join | None:
    """Return the place in a bulk of the child that a start is for; None if it is of none."""
    return join_from_json(body["join"]) if "join" in body else None
