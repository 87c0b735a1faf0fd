"""What a scenario is: what is started, and what must come of it; and what many scenarios share."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.simulation.calls import Call, Start


@dataclass(frozen=True)
class Scenario:
    """What happens, and what must come of it.

    What `starts` names is published before, with all that it dispatches; `calls` are made of the API besides.
    `endings`: status by id of each instance that was started from outside. `effects`: how many activity
    executions had an effect, by its name; `races`: of those that a race decides on, how many at most.
    `dead`: the keys of the events that nothing takes. `disturb` may upset the world before it starts.
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
    calls: tuple[Call, ...] = ()
    published: frozenset[str] = frozenset()  # what is published besides
    races: dict[str, int] = field(default_factory=dict)
    dead: frozenset[str] = frozenset()
    limits: dict[str, int] = field(default_factory=dict)  # of the engine, lowered to be met by few
    days: float | None = None  # how long a world that does not come to rest is watched, if not just over one


COMPLETED = {"parent": "completed"}  # endings
FAULTED = {"parent": "faulted"}
BOTH = {"parent": "completed", "other": "completed"}
CHILD = {"child-first": 1, "child-second": 1}  # the effects of the workflow `child`
WAITING = {"before": 1, "after": 1, "last": 1, **CHILD}  # and those of `waiting`, with its child's
EAGER_OFF = {"EAGER_DELIVERY": "false"}  # settings: only the sweep delivers


def times(effects: dict[str, int], number: int) -> dict[str, int]:
    """Return effects so many times each."""
    return {name: each * number for name, each in effects.items()}
