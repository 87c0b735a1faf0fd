"""The webhook, played by real HTTP servers: slow, hanging up, refusing, broken, and then well."""

import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from aftercommit import aws, clock
from aftercommit.deliver_events import deliver_events
from aftercommit.errors import SettingError
from aftercommit.sinks import webhook
from tests.integration.events import keys, order, row, save, save_some, state, undone

KEY = "k3y-that-nobody-sees"


class Hook(ThreadingHTTPServer):
    """A receiver: `answer` maps the events of a request to a status, or handles the connection itself."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.answer = lambda events: 200
        self.requests = []
        self.paths = []

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/e"

    def handle_error(self, request, client_address):
        """Say nothing: clients that hang up are what some tests are about."""


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        events = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append(events)
        self.server.paths.append(self.path)
        answer = self.server.answer(events)
        if callable(answer):
            answer(self)
            return
        body = json.dumps({"ids": [each["id"] for each in events], "status": answer}).encode()
        self.send_response(answer)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextmanager
def serving():
    hook = Hook()
    thread = threading.Thread(target=hook.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield hook
    finally:
        hook.shutdown()
        hook.server_close()
        thread.join()


@pytest.fixture
def hook(world, set_environment):
    aws.client("secretsmanager").create_secret(Name="hook-key", SecretString=KEY)
    webhook._keys.clear()
    with serving() as found:
        set_environment(
            EVENT_STIMULI="false",
            EVENT_WEBHOOK_URL=found.url,
            EVENT_WEBHOOK_SECRET="hook-key",
            EVENT_SEND_TIMEOUT_SECONDS="4",
        )
        yield found


def run():
    return deliver_events(keys(), until=clock.now() + 180)


def ids(request):
    return [each["id"] for each in request]


def test_events_are_posted_as_one_list_under_their_ids_and_the_key(hook, world):
    save(order("a", version="2", user={"id": "u"}, sessions={"ticket": "t"}))
    world.clock.at += 1
    save(order("b", payload={"order": 1}))
    assert run() == 2
    [request] = hook.requests
    at = int((world.clock.at - 1) * 1000)
    assert request[0] == {
        "id": "a",
        "name": "order/placed",
        "data": {"order": "a"},
        "user": {"id": "u"},
        "v": "2",
        "ts": at,
        "meta": {"sessions": {"ticket": "t"}},
    }
    assert request[1] == {"id": "b", "name": "order/placed", "data": {"order": "b"}, "ts": at + 1000}
    assert hook.paths == [f"/e/{KEY}"]


@pytest.mark.parametrize("status", [400, 409, 412, 413, 422])
def test_a_batch_refused_for_its_content_is_posted_one_by_one(hook, world, status):
    save_some(world, "a", "b", "c")
    hook.answer = lambda events: status if "b" in ids(events) else 200
    assert run() == 2
    assert list(map(ids, hook.requests)) == [["a", "b", "c"], ["a"], ["b"], ["c"]]
    assert undone() == ["b"]
    [incident] = world.incidents()
    assert f"answered {status}" in incident.message


def test_a_batch_too_large_for_the_receiver_is_taken_in_single_events(hook, world):
    save_some(world, "a", "b", "c")
    hook.answer = lambda events: 413 if len(events) > 1 else 200
    assert run() == 3
    assert undone() == []
    assert world.incidents() == []


@pytest.mark.parametrize("status", [301, 401, 403, 404, 429, 500, 503])
def test_a_receiver_that_is_down_or_wants_another_key_is_asked_once_and_fails_the_batch_as_one(
    hook, world, status
):
    save_some(world, "a", "b", "c")
    hook.answer = lambda events: status
    assert run() == 0
    assert len(hook.requests) == 1
    assert [row(name).attempts for name in "abc"] == [1, 1, 1]
    assert world.incidents() == []
    hook.answer = lambda events: 200
    world.clock.at += 5
    assert run() == 3
    assert [ids(each) for each in hook.requests] == [["a", "b", "c"]] * 2


def hang_up(handler):
    handler.connection.close()


def answer_nonsense(handler):
    handler.wfile.write(b"what?\r\n\r\n")


@pytest.mark.parametrize("behave", [hang_up, answer_nonsense])
def test_a_receiver_that_hangs_up_or_talks_nonsense_is_down(hook, world, behave):
    save_some(world, "a", "b")
    hook.answer = lambda events: behave
    assert run() == 0
    assert len(hook.requests) == 1
    assert state("a", "webhook")["last_error"].startswith("SinkDownError: the webhook gave no answer")


def test_a_receiver_that_does_not_listen_is_down(hook, world, set_environment):
    with serving() as gone:
        url = gone.url
    set_environment(EVENT_WEBHOOK_URL=url)
    save(order("a"))
    assert run() == 0
    assert undone() == ["a"]


def silent(handler):
    handler.server.released.wait(30)


def dripping(handler):
    """Send something again and again, so that no single wait is long."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
    while not handler.server.released.wait(0.1):
        handler.wfile.write(b"X-Drip: drop\r\n")


