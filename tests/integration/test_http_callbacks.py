"""Callback addresses: given out by an instance, good once, before or after it waits there."""

import base64
import json
from math import ceil

import pytest

from aftercommit import Event, HttpEndpoint, Step, Workflow
from aftercommit.callbacks import read_callback_token
from aftercommit.cancel import cancel
from aftercommit.delete import delete
from aftercommit.errors import NotFoundError
from aftercommit.limits import INPUT_BYTES_MAX
from aftercommit.operations import call_back
from aftercommit.settings import settings
from aftercommit.sweep import sweep
from aftercommit.tables import ItemRow
from aftercommit.tokens import make_callback_token, make_token
from tests.integration.faults import Crash, no_answer
from tests.integration.handlers import error_of
from tests.integration.http_flows import beside, called_back, rounds, same_name
from tests.integration.waits import send, stimuli, tasker
from tests.integration.world import raw_rows

JSON = {"content-type": "application/json"}
REQUEST = {"method": "POST", "path": "callbacks", "query": {}, "headers": {}, "body": 1}


@pytest.fixture
def w(world):
    world.publish(called_back, rounds, same_name, beside, tasker)
    return world


def begun(world, workflow="called-back", tenant="default"):
    """Start an instance; returns its id once it waits."""
    instance_id = world.dispatch(workflow, tenant=tenant)
    world.run(instance_id, tenant=tenant)
    return instance_id


def path_of(world, instance_id):
    """Return the address that an activity has given out."""
    return world.show(instance_id)["variables"]["path"]


def instance_rows():
    return [row["row"]["S"] for row in raw_rows(settings().instances_table)]


def token_of(world, instance_id, name, tenant="default"):
    return make_callback_token(tenant, instance_id, name, world.head(instance_id, tenant).secret, 365)


# --- early and late ---


def test_a_callback_that_comes_late_resumes_at_once(api, w):
    instance_id = begun(w)
    w.settle(seconds=40)
    [bookmark] = w.show(instance_id)["bookmarks"]
    assert (bookmark["waits_for"], bookmark["callback_path"]) == ("callback", path_of(w, instance_id))
    assert api.post(path_of(w, instance_id), {"paid": True}, headers=JSON) == (202, {})
    w.settle(seconds=1)
    shown = w.show(instance_id)
    assert shown["status"] == "completed"
    assert shown["output"] == {
        "method": "POST",
        "path": "callbacks",
        "query": {},
        "headers": {"host": "example", **JSON},
        "body": {"paid": True},
    }


def test_i8_a_callback_that_comes_early_is_kept(api, w):
    instance_id = begun(w)
    assert [each["waits_for"] for each in w.show(instance_id)["bookmarks"]] == ["timer"]
    assert api.call("PUT", path_of(w, instance_id), "now", query={"a": "b"}) == (202, {})
    w.settle(seconds=100)
    shown = w.show(instance_id)
    assert shown["status"] == "completed"
    assert (shown["output"]["method"], shown["output"]["body"]) == ("PUT", "now")
    assert shown["output"]["query"] == {"a": "b"}


def test_a_callback_that_nothing_waits_for_in_time_is_a_dead_letter_that_can_be_replayed(api, w):
    instance_id = begun(w, "rounds")
    call_back("default", token_of(w, instance_id, "round-7"), REQUEST)
    w.settle(seconds=700)
    [dead] = api.get("/bookmark-queue/dead-letters")[1]["dead_letters"]
    assert (dead["name"], dead["last_error"].split(":")[0]) == ("callback:round-7", "ExpiredError")
    assert api.post(f"/bookmark-queue/dead-letters/{dead['stimulus_id']}/replay")[0] == 202


def test_rounds_of_a_loop_have_addresses_of_their_own(w):
    instance_id = begun(w, "rounds")
    call_back("default", token_of(w, instance_id, "round-1"), {**REQUEST, "body": "second"})
    call_back("default", token_of(w, instance_id, "round-0"), {**REQUEST, "body": "first"})
    w.settle(seconds=100)
    assert w.show(instance_id)["output"] == "second"


def test_the_callback_of_one_instance_is_none_of_anothers(w):
    one, other = begun(w, "rounds"), begun(w, "rounds")
    for number in range(2):
        call_back("default", token_of(w, one, f"round-{number}"), REQUEST)
    w.settle(seconds=100)
    assert w.statuses() == {one: "completed", other: "suspended"}


