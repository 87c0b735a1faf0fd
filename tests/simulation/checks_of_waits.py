"""What must be true of those that wait: met once, answered once, and told how their children ended."""

import json
from collections import Counter
from collections.abc import Iterator

from aftercommit.statuses import Outcome
from tests.simulation.story import Story, Told, answered

Violations = Iterator[str]
_OUTCOMES = {"completed": Outcome.COMPLETED, "faulted": Outcome.FAULTED, "cancelled": Outcome.CANCELLED}


def check_i6_once_per_wait(story: Story) -> Violations:
    """A bookmark resumes at most once, and each resume that is done met its bookmark or an ended instance."""
    for told in story.instances.values():
        resumed = Counter(command["bookmark_id"] for command in told.commands("resume"))
        for bookmark_id, times in resumed.items():
            if times > 1:
                yield f"bookmark {bookmark_id} of {told.instance_id} resumed {times} times"
        finished = Counter(command["execution_id"] for command in told.commands("finish"))
        for execution_id, times in finished.items():
            if times > 1:
                yield f"execution {execution_id} of {told.instance_id} finished {times} times"
    for (owner_id, item_id), item in story.items.items():
        if item["command"] != "resume" or item["status"] != "done" or "token" in json.loads(item["body"]):
            continue
        told = story.instances[item["instance_id"]]
        bookmark_id = json.loads(item["body"])["bookmark_id"]
        if story.scenario.drops:
            continue
        if told.head["status"] == "completed" and not any(
            command["bookmark_id"] == bookmark_id for command in told.commands("resume")
        ):
            yield f"resume {item_id} of {owner_id} is done, and was never applied"


def check_i6_once_per_token(story: Story) -> Violations:
    """A token that was taken has led to one answer, and what was sent in vain is seen."""
    for bookmark_id, times in Counter(answered(story)).items():
        if times > 1:
            yield f"the token of {bookmark_id} was taken {times} times"
        if story.item(f"callback-{bookmark_id}") is None:
            yield f"the token of {bookmark_id} was taken, and nothing completes its task"


def check_i7_endings_are_told(story: Story) -> Violations:
    """What a parent that waits was told is how its child ended."""
    for told in story.instances.values():
        outcomes = {command["bookmark_id"]: command for command in told.commands("resume")}
        for intention in told.intentions().values():
            body = intention.body
            if intention.command != "start" or "bookmark_id" not in body:
                continue
            heard = outcomes.get(body["bookmark_id"])
            child = story.instances.get(body["instance_id"])
            if heard is None:
                if story.scenario.drops:
                    continue
                if told.head["status"] in ("completed", "suspended"):
                    yield f"{told.instance_id} was never told the ending of {body['instance_id']}"
            elif child is None:
                if heard["outcome"] != Outcome.DISPATCH_FAILED:
                    yield f"{told.instance_id} was told {heard['outcome']} of a child that does not exist"
            else:
                yield from _check_telling(told, heard, child)


def _check_telling(told: Told, heard: dict, child: Told) -> Violations:
    if heard["outcome"] != _OUTCOMES.get(child.head["status"]):
        yield f"{told.instance_id} was told {heard['outcome']} of a child that is {child.head['status']}"
        return
    ending = json.loads(child.head["snapshot"])
    expected = ending.get("output") if heard["outcome"] == Outcome.COMPLETED else ending.get("failure")
    if heard.get("value") != expected:
        yield f"{told.instance_id} was told another value than {child.instance_id} ended with"


CHECKS = (check_i6_once_per_wait, check_i6_once_per_token, check_i7_endings_are_told)
