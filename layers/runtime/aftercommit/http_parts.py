"""What HTTP messages are made of: methods, the paths of endpoints, headers and contents."""

import base64
import json
import re

from aftercommit.jsons import Json
from aftercommit.limits import NAME_CHARACTERS_MAX

METHODS = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")
_PATH_PATTERN = re.compile(r"(?!\.{1,2}(?:/|$))[A-Za-z0-9._~-]+(?:/(?!\.{1,2}(?:/|$))[A-Za-z0-9._~-]+)*")
_HEADER_PATTERN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_VALUE_PATTERN = re.compile(r"[\t -~\x80-\xff]*")
# Whoever carries a message sets these; another value would make it unreadable.
_CARRIERS_HEADERS = frozenset(
    {"connection", "content-length", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"}
)


def find_path_fault(path: Json) -> str | None:
    """Say what is wrong with the path of an endpoint, or None."""
    if isinstance(path, str) and len(path) <= NAME_CHARACTERS_MAX and _PATH_PATTERN.fullmatch(path):
        return None
    return (
        f"must be at most {NAME_CHARACTERS_MAX} characters: segments of letters, digits and . _ - ~, joined "
        "by /, with no / at the beginning or the end"
    )


def find_headers_fault(headers: Json) -> tuple[str, str] | None:
    """Return (place in the headers, what is wrong there), or None; the place is empty for the whole."""
    if not isinstance(headers, dict):
        return "", "must be an object of texts"
    for name, value in headers.items():
        if not _HEADER_PATTERN.fullmatch(name):
            return f".{name}", "is no name of a header"
        if name.lower() in _CARRIERS_HEADERS:
            return f".{name}", "is set by whoever carries the message"
        if not isinstance(value, str) or not _HEADER_VALUE_PATTERN.fullmatch(value):
            return f".{name}", "must be a text without line breaks"
    return None


def is_json(content_type: str | None) -> bool:
    """Whether a content type says that the content is JSON."""
    kind = (content_type or "").partition(";")[0].strip().lower()
    return kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))


def parse_json(text: str) -> Json:
    """Parse JSON; raises ValueError for what is none, NaN among it, and for what is nested too deep."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("nested too deep") from None


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


def body_of(content: bytes) -> dict[str, Json]:
    """Return {body}: the content as text; or {body, base64: true} if it is none."""
    try:
        return {"body": content.decode()}
    except UnicodeDecodeError:
        return {"body": base64.b64encode(content).decode(), "base64": True}
