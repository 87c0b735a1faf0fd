"""Sending requests, to real servers on this machine: answers, no answers, and what is not sent at all."""

import json
import socket
import ssl
from datetime import UTC, datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from aftercommit import ActivityContext, clock
from aftercommit.errors import HttpFailedError, HttpRefusedError, HttpTimeoutError
from aftercommit.http_call import is_public, send_http_request
from aftercommit.jsons import size_of
from aftercommit.limits import RESULT_BYTES_MAX
from tests.unit.web import reachable, serving


@pytest.fixture
def web(monkeypatch):
    with serving() as web, reachable(monkeypatch, private=True):
        yield web


def send(url, *, method="GET", headers=None, body=None, timeout_seconds=10, left=60):
    request = {
        "url": url,
        "method": method,
        "headers": headers or {},
        "body": body,
        "timeout_seconds": timeout_seconds,
    }
    context = ActivityContext("execution-1", 1, "i", None, "t", deadline=clock.now() + left)
    return send_http_request(request, context)


# --- answers ---


def test_an_answer_of_json_is_parsed(web):
    web.says("/a", 201, b'{"n": [1, "\xc3\xa4"]}', Content_Type="application/json", X_Odd="Kept")
    answer = send(f"{web.url}/a")
    assert (answer["status"], answer["body"]) == (201, {"n": [1, "ä"]})
    assert answer["headers"]["x-odd"] == "Kept"
    assert "base64" not in answer


@pytest.mark.parametrize(
    ("content", "kind", "body"),
    [
        (b"plain", "text/plain", {"body": "plain"}),
        (b"", "application/json", {"body": ""}),
        (b"{broken", "application/json", {"body": "{broken"}),
        (b"[NaN]", "application/json", {"body": "[NaN]"}),
        (b'["\\ud800"]', "application/json", {"body": '["\\ud800"]'}),
        (b"[" * 300 + b"]" * 300, "application/json", {"body": "[" * 300 + "]" * 300}),
        (b"[1]", "application/problem+json; charset=utf-8", {"body": [1]}),
        (b'{"a":1}', "text/plain", {"body": '{"a":1}'}),
        (b"\xff\x00", "image/png", {"body": "/wA=", "base64": True}),
        (b"\xff", "application/json", {"body": "/w==", "base64": True}),
    ],
)
def test_an_answer_that_is_no_json_is_text_or_marked_base64(web, content, kind, body):
    web.says("/a", 200, content, Content_Type=kind)
    answer = send(f"{web.url}/a")
    assert {name: answer[name] for name in ("body", "base64") if name in answer} == body


@pytest.mark.parametrize("status", [204, 304, 400, 404, 500, 599])
def test_every_status_is_an_answer(web, status):
    web.says("/a", status)
    assert send(f"{web.url}/a")["status"] == status


def test_a_redirect_is_an_answer_and_is_not_followed(web):
    web.says("/a", 302, Location=f"{web.url}/b")
    answer = send(f"{web.url}/a")
    assert (answer["status"], answer["headers"]["location"]) == (302, f"{web.url}/b")
    assert [path for _, path, _, _ in web.got] == ["/a"]


def test_cookies_of_an_answer_are_not_kept(web):
    web.says("/a", Set_Cookie="session=s3cr3t")
    assert "s3cr3t" not in json.dumps(send(f"{web.url}/a"))


def test_the_largest_answer_is_taken_and_a_larger_one_is_refused(web):
    web.says("/a", body=b"")
    room = RESULT_BYTES_MAX - size_of(send(f"{web.url}/a")) - 10
    web.says("/a", body=b"x" * room)
    assert len(send(f"{web.url}/a")["body"]) == room
    for too_large in (b"x" * (RESULT_BYTES_MAX + 1), b"x" * 10_000_000, b'"' * (RESULT_BYTES_MAX - 500)):
        web.says("/a", body=too_large)
        with pytest.raises(HttpRefusedError, match="the answer is larger than"):
            send(f"{web.url}/a")


# --- what is sent ---


def test_what_is_sent_is_what_was_asked_for(web):
    web.says("/a/b")
    send(f"{web.url}/a/b?c=d&e=%20#part", method="POST", headers={"X-Mine": "1"}, body={"ä": [1, None]})
    [(method, path, headers, body)] = web.got
    assert (method, path, json.loads(body)) == ("POST", "/a/b?c=d&e=%20", {"ä": [1, None]})
    assert headers["X-Mine"] == "1"
    assert headers["Content-Type"] == "application/json"
    assert headers["Idempotency-Key"] == "execution-1"


