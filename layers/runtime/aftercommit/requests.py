"""What callers send: bodies and headers, read with errors that name the part that is wrong."""

import base64
import json
import re
from collections.abc import Mapping

from aftercommit.errors import MalformedRequestError, TooLargeError
from aftercommit.limits import BODY_BYTES_MAX, NAME_CHARACTERS_MAX
from aftercommit.model import Json
from aftercommit.tables import DEFAULT_TENANT

_TENANT_PATTERN = re.compile(r"[a-z0-9-]{1,64}")


def read_tenant(headers: Mapping[str, str]) -> str:
    """Return the tenant that the X-Tenant-Id header names; `default` without one."""
    tenant = {name.lower(): value for name, value in headers.items()}.get("x-tenant-id", DEFAULT_TENANT)
    if not _TENANT_PATTERN.fullmatch(tenant):
        raise MalformedRequestError("must be 1 to 64 lower-case letters, digits or '-'", field="X-Tenant-Id")
    return tenant


def read_body(text: str | None, *, base64_encoded: bool, known: Mapping[str, str]) -> dict[str, Json]:
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
    if len(text) > BODY_BYTES_MAX or len(text.encode()) > BODY_BYTES_MAX:
        raise TooLargeError(f"the body is larger than {BODY_BYTES_MAX} bytes", field="body")
    try:
        body = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise MalformedRequestError("the body is no JSON", field="body") from None
    if not isinstance(body, dict):
        raise MalformedRequestError("the body must be an object", field="body")
    for name, value in body.items():
        _check_member(name, value, known)
    return {name: value for name, value in body.items() if value is not None}


def _check_member(name: str, value: Json, known: Mapping[str, str]) -> None:
    if name not in known:
        raise MalformedRequestError(f"unknown; expected {', '.join(sorted(known))}", field=name)
    kind = known[name]
    if value is None or kind == "any":
        return
    if kind == "object":
        if not isinstance(value, dict):
            raise MalformedRequestError("must be an object", field=name)
    elif not isinstance(value, str) or not 1 <= len(value) <= NAME_CHARACTERS_MAX or not _encodes(value):
        raise MalformedRequestError(f"must be a text of 1 to {NAME_CHARACTERS_MAX} characters", field=name)


def _encodes(text: str) -> bool:
    """Whether a text has no half characters (lone surrogates), which JSON can name but nothing can store."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def _refuse_constant(name: str) -> None:
    raise ValueError(name)
