"""run, deliver, sweep and publish: loaded as Lambda loads them, with the events they really get."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from aftercommit import Sequence, Workflow, aws
from aftercommit.queue import Message
from aftercommit.tables import DefinitionRow, HeadRow
from tests.integration.faults import refusal
from tests.integration.handlers import Context, command_event, load_handler, sample, stream_event

RECEIPT = {"order_id": "o-1", "customer": "Zoë", "amount": 5}
NONE_FAILED = {"batchItemFailures": []}


def receipt(world, **more):
    return world.dispatch("send-receipt", RECEIPT, **more)


def command(instance_id):
    return Message("default", instance_id=instance_id).to_text()


# --- run ---


@pytest.fixture
def run(example):
    return load_handler("run")


@pytest.mark.parametrize(
    ("malformed", "reason"),
    [
        ("nonsense", "no JSON"),
        ("{}", "is missing"),
        ('{"tenant": "default", "instance_id": "i", "input": 1}', "unknown part 'input'"),
        ('{"tenant": "default"}', "must name either an item"),
    ],
)
def test_a_malformed_message_is_set_aside_and_the_rest_of_the_batch_is_served(
    run, example, malformed, reason
):
    ids = [receipt(example), receipt(example)]
    event = command_event(command(ids[0]), malformed, command(ids[1]))
    assert run(event, Context()) == NONE_FAILED
    assert set(example.statuses().values()) == {"completed"}
    [(body, told)] = example.dead_letters()
    assert body == malformed
    assert reason in told


def test_a_malformed_message_is_logged_with_its_id_and_without_its_content(run, log_lines):
    run(command_event('{"tenant": "default", "input": "s3cr3t-value"}'), Context())
    [line] = [each for each in map(json.loads, log_lines) if each["level"] == "ERROR"]
    assert line["message_id"] == "message-0"
    assert "s3cr3t-value" not in "".join(log_lines)


def test_r03_a_message_that_fails_comes_back_alone(run, example, faults):
    ids = [receipt(example) for _ in range(3)]
    faults.before("UpdateItem", refusal("AccessDeniedException"), match=ids[1])
    answer = run(command_event(*map(command, ids)), Context())
    assert answer == {"batchItemFailures": [{"itemIdentifier": "message-1"}]}
    statuses = example.statuses()
    assert [statuses[each] for each in ids] == ["completed", "pending", "completed"]


def test_when_all_fail_all_come_back_and_the_function_does_not_raise(run, example, faults):
    faults.before("UpdateItem", refusal("AccessDeniedException"), times=99)
    answer = run(command_event(command(receipt(example)), command(receipt(example))), Context())
    assert [each["itemIdentifier"] for each in answer["batchItemFailures"]] == ["message-0", "message-1"]


def test_a_message_about_nothing_does_nothing(run, example):
    before = example.everything()
    item = Message("default", owner_id="nobody", item_id="nothing").to_text()
    assert run(command_event(item, command("nobody")), Context()) == NONE_FAILED
    assert example.everything() == before
    assert example.dead_letters() == []


# --- deliver ---


@pytest.fixture
def deliver(example):
    return load_handler("deliver")


@pytest.fixture
def items(example):
    """Store the dispatches of one order."""
    order = {**RECEIPT, "address": "1 Street", "items": [{"quantity": 1}]}
    example.run(example.dispatch("place-order", order))
    example.messages.clear()
    return example.items()


def test_new_items_are_sent(deliver, example, items):
    event = stream_event(*[(each.owner_key, each.item_id) for each in items])
    assert deliver(event, Context()) == NONE_FAILED
    assert len(example.messages) == 2


@pytest.mark.parametrize(
    "record",
    [{}, {"dynamodb": {}}, {"dynamodb": {"Keys": {}}}, {"dynamodb": {"Keys": {"owner_key": 5}}}],
)
def test_r10_a_record_without_keys_is_logged_and_holds_nothing_back(
    deliver, example, items, record, log_lines
):
    event = stream_event(*[(each.owner_key, each.item_id) for each in items])
    event["Records"].insert(0, record)
    assert deliver(event, Context()) == NONE_FAILED
    assert len(example.messages) == 2
    assert any("stream record without keys" in line for line in log_lines)


def test_r10_a_record_that_names_nothing_readable_holds_nothing_back(deliver, example, items):
    good = [(each.owner_key, each.item_id) for each in items]
    assert deliver(stream_event(("no-tenant", "x"), ("default#nobody", "y"), *good), Context()) == NONE_FAILED
    assert len(example.messages) == 2


def test_c11_a_queue_that_is_away_fails_no_record_and_the_sweep_delivers(deliver, example, items, faults):
    """The commit that caused the items stands, and nobody sees an error."""
    faults.before("SendMessageBatch", RuntimeError("away"), times=1)
    event = stream_event(*[(each.owner_key, each.item_id) for each in items])
    assert deliver(event, Context()) == NONE_FAILED
    assert example.messages == []
    assert {int(each.attempts) for each in example.items()} == {1}
    example.forget_stream()
    example.settle()
    assert set(example.statuses().values()) == {"completed"}


def test_a_database_that_is_away_fails_no_record(deliver, example, items, faults):
    faults.before("GetItem", RuntimeError("away"), times=99)
    event = stream_event(*[(each.owner_key, each.item_id) for each in items])
    assert deliver(event, Context()) == NONE_FAILED


# --- sweep ---


@pytest.fixture
def sweep(example):
    return load_handler("sweep")


def ticks(faults):
    return sorted(int(body["DelaySeconds"]) for name, body in faults.sent if name == "SendMessage")


def test_the_schedule_makes_a_pass_and_sets_the_ticks_until_the_next_minute(sweep, example, faults):
    instance_id = receipt(example)
    example.messages.clear()
    example.clock.at += 11
    sweep(sample("sweep-schedule"), Context(60))
    assert ticks(faults) == [10, 20, 30, 40, 50]
    assert [json.loads(each.body)["instance_id"] for each in example.messages] == [instance_id]


def test_a_tick_makes_a_pass_and_sets_none(sweep, faults):
    sweep(sample("sweep-tick"), Context(60))
    assert ticks(faults) == []


def test_a_pass_that_filled_its_limit_is_followed_by_the_next_at_once(
    sweep, example, faults, set_environment
):
    set_environment(SWEEP_BATCH="2")
    for _ in range(5):
        receipt(example)
    example.clock.at += 11
    sweep(sample("sweep-tick"), Context(60))
    assert ticks(faults) == [0]


def test_ticks_that_cannot_be_sent_do_not_keep_the_pass_from_being_made(sweep, example, faults):
    receipt(example)
    example.messages.clear()
    example.clock.at += 11
    faults.before("SendMessage", RuntimeError("away"), times=99)
    sweep(sample("sweep-schedule"), Context(60))
    assert len(example.messages) == 1


# --- publish ---


class CloudFormation:
    """Takes the answers of a custom resource, as CloudFormation's presigned address does."""

    def __init__(self):
        answers = self.answers = []

        class Handler(BaseHTTPRequestHandler):
            def do_PUT(self):
                length = int(self.headers["Content-Length"])
                answers.append((dict(self.headers), json.loads(self.rfile.read(length))))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *args):
                """Say nothing."""

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def event(self, kind="Create"):
        port = self.server.server_port
        more = {} if kind == "Create" else {"PhysicalResourceId": "published-definitions"}
        url = f"http://127.0.0.1:{port}/answer?signed"
        return {**sample("publish-create"), "RequestType": kind, "ResponseURL": url, **more}

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def cloudformation():
    found = CloudFormation()
    yield found
    found.close()


