"""Each line that speaks of an item or an instance says which, whichever function writes it; and no line has
more of an input than that."""

import json

import pytest

from aftercommit import DispatchWorkflow, Event, Sequence, Step, Workflow, activity
from aftercommit.cancel import cancel
from aftercommit.client import StartRequest, execute
from aftercommit.delete import KEPT_SECONDS, delete
from aftercommit.operations import delete_dead_letter, replay, send_event
from aftercommit.outbox import find_item
from aftercommit.redrive import redrive
from aftercommit.settings import settings
from aftercommit.sweep import sweep
from aftercommit.tables import HeadRow, ItemRow
from tests.integration.faults import refusal
from tests.integration.handlers import Api, Context, command_event, load_handler, stream_event
from tests.integration.world import behaviours
from tests.lines import INSTANCE, ITEM, REQUIRED

SECRET = "s3cr3t-4711"


@activity
def speak_up(context):
    context.logger.info("spoken")


child = Workflow("child", inputs={"known": {"type": "object"}}, root=Step("act", name="child"))
parent = Workflow(
    "parent",
    root=DispatchWorkflow("child", input={"known": {}}, wait=True, on={"DispatchFailed": Sequence()}),
)
forgetting = Workflow("forgetting", root=DispatchWorkflow("late"))
waiting = Workflow("waiting", root=Event("go"))
failing = Workflow("failing", root=Step("act", name="failing"))
speaking = Workflow("speaking", root=Step(speak_up))


@pytest.fixture
def lines(world, log_lines):
    """Return a function that reads the lines with a message; all lines so far must have their ids."""

    def read(message):
        found = [json.loads(line) for line in log_lines]
        for line in found:
            missing = REQUIRED.get(line["message"], frozenset()) - line.keys()
            assert not missing, line
        return [line for line in found if line["message"] == message]

    return read


def send(name="go", **more):
    told = {"payload": {}, "value": 1, "correlation_id": None, "instance_id": None, **more}
    return send_event("default", name, **told)


def test_lines_of_a_dispatch_that_is_refused_given_up_and_redriven(world, lines):
    world.publish(forgetting)
    owner_id = world.dispatch("forgetting", correlation_id="order-7")
    world.settle(60)
    item = world.item("start")
    redrive("default", owner_id, item.item_id)
    wanted = {
        "tenant": "default",
        "owner_id": owner_id,
        "item_id": item.item_id,
        "command": "start",
        "instance_id": item.instance_id,
        "definition_id": "late",
    }
    for message in ("attempt refused", "item given up", "redriven"):
        told = lines(message)
        assert told
        assert all(wanted.items() <= each.items() for each in told), message


def test_lines_of_a_stimulus_that_becomes_a_dead_letter(world, lines):
    dead = [send().split(".") for _ in range(2)]
    world.settle(settings().stimulus_open_seconds + 120)
    replay("default", *dead[0])
    delete_dead_letter("default", *dead[1])
    for message, which in (("dead letter replayed", 0), ("dead letter removed", 1)):
        [told] = lines(message)
        assert [told["owner_id"], told["item_id"]] == dead[which]
    assert {each["reason"] for each in lines("dead letter")} == {"ExpiredError"}


def test_lines_of_an_instance_from_its_sweep_to_its_removal(world, lines):
    world.publish(waiting)
    instance_id = world.dispatch("waiting", correlation_id="order-7")
    world.messages.clear()
    world.clock.at += 11
    sweep()
    world.serve()
    cancel("default", instance_id, "enough")
    delete("default", instance_id)
    world.clock.at += KEPT_SECONDS + 1
    sweep()
    of_it = {"tenant": "default", "instance_id": instance_id, "correlation_id": "order-7"}
    for message in ("swept instance", "instance cancelled", "instance deleted", "instance removed"):
        [told] = lines(message)
        assert of_it.items() <= told.items()


