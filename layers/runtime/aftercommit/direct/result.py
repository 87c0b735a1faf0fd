"""What a direct run hands back."""

from dataclasses import dataclass, field

from aftercommit.jsons import Json
from aftercommit.model import Failure
from aftercommit.statuses import InstanceStatus


@dataclass
class DirectResult:
    """How a direct run ended, or that it waits; a journal line per activity, and the instances it started."""

    status: InstanceStatus
    output: Json
    failure: Failure | None
    variables: dict[str, Json]
    journal: list[dict[str, Json]]
    children: list["DirectResult"]
    definition_id: str
    inputs: dict[str, Json]
    correlation_id: str | None = None
    response: dict[str, Json] | None = None  # what a WriteHttpResponse has written
    events: list[dict[str, Json]] = field(default_factory=list)  # told to sinks, by all of them
