"""The HTTP API as the command line meets it: recorded answers, played on 127.0.0.1, and what was asked."""

import json
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

RECORDED = json.loads(Path(__file__).with_name("answers.json").read_text(encoding="utf-8"))


def recorded(name):
    """Return the body of a recorded answer."""
    return RECORDED[name]["body"]


@dataclass(frozen=True)
class Asked:
    """A request that came."""

    method: str
    path: str
    query: dict
    headers: dict
    text: str

    @property
    def body(self):
        return json.loads(self.text) if self.text else None


class PlayedApi:
    """Plays answers by method and path, each once; the last one of a path stays."""

    def __init__(self):
        self.asked = []
        self._answers = {}
        played = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                text = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
                url = urlsplit(self.path)
                headers = {name.lower(): value for name, value in self.headers.items()}
                played.asked.append(Asked(self.command, url.path, dict(parse_qsl(url.query)), headers, text))
                status, body = played.next_answer(self.command, url.path)
                content = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = answer  # noqa: N815 - as http.server calls them

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def play(self, method, path, *answers):
        """Set what a path answers: names of recorded answers, (status, body), or what returns one."""
        found = [
            (RECORDED[each]["status"], RECORDED[each]["body"]) if isinstance(each, str) else each
            for each in answers
        ]
        self._answers[method, path] = found

    def next_answer(self, method, path):
        answers = self._answers.get((method, path))
        if not answers:
            return 404, {"error": {"code": "not_found", "message": "no such route"}}
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        return answer() if callable(answer) else answer
