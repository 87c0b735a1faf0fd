"""What a scenario is: what is started, and what must come of it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aftercommit.client import StartRequest, dispatch, execute
from aftercommit.endpoints import answer
from aftercommit.ids import derive_id

TENANT = "acme"


@dataclass(frozen=True)
class Start:
    """One call of the API; several with one id are one start."""

    definition_id: str
    instance_id: str = "parent"
    input: dict[str, Any] = field(default_factory=dict)
    after: float = 0
    synchronous: bool = False

    def ask(self, deadline: float) -> Any:
        """Call what the API calls; returns what it answers."""
        request = StartRequest(TENANT, self.definition_id, self.input, instance_id=self.instance_id)
        return execute(request, deadline=deadline) if self.synchronous else dispatch(request)


@dataclass(frozen=True)
class HttpStart(Start):
    """A request to the endpoint at the first place of a workflow, under an Idempotency-Key."""

    path: str = ""
    key: str = ""

    def ask(self, deadline: float) -> Any:
        """Send it."""
        return answer(TENANT, self.request, idempotency_key=self.key, deadline=deadline)

    @property
    def request(self) -> dict[str, Any]:
        """The request, as workflows see it."""
        return {"method": "POST", "path": self.path, "query": {}, "headers": {}, "body": self.key}

    @property
    def trigger(self) -> dict[str, Any]:
        """What the instance is born with."""
        return {"activity_id": "root.activities[0]", "value": self.request}


def http_start(definition_id: str, path: str, *, key: str = "key", after: float = 0) -> HttpStart:
    """Return a request whose instance is named by its key."""
    instance_id = http_id(definition_id, key)
    return HttpStart(definition_id, instance_id, after=after, path=path, key=key)


def http_id(definition_id: str, key: str = "key") -> str:
    """Return the id of the instance that a request under a key starts."""
    return derive_id("request", TENANT, definition_id, key)


@dataclass(frozen=True)
class Scenario:
    """What happens, and what must come of it.

    `endings`: status by id of each instance that was started from outside. `effects`: how many activity
    executions had an effect, by its name. `disturb` may upset the world before it starts.
    `stuck`: ids of instances that cannot end because of that; the failure must be visible instead.
    """

    name: str
    starts: tuple[Start, ...]
    endings: dict[str, str]
    effects: dict[str, int] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    disturb: Callable[[Any], None] | None = None
    stuck: frozenset[str] = frozenset()
    ends_within_seconds: float | None = None  # without faults, in calm weather
    seeds: int = 1  # how many orders of calls are enumerated
    drops: bool = False  # whether some waits are given up, so that what would end them meets nothing
    thorough: bool = True  # whether it is also frozen, timed out and doubled at each write, not only crashed
    limits: dict[str, int] = field(default_factory=dict)  # of the engine, lowered to be met by few
