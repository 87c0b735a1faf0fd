"""Callback tokens and tasks: each resumes its own wait, once; whatever else is sent looks the same."""

import base64
import json

import pytest

from aftercommit import Event, Fork, RunTask, Workflow
from aftercommit.cancel import cancel
from aftercommit.delete import delete
from aftercommit.errors import NotFoundError, TooLargeError
from aftercommit.limits import INPUT_BYTES_MAX
from aftercommit.operations import resume_by_token
from aftercommit.tables import ItemRow
from tests.integration.faults import Crash
from tests.integration.waits import send, tasker


@pytest.fixture
def w(world):
    world.publish(tasker)
    return world


def offered(world, tenant="default"):
    instance_id = world.dispatch("tasker", tenant=tenant)
    world.run(instance_id, tenant=tenant)
    [bookmark] = world.show(instance_id, tenant)["bookmarks"]
    return instance_id, bookmark["token"]


def encode(parts):
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")


def decode(token):
    return json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))


def refused(tenant, token):
    with pytest.raises(NotFoundError) as caught:
        resume_by_token(tenant, token, 1)
    return str(caught.value), caught.value.field


def test_a_task_is_shown_with_its_inputs_and_completed_with_what_is_given(w):
    instance_id, token = offered(w)
    [bookmark] = w.show(instance_id)["bookmarks"]
    assert (bookmark["waits_for"], bookmark["inputs"]) == ("task", {"amount": 5})
    resume_by_token("default", token, {"approved": True})
    w.settle(seconds=5)
    assert w.show(instance_id)["output"] == {"approved": True}


def test_a_token_is_good_for_the_days_of_its_deployment_and_a_new_one_is_shown_then(w, set_environment):
    set_environment(CALLBACK_TOKEN_DAYS="2")
    instance_id, token = offered(w)
    w.clock.at += 3 * 86_400
    assert refused("default", token) == ("no such bookmark", "token")
    [bookmark] = w.show(instance_id)["bookmarks"]
    resume_by_token("default", bookmark["token"], {"approved": True})
    w.settle(seconds=5)
    assert w.show(instance_id)["status"] == "completed"


def test_forged_used_lost_and_foreign_tokens_get_the_same_answer(w):
    instance_id, token = offered(w)
    other_id, other = offered(w)
    tenant, named, bookmark_id, day, proof = decode(token)
    answers = {
        refused("other", token),
        refused("default", encode(["other", named, bookmark_id, day, proof])),
        refused("default", encode([tenant, other_id, bookmark_id, day, proof])),
        refused("default", encode([tenant, named, decode(other)[2], day, proof])),
        refused("default", encode([tenant, named, bookmark_id, day, "0" * 32])),
        refused("default", encode([tenant, named, bookmark_id, day, "é" * 32])),
        refused("default", encode([tenant, "\ud800", bookmark_id, day, proof])),
        refused("default", encode([tenant, "n" * 5_000, bookmark_id, day, proof])),
        refused("default", encode([tenant, "", bookmark_id, day, proof])),
        refused("default", encode([tenant, named, "\ud800", day, proof])),
        refused("default", encode([tenant, named, bookmark_id, str(int(day) + 1), proof])),
        refused("default", encode([tenant, named, bookmark_id, "later", proof])),
        refused("default", encode([tenant, named, bookmark_id, proof])),
        refused("default", encode([tenant, named, bookmark_id])),
        refused("default", encode({"a": 1})),
        refused("default", encode([1, 2, 3, 4, 5])),
        refused("default", base64.urlsafe_b64encode(b"[" * 6_000).decode()),
        refused("default", "no token"),
        refused("default", "é"),
        refused("default", ""),
    }
    resume_by_token("default", token, 1)
    answers.add(refused("default", token))  # used, though nothing has happened yet
    w.settle(seconds=5)
    answers.add(refused("default", token))
    for item in ItemRow.scan():
        item.delete()  # as the retention does
    answers.add(refused("default", token))
    cancel("default", other_id, "x")
    answers.add(refused("default", other))
    delete("default", instance_id)
    answers.add(refused("default", token))
    assert answers == {("no such bookmark", "token")}
    assert w.items() == []


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_completion_that_dies_can_be_sent_again_or_is_there(w, faults, moment):
    instance_id, token = offered(w)
    getattr(faults, moment)("PutItem", Crash(), match="callback-")
    with pytest.raises(Crash):
        resume_by_token("default", token, "first")
    if moment == "before":
        resume_by_token("default", token, "first")
    else:
        refused("default", token)
    w.settle(seconds=60)
    assert w.show(instance_id)["output"] == "first"


def test_a_completion_delivered_twice_completes_once(w):
    instance_id, token = offered(w)
    resume_by_token("default", token, "first")
    [item] = w.items("resume")
    w.handle_item(item)
    revisions = len(w.revisions(instance_id))
    w.handle_item(item)
    assert len(w.revisions(instance_id)) == revisions


def test_the_token_of_a_losing_branch_is_refused(w):
    w.publish(Workflow("race", root=Fork(RunTask("approve"), Event("go"), wait="any")))
    instance_id = w.dispatch("race")
    w.run(instance_id)
    token = next(each["token"] for each in w.show(instance_id)["bookmarks"] if "token" in each)
    send("go")
    w.settle(seconds=5)
    refused("default", token)


def test_an_answer_that_is_too_large_is_refused_and_the_task_stays(w):
    instance_id, token = offered(w)
    with pytest.raises(TooLargeError):
        resume_by_token("default", token, "x" * INPUT_BYTES_MAX)
    assert w.show(instance_id)["status"] == "suspended"


def test_i11_tasks_of_two_tenants_are_apart(w):
    mine, token = offered(w, "a")
    theirs, _ = offered(w, "b")
    refused("b", token)
    resume_by_token("a", token, 1)
    w.settle(seconds=5)
    assert w.show(mine, "a")["status"] == "completed"
    assert w.show(theirs, "b")["status"] == "suspended"


def test_only_what_can_offer_tasks_keeps_a_secret(w):
    instance_id, token = offered(w)
    w.publish(Workflow("plain", root=Event("e")))
    assert w.head(instance_id).secret not in token
    assert w.head(w.dispatch("plain")).secret is None
