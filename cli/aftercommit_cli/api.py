"""Calls of the HTTP API: signed or with a token, tried again where the API asks for it; lists in pages."""

import json
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from botocore.awsrequest import AWSRequest
from botocore.exceptions import ConnectionError as NotConnectedError
from botocore.exceptions import HTTPClientError
from botocore.httpsession import URLLib3Session
from botocore.utils import get_environ_proxies

from aftercommit_cli.errors import RefusedError, UnreachableError

# The API itself answers within 30 seconds.
TIMEOUT_SECONDS = (10, 40)
# Waits before another try of what the API could not do just now.
PAUSES_SECONDS = (0.3, 1, 3)
PAGE_MAX = 100

_HTTP_REFUSED = 400
_HTTP_BUSY = 429
_HTTP_FAILED = 500

Sign = Callable[[AWSRequest], None]


def path_of(*parts: str) -> str:
    """Return the path of these parts, each with whatever characters."""
    return "".join(f"/{urllib.parse.quote(part, safe='')}" for part in parts)


@dataclass(frozen=True)
class Answer:
    """What the API answered, decoded; `date` is its clock."""

    status: int
    body: Any
    date: str | None


class Api:
    """The HTTP API at an address."""

    def __init__(
        self,
        address: str,
        sign: Sign,
        headers: Mapping[str, str],
        *,
        ca_bundle: str | None = None,
        as_json: bool = False,
    ) -> None:
        self.address = address.rstrip("/")
        self._sign = sign
        self._headers = dict(headers)
        self._as_json = as_json
        # Its types know less than it does: a path to certificates, and a pair of time-outs.
        more: dict[str, Any] = {"verify": ca_bundle or True, "timeout": TIMEOUT_SECONDS}
        self._http = URLLib3Session(proxies=get_environ_proxies(address), **more)

    def get(self, *parts: str, **query: str | None) -> Any:
        """Read something; raises RefusedError or UnreachableError."""
        return self.call("GET", parts, query=query).body

    def post(self, *parts: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Any:
        """Ask for something; raises RefusedError or UnreachableError."""
        return self.call("POST", parts, body=body, headers=headers).body

    def call(
        self,
        method: str,
        parts: tuple[str, ...],
        *,
        query: Mapping[str, str | None] | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Call a route; raises RefusedError or UnreachableError.

        Where the API says that it could do nothing now, the same call is made again, a few times.
        """
        given = {name: value for name, value in (query or {}).items() if value is not None}
        url = self.address + path_of(*parts) + (f"?{urllib.parse.urlencode(given)}" if given else "")
        answer = self._send(method, url, body, headers or {})
        for pause in PAUSES_SECONDS:
            if not _is_busy(answer):
                break
            time.sleep(pause)
            answer = self._send(method, url, body, headers or {})
        if answer.status >= _HTTP_REFUSED:
            raise RefusedError(answer.status, answer.body, as_json=self._as_json)
        return answer

    def _send(self, method: str, url: str, body: Any, headers: Mapping[str, str]) -> Answer:
        data = b"" if body is None else json.dumps(body, ensure_ascii=False).encode()
        request = AWSRequest(method, url, {**self._headers, **headers}, data)
        if data:
            request.headers["Content-Type"] = "application/json"
        self._sign(request)
        try:
            response = self._http.send(request.prepare())
        except (HTTPClientError, NotConnectedError) as error:
            raise UnreachableError(f"cannot reach {self.address}: {error}") from error
        return self._read(response.status_code, response.content, response.headers.get("date"))

    def _read(self, status: int, content: bytes, date: str | None) -> Answer:
        try:
            body = json.loads(content)
        except ValueError:
            body = None
        if not isinstance(body, dict) or 300 <= status < _HTTP_REFUSED:  # noqa: PLR2004 - redirections
            raise UnreachableError(
                f"{self.address} answered {status}, but not as this API does; is it the right address?"
            )
        if status >= _HTTP_FAILED and "error" not in body:  # the gateway's own: the function did not answer
            raise UnreachableError(
                f"{self.address} answered {status}: {body.get('message', 'no reason given')}"
            )
        return Answer(status, body, date)

    def rows(self, name: str, *parts: str, **query: str | None) -> Iterator[dict[str, Any]]:
        """Yield all rows of a list, page by page."""
        cursor = None
        while True:
            page = self.get(*parts, **query, limit=str(PAGE_MAX), cursor=cursor)
            yield from page[name]
            cursor = page.get("cursor")
            if not cursor:
                return

    def page(
        self, name: str, *parts: str, limit: int | None, cursor: str | None = None, **query: str | None
    ) -> dict[str, Any]:
        """Return a list's answer with up to `limit` rows (None: all), as one page of that size would be."""
        rows: list[Any] = []
        while True:
            wanted = PAGE_MAX if limit is None else min(limit - len(rows), PAGE_MAX)
            answer = self.get(*parts, **query, limit=str(wanted), cursor=cursor)
            rows += answer[name]
            cursor = answer.get("cursor")
            if not cursor or (limit is not None and len(rows) >= limit):
                return {**answer, name: rows}


def _is_busy(answer: Answer) -> bool:
    """Whether nothing was decided. A gateway's own 503 does not count: the work may be done."""
    error = answer.body.get("error")
    return answer.status == _HTTP_BUSY or (isinstance(error, dict) and error.get("code") == "try_later")
