"""What must be true of payloads in a quiet world: no row without its objects, no object without its row."""

from collections.abc import Iterator

from aftercommit.payloads import object_key, prefix_of
from aftercommit.tables import PAYLOADS_PREFIX
from tests.simulation.story import Story, members_of, plain

Violations = Iterator[str]


def check_payloads_are_there(story: Story) -> Violations:
    """Whatever a row names can be read as long as the row is there."""
    for table in story.world.dynamodb.tables.values():
        for row in map(plain, table.rows.values()):
            for member in members_of(row):
                key = object_key(row.get("instance_key", row.get("owner_key")), row["payloads"], member)
                if key not in story.world.objects.now:
                    yield f"{key} is named by a row, and is not there"


def check_payloads_are_removed(story: Story) -> Violations:
    """What no commit has made its own is removed, and so is what belongs to an instance that is."""
    committed = {
        change.after["payloads"]["S"]
        for change in story.world.changes
        if change.after is not None and "payloads" in change.after
    }
    for key in story.world.objects.now:
        tenant, instance_id, name, _ = key.split("/")
        if name not in committed:
            yield f"{key} belongs to no commit"
        if f"{tenant}#{instance_id}" in story.deleted:
            yield f"{key} belongs to an instance that was removed"
    for (instance_key, row), item in story.world.dynamodb.tables["instances"].rows.items():
        if row.startswith(PAYLOADS_PREFIX) and "due_at" in item:
            yield f"{prefix_of(instance_key)} is still announced: {row}"


def check_payloads_are_written_once(story: Story) -> Violations:
    """An object is never written over: each commit, and each try at one, has a name of its own."""
    seen: dict[str, bytes] = {}
    for call in story.world.trace:
        if call.what != "PutObject":
            continue
        if seen.setdefault(call.arguments["Key"], call.arguments["Body"]) != call.arguments["Body"]:
            yield f"{call.arguments['Key']} was written over"


CHECKS = (check_payloads_are_there, check_payloads_are_removed, check_payloads_are_written_once)
