"""What must be true of starts by the clock: each time once, never early, by the version published then."""

import json
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from aftercommit import clock
from aftercommit.definitions import PUBLISHED
from aftercommit.occurrences import owner_of_occurrences
from aftercommit.schedules import next_of
from tests.simulation.accounts import Change
from tests.simulation.story import Plain, Story, plain

Violations = Iterator[str]


def occurrences_by_id(story: Story) -> dict[str, Plain]:
    """Return every item that was ever armed for a schedule, by item id, as it last was."""
    return {item["item_id"]: item for change in _changes(story) if (item := _item(change))}


def _changes(story: Story) -> Iterator[Change]:
    return (change for change in story.world.changes if change.table == "outbox")


def _item(change: Change) -> Plain | None:
    row = plain(change.after or change.before or {})
    return row if row.get("command") == "start" and "deliver_at" in row else None


def check_each_time_starts_once(story: Story) -> Violations:
    """A time has started one instance, not before it had come; what was missed collapsed into the next."""
    fired: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    schedules = {}
    armed = occurrences_by_id(story)
    for told in story.instances.values():
        item = armed.get(told.head.get("parent_item_id", ""))
        if item is None:
            continue
        body = json.loads(item["body"])
        at = clock.from_text(body["trigger"]["value"]["at"])
        born_at = clock.from_text(told.head["created_at"])
        place = body["definition_id"], body["trigger"]["activity_id"]
        fired[place].append((at, born_at))
        schedules[place] = body["schedule"]
        if born_at < at:
            yield f"{told.instance_id} was started {at - born_at} seconds before its time"
    for place, times in fired.items():
        times.sort()
        for (earlier, born_at), (later, _) in pairwise(times):
            if earlier == later:
                yield f"{place} was started twice for one time"
            elif next_of(schedules[place], born_at, last=earlier) != later:
                yield f"{place} was started for {later}, which does not follow {earlier}"


def check_one_time_is_armed(story: Story) -> Violations:
    """After each commit, there is one undone item for each schedule of the published version.

    An instant has none any more when it has come.
    """
    undone: dict[str, dict[str, Plain]] = defaultdict(dict)
    published: dict[tuple[str, str], int | None] = {}
    commits: dict[int, list[Change]] = defaultdict(list)
    for change in story.world.changes:
        commits[change.call].append(change)
    for call, changes in commits.items():
        touched = False
        for change in changes:
            row = plain(change.after or change.before or {})
            if change.table == "definitions" and row["row"] == PUBLISHED:
                owner = row["definition_key"].partition("#")[0]
                published[owner, row["definition_id"]] = row["version"] if change.after else None
                touched = True
            elif change.table == "outbox" and (item := _item(change)):
                undone[item["owner_id"]].pop(item["item_id"], None)
                if change.after and item["status"] == "undone":
                    undone[item["owner_id"]][item["item_id"]] = item
                touched = True
        for (owner, definition_id), version in published.items() if touched else ():
            definition = story.definitions.get((owner, definition_id, version or 0))
            schedules = definition.schedules() if definition else {}
            wanted = [(path, version) for path, each in schedules.items() if "at" not in each]
            bodies = [json.loads(each["body"]) for each in _armed(undone, owner, definition_id)]
            found = [
                (each["trigger"]["activity_id"], each["version"])
                for each in bodies
                if "at" not in schedules.get(each["trigger"]["activity_id"], {})
            ]
            if sorted(found) != sorted(wanted):
                yield f"after commit {call}, {definition_id} version {version} has armed {found}"


def _armed(undone: dict[str, dict[str, Plain]], owner: str, definition_id: str) -> list[Plain]:
    return list(undone[owner_of_occurrences(owner, definition_id)].values())


CHECKS = (check_each_time_starts_once, check_one_time_is_armed)