@pytest.mark.parametrize("behave", [silent, dripping])
def test_a_slow_receiver_takes_no_longer_than_a_send_may(hook, world, behave):
    hook.released = threading.Event()
    hook.answer = lambda events: behave
    save(order("a"))
    began = time.monotonic()
    assert run() == 0
    took = time.monotonic() - began
    hook.released.set()
    assert 2.5 < took < 4.5
    assert undone() == ["a"]
    hook.answer = lambda events: 200
    world.clock.at += 5
    assert run() == 1


# --- the key ---


def test_the_key_is_looked_up_once_and_again_when_it_is_refused(hook, world):
    save(order("a"))
    assert run() == 1
    aws.client("secretsmanager").put_secret_value(SecretId="hook-key", SecretString="new")
    save(order("b"))
    run()
    assert hook.paths == [f"/e/{KEY}", f"/e/{KEY}"]
    save(order("c"))
    hook.answer = lambda events: 200 if hook.paths[-1] == "/e/new" else 401
    run()
    world.clock.at += 5
    assert run() == 1
    assert hook.paths[-2:] == [f"/e/{KEY}", "/e/new"]


def test_a_key_grows_old(hook, world):
    save(order("a"))
    run()
    aws.client("secretsmanager").put_secret_value(SecretId="hook-key", SecretString="new")
    world.clock.at += 300
    save(order("b"))
    run()
    assert hook.paths == [f"/e/{KEY}", "/e/new"]


def test_the_key_may_be_a_parameter_of_ssm(hook, world, set_environment):
    aws.client("ssm").put_parameter(Name="/hook/key", Value="a/b\n", Type="SecureString")
    set_environment(EVENT_WEBHOOK_SECRET="", EVENT_WEBHOOK_PARAMETER="/hook/key")
    save(order("a"))
    assert run() == 1
    assert hook.paths == ["/e/a%2Fb"]


def test_without_a_key_the_address_is_as_given(hook, set_environment):
    set_environment(EVENT_WEBHOOK_SECRET="")
    save(order("a"))
    assert run() == 1
    assert hook.paths == ["/e"]


def test_a_key_that_is_not_there_is_an_outage(hook, set_environment):
    set_environment(EVENT_WEBHOOK_SECRET="nowhere")
    save(order("a"))
    assert run() == 0
    assert undone() == ["a"]


def test_the_key_stands_in_no_log_row_or_incident(hook, world, log_lines, capsys):
    save_some(world, "a", "b")
    for answer in (401, 422, hang_up, answer_nonsense, 500):
        hook.answer = lambda events, answer=answer: answer
        run()
        world.clock.at += 300
    assert len(hook.requests) >= 5
    told = "".join(log_lines) + str(world.everything()) + "".join(capsys.readouterr())
    assert KEY not in told


@pytest.mark.parametrize("url", ["http://example.com/e", "ftp://example.com", "example.com/e"])
def test_the_key_goes_over_tls_only_but_to_this_machine(hook, set_environment, url):
    set_environment(EVENT_WEBHOOK_URL=url)
    with pytest.raises(SettingError):
        webhook.Webhook().send([], 1)
