"""What must be true of any world once it is quiet: one function per invariant, each yielding its violations.

They compare three accounts of the same events: what the rows say (folded from the first revision), what
each row was at any time (the world's list of changes), and what the outside world saw (the effects).
"""

import json
from collections import Counter
from collections.abc import Iterator

from aftercommit.ids import derive_execution_id, derive_id
from aftercommit.model import Decision
from aftercommit.operations import read_stimulus_id
from aftercommit.statuses import InstanceStatus
from tests.simulation import (
    checks_of_activations,
    checks_of_bulks,
    checks_of_calls,
    checks_of_payloads,
    checks_of_removals,
    checks_of_schedules,
    checks_of_waits,
)
from tests.simulation.calls import Complete, Start
from tests.simulation.checks_of_events import check_events, is_of_event
from tests.simulation.checks_of_removals import days_of
from tests.simulation.checks_of_schedules import occurrences_by_id
from tests.simulation.faults import CRASHES, REFUSALS, FaultKind
from tests.simulation.story import Plain, Story, Told, answered, plain, whole

Violations = Iterator[str]
ATTEMPTS_MAX = 4  # of a start; and after five workers that died, a step counts as raised
_ENDED = {each.value for each in InstanceStatus if each.ended}


def check_i1_no_ghost(story: Story) -> Violations:
    """No effect exists whose intention is not in a committed checkpoint."""
    armed = occurrences_by_id(story)
    for told in story.instances.values():
        head = told.head
        if "parent_item_id" not in head:
            continue
        if _comes_from_stimulus(story, head["parent_instance_id"], head["parent_item_id"]):
            continue
        if head["parent_item_id"] in armed:
            continue  # checks_of_schedules.py tells what must be true of it
        owner = story.instances.get(head["parent_instance_id"])
        intention = owner.intentions().get(head["parent_item_id"]) if owner else None
        if intention is None:
            yield f"{told.instance_id} was started by a dispatch that no revision decided"
        elif intention.body["instance_id"] != told.instance_id:
            yield f"{told.instance_id} is not the child that its dispatch names"
    yield from _check_items(story)
    for effect in story.world.effects:
        told = story.instances.get(effect.instance_id)
        if told is None:
            yield f"effect {effect.activity} of {effect.instance_id}, which does not exist"
        elif effect.idempotency_key not in _executions(told) | _overtaken(story, told):
            yield f"effect {effect.activity} of {effect.instance_id}, in an execution that no revision knows"


def _check_items(story: Story) -> Violations:
    for owner_id, item_id in story.items:
        if owner_id in story.scenario.stuck:
            continue
        if (
            _comes_from_stimulus(story, owner_id, item_id)
            or story.items[owner_id, item_id]["command"] == "event"
        ):
            continue
        owner = story.instances.get(owner_id)
        if owner is None:
            yield f"item {item_id} of {owner_id}, which does not exist"
        elif item_id not in owner.intentions() and not (
            _is_consequence(story, owner_id, item_id)
            or _is_answer(story, owner, item_id)
            or _is_told_along(story, owner_id, item_id)
        ):
            yield f"item {item_id} of {owner_id}, which no revision decided"


def _is_answer(story: Story, owner: Told, item_id: str) -> bool:
    """Whether an item is what a caller, or an activity, has answered a task of its owner with."""
    if item_id in {f"callback-{name}" for name in answered(story)}:
        return True
    offered = {
        name
        for state in owner.states.values()
        for name, bookmark in state.get("bookmarks", {}).items()
        if bookmark["waits_for"] == "task"
    }
    asked = any(
        isinstance(call, Complete) and call.instance_id == owner.instance_id for call in story.scenario.calls
    )
    return asked and item_id in {f"callback-{name}" for name in offered}


def _comes_from_stimulus(story: Story, owner_id: str, item_id: str) -> bool:
    """Whether an item is a stimulus that somebody has asked for, part of one, or a start it led to."""
    item = story.items.get((owner_id, item_id))
    if item is None:
        return False
    published = [
        name
        for (_, name), each in story.items.items()
        if each["command"] == "stimulus" and (_is_asked_for(story, name) or is_of_event(story, name))
    ]
    if item["command"] == "stimulus":
        return any(item_id == each or item_id.startswith(f"{each}-") for each in published)
    return any(derive_id("starts", each) == owner_id for each in published)


