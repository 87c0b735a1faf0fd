"""Stimulate: apply a stimulus to what waits for it, start what starts at it, or keep it until something does.

A stimulus is an outbox item under its own key, so the undone items of a key are its open stimuli, oldest
first. It is acked in the commit that applies it. One that finds nothing stays undone, is looked at again when
a bookmark for it is committed (or after a while), and becomes a dead letter when its time is over.
"""

from dataclasses import dataclass, field

from aftercommit import clock
from aftercommit.attempts import give_up, give_up_if_undone, refuse
from aftercommit.bodies import body_of
from aftercommit.bookmarks import find_bookmarks, remove_row
from aftercommit.burst import Burst, Worker
from aftercommit.errors import (
    AftercommitError,
    ConditionFailedError,
    InstanceEndedError,
    NotFoundError,
    OvertakenError,
    TryLaterError,
)
from aftercommit.functions import failure_of
from aftercommit.ids import derive_id
from aftercommit.instances import lease
from aftercommit.jsons import Json
from aftercommit.limits import COMMIT_INTENTIONS_MAX, LEASE_MARGIN_SECONDS
from aftercommit.log import about, count, ids_of, logger
from aftercommit.model import Failure, Intention, Stimulate
from aftercommit.outbox import ack, item_put, open_stimuli, postpone_item
from aftercommit.settings import settings
from aftercommit.statuses import ItemCommand, ItemStatus
from aftercommit.tables import BookmarkRow, ItemRow, TriggerRow
from aftercommit.triggers import find_triggers
from aftercommit.writes import Put, Update, commit

_LOOK_AGAIN_SECONDS_MAX = 60


@dataclass
class _Pass:
    """What those of a key that went before leave to those behind them."""

    held: dict[str, AftercommitError] = field(default_factory=dict)  # why one must wait, by instance
    seen: set[str] | None = None  # the bookmarks there were when one before was left open

    def may_take(self, row: BookmarkRow) -> bool:
        # Closes: a bookmark committed since one before has looked would go to one that came later. The hint
        # that follows its commit brings all of them again.
        return self.seen is None or row.bookmark_id in self.seen


def stimulate(item: ItemRow, worker: Worker) -> None:
    """See a stimulus through; those of its key that came before it and are still open go first.

    One that meets a held lease holds back those behind it at that instance only. Raises TryLaterError for it
    in the end: that is no attempt, and the message comes again.
    """
    so_far = _Pass()
    for each in [*_those_before(item, so_far), item]:
        with about(**ids_of(each)):
            try:
                _apply(each, worker, so_far)
            except (TryLaterError, OvertakenError) as error:
                so_far.held.setdefault("", error)
            except AftercommitError as error:
                _count_attempt(each, failure_of(error))
    for first in so_far.held.values():
        raise first


def _those_before(item: ItemRow, so_far: _Pass) -> list[ItemRow]:
    """Return the open ones that came before; none, if nothing is there that they could be applied to."""
    if find_bookmarks(item.tenant, item.owner_id) or find_triggers(item.tenant, item.owner_id):
        before = open_stimuli(item.tenant, item.owner_id, until=item.item_id)
        return [each for each in before if each.item_id != item.item_id]
    so_far.seen = set()
    return []


def _count_attempt(item: ItemRow, failure: Failure) -> None:
    try:
        if int(item.attempts) + 1 >= settings().stimulus_attempts_max:
            give_up(item, failure, attempts=int(item.attempts) + 1)
        else:
            refuse(item, failure)
    except ConditionFailedError:
        return  # something took it meanwhile


def _apply(item: ItemRow, worker: Worker, so_far: _Pass) -> None:
    body = body_of(item)
    rows = [row for row in find_bookmarks(item.tenant, item.owner_id) if so_far.may_take(row)]
    waiting = [row for row in rows if _is_meant(row, body)]
    starting = [] if body.get("instance_id") else find_triggers(item.tenant, item.owner_id)
    instances = sorted({row.instance_id for row in waiting})
    if starting or len(instances) > 1 or item.split:
        _split(item, body, instances, starting)
        return
    if instances and instances[0] in so_far.held:
        return  # behind another one that waits for this instance
    try:
        taken = bool(instances) and _apply_to_one(item, body, waiting, worker)
    except (OvertakenError, TryLaterError) as error:
        so_far.held[instances[0]] = error
        return
    if not taken:
        so_far.seen = {row.bookmark_id for row in rows}
        _keep_open(item)


