"""A webhook that speaks the Inngest event API: POST of a list of events to <url>/<key>.

The API is described at https://www.inngest.com/docs/events and its pages on event keys and sessions.
"""

import http.client
import socket
import ssl
from collections.abc import Sequence
from contextlib import closing, suppress
from threading import Event, Timer
from urllib.parse import quote, urlsplit

from aftercommit import aws, clock
from aftercommit.errors import ContentRefusedError, SettingError, SinkDownError
from aftercommit.events import envelope
from aftercommit.jsons import dumps
from aftercommit.settings import settings
from aftercommit.sinks.sink import Outgoing, Refusal

# Refused for what is in it: with another content it might be taken.
_CONTENT = {400, 409, 412, 413, 422}
_WRONG_KEY = {401, 403}
_ANSWER_BYTES_MAX = 64 * 1024
_KEY_SECONDS = 300  # after which it is looked up again, so that a new one is used
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}

_keys: dict[str, tuple[str, float]] = {}  # by where it is kept: the key, and until when it is good


class Webhook:
    """The webhook of EVENT_WEBHOOK_URL."""

    name = "webhook"
    events_max = 100
    bytes_max = 512 * 1024

    def send(self, events: Sequence[Outgoing], seconds: float) -> list[Refusal | None]:
        """Post events as one list: it takes all of them, or none."""
        body = dumps([envelope(each.body) for each in events]).encode()
        status = _post(_address(), body, seconds)
        if status in _WRONG_KEY:
            _keys.clear()  # it may have been replaced
        if status in _CONTENT:
            raise ContentRefusedError(f"the webhook answered {status}")
        if not 200 <= status < 300:  # noqa: PLR2004 - HTTP's own
            raise SinkDownError(f"the webhook answered {status}")
        return [None] * len(events)


def _address() -> str:
    url = settings().event_webhook_url.rstrip("/")
    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOOPBACK):
        raise SettingError("must begin with https://", field="EVENT_WEBHOOK_URL")
    key = _key()
    return f"{url}/{quote(key, safe='')}" if key else url


def _key() -> str:
    """Return the event key, from where the deployment keeps it; it is never logged, nor in any error."""
    secret, parameter = settings().event_webhook_secret, settings().event_webhook_parameter
    place = secret or parameter
    if not place:
        return ""
    key, until = _keys.get(place, ("", 0.0))
    if clock.now() >= until:
        if secret:
            key = aws.client("secretsmanager").get_secret_value(SecretId=secret)["SecretString"]
        else:
            answer = aws.client("ssm").get_parameter(Name=parameter, WithDecryption=True)
            key = answer["Parameter"]["Value"]
        key = key.strip()
        _keys[place] = (key, clock.now() + _KEY_SECONDS)
    return key


def _post(address: str, body: bytes, seconds: float) -> int:
    """Post JSON; returns the status. Raises SinkDownError, without the address, as the key is in it."""
    parts = urlsplit(address)
    connection = _connection(parts.scheme, parts.netloc, seconds / 4)
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    with closing(connection):
        try:
            connection.connect()
            # A time-out of the socket bounds each of its operations, not an answer that comes byte by byte.
            connection.sock.settimeout(seconds * 3 / 4)
            hung_up = Event()
            end = Timer(seconds * 3 / 4, _hang_up, [connection, hung_up])
            end.daemon = True
            end.start()
            try:
                headers = {"Content-Type": "application/json", "User-Agent": "aftercommit"}
                connection.request("POST", path, body, headers)
                response = connection.getresponse()
                response.read(_ANSWER_BYTES_MAX)
                if hung_up.is_set():
                    # What was read until then looks like a whole answer.
                    raise TimeoutError
            finally:
                end.cancel()
        except (OSError, http.client.HTTPException) as error:
            raise SinkDownError(f"the webhook gave no answer: {type(error).__name__}") from None
    return response.status


def _connection(scheme: str, place: str, seconds: float) -> http.client.HTTPConnection:
    if scheme == "http":
        return http.client.HTTPConnection(place, timeout=seconds)
    return http.client.HTTPSConnection(place, timeout=seconds, context=ssl.create_default_context())


def _hang_up(connection: http.client.HTTPConnection, hung_up: Event) -> None:
    hung_up.set()
    if connection.sock is not None:
        with suppress(OSError):  # it is closed already
            connection.sock.shutdown(socket.SHUT_RDWR)
