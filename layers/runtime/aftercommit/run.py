"""Run: go on with an instance that has work of its own: pending, abandoned, or out of time."""

from aftercommit import clock
from aftercommit.bodies import body_of
from aftercommit.burst import Burst, Worker
from aftercommit.errors import InstanceEndedError, LeaseHeldError, NotFoundError
from aftercommit.instances import lease
from aftercommit.limits import LEASE_MARGIN_SECONDS
from aftercommit.log import logger, reason_of
from aftercommit.outbox import ack, drop
from aftercommit.tables import HeadRow, ItemRow


def run(tenant: str, instance_id: str, worker: Worker) -> None:
    """Run an instance from its last commit; one that waits or has ended is left alone.

    So is one that another worker has: if that one dies, its lease makes the instance due for the sweep.
    """
    if head := _lease(tenant, instance_id, worker):
        Burst(head, worker).run()


def run_item(item: ItemRow, worker: Worker) -> None:
    """See a run item through: the same, with the ack in the first commit; nothing to run settles it, too."""
    instance_id = body_of(item)["instance_id"]
    if head := _lease(item.tenant, instance_id, worker):
        Burst(head, worker).run(ack=ack(item, clock.now()))
    else:
        drop(item, f"nothing to run in {instance_id}")


def _lease(tenant: str, instance_id: str, worker: Worker) -> HeadRow | None:
    try:
        return lease(tenant, instance_id, worker.deadline + LEASE_MARGIN_SECONDS, waiting=False)
    except (InstanceEndedError, LeaseHeldError, NotFoundError) as error:
        told = {"tenant": tenant, "instance_id": instance_id, "reason": reason_of(error)}
        logger.info("nothing to run", extra=told)
        return None
