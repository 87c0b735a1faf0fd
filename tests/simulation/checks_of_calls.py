"""What must be true of stimuli, publishing and deleting: read from how the tables changed, by commit."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from aftercommit.bookmarks import stimulus_id_of
from aftercommit.definitions import PUBLISHED
from aftercommit.endpoints import Answer
from aftercommit.errors import RefusedError
from aftercommit.ids import derive_id
from aftercommit.operations import read_stimulus_id
from aftercommit.triggers import triggers_of
from tests.simulation.accounts import Change
from tests.simulation.calls import TENANT, Send
from tests.simulation.story import Plain, Story, plain

Violations = Iterator[str]


@dataclass
class Settled:
    """How one stimulus left `undone`, and when it came; commits are numbers of calls."""

    item: Plain
    stored_in: int
    left_in: list[int] = field(default_factory=list)
    status: str = "undone"


def settled_stimuli(story: Story) -> dict[tuple[str, str], Settled]:
    """Return what became of every stimulus that was ever stored, by key and item id."""
    found: dict[tuple[str, str], Settled] = {}
    for change in _changes(story, "outbox"):
        if change.after is None or change.after.get("command") != {"S": "stimulus"}:
            continue
        item = plain(change.after)
        key = (item["owner_id"], item["item_id"])
        settled = found.setdefault(key, Settled(item, change.call))
        if settled.status == "undone" and item["status"] != "undone":
            settled.left_in.append(change.call)
        elif settled.status != item["status"]:
            settled.left_in.append(change.call)  # it was settled before
        settled.item, settled.status = item, item["status"]
    return found


def _changes(story: Story, table: str) -> Iterator[Change]:
    return (change for change in story.world.changes if change.table == table)


def check_i6_once_per_stimulus(story: Story) -> Violations:
    """Each application of a stimulus is in the commit that acks it; no bookmark is consumed twice."""
    stimuli = settled_stimuli(story)
    acks: dict[int, Counter[str]] = defaultdict(Counter)
    for (key, _), settled in stimuli.items():
        if settled.status == "done":
            for call in settled.left_in:
                acks[call][key] += 1
    for call, applied in _applied(story).items():
        for key, times in applied.items():
            if times != acks[call][key]:
                yield f"stimulus {key} was applied {times} times, in a commit with {acks[call][key]} acks"
    for told in story.instances.values():
        consumed = Counter(
            bookmark.bookmark_id for _, _, decision in told.decisions for bookmark in decision.gone
        )
        for bookmark_id, times in consumed.items():
            if times > 1:
                yield f"bookmark {bookmark_id} of {told.instance_id} was consumed {times} times"


def _applied(story: Story) -> dict[int, Counter[str]]:
    """Return how often each stimulus was applied, by commit, as the revision rows came to be."""
    applied: dict[int, Counter[str]] = defaultdict(Counter)
    for change in _changes(story, "instances"):
        if change.before is None and change.after and "commands" in change.after:
            for each in json.loads(change.after["commands"]["S"]):
                if each["command"]["kind"] == "stimulate":
                    applied[change.call][stimulus_id_of(each["command"]["stimulus"])] += 1
    return applied


def check_i8_early_is_not_lost(story: Story) -> Violations:
    """Each stimulus that was ever stored had its effect, once, or is a dead letter; none has vanished."""
    applied = _applied(story)
    born = _born(story)
    for (key, item_id), settled in settled_stimuli(story).items():
        if (key, item_id) not in story.items:
            yield f"stimulus {item_id} has vanished"
        if len(settled.left_in) > 1:
            yield f"stimulus {item_id} was settled {len(settled.left_in)} times"
        if settled.status == "failed":
            replayed_as = settled.item.get("replayed_as")
            if replayed_as and (key, replayed_as) not in story.items:
                yield f"dead letter {item_id} names a replay that is not there"
            continue
        if settled.status != "done":
            yield f"stimulus {item_id} is {settled.status} for ever"
            continue
        [call] = settled.left_in[:1]
        if not applied[call][key] and not any(_is_part(item_id, each) for each in born[call]):
            split = settled.item.get("split") and any(
                _is_part(item_id, each) for names in born.values() for each in names
            )
            if not split:
                yield f"stimulus {item_id} is done, and nothing came of it"


def _born(story: Story) -> dict[int, list[Plain]]:
    born: dict[int, list[Plain]] = defaultdict(list)
    for change in _changes(story, "outbox"):
        if change.before is None and change.after and "command" in change.after:
            born[change.call].append(plain(change.after))
    return born


def _is_part(item_id: str, other: Plain) -> bool:
    """Whether an item is what a stimulus was split into."""
    return bool(
        other["item_id"].startswith(f"{item_id}-") or other["owner_id"] == derive_id("starts", item_id)
    )


def check_i8_oldest_first(story: Story) -> Violations:
    """Of stimuli of one kind that an instance takes, the first to come is applied first."""
    applied = _applied(story)
    kinds: dict[tuple[str, str], list[tuple[str, Settled]]] = defaultdict(list)
    for (key, item_id), settled in settled_stimuli(story).items():
        reach = {name: value for name, value in json.loads(settled.item["body"]).items() if name != "value"}
        if settled.status == "done" and applied[settled.left_in[0]][key]:
            kinds[key, json.dumps(reach, sort_keys=True)].append((item_id, settled))
    for same in kinds.values():
        same.sort(key=lambda each: each[0])
        for (earlier, one), (later, other) in pairwise(same):
            if one.stored_in < other.stored_in and one.left_in[0] > other.left_in[0]:
                yield f"stimulus {later} was applied before {earlier}, which had come first"


def check_i10_published_is_fixed(story: Story) -> Violations:
    """An instance keeps its version; what a stimulus starts was published when it came, or since."""
    versions: dict[str, tuple[str, int]] = {}
    pointers: dict[tuple[str, str], list[tuple[int, int | None]]] = defaultdict(list)
    for change in story.world.changes:
        row = plain(change.after or change.before or {})
        if change.table == "instances" and row["row"] == "head" and "version" in row:
            fixed = (row["definition_owner"], row["version"])
            if versions.setdefault(row["instance_key"], fixed) != fixed:
                yield f"{row['instance_id']} went from version {versions[row['instance_key']]} to {fixed}"
        if change.table == "definitions" and row["row"] == PUBLISHED:
            owner = row["definition_key"].partition("#")[0]
            version = row["version"] if change.after else None
            pointers[owner, row["definition_id"]].append((change.call, version))
    stimuli = {derive_id("starts", item_id): each for (_, item_id), each in settled_stimuli(story).items()}
    for call, items in _born(story).items():
        for item in items:
            if item["owner_id"] in stimuli:
                body = json.loads(item["body"])
                moves = pointers[body["owner"], body["definition_id"]]
                stored_in = stimuli[item["owner_id"]].stored_in
                if body["version"] not in _published_between(moves, stored_in, call):
                    yield f"{body['instance_id']} has version {body['version']}, not published then"


def _published_between(moves: list[tuple[int, int | None]], first: int, last: int) -> set[int | None]:
    at_first = [version for call, version in moves if call <= first][-1:]
    return {*at_first, *(version for call, version in moves if first < call <= last)}


def check_triggers_are_those_published(story: Story) -> Violations:
    """The trigger rows are those of the published versions, neither more nor fewer."""
    tables = story.world.dynamodb.tables
    wanted: set[tuple[str, str]] = set()
    for (key, name), item in tables["definitions"].rows.items():
        if name == PUBLISHED:
            owner, row = key.partition("#")[0], plain(item)
            definition = story.definitions[owner, row["definition_id"], row["version"]]
            wanted |= {(each.stimulus_key, each.row) for each in triggers_of(owner, definition)}
    for key in sorted(tables["triggers"].rows.keys() ^ wanted):
        yield f"the trigger {key} is {'missing' if key in wanted else 'one too many'}"


def check_one_replay(story: Story) -> Violations:
    """A dead letter has one replay, and names it."""
    replays = Counter(item_id.rpartition("-")[2] for _, item_id in story.items if "-" in item_id)
    for (key, item_id), item in story.items.items():
        if item["command"] != "stimulus":
            continue
        times = replays[derive_id("replay", key, item_id)]
        if times != int("replayed_as" in item):
            yield f"dead letter {item_id} has {times} replays, and names {item.get('replayed_as')}"


def check_deleted_is_gone(story: Story) -> Violations:
    """Of an instance that was deleted no row is left, and its head went last."""
    removed: dict[str, str] = {}
    for change in story.world.changes:
        if change.table not in ("instances", "outbox") or change.after is not None or not change.before:
            continue
        row = plain(change.before)
        key = row.get("instance_key") or row["owner_key"]
        if key in story.deleted and removed.get(key) == "head":
            yield f"{row.get('row') or row['item_id']} of {key} was removed after its head"
        removed[key] = row.get("row", "item")
    for table in ("instances", "outbox"):
        for key, name in story.world.dynamodb.tables[table].rows:
            if key in story.deleted:
                yield f"{name} of {key} is left of an instance that was deleted"


def check_answers(story: Story) -> Violations:
    """Every caller has an answer that it had to expect; each key has one stimulus, which all were told."""
    told: dict[str, set[Any]] = defaultdict(set)
    for call, answer in story.world.answers:
        if isinstance(answer, RefusedError) and not isinstance(answer, call.refusals):
            yield f"{call} was answered with {answer!r}"
        if isinstance(call, Send) and isinstance(answer, str):
            told[call.key].add(answer)
    made = Counter(item_id.rpartition("-")[2] for _, item_id in story.items if "-" in item_id)
    for key, names in told.items():
        if (times := made[derive_id("stimulus-request", TENANT, key)]) != 1:
            yield f"the key {key} has {times} stimuli"
        if len(names) != 1 or read_stimulus_id(min(names)) not in story.items:
            yield f"the callers with the key {key} were told {sorted(names)}"


def check_i6_once_per_callback(story: Story) -> Violations:
    """A callback address that was called has become one stimulus, in the very commit that says so."""
    born = [(each, call) for call, items in _born(story).items() for each in items]
    receipts = {
        plain(change.after)["item_id"]: change.call
        for change in _changes(story, "instances")
        if change.after and change.after["row"]["S"].startswith("callback#")
    }
    for item, call in born:
        name = json.loads(item["body"])["stimulus"]["name"] if item["command"] == "stimulus" else ""
        if name.startswith("callback:") and receipts.get(item["item_id"]) != call:
            yield f"stimulus {item['item_id']} is not of the commit that says its address was called"
    for row, item_id in story.called.items():
        if item_id not in {item["item_id"] for item, _ in born}:
            yield f"{row} was called, and nothing has come of it"
    if len(receipts) != len(story.called):
        yield f"{len(story.called)} callback addresses were called {len(receipts)} times"


def check_i1_answers_are_committed(story: Story) -> Violations:
    """What a caller over HTTP was told is what the instance has committed."""
    for _, answer in story.world.answers:
        if not isinstance(answer, Answer) or answer.response is None:
            continue
        told = story.instances.get(answer.instance_id)
        if told is None or answer.response not in [each.get("response") for each in told.states.values()]:
            yield f"an answer that {answer.instance_id} has not committed"


CHECKS = (
    check_i1_answers_are_committed,
    check_i6_once_per_callback,
    check_i6_once_per_stimulus,
    check_i8_early_is_not_lost,
    check_i8_oldest_first,
    check_i10_published_is_fixed,
    check_triggers_are_those_published,
    check_one_replay,
    check_deleted_is_gone,
    check_answers,
)
