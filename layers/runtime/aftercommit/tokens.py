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
from aftercommit.model import Intention, ItemCommand, Json, dumps
from aftercommit.outbox import item_put
from aftercommit.tables import ItemRow
from aftercommit.writes import Put

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


def callback_put(tenant: str, token: str, value: Json, at: float) -> Put:
    """Return the write that intends the resume of the bookmark that a token stands for.

    The item's id derives from the bookmark: of two answers at once, one makes it. Raises NotFoundError, the
    same for a token that is forged, over, or another tenant's.
    """
    instance_id, bookmark_id = read_token(tenant, token)
    body = {"instance_id": instance_id, "bookmark_id": bookmark_id, "outcome": "Done", "value": value}
    put = item_put(tenant, instance_id, Intention(ItemCommand.RESUME, f"callback-{bookmark_id}", body), at)
    return Put("callback", put.row, ItemRow.item_id.does_not_exist())  # closes: the token was used


def _proof(tenant: str, instance_id: str, bookmark_id: str, secret: str) -> str:
    message = dumps([tenant, instance_id, bookmark_id]).encode()
    return hmac.new(secret.encode(), message, "sha256").hexdigest()[:32]
