"""The audit of the demo and of the load run: what the activities did, against what is stored. Pure: no I/O.

Both sides are read after everything has ended. What an instance says is its journal: the activity executions
that it committed, and the dispatches that it committed.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum

PARENT = "place-order"
CHILDREN = ("send-receipt", "ship-order")
ENDED = ("completed", "faulted", "cancelled")
SETTLED = ("done", "failed", "cancelled")


@dataclass(frozen=True)
class Effect:
    """What an activity noted in the ledger: one row, however often one execution wrote it."""

    order_id: str
    activity: str
    execution_id: str
    instance_id: str


@dataclass(frozen=True)
class Dispatch:
    """A dispatch that an instance's journal tells of, with what its outbox item says."""

    item_id: str
    child_id: str
    definition_id: str | None  # None: the journal tells of an item that does not exist
    status: str | None


@dataclass(frozen=True)
class Instance:
    """What the rows of an instance say."""

    instance_id: str
    definition_id: str
    order_id: str
    status: str
    error_type: str | None = None
    parent_id: str | None = None
    done: frozenset[tuple[str, str]] = frozenset()  # (activity, execution id) that have an effect
    dispatches: tuple[Dispatch, ...] = ()

    @property
    def outcome(self) -> str:
        """How it ended, in a word or two."""
        return f"{self.status}: {self.error_type}" if self.error_type else self.status


@dataclass(frozen=True)
class Item:
    """An outbox item, as it is stored."""

    item_id: str
    owner_id: str
    command: str
    definition_id: str | None  # of a start
    status: str


class Kind(StrEnum):
    """What can be wrong."""

    GHOST = "ghost"  # it exists, and no commit accounts for it
    LOST = "lost"  # a commit accounts for it, and it does not exist
    DUPLICATE = "duplicate"  # once was decided, and there are several
    UNEXPECTED = "unexpected"  # an order ended otherwise than its content says


@dataclass(frozen=True)
class Violation:
    """One thing that is wrong, with where to look."""

    kind: Kind
    order_id: str
    told: str


def audit(
    posted: Mapping[str, str],
    instances: Iterable[Instance],
    effects: Iterable[Effect],
    items: Iterable[Item] = (),
    *,
    expected: Mapping[str, str] | None = None,
    owed: Mapping[str, AbstractSet[str]] | None = None,
) -> list[Violation]:
    """Compare everything with everything; returns what is wrong.

    `posted` names each order's instance; `expected` the outcome that each order should have, and `owed` the
    activities whose effect it should have had. These two come from what the orders hold: whatever the runtime
    stores, it cannot agree with itself on having lost one.
    """
    found = {each.instance_id: each for each in instances}
    seen = list(effects)
    violations = [
        *_audit_orders(posted, found, expected or {}),
        *_audit_children(posted, found),
        *_audit_dispatches(found),
        *_audit_items(found, items),
        *_audit_effects(found, seen),
        *_audit_repeats(found, seen),
    ]
    # What was lost on the way to an effect is told once, where it was lost.
    told = {each.order_id for each in violations}
    return [*violations, *_audit_owed(posted, {*posted} - told, seen, owed or {})]


def _audit_orders(
    posted: Mapping[str, str], found: Mapping[str, Instance], expected: Mapping[str, str]
) -> Iterator[Violation]:
    for order_id, instance_id in posted.items():
        instance = found.get(instance_id)
        if instance is None:
            yield Violation(Kind.LOST, order_id, f"instance {instance_id} does not exist")
        elif instance.status in ENDED and instance.outcome != expected.get(order_id, instance.outcome):
            told = f"ended {instance.outcome}, not {expected[order_id]}"
            yield Violation(Kind.UNEXPECTED, order_id, told)


def _audit_children(posted: Mapping[str, str], found: Mapping[str, Instance]) -> Iterator[Violation]:
    """Every instance has ended, and there is a reason for its existence."""
    for each in found.values():
        if each.status not in ENDED:
            yield Violation(Kind.LOST, each.order_id, f"{_name(each)} has not ended: {each.status}")
        if each.parent_id is None:
            if posted.get(each.order_id) != each.instance_id:
                yield Violation(Kind.GHOST, each.order_id, f"{_name(each)} was started by nobody")
            continue
        parent = found.get(each.parent_id)
        if parent is None or each.instance_id not in {told.child_id for told in parent.dispatches}:
            yield Violation(Kind.GHOST, each.order_id, f"no committed dispatch accounts for {_name(each)}")
        elif parent.order_id != each.order_id:
            yield Violation(Kind.GHOST, each.order_id, f"{_name(each)} serves another order than its parent")


def _audit_dispatches(found: Mapping[str, Instance]) -> Iterator[Violation]:
    for each in found.values():
        for told in each.dispatches:
            name = f"dispatch {told.item_id} of {_name(each)}"
            if told.status is None:
                yield Violation(Kind.LOST, each.order_id, f"{name} has no outbox item")
            elif told.status not in SETTLED:
                yield Violation(Kind.LOST, each.order_id, f"{name} is still {told.status}")
            if told.status != "failed" and told.child_id not in found:
                yield Violation(Kind.LOST, each.order_id, f"{name} has no child")
        if each.definition_id == PARENT:
            yield from _audit_parent(each, found)


