"""The sinks that AWS is, and this runtime's own: what each is told, and how each of its answers is read."""

import json

import pytest

from aftercommit import Event as EventActivity
from aftercommit import Sequence, Workflow, aws, clock, var
from aftercommit.deliver_events import deliver_events
from aftercommit.events import Event
from tests.integration.events import keys, order, row, save, save_some, state, undone
from tests.integration.faults import no_answer, refusal

ACCOUNT = "123456789012"


@pytest.fixture
def deploy(world, set_environment):
    """Deploy sinks by their settings; stimuli only if asked for."""

    def deploy(**values):
        set_environment(**{"EVENT_STIMULI": "false", **values})

    return deploy


def run():
    return deliver_events(keys(), until=clock.now() + 180)


@pytest.fixture
def queue(world, deploy):
    name = "their-events"
    url = aws.client("sqs").create_queue(QueueName=name)["QueueUrl"]
    deploy(EVENT_QUEUE_ARN=f"arn:aws:sqs:us-east-1:{ACCOUNT}:{name}")
    return url


@pytest.fixture
def calls():
    """Plan the answers of a client that sinks use, and note what it is asked."""
    asked, ends = [], []

    def plan(service, operation, answer):
        events = aws.client(service, seconds=20).meta.events
        name = f"before-call.{service}.{operation}"

        def reply(params, **_):
            asked.append(json.loads(params["body"]))
            given = answer(asked[-1])
            if isinstance(given, Exception):
                raise given
            return (
                type("Http", (), {"status_code": 400 if "Error" in given else 200, "headers": {}})(),
                given,
            )

        events.register(name, reply)
        ends.append(lambda: events.unregister(name, reply))
        return asked

    yield plan
    for end in ends:
        end()


def received(url):
    answer = aws.client("sqs").receive_message(
        QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"], AttributeNames=["All"]
    )
    return answer.get("Messages", [])


# --- a queue ---


def test_a_queue_gets_each_event_as_a_message_with_its_id_and_name(queue):
    save(order("o-1", version="2", tenant="acme"))
    assert run() == 1
    [message] = received(queue)
    told = json.loads(message["Body"])
    assert told.pop("ts") == int(clock.now() * 1000)
    assert told == {"id": "o-1", "name": "order/placed", "data": {"order": "o-1"}, "v": "2", "tenant": "acme"}
    attributes = {name: each["StringValue"] for name, each in message["MessageAttributes"].items()}
    assert attributes == {"id": "o-1", "name": "order/placed"}
    assert message["Attributes"]["MessageGroupId"] == "acme"


def test_eleven_events_are_two_requests(queue, world, calls):
    asked = calls("sqs", "SendMessageBatch", lambda _: {"Successful": []})
    save_some(world, *(f"e-{number:02}" for number in range(11)))
    assert run() == 11
    assert [len(each["Entries"]) for each in asked] == [10, 1]


def test_entries_that_a_queue_refuses_wait_and_those_it_blames_are_incidents(queue, world, calls):
    def answer(request):
        failed = [
            {"Id": "0", "Code": "InternalError", "SenderFault": False},
            {"Id": "1", "Code": "InvalidMessageContents", "SenderFault": True, "Message": "a character"},
        ]
        return {"Failed": failed, "Successful": []}

    calls("sqs", "SendMessageBatch", answer)
    save_some(world, "a", "b", "c")
    assert run() == 1
    assert undone() == ["a", "b"]
    [incident] = world.incidents()
    assert (incident.item_id, incident.error_type) == ("b", "InvalidMessageContents")


def test_a_request_that_a_queue_refuses_for_its_content_is_sent_one_by_one(queue, world, calls):
    def answer(request):
        guilty = any('"b"' in each["MessageBody"] for each in request["Entries"])
        return refusal("InvalidMessageContents") if guilty else {"Successful": []}

    asked = calls("sqs", "SendMessageBatch", answer)
    save_some(world, "a", "b", "c")
    assert run() == 2
    assert [len(each["Entries"]) for each in asked] == [3, 1, 1, 1]
    assert undone() == ["b"]


