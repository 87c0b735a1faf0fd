"""Tallies: the rows that count which children of a bulk dispatch have ended, and what an ending writes.

A child's last commit marks its dispatch, counts it, and wakes the one that comes after it in its lane: all or
none. If its worker dies right after that, nobody is sent a hint, and the sweep comes.
"""

import json
from collections.abc import Iterable

from pynamodb.expressions.update import RemoveAction, SetAction

from aftercommit import clock, traces
from aftercommit.ids import join_name, part_name
from aftercommit.joins import COUNTED, Tally, judge
from aftercommit.limits import TRACED_CHILDREN_MAX
from aftercommit.log import logger, reason_of
from aftercommit.places import Join, Mark
from aftercommit.queue import Message, Sending, send
from aftercommit.settings import settings
from aftercommit.statuses import ItemStatus, Outcome
from aftercommit.tables import ItemRow, TallyRow, key_of, tally_name
from aftercommit.writes import Update, Write

_LAST_TURN = 99_999


def mark_actions(mark: Mark) -> list[SetAction | RemoveAction]:
    """Return what an ending leaves on its dispatch."""
    actions = [ItemRow.outcome.set(mark.outcome)]
    return [*actions, ItemRow.output.set(mark.output)] if mark.output is not None else actions


def ending_writes(tenant: str, mark: Mark, at: float) -> list[Write]:
    """Return the writes that tell of an ending; they belong into the commit that ends the child."""
    dispatch = ItemRow(key_of(tenant, mark.owner_id), part_name(mark.join.join_id, mark.join.index))
    # Closes: a parent whose rows are gone would get a new one. Nothing is marked twice, as a child ends once.
    unmarked = ItemRow.owner_key.exists() & ItemRow.outcome.does_not_exist()
    return [Update("mark", dispatch, mark_actions(mark), unmarked), *tally_writes(tenant, mark, at)]


def tally_writes(tenant: str, mark: Mark, at: float) -> list[Write]:
    """Return the writes that count an ending, and wake the one after it in its lane."""
    join = mark.join
    writes: list[Write] = [tally_update(tenant, mark.owner_id, join, mark.outcome)]
    if join.follower is not None:
        writes.append(wake_update(tenant, mark.owner_id, part_name(join.join_id, join.follower), at))
    return writes


def tally_update(tenant: str, owner_id: str, join: Join, outcome: str) -> Update:
    """Return the write that counts an ending; the commit that it is part of has the condition."""
    row = TallyRow(key_of(tenant, owner_id), tally_name(join.join_id, join.row))
    counted = getattr(TallyRow, COUNTED[Outcome(outcome)])
    return Update("tally", row, [counted.add({join.index})], None)


def wake_update(tenant: str, owner_id: str, item_id: str, at: float) -> Update:
    """Return the write that lets a sleeping item be sent."""
    due_at = at + settings().eager_head_start_seconds if settings().eager_delivery else at
    actions = [ItemRow.asleep.remove(), ItemRow.due_at.set(clock.to_text(due_at))]
    # Closes: withdrawn meanwhile; woken already.
    sleeping = (ItemRow.status == ItemStatus.UNDONE.value) & ItemRow.asleep.exists()
    return Update("wake", ItemRow(key_of(tenant, owner_id), item_id), actions, sleeping)


def leave_out(writes: list[Write], failed: Iterable[str]) -> list[Write] | None:
    """Return the writes of an ending without those that have nothing to write on; None if others failed.

    A dispatch that is gone cannot be marked, nor a withdrawn one woken; the child ends all the same.
    """
    out = set(failed)
    if not out <= {"mark", "wake"}:
        return None
    if "mark" in out:
        out.add("tally")
    return [each for each in writes if each.purpose not in out]


def load_tally(tenant: str, owner_id: str, join_id: str) -> Tally:
    """Read which children have ended."""
    tally = Tally()
    key, first, last = key_of(tenant, owner_id), tally_name(join_id, 0), tally_name(join_id, 999)
    for row in TallyRow.query(key, TallyRow.row.between(first, last), consistent_read=True):
        for outcome, name in COUNTED.items():
            tally.add(outcome, map(int, getattr(row, name) or ()))
    return tally


def hurry(tenant: str, mark: Mark) -> None:
    """Send what an ending has made possible: the start that it woke, and the join if that is to act.

    Only hints, after the commit. Who is the last of its row, or has failed, looks at the others: so whoever
    is the last of all sees that.
    """
    join, owner_id = mark.join, mark.owner_id
    try:
        sendings = []
        if join.follower is not None:
            item_id = part_name(join.join_id, join.follower)
            # What the row of the one behind says, without reading it.
            trace = None if join.follower < TRACED_CHILDREN_MAX else traces.UNTRACED
            sendings.append(_sending(tenant, owner_id, item_id, join.channel, trace))
        if mark.outcome != Outcome.COMPLETED or _is_full(tenant, mark):
            sendings += _find_hurried(tenant, mark)
        send(sendings)
    except Exception as error:  # noqa: BLE001 - the commit stands, and the sweep comes
        logger.warning(
            "join not hurried", extra={"tenant": tenant, "owner_id": owner_id, "reason": reason_of(error)}
        )


def _is_full(tenant: str, mark: Mark) -> bool:
    join = mark.join
    row = TallyRow.get(
        key_of(tenant, mark.owner_id), tally_name(join.join_id, join.row), consistent_read=True
    )
    counted = sum(len(getattr(row, name) or ()) for name in COUNTED.values())
    return counted == len(range(join.row, join.total, join.rows))


def _find_hurried(tenant: str, mark: Mark) -> list[Sending]:
    """Find the join of the last turn, if it has something to do by now."""
    join_id, owner_id = mark.join.join_id, mark.owner_id
    turns = ItemRow.item_id.between(join_name(join_id, 0), join_name(join_id, _LAST_TURN))
    rows = ItemRow.query(
        key_of(tenant, owner_id), turns, scan_index_forward=False, limit=1, consistent_read=True
    )
    return [
        _sending(tenant, owner_id, row.item_id, None, row.trace)
        for row in rows
        if row.status == ItemStatus.UNDONE
        and judge(json.loads(row.body), load_tally(tenant, owner_id, join_id))
    ]


def _sending(tenant: str, owner_id: str, item_id: str, channel: str | None, trace: str | None) -> Sending:
    return Sending(Message(tenant, owner_id=owner_id, item_id=item_id), channel=channel, trace=trace)
