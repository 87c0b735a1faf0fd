"""What callers send: bodies and headers, read with errors that name the part that is wrong."""

import base64
import json
import re
from collections.abc import Mapping

from aftercommit.errors import ForbiddenError, MalformedRequestError, NotFoundError, TooLargeError
from aftercommit.http_parts import body_of, is_json, parse_json
from aftercommit.jsons import Json, size_of
from aftercommit.limits import (
    BODY_BYTES_MAX,
    IDEMPOTENCY_KEY_CHARACTERS_MAX,
    INPUT_BYTES_MAX,
    KEY_BYTES_MAX,
    NAME_CHARACTERS_MAX,
    told_bytes,
)
from aftercommit.schema import check_storable
from aftercommit.settings import settings
from aftercommit.tables import DEFAULT_TENANT

TENANT_PATTERN = re.compile(r"[a-z0-9-]{1,64}")
# By which a caller proves who it is: they must not get into a state, which others may read.
_CREDENTIALS = frozenset({"authorization", "cookie", "proxy-authorization", "x-amz-security-token"})
_SIGNATURE_PREFIX = "x-amz-"  # of a query that is signed


def read_tenant(headers: Mapping[str, str], claims: Mapping[str, Json] | None) -> str:
    """Return the tenant that a caller acts for; see `find_tenant`; `default` if none is named."""
    return find_tenant(headers, claims) or DEFAULT_TENANT


def find_tenant(headers: Mapping[str, str], claims: Mapping[str, Json] | None) -> str | None:
    """Return the tenant that a caller names.

    A bearer of a token acts for the tenant that its claim names, and for no other: ForbiddenError. Without
    `claims` requests are signed, and the X-Tenant-Id header counts.
    """
    named = {name.lower(): value for name, value in headers.items()}.get("x-tenant-id")
    if named is not None and not TENANT_PATTERN.fullmatch(named):
        raise MalformedRequestError("must be 1 to 64 lower-case letters, digits or '-'", field="X-Tenant-Id")
    if claims is None:
        return named
    claim = settings().tenant_claim
    tenant = claims.get(claim)
    if not isinstance(tenant, str) or not TENANT_PATTERN.fullmatch(tenant):
        raise ForbiddenError(f"the token has no claim {claim!r} that names a tenant", field="Authorization")
    if named not in (None, tenant):
        raise ForbiddenError("the token is for another tenant", field="X-Tenant-Id")
    return tenant


def read_idempotency_key(headers: Mapping[str, str]) -> str | None:
    """Return the Idempotency-Key header, or None without one; raises MalformedRequestError.

    An empty one is refused: it would be the same key for whoever forgot to fill it in.
    """
    key = {name.lower(): value for name, value in headers.items()}.get("idempotency-key")
    if key is not None and (not 1 <= len(key) <= IDEMPOTENCY_KEY_CHARACTERS_MAX or not _encodes(key)):
        raise MalformedRequestError(
            f"must have 1 to {IDEMPOTENCY_KEY_CHARACTERS_MAX} characters", field="Idempotency-Key"
        )
    return key


def find_number(text: str, lowest: int, highest: int) -> int | None:
    """Return the whole number that a text is, or None if it is none within the bounds."""
    # The length first: Python refuses to read thousands of digits.
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(highest))):
        return None
    return int(text) if lowest <= int(text) <= highest else None


def read_number(text: str, name: str, *, most: int) -> int:
    """Read a parameter that is a whole number from 1 to `most`; raises MalformedRequestError."""
    number = find_number(text, 1, most)
    if number is None:
        raise MalformedRequestError(f"must be a whole number from 1 to {most}", field=name)
    return number


def read_parameter(text: str | None, name: str, *, most: int = NAME_CHARACTERS_MAX) -> str | None:
    """Return a parameter of a query; raises MalformedRequestError if it is longer than `most`, or no text."""
    if text is not None and (len(text) > most or not _encodes(text)):
        raise MalformedRequestError(f"must be a text of at most {most} characters", field=name)
    return text


def check_path(path: str) -> None:
    """Refuse a path with a part longer than any key of a row; raises NotFoundError."""
    if any(len(part.encode(errors="replace")) > KEY_BYTES_MAX for part in path.split("/")):
        raise NotFoundError(f"no name has more than {KEY_BYTES_MAX} bytes", field="path")