@pytest.fixture
def publish(world):
    return load_handler("publish")


def test_a_deploy_publishes_its_definitions_and_says_so(publish, world, cloudformation):
    publish(cloudformation.event(), Context(60))
    [(headers, answer)] = cloudformation.answers
    assert answer["Status"] == "SUCCESS"
    assert {answer[name] for name in ("StackId", "RequestId", "LogicalResourceId")} == {
        sample("publish-create")[name] for name in ("StackId", "RequestId", "LogicalResourceId")
    }
    assert answer["PhysicalResourceId"] == "published-definitions"
    assert headers.get("Content-Type", "") == ""  # anything else breaks the address's signature
    rows = {(row.definition_id, row.row) for row in DefinitionRow.scan()}
    assert ("place-order", "published") in rows
    assert ("place-order", "version#000001") in rows


def test_publishing_again_changes_nothing(publish, world, cloudformation):
    publish(cloudformation.event(), Context(60))
    before = world.everything()
    world.clock.at += 100
    publish(cloudformation.event("Update"), Context(60))
    assert world.everything() == before
    assert [answer["Status"] for _, answer in cloudformation.answers] == ["SUCCESS", "SUCCESS"]


def test_i10_a_changed_tree_under_an_old_version_is_refused_with_the_reason(publish, world, cloudformation):
    world.publish(Workflow("send-receipt", version=1, root=Sequence()))
    before = [row.fingerprint for row in DefinitionRow.query("*#send-receipt")]
    publish(cloudformation.event(), Context(60))
    [(_, answer)] = cloudformation.answers
    assert answer["Status"] == "FAILED"
    assert "'send-receipt' version 1 exists with another tree" in answer["Reason"]
    assert [row.fingerprint for row in DefinitionRow.query("*#send-receipt")] == before
    published = [row.definition_id for row in DefinitionRow.scan() if row.row == "published"]
    assert published == ["send-receipt"]  # of the other workflows of this deploy, none


