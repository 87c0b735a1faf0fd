"""What must be true of bulk dispatches: each ending is counted once, told once, and lanes hold."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from aftercommit.joins import COUNTED
from aftercommit.statuses import InstanceStatus, Outcome
from tests.simulation.story import Story, Told, plain

Violations = Iterator[str]
_OUTCOMES = {"completed": Outcome.COMPLETED, "faulted": Outcome.FAULTED, "cancelled": Outcome.CANCELLED}
_ENDED = {each.value for each in InstanceStatus if each.ended}


@dataclass
class Bulk:
    """One bulk dispatch whose endings are counted: its starts by index, and what its parent was told."""

    owner_id: str
    join_id: str
    total: int
    lanes: int | None
    items: dict[int, dict[str, Any]] = field(default_factory=dict)
    tallied: dict[str, list[int]] = field(default_factory=dict)
    handlers: list[str] = field(default_factory=list)
    batches: list[dict[str, Any]] = field(default_factory=list)
    ends: list[dict[str, Any]] = field(default_factory=list)  # the resumes that ended the wait

    def outcome(self, index: int) -> str | None:
        """Return what a dispatch says of its child's ending."""
        return self.items[index].get("outcome") if index in self.items else None


def _bulks(story: Story) -> Iterator[Bulk]:
    found: dict[str, Bulk] = {}
    for (owner_id, _), item in sorted(story.items.items()):
        if owner_id in story.scenario.stuck or item["command"] not in ("start", "join"):
            continue
        body = json.loads(item["body"])
        if item["command"] == "start" and "join" in body:
            join = body["join"]
            join_id = join["join_id"]
            bulk = found.setdefault(join_id, Bulk(owner_id, join_id, join["total"], join.get("lanes")))
            bulk.items[join["index"]] = item
        elif item["command"] == "join" and body["join_id"] in found:
            found[body["join_id"]].handlers = body.get("handlers", [])
    for bulk in found.values():
        _read_telling(story, bulk)
        yield bulk


def _read_telling(story: Story, bulk: Bulk) -> None:
    told = story.instances[bulk.owner_id]
    bulk.tallied = {name: [] for name in COUNTED.values()}
    for row in told.tallies:
        if row["row"].split("#")[1] == bulk.join_id:
            for name in COUNTED.values():
                bulk.tallied[name] += [int(each) for each in row.get(name, [])]
    bookmarks = {
        body["bookmark_id"]
        for (_, _), item in story.items.items()
        if item["command"] == "join"
        and (body := json.loads(item["body"]))["join_id"] == bulk.join_id
        and "bookmark_id" in body
    }
    for command in told.commands("resume"):
        if command["bookmark_id"] in bookmarks:
            (bulk.batches if command["outcome"] == Outcome.DONE else bulk.ends).append(command)


def check_endings_are_counted_once(story: Story) -> Violations:
    """Each child's ending stands on its dispatch and in the tally, just once and as it was."""
    for bulk in _bulks(story):
        counted = Counter(index for indexes in bulk.tallied.values() for index in indexes)
        for index, times in counted.items():
            if times > 1:
                yield f"child {index} of {bulk.owner_id} is counted {times} times"
        for index, item in bulk.items.items():
            yield from _check_mark(story, bulk, index, item, counted)


def _check_mark(
    story: Story, bulk: Bulk, index: int, item: dict[str, Any], counted: Counter[int]
) -> Violations:
    [child] = story.children_of(item) or [None]
    where = f"child {index} of {bulk.owner_id}"
    if item["status"] == "cancelled":
        if counted[index] or child:
            yield f"{where} was withdrawn, and is counted or exists"
        return
    expected = Outcome.DISPATCH_FAILED if item["status"] == "failed" else None
    if child and child.head["status"] in _ENDED:
        expected = _OUTCOMES[child.head["status"]]
    if bulk.outcome(index) != expected:
        yield f"{where} is marked {bulk.outcome(index)}, and should be {expected}"
    if expected and index not in bulk.tallied[COUNTED[expected]]:
        yield f"{where} is not counted as {expected}"


def check_bulk_is_told_once(story: Story) -> Violations:
    """A parent that waits is told one end, which is true, and is handed each ended child at most once."""
    for bulk in _bulks(story):
        parent = story.instances[bulk.owner_id]
        if len(bulk.ends) > 1:
            yield f"{bulk.owner_id} was told {len(bulk.ends)} ends of one bulk"
        over = bulk.items[0].get("wait") and parent.head["status"] == "completed"
        if over and not bulk.ends and not story.scenario.drops:
            yield f"{bulk.owner_id} completed without being told the end of its bulk"
        handed = Counter(child["index"] for each in bulk.batches for child in each["value"]["batch"])
        for index, times in handed.items():
            if times > 1:
                yield f"child {index} of {bulk.owner_id} was handed over {times} times"
        for end in bulk.ends:
            yield from _check_end(story, bulk, end["value"], handed)


def _check_end(story: Story, bulk: Bulk, value: dict[str, Any], handed: Counter[int]) -> Violations:
    if value["total"] != bulk.total or sum(
        value[name] for name in COUNTED.values()
    ) != bulk.total - value.get("unfinished", 0):
        yield f"{bulk.owner_id} was told {value}, which does not add up to {bulk.total}"
    if value.get("unfinished"):
        return
    for name, indexes in bulk.tallied.items():
        if value[name] != len(indexes):
            yield f"{bulk.owner_id} was told {value[name]} {name}, and there are {len(indexes)}"
    meant = set(bulk.tallied["completed"]) if "each_completed" in bulk.handlers else set()
    if "each_faulted" in bulk.handlers:
        meant |= set(range(bulk.total)) - set(bulk.tallied["completed"])
    if set(handed) != meant:
        yield f"{bulk.owner_id} was handed {sorted(handed)}, and should be {sorted(meant)}"
    for index, output in enumerate(value.get("outputs", [])):
        [child] = story.children_of(bulk.items[index]) or [None]
        if child and child.head["status"] == "completed" and _output(child) != output:
            yield f"{bulk.owner_id} was told another output than child {index} has"


def _output(child: Told) -> Any:
    return json.loads(child.head["snapshot"]).get("output")


def check_lanes_hold(story: Story) -> Violations:
    """With `concurrent_max`, no more children than that run at once, at any time."""
    for bulk in _bulks(story):
        if bulk.lanes is None:
            continue
        dispatches = {item["item_id"] for item in bulk.items.values()}
        running: set[str] = set()
        for change in story.world.changes:
            row = plain(change.after or {}) if change.table == "instances" else {}
            if row.get("row") != "head" or row.get("parent_item_id") not in dispatches:
                continue
            if row["status"] in _ENDED:
                running.discard(row["instance_id"])
            else:
                running.add(row["instance_id"])
            if len(running) > bulk.lanes:
                yield f"{len(running)} children of {bulk.owner_id} ran at once, in {bulk.lanes} lanes"
                break


CHECKS = (check_endings_are_counted_once, check_bulk_is_told_once, check_lanes_hold)