def read_body(
    text: str | None, *, base64_encoded: bool, known: Mapping[str, str], bytes_max: int = BODY_BYTES_MAX
) -> dict[str, Json]:
    """Read a request body: a JSON object; `known` names its members, each `text`, `object` or `any`.

    An absent body is an empty object. Raises MalformedRequestError naming the member, or TooLargeError.
    """
    if text and base64_encoded:
        try:
            text = base64.b64decode(text, validate=True).decode()
        except ValueError:
            raise MalformedRequestError("the body is no base64 of UTF-8", field="body") from None
    if not text:
        return {}
    if len(text) > bytes_max:
        raise TooLargeError(f"the body is larger than {told_bytes(bytes_max)}", field="body")
    if not _encodes(text):
        raise MalformedRequestError("the body is no UTF-8", field="body")
    if len(text.encode()) > bytes_max:
        raise TooLargeError(f"the body is larger than {told_bytes(bytes_max)}", field="body")
    try:
        body = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise MalformedRequestError("the body is no JSON", field="body") from None
    if not isinstance(body, dict):
        raise MalformedRequestError("the body must be an object", field="body")
    return _read_members(body, known, "")


def read_items(body: dict[str, Json], known: Mapping[str, str], limit: int) -> list[dict[str, Json]]:
    """Return the `items` of a body, objects with the members `known`; raises MalformedRequestError."""
    items = body.get("items")
    if not isinstance(items, list) or not 1 <= len(items) <= limit:
        raise MalformedRequestError(f"must be a list of 1 to {limit} objects", field="items")
    for index, item in enumerate(items):
        if not isinstance(item, dict):
            raise MalformedRequestError("must be an object", field=f"items[{index}]")
    return [_read_members(item, known, f"items[{index}].") for index, item in enumerate(items)]


def _read_members(body: dict[str, Json], known: Mapping[str, str], place: str) -> dict[str, Json]:
    for name, value in body.items():
        if name not in known:
            raise MalformedRequestError(f"unknown; expected {', '.join(sorted(known))}", field=place + name)
        _check_member(place + name, value, known[name])
    return {name: value for name, value in body.items() if value is not None}


def _check_member(name: str, value: Json, kind: str) -> None:
    if value is None or kind == "any":
        return
    if kind == "object":
        if not isinstance(value, dict):
            raise MalformedRequestError("must be an object", field=name)
    elif not isinstance(value, str) or not 1 <= len(value) <= NAME_CHARACTERS_MAX or not _encodes(value):
        raise MalformedRequestError(f"must be a text of 1 to {NAME_CHARACTERS_MAX} characters", field=name)


def read_http_request(
    method: str,
    path: str,
    *,
    query: Mapping[str, str],
    headers: Mapping[str, str],
    body: str | None,
    base64_encoded: bool,
) -> dict[str, Json]:
    """Return a request as workflows see it: {method, path, query, headers, body}, without credentials.

    The body is parsed if its content type is JSON; else it is text, or base64 with `base64: true`. Raises
    MalformedRequestError, InputRefusedError or TooLargeError.
    """
    if len(body or "") > BODY_BYTES_MAX:
        raise TooLargeError(f"the body is larger than {BODY_BYTES_MAX} bytes", field="body")
    lowered = {name.lower(): value for name, value in headers.items()}
    content = _content(body or "", base64_encoded=base64_encoded)
    request = {
        "method": method,
        "path": path,
        "query": {name: each for name, each in query.items() if not _is_signature(name)},
        "headers": {name: each for name, each in lowered.items() if name not in _CREDENTIALS},
        **_parsed(content, lowered.get("content-type")),
    }
    check_storable(request, "request")
    if size_of(request) > INPUT_BYTES_MAX:
        raise TooLargeError(f"the request is larger than {INPUT_BYTES_MAX} bytes", field="body")
    return request


def _is_signature(name: str) -> bool:
    return name.lower().startswith(_SIGNATURE_PREFIX)


def _content(text: str, *, base64_encoded: bool) -> bytes:
    try:
        return base64.b64decode(text, validate=True) if base64_encoded else text.encode()
    except ValueError:
        raise MalformedRequestError("the body is no base64, or no UTF-8", field="body") from None


def _parsed(content: bytes, content_type: str | None) -> dict[str, Json]:
    found = {"body": None} if not content else body_of(content)
    if not content or not is_json(content_type):
        return found
    try:
        return {"body": parse_json(content.decode())}
    except ValueError:
        raise MalformedRequestError("the body is no JSON, as its content type says", field="body") from None


def _encodes(text: str) -> bool:
    """Whether a text has no half characters (lone surrogates), which JSON can name but nothing can store."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def _refuse_constant(name: str) -> None:
    raise ValueError(name)