@pytest.mark.parametrize("trouble", [refusal("AccessDenied"), refusal("QueueDoesNotExist"), no_answer()])
def test_a_queue_that_is_away_or_closed_fails_all_as_one(queue, world, calls, trouble):
    asked = calls("sqs", "SendMessageBatch", lambda _: trouble)
    save_some(world, "a", "b")
    assert run() == 0
    assert len(asked) == 1, "one try, in the time that a send has"
    assert [row(name).attempts for name in "ab"] == [1, 1]
    assert world.incidents() == []


def test_a_fifo_queue_is_told_what_it_has_had(world, deploy, calls):
    aws.client("sqs").create_queue(QueueName="ordered.fifo", Attributes={"FifoQueue": "true"})
    deploy(EVENT_QUEUE_ARN=f"arn:aws:sqs:us-east-1:{ACCOUNT}:ordered.fifo")
    asked = calls("sqs", "SendMessageBatch", lambda _: {"Successful": []})
    save(order("a"), order("a", tenant="acme"))
    run()
    ids = [each["MessageDeduplicationId"] for each in asked[0]["Entries"]]
    assert len(set(ids)) == 2


# --- a bus ---


@pytest.fixture
def bus(deploy):
    deploy(EVENT_BUS_ARN=f"arn:aws:events:us-east-1:{ACCOUNT}:event-bus/theirs", EVENT_SOURCE="shop")


def test_a_bus_gets_the_name_as_detail_type_and_the_event_as_detail(bus, calls):
    asked = calls("events", "PutEvents", lambda _: {"Entries": [{"EventId": "1"}], "FailedEntryCount": 0})
    save(order("o-1"))
    assert run() == 1
    [entry] = asked[0]["Entries"]
    assert entry["EventBusName"].endswith("event-bus/theirs")
    assert (entry["Source"], entry["DetailType"]) == ("shop", "order/placed")
    assert json.loads(entry["Detail"])["id"] == "o-1"
    assert entry["Time"] == pytest.approx(clock.now(), abs=1)


def test_each_entry_of_a_bus_has_its_own_answer(bus, world, calls):
    entries = [
        {"EventId": "1"},
        {"ErrorCode": "ThrottlingException", "ErrorMessage": "slow down"},
        {"ErrorCode": "MalformedDetail", "ErrorMessage": "no JSON"},
    ]
    calls("events", "PutEvents", lambda _: {"Entries": entries, "FailedEntryCount": 2})
    save_some(world, "a", "b", "c")
    assert run() == 1
    assert undone() == ["b", "c"]
    [incident] = world.incidents()
    assert incident.item_id == "c"
    assert state("b", "bus")["last_error"] == "ThrottlingException: slow down"


def test_a_bus_takes_ten_events_and_256_kb_in_one_request(bus, world, calls):
    asked = calls("events", "PutEvents", lambda request: {"Entries": [{}] * len(request["Entries"])})
    save_some(world, *(f"e-{number:02}" for number in range(12)))
    save(order("large-1", user={"x": "y" * 200_000}), order("large-2", user={"x": "y" * 200_000}))
    assert run() == 14
    assert max(len(each["Entries"]) for each in asked) == 10
    sizes = [sum(len(entry["Detail"]) for entry in each["Entries"]) for each in asked]
    assert max(sizes) < 256 * 1024
    assert len(asked) == 3


def test_a_name_too_long_for_a_bus_is_its_own_fault_and_nobody_elses(bus, world, calls):
    asked = calls("events", "PutEvents", lambda request: {"Entries": [{}] * len(request["Entries"])})
    save(order("a"), Event("n" * 129, {}, id="b"), Event("n" * 128, {}, id="c"))
    assert run() == 2
    assert undone() == ["b"]
    assert len(asked) == 1
    assert [each.error_type for each in world.incidents()] == ["NameTooLongError"]