def test_a_module_that_cannot_be_imported_is_told(publish, world, cloudformation, set_environment):
    set_environment(WORKFLOWS_MODULE="no_such_module")
    publish(cloudformation.event(), Context(60))
    [(_, answer)] = cloudformation.answers
    assert answer["Status"] == "FAILED"
    assert "no_such_module" in answer["Reason"]


def test_deleting_the_stack_keeps_the_definitions(publish, world, cloudformation):
    publish(cloudformation.event(), Context(60))
    before = world.everything()
    publish(cloudformation.event("Delete"), Context(60))
    assert cloudformation.answers[1][1]["Status"] == "SUCCESS"
    assert world.everything() == before


def test_a_database_that_is_away_fails_the_deploy_and_answers(publish, world, cloudformation, faults):
    faults.before("PutItem", refusal("AccessDeniedException"), times=99)
    publish(cloudformation.event(), Context(60))
    [(_, answer)] = cloudformation.answers
    assert answer["Status"] == "FAILED"
    assert len(answer["Reason"]) <= 1000


# --- the sample events, as `sam local invoke` takes them ---


def test_each_sample_event_is_accepted_by_its_function(example, cloudformation):
    status = load_handler("api")(sample("api-dispatch"), Context(29))["statusCode"]
    assert status == 202
    assert load_handler("run")(sample("run-command"), Context()) == NONE_FAILED
    assert load_handler("deliver")(sample("deliver-new-item"), Context(60)) == NONE_FAILED
    load_handler("sweep")(sample("sweep-schedule"), Context(60))
    load_handler("sweep")(sample("sweep-tick"), Context(60))
    event = {**sample("publish-create"), "ResponseURL": cloudformation.event()["ResponseURL"]}
    load_handler("publish")(event, Context(60))
    assert cloudformation.answers[0][1]["Status"] == "SUCCESS"
    assert example.dead_letters() == []
    assert [head.definition_id for head in HeadRow.scan(HeadRow.row == "head")] == ["place-order"]


def test_the_sample_stream_record_has_the_form_of_a_real_item(example, items):
    image = sample("deliver-new-item")["Records"][0]["dynamodb"]["NewImage"]
    key = {"owner_key": {"S": items[0].owner_key}, "item_id": {"S": items[0].item_id}}
    stored = aws.client("dynamodb").get_item(TableName="OutboxTable", Key=key)["Item"]
    kinds = {name: next(iter(value)) for name, value in stored.items()}
    for name, value in image.items():
        assert kinds[name] == next(iter(value)), name
