"""What must be true of instances that go by themselves: read from how the tables changed, by commit."""

from collections import defaultdict
from collections.abc import Iterator

from aftercommit import clock
from aftercommit.statuses import InstanceStatus
from tests.simulation.accounts import Change
from tests.simulation.calls import TENANT, Delete
from tests.simulation.scenario import Scenario
from tests.simulation.story import Plain, Story, plain

Violations = Iterator[str]
_DAY_SECONDS = 86_400
_ENDED = {each.value for each in InstanceStatus if each.ended}


def days_of(scenario: Scenario) -> int:
    """Return for how many days ended instances are kept; 0: for ever."""
    return int(scenario.settings.get("ENDED_INSTANCE_DAYS", "0"))


def check_nothing_goes_too_early(story: Story) -> Violations:
    """What is deleted had ended, its days were over, and it owned nothing that was still needed."""
    asked = {f"{TENANT}#{call.instance_id}" for call in story.scenario.calls if isinstance(call, Delete)}
    owned: dict[str, dict[str, Plain]] = defaultdict(dict)
    for change in story.world.changes:
        if change.table == "outbox":
            _follow(owned, change)
            continue
        before, after = plain(change.before or {}), plain(change.after or {})
        if change.table != "instances" or (after or before)["row"] != "head" or not before:
            continue
        key = before["instance_key"]
        if "deleted_at" in after and "deleted_at" not in before:
            if before["status"] not in _ENDED:
                yield f"{key} was deleted while {before['status']}"
            elif key not in asked:
                if not _is_over(before["ended_at"], days_of(story.scenario), change.at):
                    yield f"{key} was deleted before its days were over"
                yield from (f"{key} was deleted with {each}" for each in _needed(owned[key]))
        if not after and not _is_over(before.get("deleted_at"), 1, change.at):
            yield f"the head of {key} was removed before a day had passed"


def _follow(owned: dict[str, dict[str, Plain]], change: Change) -> None:
    row = plain(change.after or change.before or {})
    if "command" not in row:
        return
    if change.after is None:
        owned[row["owner_key"]].pop(row["item_id"], None)
    else:
        owned[row["owner_key"]][row["item_id"]] = row


def _is_over(since: str | None, days: int, at: float) -> bool:
    return bool(since and days) and at >= clock.from_text(since or "") + days * _DAY_SECONDS - 0.001


def _needed(items: dict[str, Plain]) -> list[str]:
    """Return what is on its way, or failed untold: an operator may redrive it."""
    return [
        f"{name} {item['status']}"
        for name, item in items.items()
        if item["status"] == "undone" or (item["status"] == "failed" and not item.get("wait"))
    ]


def check_ended_go(story: Story) -> Violations:
    """What has ended is gone when the world is quiet, unless it is still needed: then it comes up again."""
    if not days_of(story.scenario):
        return
    for (key, name), item in story.world.dynamodb.tables["instances"].rows.items():
        head = plain(item)
        if name != "head" or head["status"] not in _ENDED:
            continue
        owner_id = key.partition("#")[2]
        items = {item_id: each for (owner, item_id), each in story.items.items() if owner == owner_id}
        if not _needed(items):
            yield f"{key} has ended, and is still there"
        elif "due_at" not in head:
            yield f"{key} is kept for now, and never looked at again"


def check_nothing_is_left_in_excess(story: Story) -> Violations:
    """Without faults, not even the rows are left that a death may leave behind."""
    if story.world.planned or story.world.weather.name == "rough" or not days_of(story.scenario):
        return
    tables = story.world.dynamodb.tables
    gone = {key.partition("#")[2] for key in story.deleted}
    for row in map(plain, tables["bookmarks"].rows.values()):
        if row["instance_id"] in gone:
            yield f"bookmark {row['bookmark_id']} is left of {row['instance_id']}, which is gone"
    for (key, name), item in tables["instances"].rows.items():
        if name == "activation" and plain(item)["holder"] in gone:
            yield f"{key} is left of an instance that is gone"


CHECKS = (check_nothing_goes_too_early, check_ended_go, check_nothing_is_left_in_excess)
