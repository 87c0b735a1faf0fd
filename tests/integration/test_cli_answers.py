"""The answers that tests of the command line replay are those that the API gives: same names, same types.

When they differ, the test leaves the new ones in its temporary folder and names the place.
"""

import json

import pytest

from aftercommit.attempts import give_up
from aftercommit.model import Failure
from tests.integration import template
from tests.integration.handlers import ORDER, RECEIPT, ROOT
from tests.integration.waits import sleeper, starter, tasker, waiter

RECORDED = ROOT / "tests/cli/answers.json"
NOW_THERE = {
    each["Properties"]["RouteKey"]
    for each in template.load_template()["Resources"].values()
    if each["Type"] == "AWS::ApiGatewayV2::Route"
}
ROUTES = {"outbox": "GET /outbox", "redriven": "POST /dispatches/{owner_id}/{id}/redrive"}


class Recorder:
    def __init__(self, api):
        self.api = api
        self.answers = {}

    def __call__(self, name, method, path, body=None, **more):
        status, answer = self.api.call(method, path, body, **more)
        self.answers[name] = {"status": status, "body": answer}
        return answer


@pytest.fixture
def answers(api, example):
    """Bring a world into every situation that the command line shows, and ask as it does."""
    example.publish(waiter, starter, tasker, sleeper)
    record = Recorder(api)
    _workflows_and_instances(record, example)
    _waits(record, example)
    _failures(record, example)
    return record.answers


def _workflows_and_instances(record, world):
    record("health", "GET", "/health")
    record("workflows", "GET", "/workflows")
    record("workflow", "GET", "/workflows/send-receipt")
    order = record("dispatched", "POST", "/workflows/place-order/dispatch", {"input": ORDER})
    record("executed", "POST", "/workflows/send-receipt/execute", {"input": RECEIPT})
    record("input refused", "POST", "/workflows/send-receipt/dispatch", {"input": {**RECEIPT, "amount": "x"}})
    record("pending", "GET", f"/instances/{order['instance_id']}")
    world.settle()
    record("completed", "GET", f"/instances/{order['instance_id']}")
    record("journal", "GET", f"/instances/{order['instance_id']}/journal")
    record("cut journal", "GET", f"/instances/{order['instance_id']}/journal", query={"limit": "1"})
    record("not found", "GET", "/instances/nobody")
    world.clock.at += 1
    record.api.post("/workflows/send-receipt/dispatch", {"input": RECEIPT})
    query = {"definition_id": "send-receipt"}
    record("instances", "GET", "/instances", query=query)
    record("cut instances", "GET", "/instances", query={**query, "limit": "1"})
    record("dispatches of an owner", "GET", "/dispatches", query={"owner_id": order["instance_id"]})
    world.settle()


def _waits(record, world):
    task = record("suspended", "POST", "/workflows/tasker/execute")
    record(
        "task completed", "POST", f"/tasks/{task['bookmarks'][0]['token']}/complete", {"input": {"by": "Ada"}}
    )
    asleep = record.api.post("/workflows/sleeper/execute", {"input": {"seconds": 60}})[1]["instance_id"]
    record("cancelled", "POST", f"/instances/{asleep}/cancel")
    record("cancelled already", "POST", f"/instances/{asleep}/cancel")
    record("cancelled instance", "GET", f"/instances/{asleep}")
    record("stimulus", "POST", "/stimuli", {"name": "nobody", "payload": {"a": 1}})
    record("event", "POST", "/events/paid", {"payload": {"order": "A"}, "input": {"amount": 5}})
    if ROUTES["outbox"] in NOW_THERE:
        record("outbox", "GET", "/outbox", query={"status": "pending"})
    world.settle(seconds=700)
    letters = record("dead letters", "GET", "/bookmark-queue/dead-letters")["dead_letters"]
    record("cut dead letters", "GET", "/bookmark-queue/dead-letters", query={"limit": "1"})
    path = f"/bookmark-queue/dead-letters/{letters[0]['stimulus_id']}"
    record("dead letter", "GET", path)
    record("replayed", "POST", f"{path}/replay")
    record("replay refused", "POST", f"{path}/replay")


def _failures(record, world):
    body = {"input": {**ORDER, "address": " "}, "instance_id": "no-address"}
    record.api.post("/workflows/place-order/dispatch", body)
    world.serve()
    receipt = next(each for each in world.items("start") if each.owner_id == "no-address" and not each.wait)
    give_up(receipt, Failure("Why", "so"))
    failed = record("failed dispatches", "GET", "/dispatches", query={"status": "failed"})["dispatches"]
    path = f"/dispatches/{failed[0]['owner_id']}/{failed[0]['item_id']}"
    record("dispatch", "GET", path)
    world.settle()
    record("faulted", "GET", "/instances/no-address")
    record("incidents", "GET", "/incidents")
    if ROUTES["redriven"] in NOW_THERE:
        record("redriven", "POST", f"{path}/redrive")
        record("redrive refused", "POST", f"{path}/redrive")


def differences(recorded, found, path=""):
    """Yield where an answer lacks what was recorded, or has another type there; more than that is fine."""
    if type(recorded) is not type(found):
        yield f"{path}: {type(recorded).__name__} became {type(found).__name__}"
    elif isinstance(recorded, dict):
        for name, each in recorded.items():
            if name in found:
                yield from differences(each, found[name], f"{path}.{name}")
            else:
                yield f"{path}.{name} is gone"
    elif isinstance(recorded, list):
        if len(recorded) != len(found):
            yield f"{path}: {len(recorded)} became {len(found)}"
        for number, each in enumerate(recorded):  # some orders follow random ids
            if all(any(differences(each, other)) for other in found):
                yield f"{path}[{number}] is gone"


@pytest.mark.parametrize(
    ("recorded", "found"),
    [
        ({"a": 1}, {}),
        ({"a": 1}, {"a": "1"}),
        ({"a": None}, {"a": {}}),
        ([{"a": 1}], []),
        ([{"a": 1}], [{"b": 1}]),
        ([{"a": 1}], [{"a": 1}, {"a": 1}]),
    ],
)
def test_an_answer_that_has_changed_is_found(recorded, found):
    assert list(differences(recorded, found))
    assert not list(differences(recorded, recorded))


def test_the_recorded_answers_are_those_of_the_api(answers, tmp_path):
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    renewed = tmp_path / "answers.json"
    text = json.dumps({**recorded, **answers}, indent=1, ensure_ascii=False)
    renewed.write_text(text + "\n", encoding="utf-8")
    missing = [] if ROUTES["outbox"] in NOW_THERE else ["outbox"]
    missing += [] if ROUTES["redriven"] in NOW_THERE else ["redriven", "redrive refused"]
    expected = {name: each for name, each in recorded.items() if name not in missing}
    assert sorted(answers) == sorted(expected), f"see {renewed}"
    assert list(differences(expected, answers)) == [], f"see {renewed}"
    statuses = {name: each["status"] for name, each in answers.items()}
    assert statuses == {name: each["status"] for name, each in expected.items()}
