"""BulkDispatchWorkflows: start a child for each of many items, and wait for all of them or not."""

import re
from collections.abc import Iterator
from math import floor
from typing import Any

from aftercommit.activities.activity import Activity, Property, Visit
from aftercommit.activities.dispatch_workflow import Branching
from aftercommit.errors import ExpressionError, InputTooLargeError, TooManyItemsError
from aftercommit.ids import derive_child_id, derive_join_id, join_name, part_name
from aftercommit.intentions import as_part, intend_bulk_cancel, intend_start
from aftercommit.joins import HANDLERS, add_indexes, count_tally_rows
from aftercommit.jsons import Json, size_of
from aftercommit.limits import (
    BATCH_CHILDREN_MAX,
    BULK_CHILDREN_MAX,
    INPUT_BYTES_MAX,
    NAMED_CHILDREN_MAX,
)
from aftercommit.model import Execution, Failure, Intention
from aftercommit.places import Join
from aftercommit.statuses import ItemCommand, Outcome

_SHARE = re.compile(r"(\d{1,3}(?:\.\d+)?)%")
_OF_WAITING = ("tolerated_failures", *HANDLERS)


class BulkDispatchWorkflows(Branching):
    """Starts `workflow` once for each of `items`, which `input` and `correlation_id` see as `var.item`.

    Not waiting, it completes with {count, instance_ids} and outcome Dispatched. Waiting, it is resumed once,
    when all have ended: outcome Completed, or Faulted when more have ended badly than `tolerated_failures`
    (a number, or a share as "20%"); then the others are cancelled, and it does not wait for them. A branch in
    `on` handles its outcome; Faulted that none handles faults here. With `concurrent_max`, as many run at
    once. `each_completed` and `each_faulted` run for batches of ended children while others still run.
    """

    properties = {
        "workflow": Property("text", required=True),
        "items": Property("value", required=True),
        "item": Property("variable"),
        "index": Property("variable"),
        "input": Property("value_map"),
        "version": Property("number"),
        "correlation_id": Property("value"),
        "channel": Property("text"),
        "wait": Property("flag"),
        "concurrent_max": Property("value"),
        "tolerated_failures": Property("value"),
        "each_completed": Property("child"),
        "each_faulted": Property("child"),
        "batch": Property("variable"),
        "batch_max": Property("number"),
        "on": Property("branches"),
        "result": Property("variable"),
    }
    workflow: str
    items: Json
    item: str | None
    index: str | None
    input: dict[str, Json] | None
    version: int | None
    correlation_id: Json
    channel: str | None
    concurrent_max: Json
    tolerated_failures: Json
    each_completed: Activity | None
    each_faulted: Activity | None
    batch: str | None
    batch_max: int | None

    def __init__(  # noqa: PLR0913 - one for each property
        self,
        workflow: str,
        items: Json,
        *,
        item: str | None = None,
        index: str | None = None,
        input: Any = None,  # noqa: A002 - the word of the design
        version: int | None = None,
        correlation_id: Json = None,
        channel: str | None = None,
        wait: bool = False,
        concurrent_max: Json = None,
        tolerated_failures: Json = None,
        each_completed: Activity | None = None,
        each_faulted: Activity | None = None,
        batch: str | None = None,
        batch_max: int | None = None,
        on: dict[str, Activity] | None = None,
        result: str | None = None,
    ) -> None:
        super().__init__(
            workflow=workflow,
            items=items,
            item=item,
            index=index,
            input=input,
            version=version,
            correlation_id=correlation_id,
            channel=channel,
            wait=wait or None,
            concurrent_max=concurrent_max,
            tolerated_failures=tolerated_failures,
            each_completed=each_completed,
            each_faulted=each_faulted,
            batch=batch,
            batch_max=batch_max,
            on=on,
            result=result,
        )

    def find_faults(self) -> list[tuple[str, str]]:
        """Refuse what cannot happen, and what makes no sense."""
        faults = self.find_branch_faults((Outcome.COMPLETED, Outcome.FAULTED))
        if not self.wait:
            idle = [name for name in _OF_WAITING if getattr(self, name) is not None]
            faults += [(name, "is for waiting only") for name in idle]
        if isinstance(self.index, str) and self.index == (self.item or "item"):
            faults.append(("index", "is the name of the item, too"))
        if isinstance(self.batch_max, int) and self.batch_max > BATCH_CHILDREN_MAX:
            faults.append(("batch_max", f"must be at most {BATCH_CHILDREN_MAX}"))
        if not _may_be(self.concurrent_max, _is_lanes):
            faults.append(("concurrent_max", "must be a whole number from 1"))
        if not _may_be(self.tolerated_failures, _is_tolerance):
            faults.append(("tolerated_failures", 'must be a whole number from 0, or a share as "20%"'))
        return faults

    # --- beginning ---

    def enter(self, visit: Visit) -> None:
        """Intend a start for each item, over as many commits as that takes; then the join of them all.

        The join comes last, so that it never meets children that are not there yet.
        """
        items = visit.evaluate_items(self.items)
        total = len(items)
        if total > BULK_CHILDREN_MAX:
            told = f"{total} items; at most {BULK_CHILDREN_MAX} children are dispatched at once"
            raise TooManyItemsError(told)
        lanes = self._evaluate_lanes(visit)
        tolerated = self._evaluate_tolerance(visit, total)
        if not total:
            self._complete_empty(visit)
            return
        # From the first commit on, so that what ends it midway finds that there are children.
        visit.memory.update(total=total, tolerated=tolerated, turn=0)
        if lanes and lanes < total:
            visit.memory["lanes"] = lanes
        bookmark_id = None
        if self.wait:
            visit.memory["waits"] = True
            bookmark_id = visit.wait("children")
        visit.intend_each(self._intend_starts(visit, items))
        if self.wait or "lanes" in visit.memory:
            visit.intend(self._intend_join(visit, bookmark_id))
        if self.wait:
            return
        join_id = derive_join_id(visit.execution.execution_id)
        named = [
            derive_child_id(part_name(join_id, index)) for index in range(min(total, NAMED_CHILDREN_MAX))
        ]
        self.go_on(visit, Outcome.DISPATCHED, {"count": total, "instance_ids": named})

    def _complete_empty(self, visit: Visit) -> None:
        if not self.wait:
            self.go_on(visit, Outcome.DISPATCHED, {"count": 0, "instance_ids": []})
            return
        none = dict.fromkeys(("total", "completed", "faulted", "cancelled", "dispatch_failed"), 0)
        self.go_on(visit, Outcome.COMPLETED, {**none, "outputs": []})

    def _evaluate_lanes(self, visit: Visit) -> int | None:
        lanes: Json = visit.evaluate(self.concurrent_max)
        if lanes is not None and not _is_lanes(lanes):
            raise ExpressionError(str(self.concurrent_max), "expected a whole number from 1")
        return lanes  # type: ignore[no-any-return]

    def _evaluate_tolerance(self, visit: Visit, total: int) -> int:
        if not self.wait:
            return total
        tolerated = visit.evaluate(self.tolerated_failures)
        if tolerated is None:
            return 0
        if not _is_tolerance(tolerated):
            told = 'expected a whole number from 0, or a share as "20%"'
            raise ExpressionError(str(self.tolerated_failures), told)
        if isinstance(tolerated, str):
            return floor(total * float(tolerated[:-1]) / 100)
        return int(tolerated)

    def _intend_starts(self, visit: Visit, items: list[Json]) -> Iterator[Intention]:
        memory = visit.memory
        lanes, total = memory.get("lanes"), memory["total"]
        join_id = derive_join_id(visit.execution.execution_id)
        rows = count_tally_rows(total)
        for index, item in enumerate(items):
            given = {self.item or "item": item, self.index or "index": index}
            taken = {"item": item, "index": index}
            if self.input is not None:
                taken = visit.evaluate(self.input, given, index)
            self._check_input(taken, index)
            correlation_id = visit.evaluate_correlation_id(self.correlation_id, given, index)
            join = Join(join_id, index, total, rows, lanes, bool(self.wait), self.channel)
            start = intend_start(
                part_name(join_id, index),
                definition_id=self.workflow,
                version=self.version,
                input=taken,
                correlation_id=correlation_id or visit.correlation_id,
                channel=self.channel,
                depth=visit.depth + 1,
            )
            yield as_part(start, join, joins=bool(self.wait or lanes))

    def _check_input(self, taken: Json, index: int) -> None:
        if not isinstance(taken, dict):
            raise ExpressionError(str(self.input), f"expected an object, got {type(taken).__name__}")
        if size_of(taken) > INPUT_BYTES_MAX:
            told = f"the input of {self.workflow} for item {index} is {size_of(taken)} bytes; "
            raise InputTooLargeError(f"{told}at most {INPUT_BYTES_MAX} go in")

    def _intend_join(self, visit: Visit, bookmark_id: str | None) -> Intention:
        memory, join_id = visit.memory, derive_join_id(visit.execution.execution_id)
        handlers = [name for name in HANDLERS if getattr(self, name) is not None]
        body = {
            "instance_id": visit.instance_id,
            "bookmark_id": bookmark_id,
            "join_id": join_id,
            "total": memory["total"],
            "rows": count_tally_rows(memory["total"]),
            "tolerated": memory["tolerated"],
            "lanes": memory.get("lanes"),
            "outputs": bool(self.wait and self.result),
            "handlers": handlers or None,
            "handed": memory.get("handed"),
            "batch_max": (self.batch_max or BATCH_CHILDREN_MAX) if handlers else None,
        }
        written = {name: value for name, value in body.items() if value is not None}
        return Intention(ItemCommand.JOIN, join_name(join_id, memory["turn"]), written)

    # --- going on ---

    def resumed(self, visit: Visit, outcome: str, value: Json) -> None:
        """Take a batch of ended children, or the end of all."""
        if outcome == Outcome.DONE:
            self._hand_over(visit, value)
            return
        lost = outcome == Outcome.DISPATCH_FAILED  # the join itself was set aside: how they end is not told
        if lost or value.get("unfinished"):
            self._cancel_others(visit)
        visit.memory["waits"] = False
        if lost:
            visit.fault(
                Failure("JoinFailedError", f"the wait for children {self.workflow}: {value['message']}")
            )
            return
        if outcome == Outcome.FAULTED and outcome not in (self.on or {}):
            visit.fault(Failure("ChildrenFaultedError", self._describe_failures(visit, value)))
            return
        self.go_on(visit, outcome, value)

    def child_ended(self, visit: Visit, key: str, outcome: str) -> None:
        """Wait on after a batch was handled, or end after the branch."""
        if key not in HANDLERS:
            super().child_ended(visit, key, outcome)
            return
        visit.memory["turn"] += 1
        bookmark_id = visit.wait("children", turn=visit.memory["turn"])
        visit.intend(self._intend_join(visit, bookmark_id))

    def _hand_over(self, visit: Visit, value: Json) -> None:
        batch = value["batch"]
        handed = visit.memory.get("handed", "0")
        visit.memory["handed"] = add_indexes(handed, [each["index"] for each in batch])
        if value["exceeded"]:
            self._cancel_others(visit)
        visit.schedule(value["handler"], visit.memory["turn"], {self.batch or "batch": batch})

    def _cancel_others(self, visit: Visit) -> None:
        """Cancel what still runs or sleeps, once."""
        if not visit.memory.get("cancelled"):
            visit.memory["cancelled"] = True
            visit.intend(self._intend_cancel(visit.instance_id, visit.execution))

    def dropped(self, instance_id: str, execution: Execution) -> list[Intention]:
        """Cancel the children, if it waits for them: nobody will take what they bring."""
        memory = execution.memory
        if not memory.get("waits") or memory.get("cancelled"):
            return []
        return [self._intend_cancel(instance_id, execution)]

    def _intend_cancel(self, instance_id: str, execution: Execution) -> Intention:
        return intend_bulk_cancel(instance_id, execution.execution_id, execution.memory["turn"])

    def _describe_failures(self, visit: Visit, value: Json) -> str:
        failed = sum(value[name] for name in ("faulted", "cancelled", "dispatch_failed"))
        told = f"{failed} of {value['total']} children {self.workflow} ended badly"
        first = next(iter(value.get("failures", [])), None)
        if first and (error := first.get("error")):
            told += f", the first: {error['message']}"
        return f"{told} ({visit.memory['tolerated']} tolerated)"


def _may_be(asked: Json, check: Any) -> bool:
    """Whether a property is absent, an expression, or passes a check."""
    return asked is None or not isinstance(asked, int | float | str | bool) or _is_text(asked) or check(asked)


def _is_text(asked: Json) -> bool:
    return isinstance(asked, str) and asked.startswith("{%")


def _is_lanes(value: Json) -> bool:
    return type(value) is int and value >= 1


def _is_tolerance(value: Json) -> bool:
    if isinstance(value, str):
        share = _SHARE.fullmatch(value)
        return share is not None and float(share[1]) <= 100  # noqa: PLR2004 - of a hundred
    return type(value) is int and value >= 0
