"""Callback tokens: what somebody outside holds to reach one wait of one instance, and nothing else.

A token names tenant, instance and what it is for (a bookmark, or the name of a callback), and proves by a
digest over the instance's own secret that it was given out. Nothing of it is stored.
"""

import base64
import hmac
import json

from aftercommit.model import dumps

_PARTS = 4
_CALLBACK = "callback"


def make_token(tenant: str, instance_id: str, bookmark_id: str, secret: str) -> str:
    """Return the token of a bookmark."""
    return _encode([tenant, instance_id, bookmark_id, prove([tenant, instance_id, bookmark_id], secret)])


def make_callback_token(tenant: str, instance_id: str, name: str, secret: str) -> str:
    """Return the token of the callback that an instance knows by `name`."""
    return _encode([tenant, instance_id, name, prove_callback(tenant, instance_id, name, secret)])


def prove_callback(tenant: str, instance_id: str, name: str, secret: str) -> str:
    """Return the digest that a callback's token bears; a bookmark's of the same text has another."""
    return prove([_CALLBACK, tenant, instance_id, name], secret)


def prove(parts: list[str], secret: str) -> str:
    """Return the digest over the parts of a token."""
    return hmac.new(secret.encode(), dumps(parts).encode(), "sha256").hexdigest()[:32]


def find_parts(token: str) -> list[str] | None:
    """Return the parts of a token, [tenant, instance id, what it is for, digest]; None if it is none."""
    try:
        parts = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        dumps(parts).encode()  # half a character, which JSON can name, stands in no token
    except (ValueError, RecursionError):
        return None
    if not isinstance(parts, list) or len(parts) != _PARTS or not all(isinstance(x, str) for x in parts):
        return None
    return parts


def is_same(proof: str, other: str) -> bool:
    """Compare two digests, in a time that tells nothing of where they differ."""
    return hmac.compare_digest(proof.encode(), other.encode())


def _encode(parts: list[str]) -> str:
    return base64.urlsafe_b64encode(dumps(parts).encode()).decode().rstrip("=")
