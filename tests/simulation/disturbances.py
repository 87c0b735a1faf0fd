"""What may be wrong in a world before a scenario starts."""

import json
from collections.abc import Callable
from typing import Any

from aftercommit import activity, functions
from tests.simulation.activities import later
from tests.simulation.calls import TENANT


def poison_item(row: dict[str, Any]) -> Callable[[Any], None]:
    """Lay an outbox item into the world that cannot be read, due before all others."""

    def disturb(world: Any) -> None:
        item = {
            "owner_key": {"S": f"{TENANT}#poisoned"},
            "item_id": {"S": "poison"},
            "tenant": {"S": TENANT},
            "owner_id": {"S": "poisoned"},
            "command": {"S": "start"},
            "status": {"S": "undone"},
            "instance_id": {"S": "nobody"},
            "due_shard": {"N": "0"},
            "due_at": {"S": "2000-01-01T00:00:00.000Z"},
            "created_at": {"S": "2000-01-01T00:00:00.000Z"},
            "sends": {"N": "0"},
            "attempts": {"N": "0"},
            "generation": {"N": "1"},
            "body": {"S": "{}"},
            **row,
        }
        world.dynamodb.put_item(TableName="outbox", Item={k: v for k, v in item.items() if v is not None})

    return disturb


def poison_head(row: dict[str, Any]) -> Callable[[Any], None]:
    """Lay a head into the world that cannot be read, due before all others."""

    def disturb(world: Any) -> None:
        item = {
            "instance_key": {"S": f"{TENANT}#poisoned"},
            "row": {"S": "head"},
            "tenant": {"S": TENANT},
            "instance_id": {"S": "poisoned"},
            "definition_id": {"S": "child"},
            "definition_key": {"S": f"{TENANT}#child"},
            "definition_owner": {"S": "*"},
            "version": {"N": "1"},
            "status": {"S": "running"},
            "revision": {"N": "0"},
            "snapshot": {"S": '{"inputs":{"name":"x"}}'},
            "due_shard": {"N": "0"},
            "due_at": {"S": "2000-01-01T00:00:00.000Z"},
            "created_at": {"S": "2000-01-01T00:00:00.000Z"},
            "updated_at": {"S": "2000-01-01T00:00:00.000Z"},
            **row,
        }
        world.dynamodb.put_item(TableName="instances", Item={k: v for k, v in item.items() if v is not None})

    return disturb


def refuse_unawaited(world: Any) -> None:
    """Let the queue refuse, for good, each child of the instance `parent` that this one does not wait for."""

    def refuses(message: dict[str, Any]) -> bool:
        item = _item(world, message)
        return item is not None and item["owner_id"]["S"] == "parent" and _is_unawaited_start(item)

    world.refuses_message = refuses


def refuse_yet_send(seconds: float) -> Callable[[Any], None]:
    """Let the queue refuse each start, but deliver the first message of each all the same, so much later."""

    def disturb(world: Any) -> None:
        sent: set[str] = set()

        def refuses(message: dict[str, Any]) -> bool:
            item = _item(world, message)
            if item is None or item["command"] != {"S": "start"}:
                return False
            if message["item_id"] not in sent:
                sent.add(message["item_id"])
                world.deliver_message(json.dumps(message), seconds)
            return True

        world.refuses_message = refuses

    return disturb


def _item(world: Any, message: dict[str, Any]) -> dict[str, Any] | None:
    key = (f"{TENANT}#{message.get('owner_id')}", message.get("item_id"))
    found: dict[str, Any] | None = world.dynamodb.tables["outbox"].rows.get(key)
    return found


def _is_unawaited_start(item: dict[str, Any]) -> bool:
    return item["command"] == {"S": "start"} and item.get("wait") != {"BOOL": True}


def delay_stream(world: Any) -> None:
    """Let the stream come as late as the sweep, so that both deliver the same items."""
    world.stream_delay = 0.99


def deploy_later(world: Any) -> None:
    """Let the activity `sim_later` be missing from the deployed code for two minutes."""
    functions._registered.pop("sim_later", None)
    world.plan(120, lambda: activity(name="sim_later", timeout_seconds=1)(later))