@pytest.mark.parametrize(
    ("body", "sent", "kind"),
    [
        (None, b"", None),
        ("täxt", "täxt".encode(), "text/plain; charset=utf-8"),
        (False, b"false", "application/json"),
        ([], b"[]", "application/json"),
        (5, b"5", "application/json"),
    ],
)
def test_a_body_is_json_unless_it_is_text(web, body, sent, kind):
    web.says("/a")
    send(f"{web.url}/a", method="PUT", body=body)
    [(_, _, headers, content)] = web.got
    assert (content, headers.get("Content-Type")) == (sent, kind)


def test_the_authors_headers_come_before_those_that_are_given_by_themselves(web):
    web.says("/a")
    mine = {"idempotency-key": "mine", "content-TYPE": "application/xml"}
    send(f"{web.url}/a", method="POST", headers=mine, body="<a/>")
    [(_, _, headers, _)] = web.got
    lowered = [name.lower() for name in headers]
    assert (lowered.count("idempotency-key"), lowered.count("content-type")) == (1, 1)
    assert (headers["idempotency-key"], headers["content-TYPE"]) == ("mine", "application/xml")


def test_nothing_of_a_request_is_logged(web, caplog):
    caplog.set_level(1)
    web.says("/a", body=b"s3cr3t")
    send(f"{web.url}/a?key=s3cr3t", headers={"Authorization": "s3cr3t"}, body="s3cr3t", method="POST")
    web.says("/b", 500)
    send(f"{web.url}/b?key=s3cr3t")
    assert "s3cr3t" not in caplog.text


# --- no answer ---


def test_a_server_that_does_not_answer_in_time_is_a_time_out(web):
    web.hangs("/a")
    with pytest.raises(HttpTimeoutError, match=r"^127.0.0.1 did not answer within 0.2 seconds$"):
        send(f"{web.url}/a?key=s3cr3t", timeout_seconds=0.2)


def test_a_server_that_always_sends_a_little_is_a_time_out_too(web):
    web.hangs("/a", busy=True)
    with pytest.raises(HttpTimeoutError):
        send(f"{web.url}/a", timeout_seconds=0.3)


def test_a_body_that_never_ends_is_a_time_out(web):
    def answer(handler):
        handler.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while not web.over.wait(0.02):
            handler.wfile.write(b"x")

    web.answers["/a"] = answer
    with pytest.raises(HttpTimeoutError):
        send(f"{web.url}/a", timeout_seconds=0.3)


@pytest.mark.parametrize("left", [2.2, 2, 0, -5])
def test_an_invocation_that_is_about_to_end_waits_no_longer_than_it_lives(web, left):
    web.hangs("/a")
    started = clock.now()
    with pytest.raises(HttpTimeoutError):
        send(f"{web.url}/a", left=left)
    assert clock.now() - started < 2


def test_a_connection_that_is_closed_is_a_failure(web):
    web.answers["/a"] = lambda handler: None
    with pytest.raises(HttpFailedError, match=r"^127.0.0.1 gave no answer: \w+$") as caught:
        send(f"{web.url}/a?key=s3cr3t")
    assert "s3cr3t" not in str(caught.value)


def test_an_answer_that_breaks_off_is_a_failure(web):
    web.answers["/a"] = lambda handler: handler.wfile.write(
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this"
    )
    with pytest.raises(HttpFailedError):
        send(f"{web.url}/a")


def test_an_answer_that_is_no_http_is_a_failure(web):
    web.answers["/a"] = lambda handler: handler.wfile.write(b"220 mail.example ESMTP\r\n")
    with pytest.raises(HttpFailedError):
        send(f"{web.url}/a")


def test_a_port_where_nobody_listens_is_a_failure(web):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        with pytest.raises(HttpFailedError):
            send(f"http://127.0.0.1:{free.getsockname()[1]}/")


def test_a_server_that_speaks_no_tls_is_a_failure(web):
    with pytest.raises(HttpFailedError):
        send(web.url.replace("http:", "https:"))


