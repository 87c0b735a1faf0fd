"""Start: admit a dispatched child, and run it.

Admission creates the child and acks its item in one transaction, so the child exists exactly if the item is
done. If the worker dies after that, the child is found by its head's `due_at` and run by another.
"""

from math import ceil

from pynamodb.exceptions import PynamoDBException

from aftercommit import clock
from aftercommit.activations import commit_birth
from aftercommit.attempts import attempt_delay, give_up_if_undone, mark_give_up, refuse
from aftercommit.bodies import body_of, read_join, whole_body_of
from aftercommit.burst import Burst, Worker
from aftercommit.definitions import find_owner_and_version, find_published_version, load_definition
from aftercommit.errors import (
    ActivationRefusedError,
    ConditionFailedError,
    NewerFormError,
    PayloadsAwayError,
    RefusedError,
    TooLargeError,
    TryLaterError,
    UnwritableError,
)
from aftercommit.functions import failure_of
from aftercommit.instances import Birth, birth_writes, find_head, head_of
from aftercommit.jsons import Json, size_of
from aftercommit.limits import LEASE_MARGIN_SECONDS, told_bytes, value_bytes_max
from aftercommit.log import count, ids_of, logger
from aftercommit.model import Failure, Parent
from aftercommit.outbox import drop, is_occurrence, settle, settlement
from aftercommit.queue import Message, Sending, send
from aftercommit.schema import check_inputs
from aftercommit.settings import settings
from aftercommit.tables import HeadRow, ItemRow
from aftercommit.tallies import hurry


def start(item: ItemRow, worker: Worker) -> None:
    """See a start item through: create its child and run it, or record why that was refused."""
    body = body_of(item)
    if body["depth"] > settings().dispatch_depth_max:
        told = f"dispatches nest deeper than {settings().dispatch_depth_max}"
        _give_up(item, Failure("DispatchTooDeepError", told))
        return
    if _has_lost_owner(item, body):
        _give_up(item, Failure("OwnerMissingError", f"instance {item.owner_id} does not exist"))
        return
    if is_occurrence(item) and not _is_published(item, body):
        drop(item, "it is a time of a schedule that is not published any more")
        return
    try:
        head = _admit(item, _prepare(item, body), worker)
    except ActivationRefusedError as error:
        _stand_aside(item, body, error)
        return
    except (NewerFormError, PayloadsAwayError):
        raise  # no attempt: it waits for the code that can do it, or for its input
    except (RefusedError, UnwritableError, TryLaterError, PynamoDBException) as error:
        # Passing reasons (a busy database) and lasting ones (no such workflow) are not told apart: either may
        # be over soon, and neither may last for ever.
        _refuse(item, failure_of(error))
        return
    if head is not None:
        Burst(head, worker).run()


def _has_lost_owner(item: ItemRow, body: dict[str, Json]) -> bool:
    """Whether the instance that has decided a dispatch is not there: the outbox was restored alone.

    Looked for only when the item is old: a new one proves its owner. What a stimulus or a schedule starts has
    no instance for an owner.
    """
    if "trigger" in body or clock.now() < clock.from_text(item.created_at) + settings().ack_timeout_seconds:
        return False
    return find_head(item.tenant, item.owner_id) is None


def _is_published(item: ItemRow, body: dict[str, Json]) -> bool:
    """Whether a tenant still starts what an occurrence speaks of: its own definition may hide a deploy's."""
    published = find_published_version(item.tenant, body["definition_id"])
    return published == (body["owner"], body["version"])


def _prepare(item: ItemRow, body: dict[str, Json]) -> Birth:
    """Resolve the definition and check the input; the published version is fixed from here on."""
    owner, version = body.get("owner"), body.get("version")
    if owner is None or version is None:
        owner, version = find_owner_and_version(item.tenant, body["definition_id"], version)
    definition = load_definition(owner, body["definition_id"], version)
    given = whole_body_of(item)["input"]
    inputs = check_inputs(definition.inputs, given)
    # What was dispatched while payloads could be large is started, whatever the setting is by now.
    large = settings().large_payloads or item.payloads is not None
    if size_of(given) > (most := value_bytes_max(large)):
        raise TooLargeError(f"the input is larger than {told_bytes(most)}", field="input")
    return Birth(
        tenant=item.tenant,
        instance_id=body["instance_id"],
        owner=owner,
        definition=definition,
        inputs=inputs,
        correlation_id=body.get("correlation_id"),
        # What a stimulus has started has an origin too, by which a second delivery knows it; nobody waits.
        parent=Parent(item.owner_id, item.item_id, body.get("bookmark_id"), read_join(body)),
        depth=body["depth"],
        trigger=body.get("trigger"),
        channel=item.channel,
        large=large,
    )


def _admit(item: ItemRow, birth: Birth, worker: Worker) -> HeadRow | None:
    """Create the child, leased, and ack the item; returns its head, or None if there is nothing to run."""
    at = clock.now()
    writes = birth_writes(birth, at, lease_until=worker.deadline + LEASE_MARGIN_SECONDS)
    head = head_of(writes)
    try:
        commit_birth([*writes, *settlement(item, at)])
    except ConditionFailedError as error:
        # The item was settled first (by another delivery, which has the child, or by a cancel), or the child
        # is there.
        return _meet_existing(item, head) if "head" in error.purposes else None
    except TryLaterError:
        # After a time-out the child may be there all the same, leased by this worker.
        found = find_head(item.tenant, birth.instance_id)
        if found is None or found.lease_token != head.lease_token:
            raise
        return found
    return head


def _meet_existing(item: ItemRow, wanted: HeadRow) -> HeadRow | None:
    """Converge on a child that is there already; fail closed on an instance that is somebody else's."""
    head = find_head(item.tenant, wanted.instance_id)
    if head is None:
        return None  # removed between the two: its item is settled, or the next delivery creates it
    if head.lease_token == wanted.lease_token:
        return head  # our own write, whose answer was lost before it was tried again
    if head.parent_item_id == item.item_id and head.parent_instance_id == item.owner_id:
        settle(item)
        return None
    told = f"instance {wanted.instance_id} exists already, and was not started by this dispatch"
    _give_up(item, Failure("InstanceExistsError", told))
    return None


def _stand_aside(item: ItemRow, body: dict[str, Json], error: ActivationRefusedError) -> None:
    """Give up a start that met a live instance: it is told now, not tried until that one has ended."""
    if "trigger" not in body:
        _give_up(item, failure_of(error))
        return
    # Nobody has asked for this very instance: what its workflow says of itself is no fault.
    settle(item)
    logger.info("start refused", extra={**ids_of(item), "reason": f"instance {error.holder} is live"})
    count("StartsRefused")


def _refuse(item: ItemRow, failure: Failure) -> None:
    try:
        last = refuse(item, failure)
    except ConditionFailedError:
        return  # settled, or this attempt was counted already
    if last:
        _hurry(item, failure)
    else:
        # Only a hint, to keep the attempts close together; without it the sweep comes.
        again = Message(item.tenant, owner_id=item.owner_id, item_id=item.item_id)
        delay = attempt_delay(item, int(item.attempts) + 1)
        send([Sending(again, ceil(delay), item.channel, item.trace)])


def _give_up(item: ItemRow, failure: Failure) -> None:
    if give_up_if_undone(item, failure):
        _hurry(item, failure)


def _hurry(item: ItemRow, failure: Failure) -> None:
    if mark := mark_give_up(item, failure):
        hurry(item.tenant, mark)
