"""Join: go on where an instance waits for the children of a bulk dispatch, once there is something to tell.

The join is acked in the commit that takes what it brings. One that has nothing to tell yet stays undone and
is looked at again, at longer and longer intervals; a child's last commit hurries it. It also finds what is
damaged: a start that sleeps though its turn has come, or that can never be carried out.
"""

from aftercommit import clock
from aftercommit.bodies import body_of
from aftercommit.burst import Worker, apply_item
from aftercommit.errors import ConditionFailedError
from aftercommit.ids import part_name
from aftercommit.joins import End, HandOver, Tally, Told, compose_batch, compose_result, judge, name_failures
from aftercommit.jsons import Json, dumps
from aftercommit.log import count, ids_of, logger
from aftercommit.model import Failure, Resume
from aftercommit.outbox import find_parts, settle
from aftercommit.places import Join, Mark
from aftercommit.statuses import ItemStatus, Outcome
from aftercommit.tables import ItemRow
from aftercommit.tallies import ending_writes, hurry, leave_out, load_tally, tally_update, wake_update
from aftercommit.writes import commit

# Children that one look examines: it begins elsewhere each time.
_EXAMINED_MAX = 100


def join(item: ItemRow, worker: Worker) -> None:
    """See a join through, or leave it undone while its children run."""
    body = body_of(item)
    tally = load_tally(item.tenant, item.owner_id, body["join_id"])
    verdict = judge(body, tally)
    if verdict is None:
        if item.sends > 1:  # the first look comes with the children themselves
            _find_damage(item, body, tally)
    elif not item.wait:
        settle(item)  # it has only watched over their lanes
    else:
        apply_item(item, _tell(item, body, tally, verdict), worker)


def _tell(item: ItemRow, body: dict[str, Json], tally: Tally, verdict: HandOver | End) -> Resume:
    """Return the resume that brings the parent a batch, or the end."""
    if isinstance(verdict, HandOver):
        marks = _read_marks(item, body, verdict.indexes[0], verdict.indexes[-1])
        value = compose_batch(body["join_id"], verdict, marks)
        return Resume(body["bookmark_id"], Outcome.DONE, value)
    if body["outputs"]:
        marks = _read_marks(item, body, 0, body["total"] - 1)
    else:
        marks = {}
        for index in name_failures(tally):
            marks |= _read_marks(item, body, index, index)
    return Resume(body["bookmark_id"], verdict.outcome, compose_result(body, tally, marks))


def _read_marks(item: ItemRow, body: dict[str, Json], first: int, last: int) -> dict[int, Told]:
    parts = find_parts(item.tenant, item.owner_id, body["join_id"], first, last)
    return {index: (row.outcome, row.output) for index, row in parts.items() if row.outcome}


def _find_damage(item: ItemRow, body: dict[str, Json], tally: Tally) -> None:
    """Look at some of the children that have not ended, for what would never end by itself."""
    ended = tally.all
    running = [index for index in range(body["total"]) if index not in ended]
    first = int(item.sends) * _EXAMINED_MAX % len(running)
    some = running[first : first + _EXAMINED_MAX]
    some = [index for index in some if index < some[0] + 10 * _EXAMINED_MAX]
    parts = find_parts(item.tenant, item.owner_id, body["join_id"], some[0], some[-1])
    for index in some:
        try:
            _repair(item, body, index, parts.get(index), ended)
        except ConditionFailedError:
            continue  # it has gone on meanwhile


def _repair(item: ItemRow, body: dict[str, Json], index: int, part: ItemRow | None, ended: set[int]) -> None:
    lanes = body.get("lanes")
    place = Join(body["join_id"], index, body["total"], body["rows"], lanes, awaited=bool(item.wait))
    at = clock.now()
    if part is None:
        # The join was stored behind all of its children: this one was there, and nothing can bring it back.
        commit([tally_update(item.tenant, item.owner_id, place, Outcome.DISPATCH_FAILED)])
        _tell_damage("dispatch is gone", item, index)
    elif part.status == ItemStatus.FAILED and not part.outcome:
        failure = Failure("MalformedRowError", "its dispatch could not be read")
        told = dumps(failure.to_json())
        mark = Mark(item.owner_id, place, Outcome.DISPATCH_FAILED.value, told)
        writes = ending_writes(item.tenant, mark, at)
        try:
            commit(writes)
        except ConditionFailedError as error:
            fewer = leave_out(writes, error.purposes - {"mark"})
            if "mark" in error.purposes or not fewer:
                raise
            commit(fewer)
        _tell_damage("dispatch was set aside", item, index)
        hurry(item.tenant, mark)
    elif part.asleep and lanes and index - lanes in ended:
        commit([wake_update(item.tenant, item.owner_id, part_name(place.join_id, index), at)])
        _tell_damage("dispatch overslept", item, index)


def _tell_damage(message: str, item: ItemRow, index: int) -> None:
    logger.error(message, extra={**ids_of(item), "index": index})
    count("JoinsRepaired")