def test_an_address_is_the_same_on_every_attempt(w):
    instance_id = begun(w)
    assert path_of(w, instance_id) == f"/callbacks/{token_of(w, instance_id, 'paid')}"


# --- once ---


def refused(world, token, tenant="default"):
    before = world.everything()
    with pytest.raises(NotFoundError) as caught:
        call_back(tenant, token, REQUEST)
    assert world.everything() == before
    return str(caught.value), caught.value.field


def encode(*parts):
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")


def test_a_second_call_changes_nothing_however_late_it_comes(w):
    instance_id = begun(w, "same-name")
    token = token_of(w, instance_id, "x")
    call_back("default", token, REQUEST)
    refused(w, token)
    w.settle(seconds=5)
    refused(w, token)
    send("go")
    w.settle(seconds=5)
    for item in ItemRow.scan():
        item.delete()  # as DynamoDB does once the retention is over
    refused(w, token)
    w.settle(seconds=100)
    shown = w.show(instance_id)
    assert (shown["status"], [each["waits_for"] for each in shown["bookmarks"]]) == (
        "suspended",
        ["callback"],
    )


def test_forged_foreign_and_unknown_tokens_get_the_same_answer_as_used_ones(w):
    instance_id, other_id = begun(w, "rounds"), begun(w, "rounds")
    task_id = begun(w, "tasker")
    token = token_of(w, instance_id, "round-0")
    _, _, _, day, proof = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    [task] = w.show(task_id)["bookmarks"]
    bookmark_id = task["bookmark_id"]
    answers = {
        refused(w, token, "other"),
        refused(w, encode("other", instance_id, "round-0", day, proof), "other"),
        refused(w, encode("default", other_id, "round-0", day, proof)),
        refused(w, encode("default", instance_id, "round-1", day, proof)),
        refused(w, encode("default", instance_id, "round-0", day, "0" * 32)),
        refused(w, encode("default", instance_id, "round-0", "99999", proof)),
        refused(w, encode("default", instance_id, "round-0", "later", proof)),
        refused(w, encode("default", instance_id, "round-0", day, "é" * 32)),
        refused(w, encode("default", instance_id, "round-0", day, "")),
        refused(w, encode("default", instance_id, "\ud800", day, proof)),
        refused(w, encode("default", "nobody", "round-0", day, proof)),
        refused(w, encode("default", "", "round-0", day, proof)),
        refused(w, encode("default", "n" * 5_000, "round-0", day, proof)),
        refused(w, encode("default", instance_id, "round-0")),
        refused(w, encode(1, 2, 3, 4, 5)),
        refused(w, base64.urlsafe_b64encode(b"[" * 6_000).decode()),
        refused(w, "é"),
        refused(w, ""),
        # A token of a bookmark is none of a callback, were it named like it.
        refused(w, task["token"]),
        refused(w, make_token("default", instance_id, "round-0", w.head(instance_id).secret, 365)),
        refused(w, encode("default", task_id, bookmark_id, day, "0" * 32)),
    }
    call_back("default", token, REQUEST)
    answers.add(refused(w, token))
    cancel("default", other_id, "x")
    answers.add(refused(w, token_of(w, other_id, "round-0")))
    assert answers == {("no such callback", "token")}


def test_an_address_is_good_until_its_day_and_then_like_one_that_never_was(w):
    instance_id = begun(w, "rounds")
    token = token_of(w, instance_id, "round-0")
    day = 86_400
    ends_at = (ceil(w.clock.at / day) + 365) * day
    w.clock.at = ends_at - 0.001
    assert read_callback_token("default", token)[1] == "round-0"
    w.clock.at = ends_at
    assert refused(w, token) == ("no such callback", "token")


def test_an_activity_that_is_tried_again_on_the_same_day_tells_the_same_address(w):
    instance_id = begun(w, "rounds")
    token = token_of(w, instance_id, "round-0")
    w.clock.at += 60
    assert token_of(w, instance_id, "round-0") == token


def test_a_token_of_a_callback_resumes_no_bookmark(api, w):
    task_id = begun(w, "tasker")
    [task] = w.show(task_id)["bookmarks"]
    token = token_of(w, task_id, task["bookmark_id"])
    error_of(api.post(f"/tasks/{token}/complete", {"input": 1}), 404, "not_found", "token")


