"""What a world's tables tell once it is quiet: every instance folded from its first revision, every item.

Read from the rows themselves rather than through the runtime's own reading, so that what the runtime
misreads is seen. Only the engine is the runtime's: folding is its job.
"""

import base64
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from aftercommit import clock, engine
from aftercommit.definition import Definition, read_definition
from aftercommit.model import Decision, Intention, Parent, State, command_from_json
from aftercommit.payloads import object_key
from aftercommit.statuses import InstanceStatus
from tests.simulation.calls import Request, Send
from tests.simulation.dynamodb import Item
from tests.simulation.scenario import Scenario
from tests.simulation.world import World

Plain = dict[str, Any]
KEYS = {"instances": ("instance_key", "row"), "outbox": ("owner_key", "item_id")}


def plain(item: Item) -> Plain:
    """Return an item without DynamoDB's types."""
    return {name: _value(typed) for name, typed in item.items()}


def _value(typed: dict[str, Any]) -> Any:
    [(kind, content)] = typed.items()
    if kind == "N":
        return float(content) if "." in content else int(content)
    return content


def members_of(row: Plain) -> list[str]:
    """Return the names of the objects that a row has its large parts in."""
    if "payloads" not in row:
        return []
    return ["snapshot" if row.get("row") == "head" else str(row.get("row", row.get("item_id")))]


def whole(world: World, item: Item) -> Plain:
    """Return an item without DynamoDB's types, and with what of it is kept in S3."""
    row = plain(item)
    for member in members_of(row):
        instance_key = row.get("instance_key", row.get("owner_key"))
        text = world.objects.ever[object_key(instance_key, row["payloads"], member)].decode()
        if member == "snapshot" or member.startswith("revision#"):
            row["snapshot" if member == "snapshot" else "commands"] = text
        else:
            part = "input" if row["command"] == "start" else "value"
            row["body"] = json.dumps(json.loads(row["body"]) | {part: json.loads(text)})
    return row


@dataclass
class Told:
    """One instance: its rows, and the states that folding them gives, by revision."""

    head: Plain
    rows: list[Plain] = field(default_factory=list)
    incidents: list[Plain] = field(default_factory=list)
    tallies: list[Plain] = field(default_factory=list)
    states: dict[int, Plain] = field(default_factory=dict)  # snapshot by revision
    statuses: dict[int, str] = field(default_factory=dict)
    decisions: list[tuple[Plain, Plain, Decision]] = field(default_factory=list)  # (row, command, decision)
    unreadable: str | None = None

    def take(self, name: str, row: Plain) -> None:
        """Take in one of its rows."""
        kinds = {"revision": self.rows, "incident": self.incidents, "count": self.tallies}
        kinds.get(name.partition("#")[0], []).append(row)

    @property
    def instance_id(self) -> str:
        """The instance's id."""
        return str(self.head["instance_id"])

    def commands(self, kind: str) -> list[Plain]:
        """Return the committed commands of a kind."""
        return [command for _, command, _ in self.decisions if command["kind"] == kind]

    def intentions(self) -> dict[str, Intention]:
        """Return what its committed revisions intend, by item id."""
        return {each.item_id: each for _, _, decision in self.decisions for each in decision.intentions}


@dataclass
class Story:
    """All of it."""

    scenario: Scenario
    world: World
    instances: dict[str, Told]
    items: dict[tuple[str, str], Plain]  # by (owner_id, item_id)
    definitions: dict[tuple[str, str, int], Definition]  # by (owner, id, version)
    requested: frozenset[str]  # ids of the stimuli that callers have asked for
    deleted: frozenset[str]  # keys of the instances that were deleted
    called: dict[tuple[str, str], str]  # the stimulus of each callback address that was called, by row

    def item(self, item_id: str) -> Plain | None:
        """Return the item of an id, whoever owns it."""
        return next((each for (_, name), each in self.items.items() if name == item_id), None)

    def intends(self, item_id: str) -> bool:
        """Whether a revision of some instance has decided an item."""
        return any(item_id in each.intentions() for each in self.instances.values())

    def told(self, key: str) -> str:
        """Return the id of the stimulus that was sent under a key, as its callers were told."""
        return next(
            str(answer) for call, answer in self.world.answers if isinstance(call, Send) and call.key == key
        )

    def children_of(self, item: Plain) -> list[Told]:
        """Return the instances that say they were started by a dispatch."""
        return [
            each
            for each in self.instances.values()
            if each.head.get("parent_item_id") == item["item_id"]
            and each.head.get("parent_instance_id") == item["owner_id"]
        ]


def answered(story: Story) -> list[str]:
    """Return the bookmarks whose tokens activities have sent, once for each that was taken."""
    bodies = [
        json.loads(item["body"])
        for item in story.items.values()
        if item["command"] == "resume" and item["status"] == "done"
    ]
    tokens = [body["token"] for body in bodies if "token" in body]
    return [json.loads(base64.urlsafe_b64decode(f"{token}==="))[2] for token in tokens]


