"""A web server on this machine whose answers a test writes."""

import ssl
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from aftercommit.settings import settings

# What the settings must have; nothing of it is used by a request.
NEEDED = dict.fromkeys(
    ("DEFINITIONS_TABLE", "INSTANCES_TABLE", "OUTBOX_TABLE", "BOOKMARKS_TABLE", "TRIGGERS_TABLE"), "x"
) | {"COMMAND_QUEUE_URL": "x"}


class Web:
    """`answers` are functions by path, which get the handler; `got` are the requests so far."""

    def __init__(self, server):
        self._server = server
        self.url = f"http://127.0.0.1:{server.server_port}"
        self.answers = {}
        self.got = []
        self.over = threading.Event()  # set when the test has ended: what hangs stops then

    def secure(self, context):
        """Speak TLS from now on."""
        self._server.socket = context.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )
        self.url = f"https://localhost:{self._server.server_port}"

    def says(self, path, status=200, body=b"", **headers):
        """Answer a path so from now on."""

        def answer(handler):
            handler.send_response(status)
            for name, value in headers.items():
                handler.send_header(name.replace("_", "-"), value)
            handler.send_header("Content-Length", str(len(body)))
            handler.end_headers()
            handler.wfile.write(body)

        self.answers[path] = answer

    def hangs(self, path, *, busy=False):
        """Never come to an end with this path; if busy, send a little all the time."""

        def answer(handler):
            while not self.over.wait(0.02 if busy else 10) and busy:
                handler.wfile.write(b"HTTP/1.1 200 OK\r\nx-a: b\r\n"[:1])

        self.answers[path] = answer


@contextmanager
def serving():
    """Serve until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def handle_one_request(self):
            try:
                super().handle_one_request()
            except (ConnectionError, ssl.SSLError):  # the client has had enough
                self.close_connection = True

        def do_anything(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            web.got.append((self.command, self.path, dict(self.headers), body))
            web.answers[self.path.partition("?")[0]](self)

        do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_anything  # noqa: N815

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    web = Web(server)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield web
    finally:
        web.over.set()
        server.shutdown()
        server.server_close()  # joins the threads of its requests
        thread.join()


@contextmanager
def reachable(monkeypatch, *, private):
    """Let requests go to private addresses, or not."""
    for name, value in NEEDED.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HTTP_PRIVATE_ADDRESSES", "true" if private else "false")
    settings.cache_clear()
    try:
        yield
    finally:
        settings.cache_clear()
