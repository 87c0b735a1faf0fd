"""Joins: what the endings of a bulk dispatch's children come to. Pure: rows are read and written elsewhere.

A tally names the children that have ended, by outcome. Each is a member of a set, so one that is told of
twice counts once.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from aftercommit.ids import derive_child_id, part_name
from aftercommit.intentions import OUTCOME_OF_ENDING
from aftercommit.jsons import Json, dumps, size_of
from aftercommit.limits import (
    BATCH_BYTES_MAX,
    BULK_OUTPUTS_BYTES_MAX,
    CHILD_OUTPUT_BYTES_MAX,
    FAILURES_NAMED_MAX,
    NAMED_CHILDREN_MAX,
    TALLY_CHILDREN,
    TALLY_ROWS_MAX,
)
from aftercommit.model import State
from aftercommit.places import Mark
from aftercommit.statuses import Outcome

# How an ending is counted: the attribute of a tally row, and the name in the result.
COUNTED = {
    Outcome.COMPLETED: "completed",
    Outcome.FAULTED: "faulted",
    Outcome.CANCELLED: "cancelled",
    Outcome.DISPATCH_FAILED: "dispatch_failed",
}
HANDLERS = ("each_completed", "each_faulted")
# The children of one batch are read in one go, so they are not further apart than this.
_BATCH_SPAN = 1_000


@dataclass
class Tally:
    """The indexes of the children that have ended, by how they are counted."""

    ended: dict[str, set[int]] = field(default_factory=lambda: {name: set() for name in COUNTED.values()})

    def add(self, outcome: str, indexes: Iterable[int]) -> None:
        """Count children in."""
        self.ended[COUNTED[Outcome(outcome)]].update(indexes)

    @property
    def all(self) -> set[int]:
        """Those that have ended, in whichever way."""
        return set().union(*self.ended.values())

    @property
    def failed(self) -> set[int]:
        """Those that have ended badly."""
        return self.all - self.ended["completed"]


@dataclass(frozen=True)
class HandOver:
    """A batch of ended children is to be handed to a handler."""

    handler: str
    indexes: list[int]
    exceeded: bool  # more have failed than are tolerated


@dataclass(frozen=True)
class End:
    """The wait is over: all have ended, or more have failed than are tolerated."""

    outcome: Outcome


def count_tally_rows(total: int) -> int:
    """Return in how many rows the endings of so many children are tallied."""
    return max(1, min(TALLY_ROWS_MAX, total // TALLY_CHILDREN))


def judge(body: dict[str, Json], tally: Tally) -> HandOver | End | None:
    """Say what a join is to do, given its body and which children have ended; None: wait on.

    `body`: {instance_id, bookmark_id?, join_id, total, rows, tolerated, lanes?, outputs, handlers?, handed?,
    batch_max?}; `handed` is a set of indexes as a hexadecimal number. What has ended is handed over before
    the wait ends.
    """
    ended, failed = tally.all, tally.failed
    exceeded = len(failed) > body["tolerated"]
    of_handler = {"each_completed": tally.ended["completed"], "each_faulted": failed}
    for handler in body.get("handlers", []):
        if new := sorted(of_handler[handler] - read_indexes(body.get("handed", "0"))):
            near = [index for index in new if index < new[0] + _BATCH_SPAN]
            return HandOver(handler, near[: body["batch_max"]], exceeded)
    if exceeded:
        return End(Outcome.FAULTED)
    return End(Outcome.COMPLETED) if len(ended) == body["total"] else None


def read_indexes(written: str) -> set[int]:
    """Read a set of indexes that is kept as a hexadecimal number with their bits."""
    bits = int(written, 16)
    return {index for index in range(bits.bit_length()) if bits >> index & 1}


def add_indexes(written: str, indexes: Iterable[int]) -> str:
    """Return such a number with more indexes in it."""
    return f"{int(written, 16) | sum(1 << index for index in set(indexes)):x}"


def mark_ending(state: State) -> Mark | None:
    """Return how a child of a bulk dispatch has ended; None for any other instance."""
    if state.parent is None or state.parent.join is None:
        return None
    outcome = OUTCOME_OF_ENDING[state.status]
    failure = state.failure.to_json() if state.failure else None
    told = dumps(state.output if outcome == Outcome.COMPLETED else failure)
    small = len(told.encode()) <= CHILD_OUTPUT_BYTES_MAX
    return Mark(state.parent.instance_id, state.parent.join, outcome.value, told if small else None)


# --- what the parent is told ---

Told = tuple[str, str | None]  # outcome, and the JSON of output or failure


def compose_batch(join_id: str, verdict: HandOver, marks: Mapping[int, Told]) -> dict[str, Json]:
    """Return what the parent is resumed with for a batch; children that it has no room for come in the next.

    A child: {index, instance_id, output}, or {index, instance_id, outcome, error}. An output that was too
    large to be passed on is null.
    """
    batch: list[Json] = []
    size = 0
    for index in verdict.indexes:
        child = _describe(join_id, index, marks.get(index))
        size += size_of(child)
        if batch and size > BATCH_BYTES_MAX:
            break
        batch.append(child)
    return {"handler": verdict.handler, "batch": batch, "exceeded": verdict.exceeded}


def _describe(join_id: str, index: int, told: Told | None) -> dict[str, Json]:
    child = {"index": index, "instance_id": derive_child_id(part_name(join_id, index))}
    outcome, text = told or (Outcome.DISPATCH_FAILED.value, None)
    value = json.loads(text) if text is not None else None
    if outcome == Outcome.COMPLETED:
        return {**child, "output": value}
    return {**child, "outcome": outcome, "error": value}


def name_failures(tally: Tally) -> list[int]:
    """Return the indexes of the failures that a result tells of: the first."""
    return sorted(tally.failed)[:FAILURES_NAMED_MAX]


def compose_result(body: dict[str, Json], tally: Tally, marks: Mapping[int, Told]) -> dict[str, Json]:
    """Return the result of a bulk dispatch, bounded in size.

    {total, completed, faulted, cancelled, dispatch_failed, unfinished?, failures?, outputs?, left_out?}:
    `unfinished` ran on when too many had failed; `outputs` are in item order, null for what has none;
    `left_out` are the first that were too large, each or together, as {index, instance_id}.
    """
    join_id, total = body["join_id"], body["total"]
    result: dict[str, Json] = {"total": total, **{name: len(of) for name, of in tally.ended.items()}}
    if unfinished := total - len(tally.all):
        result["unfinished"] = unfinished
    if failed := name_failures(tally):
        result["failures"] = [_describe(join_id, index, marks.get(index)) for index in failed]
    if not body["outputs"]:
        return result
    outputs: list[Json] = [None] * total
    left_out: list[Json] = []
    size = 0
    for index in sorted(tally.ended["completed"]):
        text = marks[index][1] if index in marks else None
        size += len(text.encode()) if text is not None else 0
        if text is not None and size <= BULK_OUTPUTS_BYTES_MAX:
            outputs[index] = json.loads(text)
        elif len(left_out) < NAMED_CHILDREN_MAX:
            left_out.append({"index": index, "instance_id": derive_child_id(part_name(join_id, index))})
    return {**result, "outputs": outputs, **({"left_out": left_out} if left_out else {})}