def test_a_request_that_a_bus_refuses_for_its_content_is_sent_one_by_one(bus, world, calls):
    def answer(request):
        if any('"b"' in each["Detail"] for each in request["Entries"]):
            return refusal("ValidationException")
        return {"Entries": [{}] * len(request["Entries"])}

    calls("events", "PutEvents", answer)
    save_some(world, "a", "b")
    assert run() == 1
    assert undone() == ["b"]


def test_a_bus_that_is_closed_fails_all_as_one(bus, world, calls):
    asked = calls("events", "PutEvents", lambda _: refusal("AccessDeniedException"))
    save_some(world, "a", "b")
    assert run() == 0
    assert len(asked) == 1
    assert world.incidents() == []


# --- this runtime's own stimuli ---


@pytest.fixture
def stimuli(deploy):
    deploy(EVENT_STIMULI="true")


def test_an_event_starts_a_workflow_with_its_data(world, stimuli):
    world.publish(
        Workflow("on-order", root=EventActivity("order/placed", starts=True, result="x"), output=var.x)
    )
    save(order("o-1"))
    run()
    world.settle()
    [head] = world.heads()
    assert (head.status, world.show(head.instance_id)["output"]) == ("completed", {"order": "o-1"})


def test_an_event_resumes_what_waits_for_its_name_and_payload(world, stimuli):
    wait = EventActivity("order/paid", payload={"order": "o-1"}, result="x")
    world.publish(Workflow("waiting", root=Sequence(wait), output=var.x))
    waiting = world.dispatch("waiting", correlation_id="c-1")
    world.settle(5)
    save(
        Event("order/paid", {"by": "other"}, payload={"order": "o-2"}),
        Event("order/paid", {"by": "other"}, payload={"order": "o-1"}, correlation_id="c-2"),
        Event("order/paid", {"by": "card"}, payload={"order": "o-1"}, correlation_id="c-1"),
    )
    run()
    world.settle()
    assert world.show(waiting)["output"] == {"by": "card"}


def test_an_event_that_comes_before_its_wait_is_kept_for_it(world, stimuli):
    world.publish(Workflow("waiting", root=EventActivity("order/placed", result="x"), output=var.x))
    world.clock.at += 3_600
    save(order("o-1"))
    run()
    waiting = world.dispatch("waiting")
    world.settle()
    assert world.show(waiting)["output"] == {"order": "o-1"}


def test_a_second_delivery_makes_no_second_stimulus_however_late(world, stimuli, faults):
    save_some(world, "a", "b")
    faults.before("BatchExecuteStatement", no_answer(), times=4, skip=1)  # what was sent is not recorded
    run()
    world.clock.at += 12 * 3_600
    assert run() == 2
    assert undone() == []
    assert len(world.items("stimulus")) == 2


def test_stimuli_that_cannot_be_stored_now_are_an_outage(world, stimuli, faults):
    save(order("a"))
    faults.before("PutItem", refusal("ThrottlingException"), times=6)
    assert run() == 0
    assert state("a", "stimuli")["attempts"] == 1
    assert world.incidents() == []


def test_what_is_nearest_is_told_first(world, deploy):
    from aftercommit.sinks import SINKS, deployed_sinks  # noqa: PLC0415

    deploy(
        EVENT_STIMULI="true",
        EVENT_QUEUE_ARN="arn:aws:sqs:r:1:q",
        EVENT_BUS_ARN="arn:aws:events:r:1:event-bus/b",
        EVENT_WEBHOOK_URL="https://example.com",
    )
    assert tuple(each.name for each in deployed_sinks()) == SINKS
    deploy(EVENT_QUEUE_ARN="", EVENT_BUS_ARN="", EVENT_WEBHOOK_URL="")
    assert deployed_sinks() == []