def test_an_instance_that_has_ended_is_not_found(api, w):
    instance_id = begun(w, "beside")
    path = f"/callbacks/{token_of(w, instance_id, 'x')}"
    send("go")
    w.settle(seconds=5)
    error_of(api.get(path), 404, "not_found", "token")
    delete("default", instance_id)
    error_of(api.get(path), 404, "not_found", "token")


def test_what_calls_have_left_goes_with_the_instance(w):
    instance_id = begun(w, "rounds")
    for number in range(2):
        call_back("default", token_of(w, instance_id, f"round-{number}"), REQUEST)
    w.settle(seconds=100)
    assert sum(name.startswith("callback#") for name in instance_rows()) == 2
    delete("default", instance_id)
    w.clock.at += 2 * 86_400
    sweep()
    assert instance_rows() == []


# --- what dies on the way ---


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_call_that_dies_can_be_made_again_or_is_there(w, faults, moment):
    instance_id = begun(w, "same-name")
    token = token_of(w, instance_id, "x")
    getattr(faults, moment)("TransactWriteItems", Crash(), match="callback#")
    with pytest.raises(Crash):
        call_back("default", token, REQUEST)
    if moment == "before":
        assert stimuli(w) == []
        call_back("default", token, REQUEST)
    else:
        refused(w, token)
    assert len(stimuli(w)) == 1


def test_a_call_whose_answer_was_lost_is_taken_once(w, faults):
    instance_id = begun(w, "same-name")
    plan = faults.after("TransactWriteItems", no_answer(), match="callback#")
    call_back("default", token_of(w, instance_id, "x"), REQUEST)
    assert plan.struck == 1
    assert len(stimuli(w)) == 1


def test_of_two_calls_at_once_one_counts(w, faults):
    instance_id = begun(w, "same-name")
    token = token_of(w, instance_id, "x")
    faults.meanwhile("TransactWriteItems", lambda: call_back("default", token, {**REQUEST, "body": "first"}))
    with pytest.raises(NotFoundError):
        call_back("default", token, {**REQUEST, "body": "second"})
    [item] = stimuli(w)
    assert json.loads(item.body)["value"]["body"] == "first"


# --- the API ---


def test_a_request_that_is_too_large_is_refused_and_the_address_stays_good(api, w):
    instance_id = begun(w, "same-name")
    path = f"/callbacks/{token_of(w, instance_id, 'x')}"
    answer = api.raw("POST", path, "x" * INPUT_BYTES_MAX)
    error_of((answer["statusCode"], json.loads(answer["body"])), 413, "too_large", "body")
    assert api.get(path)[0] == 202


def test_a_token_gets_into_no_state_and_no_log_line(api, w, log_lines):
    instance_id = begun(w, "rounds")
    token = token_of(w, instance_id, "round-0")
    assert api.get(f"/callbacks/{token}")[0] == 202
    w.settle(seconds=5)
    assert token not in json.dumps(w.everything())
    assert token not in "".join(log_lines)


def test_i11_callbacks_of_two_tenants_are_apart(api, w):
    mine, theirs = begun(w, "same-name", "a"), begun(w, "same-name", "b")
    path = f"/callbacks/{token_of(w, mine, 'x', 'a')}"
    error_of(api.get(path, headers={"x-tenant-id": "b"}), 404, "not_found", "token")
    assert api.get(path, headers={"x-tenant-id": "a"})[0] == 202
    w.settle(seconds=5)
    waits = {
        each: w.show(each, tenant)["bookmarks"][0]["waits_for"]
        for each, tenant in ((mine, "a"), (theirs, "b"))
    }
    assert waits == {mine: "stimulus", theirs: "callback"}


def test_only_what_waits_for_a_callback_keeps_a_secret_and_gives_addresses_out(w):
    w.publish(
        Workflow("plain", root=Event("e")),
        Workflow("starting", root=HttpEndpoint("a", starts=True)),
        Workflow("asking", root=Step("tell_callback", name="x")),
    )
    assert w.head(begun(w, "beside")).secret
    for name in ("plain", "starting", "asking"):
        assert w.head(w.dispatch(name)).secret is None
    failure = w.show(begun(w, "asking"))["failure"]
    assert failure["message"] == "no HttpEndpoint of this workflow waits for a callback"


@pytest.mark.parametrize("name", ["", "n" * 201])
def test_an_address_is_asked_for_by_a_name(w, name):
    w.publish(Workflow("asking", root=Step("tell_callback", name=name)))
    assert w.show(begun(w, "asking"))["failure"]["type"] == "ValueError"