def test_lines_of_items_without_an_effect(world, lines):
    world.publish(child, parent)
    instance_id = world.dispatch("parent")
    world.run(instance_id)
    cancel("default", instance_id, "enough")
    world.handle_item(world.item("cancel"))
    [told] = lines("dispatches withdrawn")
    assert (told["tenant"], told["owner_id"]) == ("default", instance_id)
    world.publish(waiting)
    waits = world.dispatch("waiting")
    world.run(waits)
    send()
    world.handle_item(world.item("stimulus"))
    world.handle_item(world.item("stimulus"))
    assert lines("no undone item")


def test_lines_of_rows_that_cannot_be_read(world, lines):
    world.publish(child, parent)
    world.run(world.dispatch("parent"))
    item = world.item("start")
    world.set_raw(ItemRow, {"owner_key": item.owner_key, "item_id": item.item_id}, body={"S": SECRET})
    world.handle_item(item)
    [told] = lines("item set aside")
    assert (told["owner_id"], told["item_id"]) == (item.owner_id, item.item_id)
    assert SECRET not in json.dumps(lines("message set aside"))
    damaged = world.dispatch("child", {"known": {}})
    key = {"instance_key": f"default#{damaged}", "row": "head"}
    world.set_raw(HeadRow, key, snapshot={"S": SECRET})
    world.run(damaged)
    [told] = lines("instance cannot be read")
    assert (told["tenant"], told["instance_id"]) == ("default", damaged)


def test_lines_of_an_execute_bear_the_tenant_and_the_correlation_id(world, lines):
    world.publish(speaking, owner="acme")
    asked = StartRequest("acme", "speaking", {}, correlation_id="order-7")
    instance_id = execute(asked, deadline=world.clock.at + 25)
    [told] = lines("spoken")
    assert (told["tenant"], told["instance_id"], told["correlation_id"]) == ("acme", instance_id, "order-7")


def test_a_command_that_fails_is_told_with_its_ids_and_its_place_and_counted(world, lines, faults, capsys):
    world.publish(failing)
    instance_id = world.dispatch("failing", correlation_id="order-7")
    faults.before("TransactWriteItems", RuntimeError(SECRET), times=99)
    faults.before("UpdateItem", RuntimeError(SECRET), times=99, match="revision")
    run = load_handler("run")
    answer = run(command_event(json.dumps({"tenant": "default", "instance_id": instance_id})), Context())
    assert answer == {"batchItemFailures": [{"itemIdentifier": "message-0"}]}
    [told] = lines("command failed")
    wanted = {
        "message_id": "message-0",
        "tenant": "default",
        "instance_id": instance_id,
        "definition_id": "failing",
        "correlation_id": "order-7",
        "error_type": "RuntimeError",
        "level": "ERROR",
    }
    assert wanted.items() <= told.items()
    assert any("/aftercommit/checkpoint.py:" in frame for frame in told["stack"])
    assert SECRET not in json.dumps(told)
    assert sum('"UnexpectedErrors"' in line for line in capsys.readouterr().out.splitlines()) == 1


def test_a_command_that_is_only_to_be_tried_later_is_no_unexpected_error(world, lines, faults, capsys):
    world.publish(failing)
    instance_id = world.dispatch("failing")
    faults.before("UpdateItem", refusal("ThrottlingException"), times=99)
    run = load_handler("run")
    event = command_event(json.dumps({"tenant": "default", "instance_id": instance_id}))
    assert len(run(event, Context())["batchItemFailures"]) == 1
    [told] = lines("command failed")
    assert (told["level"], told["instance_id"]) == ("WARNING", instance_id)
    assert told["reason"].startswith("TryLaterError: ")
    assert "UnexpectedErrors" not in capsys.readouterr().out


def test_what_deliver_and_sweep_did_not_expect_is_told_and_counted(world, lines, faults, capsys):
    world.publish(child, parent)
    owner_id = world.dispatch("parent")
    world.run(owner_id)
    item = world.item("start")
    faults.before("GetItem", RuntimeError(SECRET), times=1)
    load_handler("deliver")(stream_event((item.owner_key, item.item_id)), Context())
    [told] = lines("claim failed")
    assert (told["owner_id"], told["item_id"], told["error_type"]) == (owner_id, item.item_id, "RuntimeError")
    faults.before("Query", RuntimeError(SECRET), times=1)
    sweep()
    [told] = lines("shard not swept")
    assert told["stack"]
    assert SECRET not in json.dumps([lines("claim failed"), told])
    assert sum('"UnexpectedErrors"' in line for line in capsys.readouterr().out.splitlines()) == 2