@pytest.fixture
def secure_web(web, tmp_path):
    """Serve over TLS instead, under a certificate that nobody has signed; returns its file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(datetime(2020, 1, 1, tzinfo=UTC))
        .not_valid_after(datetime(2120, 1, 1, tzinfo=UTC))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path / "certificate.pem"
    plain = (Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file.write_bytes(key.private_bytes(*plain) + certificate.public_bytes(Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    web.secure(context)
    return file


def test_a_certificate_that_nobody_trusts_is_a_failure(web, secure_web):
    web.says("/a")
    with pytest.raises(HttpFailedError):
        send(f"{web.url}/a")
    assert web.got == []


def test_a_server_whose_certificate_is_trusted_answers(web, secure_web, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(secure_web))
    web.says("/a", body=b"fine")
    assert send(f"{web.url}/a")["body"] == "fine"
    web.hangs("/b", busy=True)
    with pytest.raises(HttpTimeoutError):
        send(f"{web.url}/b", timeout_seconds=0.3)


def test_a_private_address_gets_no_handshake(web, secure_web, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(secure_web))
    with reachable(monkeypatch, private=False), pytest.raises(HttpRefusedError):
        send(f"{web.url}/a")
    assert web.got == []


def test_a_name_that_does_not_exist_is_a_failure(web, monkeypatch):
    def find_nobody(*_):
        raise socket.gaierror("nobody of this name")

    monkeypatch.setattr(socket, "getaddrinfo", find_nobody)
    with pytest.raises(HttpFailedError, match=r"^nobody.example cannot be reached"):
        send("http://nobody.example/")


# --- what is not sent ---


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "2130706433", "[::ffff:127.0.0.1]"])
def test_an_address_that_is_not_public_is_refused_before_anything_is_sent(web, monkeypatch, host):
    web.says("/a")
    with (
        reachable(monkeypatch, private=False),
        pytest.raises((HttpRefusedError, HttpFailedError)) as caught,
    ):
        send(f"http://{host}:{web.url.rpartition(':')[2]}/a")
    assert web.got == []
    if host in ("127.0.0.1", "localhost"):
        assert str(caught.value) == f"{host} is not at a public address"


def test_it_is_the_address_reached_that_counts_not_the_one_looked_up_before(web, monkeypatch):
    """A name that means a public address at one time and a private one at the next is refused, too."""
    web.says("/a")
    real = socket.getaddrinfo
    meant = iter(["8.8.8.8", "127.0.0.1"])
    monkeypatch.setattr(socket, "getaddrinfo", lambda _, *more, **kw: real(next(meant), *more, **kw))
    with (
        reachable(monkeypatch, private=False),
        pytest.raises(HttpRefusedError, match=r"^public.example is not at a public address$"),
    ):
        send(f"http://public.example:{web.url.rpartition(':')[2]}/a")
    assert web.got == []


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("8.8.8.8", True),
        ("2606:4700::1111", True),
        ("::ffff:8.8.8.8", True),
        ("64:ff9b::808:808", True),
        ("127.0.0.1", False),
        ("127.8.9.1", False),
        ("10.1.2.3", False),
        ("172.16.0.1", False),
        ("192.168.0.1", False),
        ("100.64.0.1", False),
        ("169.254.169.254", False),
        ("0.0.0.0", False),  # noqa: S104 - nothing is bound
        ("224.0.0.1", False),
        ("255.255.255.255", False),
        ("::1", False),
        ("::", False),
        ("fe80::1%eth0", False),
        ("fd00:ec2::254", False),
        ("ff02::1", False),
        ("::ffff:127.0.0.1", False),
        ("::ffff:10.0.0.1", False),
        ("64:ff9b::a00:1", False),
        ("2002:a00:1::", False),
        ("2001:0:4136:e378:8000:63bf:3fff:fdd2", False),
        ("::127.0.0.1", False),
        ("::a9fe:a9fe", False),
        ("fec0::1", False),
        ("4000::1", False),
        ("64:ff9b:1::a00:1", False),
    ],
)
def test_which_addresses_are_public(address, public):
    assert is_public(address) is public


@pytest.mark.parametrize(
    "url",
    [
        "ftp://a.example/",
        "file:///etc/passwd",
        "https://me:s3cr3t@a.example/",
        "https://s3cr3t@a.example/",
        "http://a.example/\r\nX-A: s3cr3t",
        "http://a.example/s3cr3t b",
        "a.example/s3cr3t",
        "//a.example",
        "http:///s3cr3t",
        "",
    ],
)
def test_an_address_that_is_none_is_refused_without_telling_it(web, url):
    with pytest.raises(HttpRefusedError, match=r"^url ") as caught:
        send(url)
    assert "s3cr3t" not in str(caught.value)


def test_a_private_port_is_refused_alike_whether_or_not_something_listens_there(web, monkeypatch):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        closed = probe.getsockname()[1]
    told = set()
    for port in (closed, web.url.rpartition(":")[2]):
        with reachable(monkeypatch, private=False), pytest.raises(HttpRefusedError) as caught:
            send(f"http://127.0.0.1:{port}/")
        told.add(str(caught.value))
    assert told == {"127.0.0.1 is not at a public address"}
    assert web.got == []