def read_story(scenario: Scenario, world: World) -> Story:
    """Read a quiet world; what was deleted there is read as it last was."""
    definitions = _read_definitions(world)
    deleted = frozenset(
        change.before["instance_key"]["S"]
        for change in world.changes
        if change.table == "instances" and change.after is None and "deleted_at" in (change.before or {})
    )
    instances: dict[str, Told] = {}
    rows = sorted(_rows_of(world, "instances", deleted).items())
    for (_, name), item in rows:
        if name == "head":
            told = Told(whole(world, item))
            instances[told.head["instance_key"]] = told
    for (key, name), item in rows:
        if key in instances and name == f"snapshot#{instances[key].head['revision']:010}":
            # Large snapshots have a row of their own, which the head names by its revision.
            instances[key].head.setdefault("snapshot", item["snapshot"]["S"])
        elif key in instances:
            instances[key].take(name, whole(world, item))
    # From all that there ever was: a time of a schedule goes with its start.
    triggers = _read_triggers(
        scenario, (change.after for change in world.changes if change.table == "outbox" and change.after)
    )
    for told in instances.values():
        try:
            _fold(told, definitions, triggers.get(told.head.get("parent_item_id", told.instance_id)))
        except Exception as error:  # noqa: BLE001 - a row that cannot be folded is a finding of its own
            told.unreadable = repr(error)
    items, requested = {}, set()
    for item in (whole(world, each) for each in _rows_of(world, "outbox", deleted).values()):
        if item["item_id"] == "request":
            requested.add(str(item["stimulus_id"]).partition(".")[2])
        else:
            items[str(item["owner_id"]), str(item["item_id"])] = item
    by_id = {each.instance_id: each for each in instances.values()}
    called = {key: item["item_id"]["S"] for key, item in rows if key[1].startswith("callback#")}
    return Story(scenario, world, by_id, items, definitions, frozenset(requested), deleted, called)


def _read_triggers(scenario: Scenario, items: Iterable[Item]) -> dict[str, Plain | None]:
    """Return what instances were born with, by the item that started them, else by their id."""
    by_item: dict[str, Plain | None] = {
        item["item_id"]["S"]: json.loads(item["body"]["S"]).get("trigger")
        for item in items
        if item.get("command") == {"S": "start"} and item["body"].get("S", "{").endswith("}")
    }
    by_request = (each for each in scenario.starts if isinstance(each, Request))
    return by_item | {each.instance_id: each.trigger for each in by_request}


def _read_definitions(world: World) -> dict[tuple[str, str, int], Definition]:
    definitions = {}
    for (key, name), item in world.dynamodb.tables["definitions"].rows.items():
        if name.startswith("version#"):
            row = plain(item)
            read = read_definition(json.loads(row["data"]), version=row["version"])
            definitions[key.partition("#")[0], row["definition_id"], row["version"]] = read
    return definitions


def _rows_of(world: World, table: str, deleted: frozenset[str]) -> dict[tuple[str, str], Item]:
    """Return a table's rows by key; those of deleted instances as they last were."""
    hash_name, range_name = KEYS[table]
    rows: dict[tuple[str, str], Item] = {}
    for change in world.changes:
        before = change.before
        if change.table == table and change.after is None and before and before[hash_name]["S"] in deleted:
            rows[before[hash_name]["S"], before[range_name]["S"]] = before
    return rows | world.dynamodb.tables[table].rows


def _fold(told: Told, definitions: dict[tuple[str, str, int], Definition], trigger: Plain | None) -> None:
    head = told.head
    definition = definitions[head["definition_owner"], head["definition_id"], head["version"]]
    written = _first_snapshot(told)
    state = State(
        head["instance_id"],
        written["inputs"],
        correlation_id=head.get("correlation_id"),
        parent=Parent.from_json(written["parent"]) if "parent" in written else None,
        depth=written.get("depth", 0),
        life=head["created_at"] if "life" in written else "",
        trigger=trigger,
        large=written.get("large", False),
    )
    _remember(told, 0, state)
    for row in told.rows:
        for each in json.loads(row["commands"]):
            command = command_from_json(each["command"])
            decision = engine.advance(definition, state, command, clock.from_text(each["at"]))
            told.decisions.append((row, each["command"], decision))
        _remember(told, row["revision"], state)


def _first_snapshot(told: Told) -> Plain:
    # Inputs, parent and depth never change, so any snapshot tells them.
    snapshot: Plain = json.loads(told.head["snapshot"])
    return snapshot


def _remember(told: Told, revision: int, state: State) -> None:
    told.states[revision] = json.loads(json.dumps(state.to_json()))
    told.statuses[revision] = InstanceStatus(state.status).value