def _audit_parent(parent: Instance, found: Mapping[str, Instance]) -> Iterator[Violation]:
    """Whoever paid has a receipt and a shipment, and took over how the shipment ended."""
    if ("charge_card" in {activity for activity, _ in parent.done}) and parent.status in ENDED:
        for definition_id in CHILDREN:
            if definition_id not in {told.definition_id for told in parent.dispatches}:
                yield Violation(Kind.LOST, parent.order_id, f"paid, and no {definition_id} was dispatched")
    for told in parent.dispatches:
        child = found.get(told.child_id)
        if (
            told.definition_id == "ship-order"
            and child is not None
            and child.status in ENDED
            and parent.status in ENDED
            and child.status != parent.status
        ):
            heard = f"{_name(child)} ended {child.status}, but its parent {parent.outcome}"
            yield Violation(Kind.LOST, parent.order_id, heard)


def _audit_items(found: Mapping[str, Instance], items: Iterable[Item]) -> Iterator[Violation]:
    """Every intention is some instance's own, and settled; the dispatches among them are told in journals."""
    for each in items:
        owner = found.get(each.owner_id)
        name = f"{each.command} {each.item_id}"
        if owner is None:
            yield Violation(Kind.GHOST, "?", f"{name} is of an instance that does not exist: {each.owner_id}")
        elif each.command != "start":
            if each.status not in SETTLED:
                yield Violation(Kind.LOST, owner.order_id, f"{name} of {_name(owner)} is still {each.status}")
        elif each.item_id not in {told.item_id for told in owner.dispatches}:
            yield Violation(Kind.GHOST, owner.order_id, f"no commit of {_name(owner)} accounts for {name}")


def _audit_owed(
    posted: Mapping[str, str],
    orders: AbstractSet[str],
    effects: list[Effect],
    owed: Mapping[str, AbstractSet[str]],
) -> Iterator[Violation]:
    had: dict[str, set[str]] = {}
    for each in effects:
        had.setdefault(each.order_id, set()).add(each.activity)
    for order_id in posted:
        if order_id in orders:
            for activity in sorted(owed.get(order_id, frozenset()) - had.get(order_id, set())):
                yield Violation(Kind.LOST, order_id, f"{activity} never had its effect")


def _audit_effects(found: Mapping[str, Instance], effects: list[Effect]) -> Iterator[Violation]:
    for each in effects:
        instance = found.get(each.instance_id)
        name = f"{each.activity} ({each.execution_id})"
        if instance is None or (each.activity, each.execution_id) not in instance.done:
            yield Violation(Kind.GHOST, each.order_id, f"no commit accounts for the effect of {name}")
        elif instance.order_id != each.order_id:
            yield Violation(Kind.GHOST, each.order_id, f"{name} was done for order {instance.order_id}")
    noted = {(each.instance_id, each.activity, each.execution_id) for each in effects}
    for instance in found.values():
        for activity, execution_id in sorted(instance.done):
            if (instance.instance_id, activity, execution_id) not in noted:
                told = f"{activity} ({execution_id}) of {_name(instance)} left no effect"
                yield Violation(Kind.LOST, instance.order_id, told)


def _audit_repeats(found: Mapping[str, Instance], effects: list[Effect]) -> Iterator[Violation]:
    """In this example each order has each workflow, each dispatch and each activity once at most."""
    for (order_id, name), number in Counter(
        (each.order_id, each.definition_id) for each in found.values()
    ).items():
        if number > 1:
            yield Violation(Kind.DUPLICATE, order_id, f"{number} instances of {name}")
    for (order_id, activity), number in Counter((each.order_id, each.activity) for each in effects).items():
        if number > 1:
            yield Violation(Kind.DUPLICATE, order_id, f"{number} executions of {activity} had an effect")
    for each in found.values():
        for name, number in Counter(told.definition_id for told in each.dispatches).items():
            if number > 1:
                told = f"{number} dispatches of {name} by {_name(each)}"
                yield Violation(Kind.DUPLICATE, each.order_id, told)


def _name(instance: Instance) -> str:
    return f"{instance.definition_id} {instance.instance_id}"


def summary_line(orders: int, parents: Iterable[Instance], violations: Iterable[Violation]) -> str:
    """Return the demo's last line."""
    statuses = Counter(each.status for each in parents)
    kinds = Counter(each.kind for each in violations)
    return (
        f"orders={orders} completed={statuses['completed']} faulted={statuses['faulted']} "
        f"ghosts={kinds[Kind.GHOST]} lost={kinds[Kind.LOST]} duplicates={kinds[Kind.DUPLICATE]}"
    )


@dataclass(frozen=True)
class Verdict:
    """What a load run has come to: orders that the API has taken, those that ended, and what is wrong."""

    started: int
    ended: int
    violations: tuple[Violation, ...]

    def count(self, kind: Kind) -> int:
        """Return how many violations are of a kind."""
        return sum(1 for each in self.violations if each.kind == kind)

    @property
    def exit_status(self) -> int:
        """0 if everything that was started has ended and nothing is wrong, else 1."""
        return 0 if self.started and self.started == self.ended and not self.violations else 1

    @property
    def line(self) -> str:
        """The load run's last line."""
        return (
            f"started={self.started} ended={self.ended} "
            f"lost={self.count(Kind.LOST)} duplicates={self.count(Kind.DUPLICATE)}"
        )


def judge(
    posted: Mapping[str, str], instances: Iterable[Instance], violations: Iterable[Violation]
) -> Verdict:
    """Count which of the posted orders have ended, by their own instances."""
    ended = {each.instance_id for each in instances if each.status in ENDED}
    return Verdict(len(posted), len(ended & {*posted.values()}), tuple(violations))
