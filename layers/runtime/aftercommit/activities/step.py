"""Step: run a Python function, once per committed result."""

from collections.abc import Callable
from typing import Any

from aftercommit.activities.activity import Activity, Property, Visit
from aftercommit.functions import ActivityContext, ActivityFunction, Retry
from aftercommit.jsons import Json


class Step(Activity):
    """Runs the activity function named `activity`; its return value goes into `result`.

    The inputs are evaluated once, when the step is reached, so that every attempt gets the same ones.
    """

    properties = {
        "activity": Property("text", required=True),
        "inputs": Property("value_map"),
        "retry": Property("options"),
        "result": Property("variable"),
    }
    activity: str
    inputs: dict[str, Json] | None
    retry: dict[str, Json] | None

    def __init__(
        self,
        activity: str | Callable[..., Any],
        *,
        result: str | None = None,
        retry: Any = None,
        inputs: dict[str, Json] | None = None,
        **more_inputs: Json,
    ) -> None:
        name = activity if isinstance(activity, str) else activity_name(activity)
        super().__init__(
            activity=name,
            inputs={**(inputs or {}), **more_inputs} or None,
            retry=retry.to_json() if hasattr(retry, "to_json") else retry,
            result=result,
        )

    def takes_time(self) -> bool:
        """Say so: it does."""
        return True

    def enter(self, visit: Visit) -> None:
        """Evaluate the inputs and become ready for a worker."""
        visit.memory["inputs"] = visit.evaluate(self.inputs or {})
        visit.make_ready()

    # --- what a worker asks ---

    def policy(self, function: ActivityFunction) -> Retry:
        """Return when it is tried again; its own policy comes before the function's."""
        return function.retry if self.retry is None else Retry.from_json(self.retry)

    def seconds_needed(self, function: ActivityFunction) -> float:
        """Return how much of an invocation has to be left to begin."""
        return function.timeout_seconds

    def run(self, function: ActivityFunction, inputs: Json, context: ActivityContext) -> Json:
        """Call its function; raises what that raises."""
        return function.run(inputs, context)

    def find_faults(self) -> list[tuple[str, str]]:
        """Refuse a retry policy that makes no sense."""
        try:
            if isinstance(self.retry, dict):
                Retry.from_json(self.retry)
        except (TypeError, ValueError) as error:
            return [("retry", str(error).replace("Retry.__init__() ", ""))]
        return []


def activity_name(function: Callable[..., Any]) -> str:
    """Return the name under which `@activity` registered a function; TypeError if it is none."""
    name: str | None = getattr(function, "activity_name", None)
    if name is None:
        raise TypeError(f"{function!r} is no activity: decorate it with @activity")
    return name
