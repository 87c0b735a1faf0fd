"""Run: go on with an instance that has work of its own: pending, abandoned, or out of time."""

from aftercommit.burst import Burst, Worker
from aftercommit.errors import InstanceEndedError, LeaseHeldError, NotFoundError
from aftercommit.instances import lease
from aftercommit.limits import LEASE_MARGIN_SECONDS
from aftercommit.log import logger


def run(tenant: str, instance_id: str, worker: Worker) -> None:
    """Run an instance from its last commit; one that waits or has ended is left alone.

    So is one that another worker has: if that one dies, its lease makes the instance due for the sweep.
    """
    try:
        head = lease(tenant, instance_id, worker.deadline + LEASE_MARGIN_SECONDS, waiting=False)
    except (InstanceEndedError, LeaseHeldError, NotFoundError) as error:
        logger.info("nothing to run", extra={"instance_id": instance_id, "reason": str(error)})
        return
    Burst(head, worker).run()
