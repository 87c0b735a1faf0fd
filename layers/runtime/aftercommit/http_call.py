"""Sending one HTTP request: what the activity SendHttpRequest does outside.

Whoever may publish definitions chooses where requests go, so one to an address that is not public is refused,
once it is known which address the connection has really reached. Neither queries, headers nor bodies are
logged.
"""

import contextlib
import http.client
import ipaddress
import socket
import threading
from typing import Self

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError, LocationParseError, NewConnectionError
from urllib3.exceptions import TimeoutError as Urllib3TimeoutError
from urllib3.util import Url, parse_url

from aftercommit.errors import HttpFailedError, HttpRefusedError, HttpTimeoutError, InputRefusedError
from aftercommit.functions import ActivityContext, register_built_in
from aftercommit.http_parts import body_of, is_json, parse_json
from aftercommit.jsons import Json, dumps, size_of
from aftercommit.limits import RESULT_BYTES_MAX
from aftercommit.schema import check_storable
from aftercommit.settings import settings

_SPARE_SECONDS = 2  # of the invocation, for the commit that follows
_SECONDS_MIN = 0.1
_CHUNK_BYTES = 64 * 1024
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_NEVER_KEPT = ("set-cookie", "set-cookie2")  # of an answer: states are shown to whoever may read instances


def find_url_fault(url: str) -> str | None:
    """Say why no request is sent to an address, or None."""
    if any(character <= " " or character == "\x7f" for character in url):
        return "must hold no spaces or line breaks"
    try:
        parts = parse_url(url)
    except LocationParseError:
        return "is no URL"
    if parts.scheme not in ("http", "https") or not parts.host or "://" not in url:
        return "must begin with http:// or https://, and name a host"
    if parts.auth is not None:
        return "must hold no credentials; put them into a header"
    return None


def host_of(url: str) -> str:
    """Return the host of an address that was sent to: what may be told of it."""
    try:
        return parse_url(url).host or "the host"
    except LocationParseError:
        return "the host"


def send_http_request(request: dict[str, Json], context: ActivityContext) -> dict[str, Json]:
    """Send {url, method, headers, body, timeout_seconds}; returns {status, headers, body}.

    Redirects are answers like any other. Raises HttpRefusedError for what this side does not do,
    HttpTimeoutError when the answer is not there in time, HttpFailedError when there is none.
    """
    if message := find_url_fault(request["url"]):
        raise HttpRefusedError(f"url {message}")
    url = parse_url(request["url"])
    left = context.remaining_seconds() - _SPARE_SECONDS
    seconds = max(_SECONDS_MIN, min(request["timeout_seconds"], left))
    content, headers = _content(request, context.idempotency_key)
    try:
        with _Watch(seconds) as watch, contextlib.closing(_connection(url, seconds, watch)) as connection:
            connection.request(
                request["method"],
                url.request_uri,
                body=content,
                headers=headers,
                preload_content=False,
                decode_content=False,
            )
            return _take(connection.getresponse())
    except NewConnectionError as error:  # to urllib3 a time-out, too
        raise HttpFailedError(f"{url.host} cannot be reached: {type(error).__name__}") from None
    except (TimeoutError, Urllib3TimeoutError):
        # Not chained: what urllib3 tells may hold more of the address than may be told.
        raise HttpTimeoutError(f"{url.host} did not answer within {seconds:g} seconds") from None
    except (HTTPError, http.client.HTTPException, OSError) as error:
        raise HttpFailedError(f"{url.host} gave no answer: {type(error).__name__}") from None


SEND_HTTP_REQUEST = register_built_in("SendHttpRequest", send_http_request).name


def _content(request: dict[str, Json], idempotency_key: str) -> tuple[bytes | None, dict[str, str]]:
    """Return the body as sent, and the headers with those that the author left out."""
    body, headers = request["body"], dict(request["headers"])
    given = {name.lower() for name in headers}
    if "idempotency-key" not in given:
        headers["Idempotency-Key"] = idempotency_key
    if body is None:
        return None, headers
    kind = "text/plain; charset=utf-8" if isinstance(body, str) else "application/json"
    if "content-type" not in given:
        headers["Content-Type"] = kind
    return (body if isinstance(body, str) else dumps(body)).encode(), headers


