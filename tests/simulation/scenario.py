"""What a scenario is: what is started, and what must come of it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aftercommit.client import StartRequest

TENANT = "acme"


@dataclass(frozen=True)
class Start:
    """One call of the API; several with one id are one start."""

    definition_id: str
    instance_id: str = "parent"
    input: dict[str, Any] = field(default_factory=dict)
    after: float = 0
    synchronous: bool = False
    correlation_id: str | None = None

    def request(self) -> StartRequest:
        """Return it as the API hands it on."""
        return StartRequest(
            TENANT, self.definition_id, self.input, self.correlation_id, instance_id=self.instance_id
        )


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
