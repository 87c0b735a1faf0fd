"""Workflow: a definition written in Python. What it holds is the same data as one written in JSON."""

from typing import Any

from aftercommit import schema
from aftercommit.activities import Activity
from aftercommit.definition import Definition, read_definition
from aftercommit.expressions import to_json
from aftercommit.jsons import Json


class Workflow:
    """A named, versioned tree of activities.

    `inputs` declares what a caller must give, as Python types or JSON Schemas by name. `output` is evaluated
    when the root has completed. `commit` is "step" (each finished step is committed and never runs again)
    or "burst" (one commit when nothing more can run); `incidents` is "fault" or "continue". `activation` is
    "always", "singleton" (one live instance at a time) or "correlation" (one for each correlation id).

    Raises DefinitionRefusedError, naming every fault with its path, when the tree makes no sense.
    """

    def __init__(
        self,
        id: str,  # noqa: A002 - the word of the design
        *,
        version: int = 1,
        inputs: dict[str, Any] | None = None,
        root: Activity,
        output: Json = None,
        commit: str = "step",
        incidents: str = "fault",
        activation: str = "always",
    ) -> None:
        data: dict[str, Json] = {"id": id, "version": version, "root": root.to_json()}
        if inputs:
            data["inputs"] = schema.inputs_schema(inputs)
        if output is not None:
            data["output"] = to_json(output)
        options = {"commit": commit, "incidents": incidents, "activation": activation}
        given = {key: value for key, value in options.items() if value != _DEFAULTS[key]}
        if given:
            data["options"] = given
        self.data = data
        self.definition: Definition = read_definition(data)

    @property
    def id(self) -> str:
        """The definition's id."""
        return self.definition.definition_id

    @property
    def version(self) -> int:
        """The definition's version."""
        return self.definition.version

    def to_json(self) -> dict[str, Json]:
        """Return the definition as data."""
        return self.data


_DEFAULTS = {"commit": "step", "incidents": "fault", "activation": "always"}
