"""What the demo reads when all is over: instances and journals over the API, effects in the ledger."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from scripts.demo_audit import CHILDREN, PARENT, Dispatch, Effect, Instance
from scripts.local_stack import Stack

CLIENTS = 3


class DemoError(Exception):
    """The demo could not be run to its end."""


def read_instances(stack: Stack, posted: Iterable[str]) -> list[Instance]:
    """Read all instances, those that were posted and those that exist, with their journals."""
    listed = [each["instance_id"] for name in (PARENT, *CHILDREN) for each in list_instances(stack, name)]
    ids = list(dict.fromkeys([*posted, *listed]))
    shown = get_all(stack, [f"/instances/{each}" for each in ids])
    journals = get_all(stack, [f"/instances/{each}/journal?limit=100" for each in ids])
    return [_to_instance(each, journal) for each, journal in zip(shown, journals, strict=True)]


def get_all(stack: Stack, paths: list[str]) -> list[dict[str, Any]]:
    """GET several paths, a few at once; returns the bodies in the order of the paths."""
    with ThreadPoolExecutor(CLIENTS) as clients:
        return list(clients.map(lambda path: _get(stack, path), paths))


def _get(stack: Stack, path: str) -> dict[str, Any]:
    answer = stack.request("GET", path)
    if answer.status != 200:  # noqa: PLR2004 - OK
        raise DemoError(f"GET {path}: {answer.status} {answer.body!r}")
    body: dict[str, Any] = answer.json()
    return body


def list_instances(stack: Stack, definition_id: str) -> Iterator[dict[str, Any]]:
    """List the instances of a definition, through all pages."""
    path = f"/instances?definition_id={definition_id}&limit=100"
    page = _get(stack, path)
    yield from page["instances"]
    while "cursor" in page:
        page = _get(stack, f"{path}&cursor={page['cursor']}")
        yield from page["instances"]


def _to_instance(shown: dict[str, Any], journal: dict[str, Any]) -> Instance:
    lines = [line for revision in journal["revisions"] for line in revision["activities"]]
    items = {each["item_id"]: each for each in shown["dispatches"]}
    paid = (shown["variables"].get("payment") or {}).get("status") == "ok"
    return Instance(
        shown["instance_id"],
        shown["definition_id"],
        shown["input"]["order_id"],
        shown["status"],
        (shown["failure"] or {}).get("type"),
        (shown["parent"] or {}).get("instance_id"),
        frozenset(
            (line["activity"], line["execution_id"])
            for line in lines
            if line["status"] == "completed"
            and "activity" in line
            and (line["activity"] != "charge_card" or paid)  # a refused card is not charged
        ),
        tuple(
            Dispatch(
                line["item_id"],
                line["instance_id"],
                items.get(line["item_id"], {}).get("definition_id"),
                items.get(line["item_id"], {}).get("status"),
            )
            for line in lines
            if line["status"] == "intended"
        ),
    )


def read_effects(stack: Stack) -> list[Effect]:
    """Read what the activities noted in the ledger."""
    pages = stack.client("dynamodb").get_paginator("scan").paginate(TableName=stack.outputs["LedgerTable"])
    return [
        Effect(
            row["order_id"]["S"],
            row["activity"]["S"],
            row["effect_id"]["S"].partition("#")[2],
            row["instance_id"]["S"],
        )
        for page in pages
        for row in page["Items"]
    ]
