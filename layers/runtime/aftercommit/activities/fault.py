"""Fault: end this way with a failure that the workflow itself declares."""

from aftercommit.activities.activity import Activity, Property, Visit
from aftercommit.jsons import Json
from aftercommit.limits import MESSAGE_CHARACTERS_MAX
from aftercommit.model import Failure


class Fault(Activity):
    """Faults with `message`; `code` is its type, for parents and programs that tell faults apart."""

    properties = {"message": Property("value", required=True), "code": Property("text")}
    message: Json
    code: str | None

    def __init__(self, message: Json, *, code: str | None = None) -> None:
        super().__init__(message=message, code=code)

    def enter(self, visit: Visit) -> None:
        """Fault."""
        message = str(visit.evaluate(self.message))
        visit.fault(Failure(self.code or "Fault", message[:MESSAGE_CHARACTERS_MAX]))
