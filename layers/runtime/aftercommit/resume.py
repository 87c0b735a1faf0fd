"""Resume: continue an instance at one of its bookmarks.

The item is acked in the first commit that the resume leads to. A second delivery finds the bookmark gone
from the state, and only acks.
"""

from aftercommit import clock
from aftercommit.attempts import give_up_if_undone
from aftercommit.bodies import whole_body_of
from aftercommit.burst import Worker, apply_item
from aftercommit.callbacks import callback_put
from aftercommit.errors import ConditionFailedError, NotFoundError
from aftercommit.functions import failure_of
from aftercommit.jsons import Json
from aftercommit.model import Resume
from aftercommit.outbox import ack
from aftercommit.tables import ItemRow
from aftercommit.writes import commit


def resume(item: ItemRow, worker: Worker) -> None:
    """See a resume item through; raises LeaseHeldError while another worker has the instance."""
    body = whole_body_of(item)
    if "token" in body:
        _answer(item, body)
        return
    apply_item(item, Resume(body["bookmark_id"], body["outcome"], body.get("value")), worker)


def _answer(item: ItemRow, body: dict[str, Json]) -> None:
    """Complete the task of a token as a caller of the API does, in one commit with the ack.

    From then on it is an item of the instance that waits. A token that is good for nothing is an incident of
    the instance that has sent it.
    """
    at = clock.now()
    try:
        commit([callback_put(item.tenant, body["token"], body.get("value"), at), ack(item, at)])
    except NotFoundError as error:
        give_up_if_undone(item, failure_of(error))
    except ConditionFailedError as error:
        if "ack" not in error.purposes:
            used = NotFoundError("the token was used already", field="token")
            give_up_if_undone(item, failure_of(used))