class _Watch:
    """Ends an exchange that takes longer than its time, however busily the other side keeps it going.

    Raises TimeoutError in place of whatever that led to.
    """

    def __init__(self, seconds: float) -> None:
        self._is_over = False
        self._socket: socket.socket | None = None
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        if self._socket is not None:
            self._socket.close()
        if self._is_over:
            raise TimeoutError

    def guard(self, connected: socket.socket) -> None:
        """Watch a connection; by a second handle of it, as TLS takes the first one over."""
        self._socket = connected.dup()
        if self._is_over:
            self._end()

    def _end(self) -> None:
        self._is_over = True
        if self._socket is not None:
            with contextlib.suppress(OSError):  # closed just now
                self._socket.shutdown(socket.SHUT_RDWR)


class _PublicHttp(HTTPConnection):
    watch: _Watch

    def _new_conn(self) -> socket.socket:
        _refuse_private(self.host, self.port)
        return _checked(super()._new_conn(), self.host, self.watch)


class _PublicHttps(HTTPSConnection):
    watch: _Watch

    def _new_conn(self) -> socket.socket:
        _refuse_private(self.host, self.port)
        # Before the handshake: an address that is refused gets nothing at all.
        return _checked(super()._new_conn(), self.host, self.watch)


def _connection(url: Url, seconds: float, watch: _Watch) -> HTTPConnection:
    kind = _PublicHttps if url.scheme == "https" else _PublicHttp
    connection = kind(url.host or "", url.port, timeout=seconds)
    connection.watch = watch
    return connection


def _refuse_private(host: str, port: int | None) -> None:
    """Refuse a name that means a private address before anything connects to it: so ports tell nothing."""
    if settings().http_private_addresses:
        return
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        return  # the attempt to connect will say so
    if not all(is_public(str(each[4][0])) for each in found):
        raise HttpRefusedError(f"{host} is not at a public address")


def _checked(connected: socket.socket, host: str, watch: _Watch) -> socket.socket:
    """Return a socket that has reached a public address; closes any other, and raises HttpRefusedError.

    The address is that of the socket: whatever a name meant before, and will mean next, does not count.
    """
    address = connected.getpeername()[0]
    if settings().http_private_addresses or is_public(address):
        watch.guard(connected)
        return connected
    connected.close()
    raise HttpRefusedError(f"{host} is not at a public address")


def is_public(address: str) -> bool:
    """Whether an address is out on the internet; one that carries another within it is what that is."""
    found = ipaddress.ip_address(address)
    if isinstance(found, ipaddress.IPv6Address):
        within = found.ipv4_mapped or found.sixtofour
        if within is None and found in _NAT64:
            within = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
        if within is not None:
            return is_public(str(within))
        # Addresses that once carried others, or were a site's own, some networks still route.
        if found.teredo is not None or found.is_reserved or found.is_site_local:
            return False
    return found.is_global and not found.is_multicast


def _take(response: urllib3.BaseHTTPResponse) -> dict[str, Json]:
    content = bytearray()
    while chunk := response.read(_CHUNK_BYTES):
        content += chunk
        if len(content) > RESULT_BYTES_MAX:
            break
    headers = {
        name.lower(): ", ".join(response.headers.getlist(name))
        for name in response.headers
        if name.lower() not in _NEVER_KEPT
    }
    result = {
        "status": response.status,
        "headers": headers,
        **_parsed(bytes(content), headers.get("content-type")),
    }
    if len(content) > RESULT_BYTES_MAX or size_of(result) > RESULT_BYTES_MAX:
        raise HttpRefusedError(f"the answer is larger than {RESULT_BYTES_MAX} bytes")
    return result


def _parsed(content: bytes, content_type: str | None) -> dict[str, Json]:
    """Return {body}: parsed if it is JSON that can be kept, else as text, or as base64 and marked so."""
    found = body_of(content)
    if not is_json(content_type) or "base64" in found:
        return found
    try:
        body = parse_json(found["body"])
        check_storable(body, "body")
    except (ValueError, InputRefusedError):
        return found
    return {"body": body}