def _is_asked_for(story: Story, item_id: str) -> bool:
    """Whether a revision has published a stimulus, a caller has sent it, or a dead letter names it."""
    replays = {each["replayed_as"] for each in story.items.values() if "replayed_as" in each}
    called = set(story.called.values())
    return story.intends(item_id) or item_id in story.requested | replays | called


def _is_consequence(story: Story, owner_id: str, item_id: str) -> bool:
    """Whether an item tells a waiting owner that a dispatch was given up."""
    return any(
        item["status"] == "failed" and derive_id("give-up", item["item_id"], item["generation"]) == item_id
        for (owner, _), item in story.items.items()
        if owner == owner_id
    )


def _is_told_along(story: Story, owner_id: str, item_id: str) -> bool:
    """Whether an item is part of a wide cancel, or tells children that go with their cancelled owner."""
    item = story.items[owner_id, item_id]
    gathered = [
        each for (owner, _), each in story.items.items() if owner == owner_id and '"parts":' in each["body"]
    ]
    if any(part["item_id"] == item_id for each in gathered for part in json.loads(each["body"])["parts"]):
        return item["command"] == "cancel"
    if item["command"] != "cancel" or (owner_id, derive_id("cancel-along", owner_id)) not in story.items:
        return False
    return derive_id("cancel", f"along-{json.loads(item['body'])['item_id']}") == item_id


def _executions(told: Told) -> set[str]:
    """Return the ids of those that ended, and of those that were to run or wait after some revision."""
    ended = {line["execution_id"] for row in told.rows for line in json.loads(row["journal"])}
    return ended.union(*(state.get("executions", {}) for state in told.states.values()))


def _overtaken(story: Story, told: Told) -> set[str]:
    """Return the executions that a cancel may have met at work: their result is in no revision."""
    if told.head["status"] != "cancelled":
        return set()
    head = told.head
    definition = story.definitions[head["definition_owner"], head["definition_id"], head["version"]]
    lives = {state.get("life", "") for state in told.states.values()}
    found = {"": max(lives, default="")}  # by path
    for path in sorted(definition.activities, key=len):
        above = max((each for each in found if path.startswith(each)), key=len)
        found[path] = derive_execution_id(told.instance_id, path, 0, found[above])
    return set(found.values())


def check_i2_no_loss(story: Story) -> Violations:
    """Every committed intention reached its effect, or a recorded, visible failure; every instance ended."""
    for call, answer in story.world.answers:
        if isinstance(call, Start) and isinstance(answer, str) and answer not in story.instances:
            yield f"{answer} was started, and does not exist"
    for told in story.instances.values():
        if told.head["status"] not in _ENDED and told.instance_id not in story.scenario.stuck:
            yield f"{told.instance_id} is {told.head['status']} for ever"
        if told.instance_id in story.scenario.stuck and not told.incidents:
            yield f"{told.instance_id} cannot be read, and nobody sees it"
        due = "due_at" in told.head and "deleted_at" not in told.head
        if told.head["status"] in _ENDED and due and not days_of(story.scenario):
            yield f"{told.instance_id} has ended and is still due"
    for (owner_id, item_id), item in story.items.items():
        if item["status"] not in ("done", "failed", "cancelled"):
            yield f"item {item_id} of {owner_id} is {item['status']} for ever"
        seen = "attention_at" in item or "replayed_as" in item or _is_told_to_parent(story, item)
        if item["status"] == "failed" and not (seen and item.get("last_error")):
            yield f"item {item_id} of {owner_id} failed, and nobody sees why"
        childless = item["command"] == "start" and not story.children_of(item)
        if item["status"] == "done" and childless and not checks_of_activations.is_refused_start(story, item):
            yield f"item {item_id} of {owner_id} is done, and its child does not exist"


def _is_told_to_parent(story: Story, item: Plain) -> bool:
    """Whether the parent was resumed with a failure, or had it counted as one of a bulk."""
    resume_id = derive_id("give-up", item["item_id"], int(item.get("generation", 1)))
    return item.get("outcome") == "DispatchFailed" or (item["owner_id"], resume_id) in story.items


