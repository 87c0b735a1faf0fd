"""JSON as it is stored and sent: compact; canonical, for comparing; and its size."""

import json
from typing import Any

Json = Any  # dict, list, str, int, float, bool or None, nested

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_CANONICAL = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, sort_keys=True)


def dumps(value: Json) -> str:
    """Write compact JSON; NaN and infinities are refused with ValueError."""
    return _ENCODER.encode(value)


def canonical(value: Json) -> str:
    """Write JSON so that equal values give equal text, whatever the order of members; 1.0 is 1."""
    return _CANONICAL.encode(_with_whole_numbers(value))


def _with_whole_numbers(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _with_whole_numbers(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_with_whole_numbers(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def size_of(value: Json) -> int:
    """Return the bytes a value takes as stored JSON."""
    return len(dumps(value).encode())
