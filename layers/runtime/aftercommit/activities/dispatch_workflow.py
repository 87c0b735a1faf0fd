"""DispatchWorkflow: start a child workflow after the commit that decided it, and wait for it or not."""

from aftercommit.activities.activity import Activity, Property, Visit
from aftercommit.ids import derive_child_id
from aftercommit.intentions import intend_start, take_along
from aftercommit.jsons import Json, size_of
from aftercommit.limits import told_bytes
from aftercommit.model import Failure
from aftercommit.statuses import Outcome

_BAD_ENDINGS = (Outcome.FAULTED, Outcome.CANCELLED, Outcome.DISPATCH_FAILED)


class Branching(Activity):
    """Base of what starts children, and waits for them or not: a branch in `on` handles its outcome."""

    wait: bool | None
    on: dict[str, Activity] | None

    def takes_time(self) -> bool:
        """Only while it waits for what it started."""
        return bool(self.wait)

    def find_branch_faults(self, when_waiting: tuple[str, ...]) -> list[tuple[str, str]]:
        """Refuse a branch for an outcome that cannot happen."""
        possible = when_waiting if self.wait else (Outcome.DISPATCHED,)
        how = "waiting" if self.wait else "not waiting"
        told = f"{how}, it cannot end so; it ends {', '.join(possible)}"
        return [(f"on.{outcome}", told) for outcome in self.on or {} if outcome not in possible]

    def child_ended(self, visit: Visit, key: str, outcome: str) -> None:
        """End after the branch, with the outcome that chose it."""
        del key, outcome
        visit.complete(visit.memory["outcome"])

    def go_on(self, visit: Visit, outcome: str, result: Json) -> None:
        """Run the branch of an outcome, or complete with it."""
        if outcome in (self.on or {}):
            visit.memory["outcome"] = outcome
            if self.result:  # set before the branch runs, so that it can read it
                visit.set_variable(self.result, result)
            visit.schedule(f"on.{outcome}")
        else:
            visit.complete(outcome, result)


class DispatchWorkflow(Branching):
    """Starts `workflow` with `input`.

    Not waiting, it completes at once with {instance_id} and outcome Dispatched. Waiting, it ends with the
    child: outcome Completed and the child's output, or Faulted, Cancelled, DispatchFailed with
    {instance_id, error: {type, message}}. A branch in `on` handles its outcome; a bad ending that none
    handles faults here, so that no child's failure passes for success.

    `cancel_with_parent`: whether the child is cancelled when this instance is, or waits for it no more. By
    default a child that is waited for is, and any other is left alone.
    """

    properties = {
        "workflow": Property("text", required=True),
        "version": Property("number"),
        "input": Property("value_map"),
        "correlation_id": Property("value"),
        "channel": Property("text"),
        "wait": Property("flag"),
        "cancel_with_parent": Property("flag"),
        "on": Property("branches"),
        "result": Property("variable"),
    }
    workflow: str
    version: int | None
    input: dict[str, Json] | None
    correlation_id: Json
    channel: str | None
    cancel_with_parent: bool | None

    def __init__(  # noqa: PLR0913 - one for each property
        self,
        workflow: str,
        *,
        input: dict[str, Json] | None = None,  # noqa: A002 - the word of the design
        wait: bool = False,
        result: str | None = None,
        on: dict[str, Activity] | None = None,
        version: int | None = None,
        correlation_id: Json = None,
        channel: str | None = None,
        cancel_with_parent: bool | None = None,
    ) -> None:
        super().__init__(
            workflow=workflow,
            version=version,
            input=input,
            correlation_id=correlation_id,
            channel=channel,
            wait=wait or None,
            cancel_with_parent=cancel_with_parent,
            on=on,
            result=result,
        )

    def find_faults(self) -> list[tuple[str, str]]:
        """Refuse a branch for an outcome that cannot happen."""
        return self.find_branch_faults((Outcome.COMPLETED, *_BAD_ENDINGS))

    def enter(self, visit: Visit) -> None:
        """Intend the start; the child's id derives from this execution, so a repeat names the same child."""
        execution_id = visit.execution.execution_id
        correlation_id = visit.evaluate_correlation_id(self.correlation_id)
        given = visit.evaluate(self.input or {})
        if size_of(given) > visit.value_bytes_max:
            size, most = size_of(given), told_bytes(visit.value_bytes_max)
            told = f"the input of {self.workflow} is {size} bytes; at most {most} go in"
            visit.fault(Failure("InputTooLargeError", told))
            return
        intention = intend_start(
            execution_id,
            definition_id=self.workflow,
            version=self.version,
            input=given,
            correlation_id=correlation_id or visit.correlation_id,
            channel=self.channel,
            depth=visit.depth + 1,
            bookmark_id=visit.wait("child") if self.wait else None,
        )
        # One that is waited for goes with its bookmark.
        goes_along = self.cancel_with_parent and not self.wait
        visit.intend(take_along(intention) if goes_along else intention)
        if not self.wait:
            self.go_on(visit, Outcome.DISPATCHED, {"instance_id": derive_child_id(execution_id)})

    def resumed(self, visit: Visit, outcome: str, value: Json) -> None:
        """Take the child's ending."""
        if outcome == Outcome.COMPLETED:
            self.go_on(visit, outcome, value)
            return
        failure = value or {}
        result = {"instance_id": derive_child_id(visit.execution.execution_id), "error": failure}
        if outcome in _BAD_ENDINGS and outcome not in (self.on or {}):
            told = f": {failure['message']}" if failure.get("message") else ""
            visit.fault(Failure(f"Child{outcome}Error", f"child {self.workflow} ended {outcome}{told}"))
            return
        self.go_on(visit, outcome, result)
