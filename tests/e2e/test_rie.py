"""The sample events, and whole workflows, through the built functions under Lambda's own runtime emulator.

The stack's own event sources rest meanwhile: what moves, moves through what is served here.
"""

import contextlib
import copy
import http.server
import json
import threading

import pytest

from scripts.emulator import ROOT, client_environment
from scripts.env_json import read_variables
from scripts.local_build import built
from scripts.local_stack import FUNCTIONS
from tests.e2e.conftest import WORKFLOWS_DIR, await_that
from tests.e2e.rie import PYTHON, Served

pytestmark = pytest.mark.skipif(not PYTHON.exists(), reason="Lambda's runtime client is for Linux")

EVENTS = ROOT / "events"
TENANT = "rie"  # apart from what other tests have left on the queue
TIMEOUT_SECONDS = 8  # for a cold start, too
ANSWERS = {
    "api-dispatch": 202,
    "api-execute": 200,
    "api-list-workflows": 200,
    "api-get-instance": 404,
    "api-cancel-instance": 404,
    "api-send-event": 202,
    "run-command": {"batchItemFailures": []},
    "run-instance": {"batchItemFailures": []},
    "deliver-new-item": {"batchItemFailures": []},
    "events-new-event": {"batchItemFailures": []},
    "sweep-schedule": None,
    "sweep-tick": None,
}


