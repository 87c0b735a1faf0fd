"""What is there when all is over: the rows of instances and outbox, and the effects in the ledger.

The tables are read as they are, past the API and the runtime: what neither shows counts, too.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from scripts.audit import ENDED, Dispatch, Effect, Instance, Item
from scripts.console import RunError
from scripts.local_stack import Stack

DEFAULT_TENANT = "default"  # of callers that name none
KEYS_MAX = 100  # of a BatchGetItem

Row = Mapping[str, Any]


def read_instances(stack: Stack, tenant: str, items: Iterable[Item]) -> list[Instance]:
    """Read all instances of a tenant, with their journals; `items` are those that the outbox holds."""
    logs: dict[str, dict[str, Row]] = {}
    for row in _scan(
        stack,
        "InstancesTable",
        f"{tenant}#",
        key="instance_key",
        wanted=(
            "row",
            "status",
            "revision",
            "snapshot",
            "journal",
            "instance_id",
            "definition_id",
            "parent_instance_id",
        ),
    ):
        logs.setdefault(row["instance_key"], {})[row["row"]] = row
    by_owner: dict[str, dict[str, Item]] = {}
    for item in items:
        by_owner.setdefault(item.owner_id, {})[item.item_id] = item
    return [
        to_instance(rows, by_owner.get(rows["head"]["instance_id"], {}))
        for rows in logs.values()
        if "head" in rows
    ]


def read_items(stack: Stack, tenant: str) -> list[Item]:
    """Read all outbox items of a tenant."""
    wanted = ("owner_id", "item_id", "command", "definition_id", "status")
    return [
        Item(row["item_id"], row["owner_id"], row["command"], row.get("definition_id"), row["status"])
        for row in _scan(stack, "OutboxTable", f"{tenant}#", key="owner_key", wanted=wanted)
    ]


def read_effects(stack: Stack, prefix: str = "") -> list[Effect]:
    """Read what the activities noted in the ledger, for orders whose ids begin like that."""
    wanted = ("activity", "effect_id", "instance_id")
    return [
        Effect(row["order_id"], row["activity"], row["effect_id"].partition("#")[2], row["instance_id"])
        for row in _scan(stack, "LedgerTable", prefix, key="order_id", wanted=wanted)
    ]


def find_ended(stack: Stack, tenant: str, instance_ids: Collection[str]) -> set[str]:
    """Return those of some instances that have ended."""
    table = stack.outputs["InstancesTable"]
    keys = [{"instance_key": {"S": f"{tenant}#{each}"}, "row": {"S": "head"}} for each in instance_ids]
    ended: set[str] = set()
    for first in range(0, len(keys), KEYS_MAX):
        answer = stack.client("dynamodb").batch_get_item(
            RequestItems={table: {"Keys": keys[first : first + KEYS_MAX]}}
        )
        heads = map(plain, answer["Responses"][table])
        ended.update(each["instance_id"] for each in heads if each["status"] in ENDED)
    return ended


def count_open(stack: Stack, tenant: str) -> tuple[int, int]:
    """Count a tenant's instances that have not ended, and its outbox items that are undone."""
    heads = _scan(
        stack, "InstancesTable", f"{tenant}#", key="instance_key", wanted=("status",), only=("row", "head")
    )
    undone = _scan(stack, "OutboxTable", f"{tenant}#", key="owner_key", wanted=(), only=("status", "undone"))
    return sum(1 for each in heads if each["status"] not in ENDED), sum(1 for _ in undone)


def to_instance(rows: Mapping[str, Row], items: Mapping[str, Item]) -> Instance:
    """Read the rows of one instance, by their sort keys, and its outbox items, by their ids."""
    head = rows["head"]
    holder = head if "snapshot" in head else rows.get(f"snapshot#{int(head['revision']):010}")
    if holder is None:
        raise RunError(f"instance {head['instance_id']} has no snapshot of its revision {head['revision']}")
    state = json.loads(holder["snapshot"])
    lines = [
        line
        for name in sorted(rows)
        if name.startswith("revision#")
        for line in json.loads(rows[name]["journal"])
    ]
    paid = (state.get("variables", {}).get("payment") or {}).get("status") == "ok"
    return Instance(
        head["instance_id"],
        head["definition_id"],
        state["inputs"].get("order_id", "?"),
        head["status"],
        (state.get("failure") or {}).get("type"),
        head.get("parent_instance_id"),
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
                item.definition_id if (item := items.get(line["item_id"])) else None,
                item.status if item else None,
            )
            for line in lines
            if line["status"] == "intended"
        ),
    )


def _scan(
    stack: Stack,
    output: str,
    prefix: str,
    *,
    key: str,
    wanted: Iterable[str],
    only: tuple[str, str] | None = None,
) -> Iterator[dict[str, Any]]:
    """Read the rows of a table whose partition key begins like that; with `only`, those of one value."""
    names = {"#key": key} | {f"#{name}": name for name in wanted}
    asked: dict[str, Any] = {"ProjectionExpression": ", ".join(names)}
    conditions = {}
    if prefix:
        conditions["begins_with(#key, :prefix)"] = {":prefix": {"S": prefix}}
    if only:
        names["#only"], value = only
        conditions["#only = :only"] = {":only": {"S": value}}
    if conditions:
        asked["FilterExpression"] = " AND ".join(conditions)
        asked["ExpressionAttributeValues"] = {
            name: value for each in conditions.values() for name, value in each.items()
        }
    scan = stack.client("dynamodb").get_paginator("scan")
    pages = scan.paginate(
        TableName=stack.outputs[output], ConsistentRead=True, ExpressionAttributeNames=names, **asked
    )
    for page in pages:
        yield from map(plain, page["Items"])


def plain(row: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    """Return a row of texts and numbers without DynamoDB's marks of types; numbers stay texts."""
    return {name: next(iter(value.values())) for name, value in row.items()}
