"""Resume: continue an instance at one of its bookmarks.

The item is acked in the first commit that the resume leads to. A second delivery finds the bookmark gone
from the state, and only acks.
"""

from aftercommit import clock
from aftercommit.burst import Burst, Worker
from aftercommit.callbacks import callback_put
from aftercommit.errors import ConditionFailedError, InstanceEndedError, NotFoundError
from aftercommit.functions import failure_of
from aftercommit.instances import lease
from aftercommit.limits import LEASE_MARGIN_SECONDS
from aftercommit.model import Json, Resume
from aftercommit.outbox import ack, body_of, give_up, settle
from aftercommit.tables import ItemRow
from aftercommit.writes import commit


def resume(item: ItemRow, worker: Worker) -> None:
    """See a resume item through; raises LeaseHeldError while another worker has the instance."""
    body = body_of(item)
    if "token" in body:
        _answer(item, body)
        return
    command = Resume(body["bookmark_id"], body["outcome"], body.get("value"))
    until = worker.deadline + LEASE_MARGIN_SECONDS
    try:
        head = lease(item.tenant, item.instance_id, until, waiting=True)
    except InstanceEndedError:
        settle(item)  # nothing waits any more
        return
    except NotFoundError as error:
        _give_up(item, error)  # its instance is gone (a table restored alone)
        return
    Burst(head, worker).run(command, ack=ack(item, clock.now()))


def _answer(item: ItemRow, body: dict[str, Json]) -> None:
    """Complete the task of a token as a caller of the API does, in one commit with the ack.

    From then on it is an item of the instance that waits. A token that is good for nothing is an incident of
    the instance that has sent it.
    """
    at = clock.now()
    try:
        commit([callback_put(item.tenant, body["token"], body.get("value"), at), ack(item, at)])
    except NotFoundError as error:
        _give_up(item, error)
    except ConditionFailedError as error:
        if "ack" not in error.purposes:
            _give_up(item, NotFoundError("the token was used already", field="token"))


def _give_up(item: ItemRow, error: NotFoundError) -> None:
    """Let an operator see it, and have it out of the way."""
    try:
        give_up(item, failure_of(error))
    except ConditionFailedError:
        return  # settled meanwhile