def sample(name):
    return json.loads((EVENTS / f"{name}.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def resting(stack):
    """Switch the stack's event sources off, so that nobody else takes messages, records and ticks."""
    functions, rules = stack.client("lambda"), stack.client("events")
    mappings = [each["UUID"] for each in functions.list_event_source_mappings()["EventSourceMappings"]]
    scheduled = [each["Name"] for each in rules.list_rules()["Rules"]]
    for each in mappings:
        functions.update_event_source_mapping(UUID=each, Enabled=False)
    for each in scheduled:
        rules.disable_rule(Name=each)
    yield
    for each in mappings:
        functions.update_event_source_mapping(UUID=each, Enabled=True)
    for each in scheduled:
        rules.enable_rule(Name=each)


@pytest.fixture(scope="module")
def variables(stack):
    """What `make env.json` writes for sam local: the environment that the deploy has given the functions."""
    return {**read_variables(stack.endpoint_url), **client_environment(stack.emulator.port)}


@pytest.fixture(scope="module")
def artefacts(stack):
    with built(WORKFLOWS_DIR) as (folder, fresh):
        assert not fresh, "the build that the stack was deployed from"
        yield folder / "built"


@pytest.fixture(scope="module")
def served(resting, artefacts, variables, tmp_path_factory):
    folder = tmp_path_factory.mktemp("rie")
    with contextlib.ExitStack() as running:
        yield {name: running.enter_context(Served(artefacts, name, variables, folder)) for name in FUNCTIONS}


class Caller:
    """Serves, through the functions, what API Gateway, the queue, the stream and the schedule would."""

    def __init__(self, stack, served):
        self.stack = stack
        self.served = served

    def request(self, name, body=None, **parameters):
        event = sample(name)
        event["headers"]["x-tenant-id"] = TENANT
        event["headers"].pop("idempotency-key", None)
        path = event["routeKey"].partition(" ")[2]
        for each, value in parameters.items():
            path = path.replace(f"{{{each}}}", value)
        event["rawPath"] = event["requestContext"]["http"]["path"] = path
        event["pathParameters"] = parameters
        if body is not None:
            event["body"] = json.dumps(body)
        answer = self.served["api"].invoke(event)
        return answer["statusCode"], json.loads(answer["body"])

    def run_messages(self):
        """Hand each message of the tenant to `run`; returns how many there were."""
        queue, url = self.stack.client("sqs"), self.stack.outputs["CommandQueueUrl"]
        found = queue.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
        mine = [each for each in found if json.loads(each["Body"]).get("tenant") == TENANT]
        for each in mine:
            event = sample("run-command")
            event["Records"][0] |= {"body": each["Body"], "messageId": each["MessageId"]}
            assert self.served["run"].invoke(event) == {"batchItemFailures": []}
            queue.delete_message(QueueUrl=url, ReceiptHandle=each["ReceiptHandle"])
        return len(mine)

    def undone_items(self):
        rows = self.stack.client("dynamodb").scan(
            TableName=self.stack.outputs["OutboxTable"],
            FilterExpression="tenant = :tenant AND #status = :undone",
            ExpressionAttributeNames={"#status": "status"},
            ExpressionAttributeValues={":tenant": {"S": TENANT}, ":undone": {"S": "undone"}},
            ConsistentRead=True,
        )
        return rows["Items"]

    def stream(self, item):
        event = sample("deliver-new-item")
        [record] = event["Records"]
        record["dynamodb"]["NewImage"] = copy.deepcopy(item)
        record["dynamodb"]["Keys"] = {name: item[name] for name in ("owner_key", "item_id")}
        assert self.served["deliver"].invoke(event) == {"batchItemFailures": []}

    def make_due(self, item):
        self.stack.client("dynamodb").update_item(
            TableName=self.stack.outputs["OutboxTable"],
            Key={name: item[name] for name in ("owner_key", "item_id")},
            UpdateExpression="SET due_at = :due",
            ExpressionAttributeValues={":due": {"S": "2026-01-01T00:00:00.000Z"}},
        )


@pytest.fixture
def caller(stack, served):
    return Caller(stack, served)


@contextlib.contextmanager
def answering():
    """Stand in for CloudFormation, which takes a custom resource's answer at an address of its own."""
    answers = []

    class Taker(http.server.BaseHTTPRequestHandler):
        def do_PUT(self):
            answers.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Taker) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/answer", answers
        server.shutdown()


def test_sam_local_is_told_of_every_variable_of_every_function_but_its_name(stack, variables):
    for name in FUNCTIONS:
        found = stack.client("lambda").get_function_configuration(
            FunctionName=stack.outputs[f"{name.capitalize()}Function"]
        )
        own = {key: value for key, value in found["Environment"]["Variables"].items() if key[:4] != "AWS_"}
        assert {key for key in own if variables.get(key) != own[key]} <= {"POWERTOOLS_SERVICE_NAME"}, name


def test_there_is_a_sample_for_every_function_and_each_is_tried_here():
    found = {each.stem for each in EVENTS.glob("*.json")}
    assert {each.partition("-")[0] for each in found} == set(FUNCTIONS)
    assert found == {*ANSWERS, "publish-create", "publish-delete"}


@pytest.mark.parametrize("name", ANSWERS)
def test_a_sample_event_is_answered_as_on_aws(served, name):
    expected, answer = ANSWERS[name], served[name.partition("-")[0]].invoke(sample(name))
    if isinstance(expected, int):
        assert answer["statusCode"] == expected, answer
        json.loads(answer["body"])
    else:
        assert answer == expected


@pytest.mark.parametrize("name", ["publish-create", "publish-delete"])
def test_the_custom_resource_tells_cloudformation_that_it_is_done(served, variables, name):
    event = sample(name)
    with answering() as (address, answers):
        event["ResponseURL"] = address
        assert served["publish"].invoke(event) is None
    [answer] = answers
    assert (answer["Status"], answer["Reason"]) == ("SUCCESS", "")
    for each in ("StackId", "RequestId", "LogicalResourceId"):
        assert answer[each] == event[each]


def test_a_workflow_with_a_child_runs_through_all_functions(caller, effects):
    status, made = caller.request("api-dispatch", {"input": {"order_id": "rie-1"}}, id="two-generations")
    assert status == 202, made
    instance_id = made["instance_id"]
    await_that(caller.run_messages)
    [dispatch] = caller.undone_items()
    assert dispatch["command"] == {"S": "start"}
    caller.stream(dispatch)
    await_that(caller.run_messages)
    [ending] = caller.undone_items()
    assert ending["command"] == {"S": "resume"}
    # The stream's record of this one is lost, so the sweep has to find it.
    caller.make_due(ending)
    assert caller.served["sweep"].invoke(sample("sweep-schedule")) is None
    await_that(caller.run_messages)
    status, shown = caller.request("api-get-instance", id=instance_id)
    assert (status, shown["status"]) == (200, "completed")
    assert shown["output"] == {"child": {"noted": "middle"}}
    assert sorted(name for name, _ in effects("rie-1")) == ["first", "last", "middle"]
    assert caller.undone_items() == []


def test_an_invocation_that_times_out_keeps_what_it_has_committed(
    caller, artefacts, variables, tmp_path, effects
):
    given = {"input": {"order_id": "rie-2", "seconds": 10 * TIMEOUT_SECONDS}}
    status, made = caller.request("api-dispatch", given, id="sleeping")
    assert status == 202, made
    instance_id = made["instance_id"]
    event = sample("run-instance")
    event["Records"][0]["body"] = json.dumps({"tenant": TENANT, "instance_id": instance_id})
    with Served(artefacts, "run", variables, tmp_path, timeout_seconds=TIMEOUT_SECONDS) as short:
        assert short.invoke(sample("run-command")) == {"batchItemFailures": []}
        assert "timed out" in short.invoke_raw(event)
        # The emulator starts a new sandbox for the next event, as Lambda does.
        assert short.invoke(sample("run-command")) == {"batchItemFailures": []}
    _, shown = caller.request("api-get-instance", id=instance_id)
    assert shown["status"] == "running"
    assert [name for name, _ in effects("rie-2")].count("before") == 1
    # Its lease is not over, so another worker leaves it alone, and the message is no failure.
    assert caller.served["run"].invoke(event) == {"batchItemFailures": []}
    status, answer = caller.request("api-cancel-instance", id=instance_id)
    assert (status, answer["cancelled"]) == (200, True)
    _, shown = caller.request("api-get-instance", id=instance_id)
    assert shown["status"] == "cancelled"
