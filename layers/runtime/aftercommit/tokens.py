"""Callback tokens: what somebody outside holds to reach one wait of one instance, and nothing else.

A token names tenant, instance, what it is for (a bookmark, or the name of a callback) and the day on which it
expires, and proves by a digest over the instance's own secret that it was given out. Nothing of it is stored.
"""

import base64
import hmac
import json
from math import ceil
from typing import NamedTuple

from aftercommit import clock
from aftercommit.jsons import dumps

_PARTS = 5


class Token(NamedTuple):
    """The parts of a token."""

    tenant: str
    instance_id: str
    name: str  # the bookmark's id, or the callback's name
    until: str  # the day that it is not good any more, counted from the epoch
    proof: str


def make_token(tenant: str, instance_id: str, bookmark_id: str, secret: str, days: int) -> str:
    """Return the token of a bookmark, good for so many days; on the same day it is the same."""
    return _make("task", tenant, instance_id, bookmark_id, secret, days)


def make_callback_token(tenant: str, instance_id: str, name: str, secret: str, days: int) -> str:
    """Return the token of the callback that an instance knows by `name`, good for so many days."""
    return _make("callback", tenant, instance_id, name, secret, days)


def is_good(token: Token, kind: str, secret: str | None) -> bool:
    """Whether a token of this kind, `task` or `callback`, was given out, and has not expired."""
    if not secret or not _is_same(token.proof, _prove(kind, token, secret)):
        return False
    return clock.now() < int(token.until) * clock.DAY_SECONDS  # proven, so it is what we have written


def _make(kind: str, tenant: str, instance_id: str, name: str, secret: str, days: int) -> str:
    # Days are whole, so that an activity that is tried again tells the same address.
    until = ceil(clock.now() / clock.DAY_SECONDS) + days
    token = Token(tenant, instance_id, name, str(until), "")
    return _encode([*token[:-1], _prove(kind, token, secret)])


def _prove(kind: str, token: Token, secret: str) -> str:
    """Return the digest over the parts of a token; those of one kind are good for no other."""
    return hmac.new(secret.encode(), dumps([kind, *token[:-1]]).encode(), "sha256").hexdigest()[:32]


def find_parts(token: str) -> Token | None:
    """Return the parts of a token, proven or not; None if it is none."""
    try:
        parts = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        dumps(parts).encode()  # half a character, which JSON can name, stands in no token
    except (ValueError, RecursionError):
        return None
    if not isinstance(parts, list) or len(parts) != _PARTS or not all(isinstance(x, str) for x in parts):
        return None
    return Token(*parts)


def _is_same(proof: str, other: str) -> bool:
    """Compare two digests, in a time that tells nothing of where they differ."""
    return hmac.compare_digest(proof.encode(), other.encode())


def _encode(parts: list[str]) -> str:
    return base64.urlsafe_b64encode(dumps(parts).encode()).decode().rstrip("=")
