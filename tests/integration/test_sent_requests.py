"""SendHttpRequest, run by workers: real servers on this machine, durable retries, and what is left of it."""

import json

import pytest

from aftercommit import Retry, SendHttpRequest, Sequence, SetVariable, Workflow, var
from tests.integration.faults import Crash
from tests.unit.web import serving

RETRY = Retry(attempts_max=3, first_delay_seconds=60, jitter=0)


@pytest.fixture
def web(set_environment):
    set_environment(HTTP_PRIVATE_ADDRESSES="true")
    with serving() as web:
        yield web


def ended(world, root, **more):
    """Run a workflow to its end; returns how it is shown."""
    world.publish(Workflow("sending", root=root, output=var.x, **more))
    instance_id = world.dispatch("sending")
    world.settle()
    return world.show(instance_id)


def branches(*names):
    return {name: SetVariable("branch", name) for name in names}


def test_an_answer_of_json_is_the_result(world, web):
    web.says("/a", body=b'{"n": 1}', Content_Type="application/json")
    shown = ended(world, SendHttpRequest(f"{web.url}/a", result="x"))
    assert shown["status"] == "completed"
    assert (shown["output"]["status"], shown["output"]["body"]) == (200, {"n": 1})


def test_a_status_takes_its_branch(world, web):
    web.says("/a", 404)
    root = SendHttpRequest(f"{web.url}/a", result="x", on=branches("404", "4xx"))
    shown = ended(world, root)
    assert (shown["status"], shown["variables"]["branch"]) == ("completed", "404")
    assert shown["incidents"] == []


def test_a_server_error_is_tried_again_durably_and_takes_its_branch_in_the_end(world, web):
    web.says("/a", 503, b"busy")
    started = world.clock.at
    root = SendHttpRequest(
        f"{web.url}/a", method="POST", body="x", retry=RETRY, result="x", on=branches("5xx")
    )
    shown = ended(world, root)
    assert (shown["status"], shown["variables"]["branch"]) == ("completed", "5xx")
    assert (shown["output"]["status"], shown["output"]["body"]) == (503, "busy")
    assert world.clock.at - started >= 180
    keys = {headers["Idempotency-Key"] for _, _, headers, _ in web.got}
    assert (len(web.got), len(keys)) == (3, 1)
    lines = [line for row in world.revisions(shown["instance_id"]) for line in json.loads(row.journal)]
    told = [(line["status"], line.get("outcome")) for line in lines if line["type"] == "SendHttpRequest"]
    assert told == [("retrying", None), ("retrying", None), ("completed", "503")]
    assert keys == {lines[0]["execution_id"]}


def test_a_server_that_recovers_is_heard(world, web):
    def answer(handler):
        web.says("/a", body=b"fine")
        handler.send_response(429)
        handler.end_headers()

    web.answers["/a"] = answer
    shown = ended(world, SendHttpRequest(f"{web.url}/a", retry=RETRY, result="x"))
    assert (shown["output"]["status"], shown["output"]["body"]) == (200, "fine")
    assert len(web.got) == 2


def test_a_bad_status_that_nothing_handles_faults_without_telling_the_address(world, web):
    web.says("/a", 500, b"s3cr3t")
    shown = ended(world, SendHttpRequest(f"{web.url}/a?key=s3cr3t"))
    assert shown["failure"] == {"type": "HttpStatusError", "message": "127.0.0.1 answered 500"}
    assert "s3cr3t" not in json.dumps(shown)


def test_a_server_that_is_slow_is_a_time_out(world, web):
    web.hangs("/a")
    root = SendHttpRequest(f"{web.url}/a", timeout_seconds=1, result="x", on=branches("Timeout", "Failed"))
    shown = ended(world, root)
    assert shown["variables"]["branch"] == "Timeout"
    assert shown["output"]["error"]["type"] == "HttpTimeoutError"


def test_a_connection_that_breaks_is_tried_again_and_then_a_failure(world, web):
    web.answers["/a"] = lambda handler: None
    shown = ended(
        world, SendHttpRequest(f"{web.url}/a", retry=RETRY, result="x", on=branches("Failed", "Timeout"))
    )
    assert shown["variables"]["branch"] == "Failed"
    assert shown["output"]["error"]["type"] == "HttpFailedError"
    assert len(web.got) == 3


def test_an_answer_that_is_too_large_is_a_failure_and_is_not_asked_for_again(world, web):
    web.says("/a", body=b"x" * 300_000)
    shown = ended(world, SendHttpRequest(f"{web.url}/a", retry=RETRY))
    assert shown["failure"]["type"] == "HttpRefusedError"
    assert len(web.got) == 1


def test_a_private_address_is_refused_by_default_and_not_tried_again(world, web, set_environment):
    set_environment(HTTP_PRIVATE_ADDRESSES="false")
    web.says("/a")
    shown = ended(world, SendHttpRequest(f"{web.url}/a", retry=RETRY))
    assert shown["failure"] == {
        "type": "HttpRefusedError",
        "message": "127.0.0.1 is not at a public address",
    }
    assert web.got == []


def test_a_redirect_is_not_followed(world, web):
    web.says("/a", 307, Location=f"{web.url}/b")
    shown = ended(world, SendHttpRequest(f"{web.url}/a", method="POST", result="x"))
    assert (shown["status"], shown["output"]["status"]) == ("completed", 307)
    assert [path for _, path, _, _ in web.got] == ["/a"]


def test_an_answer_that_is_committed_is_never_asked_for_again(world, web, faults):
    """The worker dies after the commit of the answer: the next one goes on behind it."""
    web.says("/a")
    world.publish(
        Workflow(
            "two", root=Sequence(SendHttpRequest(f"{web.url}/a"), SendHttpRequest(f"{web.url}/a?second"))
        )
    )
    instance_id = world.dispatch("two")
    faults.after("PutItem", Crash(), match="revision#")
    with pytest.raises(Crash):
        world.run(instance_id)
    world.settle()
    assert world.show(instance_id)["status"] == "completed"
    assert [path for _, path, _, _ in web.got] == ["/a", "/a?second"]


def test_nothing_of_a_request_is_logged(world, web, log_lines):
    web.says("/a", 500, b"s3cr3t")
    url = f"{web.url}/a?key=s3cr3t"
    ended(world, SendHttpRequest(url, headers={"X-Key": "s3cr3t"}, method="PUT", body="s3cr3t", retry=RETRY))
    assert len(web.got) == 3
    assert "s3cr3t" not in "".join(log_lines)