def test_lines_of_a_request_bear_its_tenant_and_the_ids_in_its_path(api, lines, faults, capsys):
    faults.before("GetItem", RuntimeError(SECRET), times=1)
    answer = api.get("/instances/i-1/journal", headers={"x-tenant-id": "acme"})
    assert answer[0] == 500
    [told] = lines("request failed")
    assert (told["tenant"], told["instance_id"], told["error_type"]) == ("acme", "i-1", "RuntimeError")
    assert SECRET not in json.dumps(told)
    assert '"UnexpectedErrors"' in capsys.readouterr().out


def test_the_ids_of_a_request_end_with_it(api, lines, faults):
    api.get("/dispatches/o-1/d-1", headers={"x-tenant-id": "acme"})
    faults.before("Query", RuntimeError("away"), times=1)
    api.get("/incidents")
    [told] = lines("request failed")
    assert told["tenant"] == "default"
    assert not {"owner_id", "item_id"} & told.keys()


def test_no_line_of_a_request_has_its_token(api, lines, log_lines, faults):
    faults.before("GetItem", RuntimeError("away"), times=9)
    faults.before("Query", RuntimeError("away"), times=9)
    faults.before("UpdateItem", RuntimeError("away"), times=9)
    for path in (f"/bookmarks/{SECRET}/resume", f"/tasks/{SECRET}/complete", f"/callbacks/{SECRET}"):
        api.post(path, {})
    assert SECRET not in "".join(log_lines)


def test_a_line_over_the_api_bears_tenant_and_instance(world, lines):
    world.publish(waiting, owner="acme")
    instance_id = world.dispatch("waiting", tenant="acme", correlation_id="order-7")
    Api().post(f"/instances/{instance_id}/cancel", headers={"x-tenant-id": "acme"})
    [told] = lines("instance cancelled")
    assert (told["tenant"], told["instance_id"], told["correlation_id"]) == ("acme", instance_id, "order-7")


def raise_secret(context, value):
    raise LookupError({SECRET: SECRET})


def test_neither_names_nor_values_of_inputs_are_logged_only_types_of_what_refused_them(
    world, lines, log_lines, capsys
):
    behaviours["failing"] = raise_secret
    passing_on = Workflow("passing-on", root=DispatchWorkflow("child", input={"known": {SECRET: SECRET}}))
    strict = {"type": "object", "properties": {}, "additionalProperties": False}
    refusing = Workflow("child", inputs={"known": strict}, root=Step("act", name="child"))
    world.publish(passing_on, refusing, failing, waiting)
    world.dispatch("passing-on")
    world.dispatch("failing")
    api = Api()
    inputs = {"input": {SECRET: SECRET}}
    assert api.post("/workflows/child/dispatch", inputs)[0] == 422
    assert api.post("/workflows/child/dispatch", {"input": {"known": {SECRET: 1}}})[0] == 422
    assert api.post("/workflows/child/dispatch", {SECRET: SECRET})[0] == 400
    world.handle(json.dumps({"tenant": "default", SECRET: SECRET}))
    world.dispatch("waiting")
    send(payload={SECRET: SECRET}, value={SECRET: SECRET})
    world.settle(settings().stimulus_open_seconds + 120)
    assert {each["reason"] for each in lines("attempt refused")} == {"InputRefusedError"}
    assert [each["reason"] for each in lines("item given up")] == ["InputRefusedError"]
    item = next(each for each in world.items("start") if each.status == "failed")
    assert (
        SECRET in find_item("default", item.owner_id, item.item_id).last_error
    )  # whoever may read it finds it
    assert lines("message set aside")
    assert lines("step given up")
    output = capsys.readouterr()
    assert SECRET not in "".join(log_lines) + output.out + output.err


def test_the_lines_that_need_ids_are_those_of_items_and_instances():
    assert REQUIRED["item given up"] == ITEM
    assert REQUIRED["instance cancelled"] == INSTANCE
