"""What comes from outside in a direct run: the HTTP request that starts it, and calls back."""

from dataclasses import asdict, dataclass, field

from aftercommit.activities.http_endpoint import http_stimulus
from aftercommit.definition import Definition
from aftercommit.jsons import Json, canonical
from aftercommit.workflow import Workflow


@dataclass(frozen=True)
class Request:
    """An HTTP request that starts the workflow at its HttpEndpoint."""

    path: str
    method: str = "GET"
    query: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    body: Json = None

    def to_json(self) -> dict[str, Json]:
        """Return it as the workflow sees it."""
        return {**asdict(self), "headers": {name.lower(): value for name, value in self.headers.items()}}


@dataclass(frozen=True)
class Callback:
    """A request to the callback address that an HttpEndpoint waits for under `name`."""

    name: str
    body: Json = None
    method: str = "POST"
    query: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Json]:
        """Return it as the workflow sees it."""
        return Request("callbacks", self.method, self.query, self.headers, self.body).to_json()


def start_points(definition: Definition, stimulus: dict[str, Json]) -> list[str]:
    """Return the paths of the activities at which a definition starts when the stimulus comes."""
    wanted = canonical(stimulus)
    return [
        path
        for path, activity in definition.activities.items()
        for name, payload in activity.payloads() or []
        if canonical({"name": name, "payload": payload}) == wanted
    ]


def place_of(request: Request, workflow: Workflow) -> str:
    """Return the path of the HttpEndpoint at which a request starts a workflow; ValueError if it does not."""
    places = start_points(workflow.definition, http_stimulus(request.path, request.method))
    if not places:
        raise ValueError(f"workflow {workflow.id!r} does not start at {request.method} {request.path}")
    return places[0]
