"""Resume: continue an instance at one of its bookmarks.

The item is acked in the first commit that the resume leads to. A second delivery finds the bookmark gone
from the state, and only acks.
"""

from aftercommit.burst import Worker, apply_item
from aftercommit.model import Resume
from aftercommit.outbox import body_of
from aftercommit.tables import ItemRow


def resume(item: ItemRow, worker: Worker) -> None:
    """See a resume item through; raises LeaseHeldError while another worker has the instance."""
    body = body_of(item)
    apply_item(item, Resume(body["bookmark_id"], body["outcome"], body.get("value")), worker)
