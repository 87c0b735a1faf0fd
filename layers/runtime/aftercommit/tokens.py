"""Callback tokens: what somebody outside holds to resume one bookmark, and nothing else.

A token names tenant, instance and bookmark, and proves by a digest over the instance's own secret that it was
given out. Forged, used and foreign ones all look the same to their holder: not found.
"""

import base64
import hmac
import json

from aftercommit.definition import find_name_fault
from aftercommit.errors import NotFoundError
from aftercommit.instances import find_whole
from aftercommit.model import dumps

_PARTS = 4


def make_token(tenant: str, instance_id: str, bookmark_id: str, secret: str) -> str:
    """Return the token of a bookmark."""
    parts = [tenant, instance_id, bookmark_id, _proof(tenant, instance_id, bookmark_id, secret)]
    return base64.urlsafe_b64encode(dumps(parts).encode()).decode().rstrip("=")


def read_token(tenant: str, token: str) -> tuple[str, str]:
    """Return (instance_id, bookmark_id) of a token that is good for this tenant; raises NotFoundError."""
    refused = NotFoundError("no such bookmark", field="token")
    try:
        parts = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    except (ValueError, RecursionError):
        raise refused from None
    if not isinstance(parts, list) or len(parts) != _PARTS or not all(isinstance(x, str) for x in parts):
        raise refused
    named, instance_id, bookmark_id, proof = parts
    if named != tenant or find_name_fault(instance_id) or not (bookmark_id + proof).isascii():
        raise refused
    found = find_whole(tenant, instance_id)
    if found is None or bookmark_id not in found[1].bookmarks:
        raise refused
    head, _ = found
    if not head.secret or not hmac.compare_digest(
        proof, _proof(tenant, instance_id, bookmark_id, head.secret)
    ):
        raise refused
    return instance_id, bookmark_id


def _proof(tenant: str, instance_id: str, bookmark_id: str, secret: str) -> str:
    message = dumps([tenant, instance_id, bookmark_id]).encode()
    return hmac.new(secret.encode(), message, "sha256").hexdigest()[:32]
