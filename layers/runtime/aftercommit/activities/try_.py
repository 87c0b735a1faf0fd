"""Try: handle a fault, and do what must be done either way."""

from aftercommit.activities.activity import Activity, Property, Visit
from aftercommit.jsons import Json
from aftercommit.model import Failure


class Try(Activity):
    """Runs `body`; if it faults, `handler`; then, either way, `finally`.

    The handler sees the fault as `var.error` ({type, message}). A handler that faults counts as none: the
    first fault goes on outwards, after `finally`. With `errors`, only faults of those types are handled.
    `finally` also runs when a Break leaves, but not when all is cancelled from outside, or Finish ends it.
    """

    properties = {
        "body": Property("child", required=True),
        "handler": Property("child"),
        "finally": Property("child"),
        "errors": Property("texts"),
    }
    body: Activity
    handler: Activity | None
    errors: list[str] | None

    def __init__(
        self,
        body: Activity,
        *,
        handler: Activity | None = None,
        finally_: Activity | None = None,
        errors: list[str] | None = None,
    ) -> None:
        super().__init__(body=body, handler=handler, errors=errors, **{"finally": finally_})

    def enter(self, visit: Visit) -> None:
        """Begin the body."""
        visit.memory["phase"] = "body"
        visit.schedule("body")

    def catches(self, memory: dict[str, Json]) -> bool:
        """Take faults of the body and of the handler; those of `finally` go outwards."""
        return memory.get("phase") != "finally"

    def holds_break(self, memory: dict[str, Json]) -> bool:
        """Let `finally` go first."""
        return memory.get("phase") != "finally" and getattr(self, "finally") is not None

    def child_broke(self, visit: Visit) -> None:
        """Go on to `finally`; a Break in the handler leaves the fault behind, too."""
        visit.memory.pop("failure", None)
        visit.memory["breaks"] = True
        self._finally(visit)

    def child_faulted(self, visit: Visit, failure: Failure) -> None:
        """Handle a fault of the body; one of the handler lets the body's go on outwards."""
        told = failure.to_json()
        handled = self.errors is None or failure.type in self.errors
        if visit.memory["phase"] == "body" and self.handler is not None and handled:
            visit.memory.update(phase="handler", failure=told)
            visit.schedule("handler", 0, {"error": told})
            return
        visit.memory.setdefault("failure", told)
        self._finally(visit)

    def child_ended(self, visit: Visit, key: str, outcome: str) -> None:
        """Go on to `finally`, or to the end."""
        del outcome
        if key == "finally":
            self._end(visit)
            return
        visit.memory.pop("failure", None)
        self._finally(visit)

    def _finally(self, visit: Visit) -> None:
        visit.memory["phase"] = "finally"
        if getattr(self, "finally") is None:
            self._end(visit)
        else:
            visit.schedule("finally")

    def _end(self, visit: Visit) -> None:
        if "failure" in visit.memory:
            visit.fault(Failure(**visit.memory["failure"]))
        elif "breaks" in visit.memory:
            visit.break_loop()
        else:
            visit.complete()
