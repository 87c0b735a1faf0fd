"""What may be wrong in a world before a scenario starts."""

import json
from collections.abc import Callable
from typing import Any

from aftercommit import DispatchWorkflow, activity, commands, functions
from aftercommit.activities import TYPES
from aftercommit.cancel import cancel
from aftercommit.definitions import load_definition
from aftercommit.errors import ConflictError, NewerFormError
from aftercommit.instances import find_head
from aftercommit.publish import publish, retract
from aftercommit.redrive import redrive
from aftercommit.tables import SHARED_TENANT, ItemRow, key_of
from tests.simulation.activities import later
from tests.simulation.calls import TENANT
from tests.simulation.workflows_of_disturbances import late_child

API_SECONDS = 29
_DAY_SECONDS = 86_400


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


def poison_status(world: Any) -> None:
    """Lay an item with a status that only newer code knows into the world; after two minutes it is undone."""
    poison_item({"status": {"S": "asleep"}})(world)

    def wake() -> None:
        row = world.dynamodb.tables["outbox"].rows[f"{TENANT}#poisoned", "poison"]
        world.dynamodb.put_item(TableName="outbox", Item={**row, "status": {"S": "undone"}})

    world.plan(120, wake)


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

    world.queue.refuses = refuses


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
                world.queue.deliver(json.dumps(message), seconds)
            return True

        world.queue.refuses = refuses

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


_ROLLED_BACK = {name: commands._COMMANDS[name] for name in ("start", "resume")}


def roll_back_commands(world: Any) -> None:
    """Let the deployed code know neither starts nor resumes for two minutes, as if it were older."""
    for name in _ROLLED_BACK:
        commands._COMMANDS.pop(name, None)
    world.plan(120, lambda: commands._COMMANDS.update(_ROLLED_BACK))


def roll_back_activities(seconds: float) -> Callable[[Any], None]:
    """Let the deployed code not know dispatches in trees, from so many seconds on, for two minutes."""

    def disturb(world: Any) -> None:
        world.excused = (NewerFormError,)  # of requests: they come again

        def older() -> None:
            TYPES.pop("DispatchWorkflow", None)
            load_definition.cache_clear()

        def newer() -> None:
            TYPES["DispatchWorkflow"] = DispatchWorkflow
            load_definition.cache_clear()

        newer()
        world.plan(seconds, older)
        world.plan(seconds + 120, newer)

    return disturb


def ask(world: Any, act: Callable[[], bool], *, after: float) -> None:
    """Let somebody call the API, and call again every few seconds until the answer says that it is done."""
    world.pending += 1
    answers: list[bool] = []

    def ended(_: Any) -> None:
        if any(answers):
            world.pending -= 1
        else:
            world.plan(5, begin)

    def begin() -> None:
        world.spawn("api", lambda: answers.append(act()), world.at + API_SECONDS, ended)

    world.plan(after, begin)


def redrive_late(world: Any) -> None:
    """Let a workflow be missing until its dispatch is given up; then two operators redrive it at once.

    Old messages of the dispatch come again meanwhile.
    """
    retract(SHARED_TENANT, "late-child")
    world.plan(100, lambda: publish(SHARED_TENANT, late_child.definition))
    for seconds in (101, 101, 230):
        ask(world, _redrive, after=seconds)
    for seconds in (101.01, 101.05, 240):
        world.plan(seconds, lambda: _repeat_messages(world))


def outlast_messages(world: Any) -> None:
    """Do the same a day later, and let old messages come again when what they have started may be gone."""
    retract(SHARED_TENANT, "late-child")
    world.plan(1.4 * _DAY_SECONDS, lambda: publish(SHARED_TENANT, late_child.definition))
    for _ in range(2):
        world.plan(1.5 * _DAY_SECONDS, lambda: ask(world, _redrive, after=0))
    for days in (1.2, 1.5, 2.3, 2.7, 3.5):
        world.plan(days * _DAY_SECONDS, lambda: _repeat_messages(world))


def _redrive() -> bool:
    dispatches = list(ItemRow.query(key_of(TENANT, "parent"), ItemRow.item_id.exists(), consistent_read=True))
    for item in dispatches:
        if item.status == "failed":
            try:
                redrive(TENANT, "parent", item.item_id)
            except ConflictError:
                continue  # the other one was first
    return bool(dispatches) and all(item.status == "done" for item in dispatches)


def _repeat_messages(world: Any) -> None:
    for (owner_key, item_id), item in list(world.dynamodb.tables["outbox"].rows.items()):
        if item["command"] == {"S": "start"}:
            owner_id = owner_key.partition("#")[2]
            world.queue.deliver(json.dumps({"tenant": TENANT, "owner_id": owner_id, "item_id": item_id}))


def cancel_trees(world: Any) -> None:
    """Cancel one tree as soon as it waits, whatever of it has begun, and another when it all stands."""
    ask(world, lambda: _cancel("other"), after=0.2)
    ask(world, lambda: _cancel("parent"), after=30)


def _cancel(instance_id: str) -> bool:
    head = find_head(TENANT, instance_id)
    if head is None or head.status in ("pending", "running"):
        return False
    cancel(TENANT, instance_id, "enough")
    return True


def damage_start(world: Any) -> None:
    """Let the row of a start be damaged before it is delivered, if it still is undone by then."""

    def damage() -> None:
        rows = world.dynamodb.tables["outbox"].rows
        found = [key for key, item in rows.items() if item["command"] == {"S": "start"}]
        if not found:
            world.plan(1, damage)
        for key in found:
            if rows[key]["status"] == {"S": "undone"}:
                rows[key] = {**rows[key], "sends": {"S": "many"}}

    world.plan(1, damage)


def lose_snapshot(world: Any) -> None:
    """Let an instance that waits lose its snapshot, until that is restored."""
    rows = world.dynamodb.tables["instances"].rows
    key = (f"{TENANT}#parent", "head")

    def lose() -> None:
        if key not in rows or rows[key]["status"] != {"S": "suspended"}:
            world.plan(1, lose)
            return
        rest = dict(rows[key])
        lost = rest.pop("snapshot")
        rows[key] = rest
        world.plan(400, lambda: rows.update({key: {**rows[key], "snapshot": lost}}))

    world.plan(1, lose)
