"""Places: where a child stands in the bulk dispatch that has started it, and how it has ended there."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Join:
    """A child's place in the bulk dispatch that has started it."""

    join_id: str
    index: int
    total: int
    rows: int  # in which the endings are tallied
    lanes: int | None = None  # as many run at once: the end of this one wakes the one so much further on
    awaited: bool = False  # whether the parent waits for them
    channel: str | None = None

    @property
    def row(self) -> int:
        """The row in which this one's ending is tallied."""
        return self.index % self.rows

    @property
    def follower(self) -> int | None:
        """The index of the one that sleeps until this one has ended."""
        after = self.index + self.lanes if self.lanes else self.total
        return after if after < self.total else None

    @property
    def sleeps(self) -> bool:
        """Whether it is stored asleep, until the one before it in its lane has ended."""
        return self.lanes is not None and self.index >= self.lanes

    def to_json(self) -> dict[str, Any]:
        """Return it without what is absent."""
        written: dict[str, Any] = {
            "join_id": self.join_id,
            "index": self.index,
            "total": self.total,
            "rows": self.rows,
        }
        if self.lanes is not None:
            written["lanes"] = self.lanes
        if self.awaited:
            written["awaited"] = True
        if self.channel is not None:
            written["channel"] = self.channel
        return written


@dataclass(frozen=True, slots=True)
class Mark:
    """How a child of a bulk dispatch has ended: for its dispatch, and for the tally of its parent's join."""

    owner_id: str  # the parent
    join: Join
    outcome: str
    output: str | None  # JSON of its output, or of its failure; None: too large to be passed on
