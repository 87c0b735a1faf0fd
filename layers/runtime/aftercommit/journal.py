"""The journal: one line per thing that an activity did, for people; a replay never reads it."""

from aftercommit.activities.activity import Activity
from aftercommit.jsons import Json
from aftercommit.model import Execution, Failure, Intention
from aftercommit.statuses import Outcome


def line_of(
    activity: Activity,
    execution: Execution,
    status: str,
    *,
    outcome: str | None = None,
    failure: Failure | None = None,
    intention: Intention | None = None,
    started_at: str = "",
    retry_at: str | None = None,
) -> dict[str, Json] | None:
    """Return a line, without what is absent; None for a container that is done, as its children tell."""
    if status == "completed" and next(activity.children(), None) and outcome == Outcome.DONE:
        return None
    line: dict[str, Json] = {"activity_id": execution.activity_id, "type": activity.type, "status": status}
    if name := getattr(activity, "activity", None):
        line["activity"] = name
    line["execution_id"] = execution.execution_id
    if outcome and outcome != Outcome.DONE:
        line["outcome"] = outcome
    if execution.attempt > 1 or status == "retrying":
        line["attempt"] = execution.attempt
    if failure:
        line["error"] = failure.to_json()
    if intention:
        line["item_id"] = intention.item_id
        line["instance_id"] = intention.body["instance_id"]
    if started_at:
        line["started_at"] = started_at
    if retry_at:
        line["retry_at"] = retry_at
    return line
