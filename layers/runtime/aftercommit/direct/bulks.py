"""The bulk dispatches of a direct run: which children have ended or sleep, and what parents are told."""

from collections import defaultdict
from dataclasses import dataclass, field

from aftercommit.joins import HandOver, Tally, Told, compose_batch, compose_result, judge
from aftercommit.jsons import Json
from aftercommit.model import Intention, Resume
from aftercommit.places import Join, Mark
from aftercommit.statuses import Outcome

Asleep = tuple[Intention, str]  # a start, and the id of its owner


@dataclass
class _Bulk:
    """The children of one bulk dispatch, as far as they have ended."""

    tally: Tally = field(default_factory=Tally)
    told: dict[int, Told] = field(default_factory=dict)
    joins: dict[str, Intention] = field(default_factory=dict)
    asleep: dict[int, Asleep] = field(default_factory=dict)


class Bulks:
    """All bulk dispatches of a run."""

    def __init__(self) -> None:
        self._bulks: dict[str, _Bulk] = defaultdict(_Bulk)  # by the id of their join

    def puts_to_sleep(self, join: Join, intention: Intention, owner_id: str) -> bool:
        """Keep a start whose turn in its lane has not come; returns whether it has not."""
        bulk = self._bulks[join.join_id]
        if not join.sleeps or join.index - (join.lanes or 0) in bulk.told:
            return False
        bulk.asleep[join.index] = (intention, owner_id)
        return True

    def tell(self, mark: Mark) -> Asleep | None:
        """Take in an ending; returns the start that it wakes, the next one of its lane."""
        bulk = self._bulks[mark.join.join_id]
        bulk.tally.add(mark.outcome, [mark.join.index])
        bulk.told[mark.join.index] = (mark.outcome, mark.output)
        follower = mark.join.follower
        return bulk.asleep.pop(follower, None) if follower is not None else None

    def await_endings(self, intention: Intention) -> None:
        """Take in a join."""
        self._bulks[intention.body["join_id"]].joins[intention.item_id] = intention

    def forget(self, body: dict[str, Json]) -> None:
        """Drop a join that is cancelled, and what sleeps until others of its bulk have ended."""
        bulk = self._bulks[body["join_id"]]
        bulk.joins.pop(body["item_id"], None)
        bulk.asleep.clear()

    def find_resume(self) -> tuple[str, Resume] | None:
        """Settle the next join that has something to tell; returns the parent's id, and what it is told."""
        for bulk in self._bulks.values():
            for intention in list(bulk.joins.values()):
                body = intention.body
                verdict = judge(body, bulk.tally)
                if verdict is None:
                    continue
                del bulk.joins[intention.item_id]
                if "bookmark_id" not in body:
                    continue
                if isinstance(verdict, HandOver):
                    outcome, value = Outcome.DONE, compose_batch(body["join_id"], verdict, bulk.told)
                else:
                    outcome, value = verdict.outcome, compose_result(body, bulk.tally, bulk.told)
                return body["instance_id"], Resume(body["bookmark_id"], outcome, value)
        return None
