"""What can go wrong at one write of a worker, and how a fault is written on a command line."""

from dataclasses import dataclass
from enum import StrEnum
from random import Random


class Crash(BaseException):
    """The worker dies here. No `except Exception` of user code or of the runtime can hold it up."""


class FaultKind(StrEnum):
    """What happens at a write; all but the last three can happen to a process that does everything right."""

    CRASH_BEFORE = "crash-before"  # the worker dies, the write never left
    CRASH_AFTER = "crash-after"  # the write took effect, nobody learns of it
    FREEZE = "freeze"  # the worker stands still until its lease is over, then goes on as if nothing was
    UNKNOWN = "unknown"  # the write took effect, the worker is told of a time-out
    LOST = "lost"  # the write had no effect, the worker is told of a time-out
    LATE = "late"  # the worker is told of a time-out, the write takes effect seconds later
    TWICE = "twice"  # the SDK sent it again for want of an answer, and hands on the second answer
    THROTTLE = "throttle"  # refused: too many requests
    CONFLICT = "conflict"  # refused: another transaction is at the same item
    REFUSE = "refuse"  # the queue refuses each message of the request


# After these an instance may end in another way than planned: by attempts used up, visibly.
REFUSALS = frozenset(
    {FaultKind.THROTTLE, FaultKind.REFUSE, FaultKind.LOST, FaultKind.UNKNOWN, FaultKind.LATE}
)
CRASHES = frozenset({FaultKind.CRASH_BEFORE, FaultKind.CRASH_AFTER})


@dataclass(frozen=True, order=True)
class Fault:
    """A fault at the n-th write of the whole world, counted from 1 in the order in which they are made."""

    write: int
    kind: FaultKind

    def __str__(self) -> str:
        """Return it as `crash-after@17`."""
        return f"{self.kind.value}@{self.write}"

    @classmethod
    def parse(cls, text: str) -> "Fault":
        """Read `crash-after@17`."""
        kind, _, write = text.partition("@")
        return cls(int(write), FaultKind(kind))


def draw_faults(random: Random, writes: int) -> tuple[Fault, ...]:
    """Draw one to five faults of any kind, spread over somewhat more writes than a calm run makes."""
    kinds = list(FaultKind)
    drawn = {
        random.randint(1, writes + writes // 3): random.choice(kinds) for _ in range(random.randint(1, 5))
    }
    return tuple(Fault(write, kind) for write, kind in sorted(drawn.items()))