def _is_meant(row: BookmarkRow, body: dict[str, Json]) -> bool:
    instance_id, correlation_id = body.get("instance_id"), body.get("correlation_id")
    return instance_id in (None, row.instance_id) and correlation_id in (None, row.correlation_id)


def _apply_to_one(item: ItemRow, body: dict[str, Json], waiting: list[BookmarkRow], worker: Worker) -> bool:
    """Resume all that waits for it in one instance, and ack it in the same commit.

    Returns False if nothing there waits for it (any more).
    """
    until = worker.deadline + LEASE_MARGIN_SECONDS
    command = Stimulate(body["stimulus"], body.get("value"))
    try:
        head = lease(item.tenant, waiting[0].instance_id, until, waiting=True)
    except (InstanceEndedError, NotFoundError):
        applied = False  # its rows are left from before it ended
    else:
        # If another worker has applied it since it was read, the first commit says so, before any step runs.
        applied = Burst(head, worker).run(command, ack=ack(item, clock.now()), ack_unapplied=False)
    if not applied:
        # Closes: the row was read before its bookmark was consumed. An index row proves nothing; the stimulus
        # stays open for a wait that is yet to come.
        for row in waiting:
            remove_row(row)
        told = {**ids_of(waiting[0]), "reason": "nothing there waits for it any more"}
        logger.info("rows of bookmarks removed", extra=told)
        count("BookmarkRowsRemoved", len(waiting))
    return applied


def _split(item: ItemRow, body: dict[str, Json], instances: list[str], starting: list[TriggerRow]) -> None:
    """Make one item for each instance it reaches, and for each start; then it is done itself.

    The items' ids derive from this one's, so a second splitting makes none a second time; and one that was
    begun is marked, so that what is left of it is never taken for the whole.
    """
    at = clock.now()
    puts = [
        item_put(item.tenant, item.owner_id, _for_instance(item, body, instance_id), at)
        for instance_id in instances
    ] + [
        item_put(item.tenant, derive_id("starts", item.item_id), _for_start(item, body, row), at)
        for row in starting
    ]
    fresh = [Put(put.purpose, put.row, ItemRow.item_id.does_not_exist()) for put in puts]
    if len(fresh) > COMMIT_INTENTIONS_MAX and not item.split:
        undone = ItemRow.status == ItemStatus.UNDONE.value  # closes: settled meanwhile
        commit([Update("split", ItemRow(item.owner_key, item.item_id), [ItemRow.split.set(True)], undone)])
    while len(fresh) > COMMIT_INTENTIONS_MAX:
        for put in fresh[:COMMIT_INTENTIONS_MAX]:
            _put_once(put)
        fresh = fresh[COMMIT_INTENTIONS_MAX:]
    try:
        commit([*fresh, ack(item, at)])
    except ConditionFailedError as error:
        if "ack" in error.purposes:
            return  # settled meanwhile: whoever did has made the items
        for put in fresh:
            _put_once(put)
        commit([ack(item, at)])


def _put_once(put: Put) -> None:
    try:
        commit([put])
    except ConditionFailedError:
        return


def _for_instance(item: ItemRow, body: dict[str, Json], instance_id: str) -> Intention:
    # Right behind the one it comes from, in the order of its key.
    item_id = f"{item.item_id}-{derive_id('part', item.item_id, instance_id)}"
    return Intention(ItemCommand.STIMULUS, item_id, {**body, "instance_id": instance_id})


def _for_start(item: ItemRow, body: dict[str, Json], row: TriggerRow) -> Intention:
    unique = derive_id("trigger", item.item_id, row.owner, row.definition_id, row.activity_id)
    started = {
        "instance_id": derive_id("triggered", unique),
        "owner": row.owner,
        "definition_id": row.definition_id,
        "version": int(row.version),
        "input": {},
        "correlation_id": body.get("correlation_id"),
        "depth": 0,
        "trigger": {"activity_id": row.activity_id, "value": body.get("value")},
    }
    written = {key: value for key, value in started.items() if value is not None}
    return Intention(ItemCommand.START, unique, written)


def _keep_open(item: ItemRow) -> None:
    """Leave a stimulus for what is yet to wait for it, until its time is over."""
    at = clock.now()
    expires_at = clock.from_text(item.created_at) + settings().stimulus_open_seconds
    if at >= expires_at:
        told = f"nothing took it within {settings().stimulus_open_seconds} seconds"
        give_up_if_undone(item, Failure("ExpiredError", told))
        return
    wait = min(settings().eager_head_start_seconds * 2 ** min(int(item.sends), 10), _LOOK_AGAIN_SECONDS_MAX)
    postpone_item(item, min(at + wait, expires_at))
