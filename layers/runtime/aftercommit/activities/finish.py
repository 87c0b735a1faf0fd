"""Finish: complete the whole instance now."""

from aftercommit.activities.activity import NOTHING, Activity, Property, Visit
from aftercommit.jsons import Json


class Finish(Activity):
    """Completes the instance, from wherever it stands; without `output`, the definition's output applies."""

    properties = {"output": Property("value")}
    output: Json

    def __init__(self, output: Json = None) -> None:
        super().__init__(output=output)

    def enter(self, visit: Visit) -> None:
        """End the instance."""
        visit.end(NOTHING if self.output is None else visit.evaluate(self.output))
