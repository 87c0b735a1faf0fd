"""What X-Ray and the logs are told of a run: whose it was, how each step went, and never what was in it."""

import json
import socket

import pytest

from aftercommit import Retry, Sequence, Step, Workflow, activity
from aftercommit import inputs as given_inputs
from aftercommit.queue import Message
from tests.integration.faults import Crash
from tests.integration.handlers import Context, command_event, load_handler

SECRET = "secret-4711"
ROOT, PARENT = "1-6b0d9af3-0123456789abcdef01234567", "53995c3f42cd8ad8"
HEADER = f"Root={ROOT};Parent={PARENT};Sampled=1"
UPSTREAM = f"1-6b0d9af2-{'f' * 24}"


@activity
def greet(name: str) -> str:
    return f"hello {name}"


@activity
def refuse(name: str) -> None:
    raise LookupError(f"no {name}")


@activity(name="die (at once)")
def die(name: str) -> None:
    raise Crash


def of(function, **more):
    return Workflow(
        "greeting",
        inputs={"name": str},
        root=Sequence(Step(greet, name=given_inputs.name), Step(function, name=given_inputs.name, **more)),
    )


@pytest.fixture
def daemon(environment):
    """Listen where Lambda's daemon does; returns a function that takes what was told so far."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.settimeout(0)
        environment.setenv("AWS_XRAY_DAEMON_ADDRESS", f"127.0.0.1:{listening.getsockname()[1]}")

        def take():
            found = []
            while True:
                try:
                    found.append(listening.recv(65_536).decode())
                except BlockingIOError:
                    return found

        yield take


@pytest.fixture
def traced(set_environment, environment):
    set_environment(TRACING="true")
    environment.setenv("_X_AMZN_TRACE_ID", HEADER)


def run(world, workflow):
    world.publish(workflow)
    instance_id = world.dispatch(workflow.id, {"name": SECRET}, correlation_id="order-7")
    world.run(instance_id)
    return instance_id


def read(datagrams):
    documents = []
    for each in datagrams:
        head, _, body = each.partition("\n")
        assert json.loads(head) == {"format": "json", "version": 1}
        documents.append(json.loads(body))
    return documents


def test_a_run_is_a_part_of_its_invocation_that_can_be_searched_by_ids(world, traced, daemon):
    instance_id = run(world, of(greet))
    documents = read(daemon())
    [burst] = [each for each in documents if each["parent_id"] == PARENT and "end_time" in each]
    assert (burst["trace_id"], burst["type"]) == (ROOT, "subsegment")
    assert burst["name"] == "greeting"
    assert burst["annotations"] == {
        "instance_id": instance_id,
        "definition_id": "greeting",
        "correlation_id": "order-7",
        "tenant": "default",
    }


def test_each_step_is_a_part_of_its_run_with_its_attempt(world, traced, daemon):
    run(world, of(greet))
    documents = read(daemon())
    burst = next(each for each in documents if each["parent_id"] == PARENT)
    steps = [each for each in documents if each["parent_id"] == burst["id"] and "end_time" in each]
    assert [each["name"] for each in steps] == ["greet", "greet"]
    assert [each["metadata"]["aftercommit"]["attempt"] for each in steps] == [1, 1]
    assert [each["metadata"]["aftercommit"]["activity_id"] for each in steps] == [
        "root.activities[0]",
        "root.activities[1]",
    ]
    assert len({each["id"] for each in steps}) == 2
    assert all("fault" not in each for each in steps)


def test_a_step_that_raises_is_marked_with_the_kind_of_its_error_alone(world, traced, daemon):
    run(world, of(refuse, retry=Retry(attempts_max=2, first_delay_seconds=60)))
    datagrams = daemon()
    failed = [each for each in read(datagrams) if each.get("fault")]
    assert [each["name"] for each in failed] == ["refuse"]
    [exception] = failed[0]["cause"]["exceptions"]
    assert exception.keys() == {"id", "type"}
    assert exception["type"] == "LookupError"
    assert not any(SECRET in each for each in datagrams)


def test_a_step_that_a_worker_died_in_has_begun_and_is_seen(world, traced, daemon):
    with pytest.raises(Crash):
        run(world, of(die))
    begun = [each for each in read(daemon()) if each.get("in_progress")]
    assert [each["name"] for each in begun] == [
        "greeting",
        "greet",
        "die _at once_",
    ]  # X-Ray takes no brackets


def test_what_is_not_recorded_is_told_to_nobody(world, traced, daemon, environment):
    environment.setenv("_X_AMZN_TRACE_ID", HEADER[:-1] + "0")
    run(world, of(greet))
    assert daemon() == []


@pytest.mark.parametrize(
    "address", ["", "nonsense", "127.0.0.1:1", "256.256.256.256:2000", "127.0.0.1:99999"]
)
def test_without_a_daemon_everything_runs(world, traced, environment, address):
    environment.setenv("AWS_XRAY_DAEMON_ADDRESS", address)
    instance_id = run(world, of(greet))
    assert world.show(instance_id)["status"] == "completed"


# --- log lines ---


def handle(world, instance_id, trace_header):
    event = command_event(Message("default", instance_id=instance_id).to_text())
    if trace_header:
        event["Records"][0]["attributes"]["AWSTraceHeader"] = trace_header
    load_handler("run")(event, Context())


@pytest.fixture
def told(world, traced, log_lines):
    """Return a function that serves a message with a trace header, and the line about its step."""

    def told(trace_header):
        world.publish(of(refuse))
        instance_id = world.dispatch("greeting", {"name": SECRET})
        handle(world, instance_id, trace_header)
        [line] = [each for each in map(json.loads, log_lines) if each["message"] == "step raised"]
        return line

    return told


def test_a_line_names_its_trace_and_that_of_the_commit_behind_its_message(told):
    line = told(f"Root={UPSTREAM};Parent={PARENT};Sampled=1")
    assert (line["xray_trace_id"], line["upstream_trace_id"]) == (ROOT, UPSTREAM)


@pytest.mark.parametrize(
    "trace_header", [None, "nonsense", f"Root={UPSTREAM};Parent={PARENT};Sampled=0", f"Root={UPSTREAM}"]
)
def test_a_message_without_a_recorded_trace_is_served_and_names_none(told, trace_header):
    assert "upstream_trace_id" not in told(trace_header)
