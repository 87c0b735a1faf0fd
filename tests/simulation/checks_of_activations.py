"""What must be true of activations: one live instance each, and no start refused without one."""

import json
from collections.abc import Iterator

from aftercommit import clock
from aftercommit.statuses import InstanceStatus
from tests.simulation.story import Plain, Story, plain

Violations = Iterator[str]
_ENDED = {each.value for each in InstanceStatus if each.ended}


def check_one_live(story: Story) -> Violations:
    """Never two instances of one activation are live at once."""
    live: dict[str, set[str]] = {}
    for change in story.world.changes:
        if change.table != "instances" or change.after is None or change.after["row"] != {"S": "head"}:
            continue
        head = plain(change.after)
        if "activation_key" not in head:
            continue
        held = live.setdefault(head["activation_key"], set())
        if head["status"] in _ENDED:
            held.discard(head["instance_id"])
        else:
            held.add(head["instance_id"])
        if len(held) > 1:
            yield f"{sorted(held)} hold {head['activation_key']} at once"


def check_refusals(story: Story) -> Violations:
    """A start is refused only while the holder that the answer names is live."""
    for refusal in story.world.refusals:
        if not _lived(story, refusal.holder, refusal.asked_at, refusal.at):
            yield f"{refusal.instance_id} was refused, and {refusal.holder} was not live"
    for (owner_id, item_id), item in story.items.items():
        if is_refused_start(story, item):
            at = clock.from_text(item["settled_at"])
            holders = [each for each in story.instances if _is_of(story, each, item["definition_id"])]
            since = clock.from_text(item["created_at"])
            if not any(_lived(story, each, since, at) for each in holders):
                yield f"item {item_id} of {owner_id} was refused, and nothing of its definition was live"


def is_refused_start(story: Story, item: Plain) -> bool:
    """Whether a start that a stimulus led to is done without an instance, as its definition may refuse it."""
    if item["command"] != "start" or item["status"] != "done" or story.children_of(item):
        return False
    body = json.loads(item["body"])
    definition = story.definitions.get((body.get("owner"), body["definition_id"], body.get("version")))
    return "trigger" in body and definition is not None and definition.activation != "always"


def _is_of(story: Story, instance_id: str, definition_id: str) -> bool:
    return bool(story.instances[instance_id].head["definition_id"] == definition_id)


def _lived(story: Story, instance_id: str, since: float, until: float) -> bool:
    """Whether an instance was live at any time between two instants."""
    born_at = ended_at = None
    for change in story.world.changes:
        if change.table != "instances" or change.after is None or change.after["row"] != {"S": "head"}:
            continue
        if change.after["instance_id"] != {"S": instance_id}:
            continue
        born_at = change.at if born_at is None else born_at
        if change.after["status"]["S"] in _ENDED and ended_at is None:
            ended_at = change.at
    return born_at is not None and born_at <= until and (ended_at is None or ended_at >= since)


CHECKS = (check_one_live, check_refusals)
