"""Resume: continue an instance at one of its bookmarks.

The item is acked in the first commit that the resume leads to. A second delivery finds the bookmark gone
from the state, and only acks.
"""

from aftercommit import clock
from aftercommit.burst import Burst, Worker
from aftercommit.errors import ConditionFailedError, InstanceEndedError, NotFoundError
from aftercommit.functions import failure_of
from aftercommit.instances import lease
from aftercommit.limits import LEASE_MARGIN_SECONDS
from aftercommit.model import Resume
from aftercommit.outbox import ack, body_of, give_up, settle
from aftercommit.tables import ItemRow


def resume(item: ItemRow, worker: Worker) -> None:
    """See a resume item through; raises LeaseHeldError while another worker has the instance."""
    body = body_of(item)
    command = Resume(body["bookmark_id"], body["outcome"], body.get("value"))
    until = worker.deadline + LEASE_MARGIN_SECONDS
    try:
        head = lease(item.tenant, item.instance_id, until, waiting=True)
    except InstanceEndedError:
        settle(item)  # nothing waits any more
        return
    except NotFoundError as error:
        # Its instance is gone (a table restored alone): seen by an operator, and out of the way.
        try:
            give_up(item, failure_of(error))
        except ConditionFailedError:
            return
        return
    Burst(head, worker).run(command, ack=ack(item, clock.now()))