def check_i3_no_duplicate(story: Story) -> Violations:
    """A dispatch has one child, however often it is delivered; two executions have two."""
    for (owner_id, item_id), item in story.items.items():
        if item["command"] != "start":
            continue
        children = story.children_of(item)
        if len(children) > 1:
            yield f"dispatch {item_id} of {owner_id} has {len(children)} children"
        if children and item["status"] != "done":
            yield f"dispatch {item_id} of {owner_id} is {item['status']}, and has a child"
    expected = story.scenario.effects | story.scenario.races
    counted: dict[str, set[str]] = {name: set() for name in expected}
    for effect in story.world.effects:
        counted.setdefault(effect.activity, set()).add(effect.idempotency_key)
    for name, keys in counted.items():
        if len(keys) > expected.get(name, 0) and expected:
            yield f"{len(keys)} executions had the effect {name}, not {expected.get(name, 0)}"


def check_i4_fencing(story: Story) -> Violations:
    """A log position has one author and never changes; the head is what its rows fold to."""
    yield from _check_writers(story)
    for told in story.instances.values():
        if told.unreadable and told.instance_id not in story.scenario.stuck:
            yield f"the rows of {told.instance_id} cannot be folded: {told.unreadable}"
        numbers = [row["revision"] for row in told.rows]
        if numbers != list(range(1, len(numbers) + 1)):
            yield f"the revisions of {told.instance_id} have a gap: {numbers}"
        if told.head["status"] in _ENDED and told.head["revision"] != len(numbers):
            yield f"{told.instance_id} ended at {told.head['revision']}, and has {len(numbers)} revisions"


def _check_writers(story: Story) -> Violations:
    seen: dict[tuple[str, str], str] = {}
    revision_of: dict[str, int] = {}
    for change in story.world.changes:
        if change.table != "instances":
            continue
        row = whole(story.world, change.after or change.before or {})
        key = (row["instance_key"], row["row"])
        if row["instance_key"] in story.deleted and change.after is None:
            continue
        if row["row"].startswith("revision#"):
            if key in seen:
                yield f"{key} was written by {seen[key]} and again by {change.worker}"
            seen[key] = change.worker
        if row["row"] == "head" and isinstance(row["revision"], int):
            if change.after is None or row["revision"] < revision_of.get(row["instance_key"], 0):
                yield f"the head of {row['instance_id']} went back"
            revision_of[row["instance_key"]] = row["revision"]
            told = story.instances.get(row["instance_id"])
            if told and change.after and told.instance_id not in story.scenario.stuck:
                yield from _check_snapshot(told, row)


def _check_snapshot(told: Told, head: dict) -> Violations:
    revision = head["revision"]
    if revision not in told.states:
        yield f"the head of {told.instance_id} covers {revision}, which is no revision"
    elif "snapshot" in head and json.loads(head["snapshot"]) != told.states[revision]:
        yield f"the snapshot of {told.instance_id} at {revision} is not what its revisions fold to"
    elif head["status"] in _ENDED and head["status"] != told.statuses[revision]:
        yield f"{told.instance_id} is {head['status']}, and its revisions fold to {told.statuses[revision]}"


def check_i5_one_commit(story: Story) -> Violations:
    """A revision and all that it decided took effect in one commit, with the very same content."""
    commits = _commits(story)
    for told in story.instances.values():
        for row, command, decision in told.decisions:
            if not decision.applied:
                yield f"{told.instance_id} committed a {command['kind']} that changes nothing"
            yield from _check_effects(story, told, row, decision, commits)
        for row in told.rows:
            decided = [
                line for each, _, decision in told.decisions if each is row for line in decision.journal
            ]
            lines = json.loads(row["journal"])
            written = [{name: value for name, value in line.items() if name != "at"} for line in lines]
            if written != json.loads(json.dumps(decided)):
                yield f"the journal of {told.instance_id} at {row['row']} is not what was decided"


def _commits(story: Story) -> dict[tuple[str, str], int]:
    """Return the number of the call in which each row came to be."""
    commits: dict[tuple[str, str], int] = {}
    for change in story.world.changes:
        if change.before is None and change.after is not None:
            row = plain(change.after)
            commits.setdefault(_name_of(change.table, row), change.call)
    return commits


def _check_effects(
    story: Story, told: Told, row: dict, decision: Decision, commits: dict[tuple[str, str], int]
) -> Violations:
    call = commits.get(_key(row))
    for intention in decision.intentions:
        if commits.get(("item", intention.item_id)) != call:
            yield f"{told.instance_id} decided {intention.item_id} in another commit than {row['row']}"
        item = story.item(intention.item_id)
        if item and json.loads(item["body"]) != json.loads(json.dumps(intention.body)):
            yield f"item {intention.item_id} is not what {told.instance_id} decided"
    gone = {each.bookmark_id for at, _, other in told.decisions if at is row for each in other.gone}
    for bookmark in decision.made:
        if bookmark.bookmark_id not in gone and commits.get(("bookmark", bookmark.bookmark_id)) != call:
            yield f"{told.instance_id} made a bookmark in {row['row']} that no stimulus can find"
    for incident in decision.incidents:
        if (told.head["instance_key"], f"incident#{incident.incident_id}") not in commits:
            yield f"{told.instance_id} has lost an incident of {row['row']}"


