"""Taking callback tokens: forged, used, expired, lost and foreign ones all look the same to their holder."""

from aftercommit.definition import find_name_fault
from aftercommit.errors import NotFoundError
from aftercommit.instances import find_head, find_whole
from aftercommit.jsons import Json
from aftercommit.model import Intention
from aftercommit.outbox import item_put
from aftercommit.statuses import ItemCommand, instance_status
from aftercommit.tables import HeadRow, ItemRow
from aftercommit.tokens import find_parts, is_good
from aftercommit.writes import Put


def read_token(tenant: str, token: str) -> tuple[str, str]:
    """Return (instance_id, bookmark_id) of a token that is good for this tenant; raises NotFoundError."""
    refused = NotFoundError("no such bookmark", field="token")
    read = find_parts(token)
    if read is None or read.tenant != tenant or find_name_fault(read.instance_id):
        raise refused
    found = find_whole(tenant, read.instance_id)
    if found is None or read.name not in found[1].bookmarks or not is_good(read, "task", found[0].secret):
        raise refused
    return read.instance_id, read.name


def callback_put(tenant: str, token: str, value: Json, at: float) -> Put:
    """Return the write that intends the resume of the bookmark that a token stands for.

    The item's id derives from the bookmark: of two answers at once, one makes it. Raises NotFoundError.
    """
    instance_id, bookmark_id = read_token(tenant, token)
    body = {"instance_id": instance_id, "bookmark_id": bookmark_id, "outcome": "Done", "value": value}
    put = item_put(tenant, instance_id, Intention(ItemCommand.RESUME, f"callback-{bookmark_id}", body), at)
    return Put("callback", put.row, ItemRow.item_id.does_not_exist())  # closes: the token was used


def read_callback_token(tenant: str | None, token: str) -> tuple[HeadRow, str]:
    """Return (head, callback's name) of a token that is good for this tenant; raises NotFoundError.

    A caller who names no tenant has the token's own: it is proof enough. Good are those of an instance that
    has not ended, whether or not it waits already.
    """
    refused = NotFoundError("no such callback", field="token")
    read = find_parts(token)
    if read is None or tenant not in (None, read.tenant) or find_name_fault(read.instance_id):
        raise refused
    head = find_head(read.tenant, read.instance_id)
    if head is None or head.deleted_at or instance_status(head.status).ended:
        raise refused
    if not is_good(read, "callback", head.secret):
        raise refused
    return head, read.name