def _name_of(table: str, row: dict) -> tuple[str, str]:
    if table == "outbox":
        return ("item", row["item_id"])
    if table == "bookmarks":
        return ("bookmark", row["bookmark_id"])
    return _key(row) if table != "triggers" else (row["stimulus_key"], row["row"])


def _key(row: dict) -> tuple[str, str]:
    return (row.get("instance_key", row.get("definition_key")), row["row"])


def check_i9_no_starvation(story: Story) -> Violations:
    """What cannot be delivered holds back nothing: with nothing in its way, a scenario ends in its time."""
    within = story.scenario.ends_within_seconds
    if within is None or story.world.planned or story.world.weather.name == "rough":
        return
    for instance_id in story.scenario.endings:
        told = story.instances.get(instance_id)
        last = max((row["committed_at"] for row in told.rows), default="") if told else ""
        if last > story.world.moment(within):
            yield f"{instance_id} ended at {last}, later than {within} seconds after its start"


def check_one_send_per_claim(story: Story) -> Violations:
    """Of those that read the same row, one claims it: an item is not sent more often than it was claimed."""
    sent: Counter[str] = Counter()
    for call in story.world.trace:
        if call.what == "SendMessageBatch" and call.worker.startswith(("deliver", "sweep")):
            messages = [json.loads(entry["MessageBody"]) for entry in call.arguments["Entries"]]
            sent.update(message["item_id"] for message in messages if "item_id" in message)
    for (owner_id, item_id), item in story.items.items():
        if isinstance(item["sends"], int) and sent[item_id] > item["sends"]:
            yield f"item {item_id} of {owner_id}: {sent[item_id]} sends for {item['sends']} claims"


def check_expectations(story: Story) -> Violations:
    """The scenario ended as it must, unless faults used its attempts up."""
    kinds = [fault.kind for fault in story.world.planned]
    refused = sum(kind in REFUSALS for kind in kinds)
    died = sum(kind in CRASHES or kind == FaultKind.FREEZE for kind in kinds)
    used_up = refused >= ATTEMPTS_MAX or died >= ATTEMPTS_MAX
    if used_up:
        return
    for instance_id, status in story.scenario.endings.items():
        told = story.instances.get(instance_id)
        if told and told.head["status"] != status:
            yield f"{instance_id} is {told.head['status']}, and should be {status}"
    counted: dict[str, set[str]] = {}
    for effect in story.world.effects:
        counted.setdefault(effect.activity, set()).add(effect.idempotency_key)
    for name, times in story.scenario.effects.items():
        if len(counted.get(name, ())) != times:
            yield f"{len(counted.get(name, ()))} executions had the effect {name}, not {times}"
    for key in story.scenario.dead:
        item = story.items[read_stimulus_id(story.told(key))]
        if item["status"] != "failed" or not str(item.get("last_error")).startswith("ExpiredError"):
            yield f"the event sent as {key} is {item['status']}, and should be a dead letter"


def check_no_surprise(story: Story) -> Violations:
    """No worker ended with an error that is not about the weather."""
    for worker, error in story.world.errors:
        if not story.world.is_excused(error):
            yield f"{worker} ended with {error!r}"


CHECKS = (
    check_i1_no_ghost,
    check_i2_no_loss,
    check_i3_no_duplicate,
    check_i4_fencing,
    check_i5_one_commit,
    *checks_of_waits.CHECKS,
    check_i9_no_starvation,
    check_one_send_per_claim,
    check_expectations,
    check_no_surprise,
    check_events,
    *checks_of_activations.CHECKS,
    *checks_of_calls.CHECKS,
    *checks_of_bulks.CHECKS,
    *checks_of_removals.CHECKS,
    *checks_of_schedules.CHECKS,
    *checks_of_payloads.CHECKS,
)


def violations_of(story: Story) -> list[str]:
    """Return all violations, each with the name of its check."""
    return [f"{check.__name__}: {each}" for check in CHECKS for each in check(story)]
