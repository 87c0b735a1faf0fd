"""Scenarios whose world is upset: late messages, trees that are cancelled as they grow, damaged rows."""

from collections.abc import Callable
from typing import Any

from tests.simulation.calls import Start
from tests.simulation.disturbances import (
    cancel_trees,
    damage_start,
    lose_snapshot,
    poison_head,
    poison_item,
    poison_status,
    redrive_late,
    refuse_unawaited,
    refuse_yet_send,
)
from tests.simulation.scenario import BOTH, CHILD, COMPLETED, EAGER_OFF, WAITING, Scenario, times


def _poisoned(name: str, disturb: Callable[[Any], None]) -> Scenario:
    return Scenario(
        name,
        (Start("waiting"),),
        COMPLETED,
        WAITING,
        EAGER_OFF,
        disturb,
        stuck=frozenset({"poisoned"}),
        ends_within_seconds=120,
        thorough=False,
    )


REFUSED = (
    Scenario(
        "refused-send",
        (Start("several"), Start("several", "other")),
        BOTH,
        times(CHILD, 6),
        disturb=refuse_unawaited,
        thorough=False,
    ),
)
SCENARIOS = (
    # The message comes shortly before the last attempt, or shortly after; faults turn that around, and how it
    # ends with it: only the invariants hold.
    Scenario("refused-yet-sent", (Start("waiting"),), {}, disturb=refuse_yet_send(25)),
    Scenario("given-up-yet-sent", (Start("waiting"),), {}, disturb=refuse_yet_send(35)),
    Scenario("redriven", (Start("dispatching-late"),), COMPLETED, {"late": 1}, disturb=redrive_late),
    Scenario(
        "cancelled-trees",
        (Start("cancelled-tree"), Start("cancelled-tree", "other")),
        {"parent": "cancelled", "other": "cancelled"},
        times(CHILD, 2),
        disturb=cancel_trees,
        drops=True,
        thorough=False,
    ),
    # Where a crash has delayed it, the damage may come too late: then the child has begun.
    Scenario(
        "damaged-start", (Start("told-of-unread"),), COMPLETED, {}, EAGER_OFF, damage_start, thorough=False
    ),
    Scenario(
        "lost-snapshot",
        (Start("awaiting-long"),),
        COMPLETED,
        {"long-below": 1, "after": 1},
        disturb=lose_snapshot,
        thorough=False,
    ),
    _poisoned("poisoned-body", poison_item({})),
    _poisoned("poisoned-body-parts", poison_item({"body": {"S": '{"instance_id":"nobody"}'}})),
    _poisoned("poisoned-item", poison_item({"sends": {"S": "many"}, "body": {"N": "1"}})),
    _poisoned("poisoned-status", poison_status),
    _poisoned("poisoned-time", poison_item({"deliver_at": {"S": "soon"}})),
    _poisoned("poisoned-head", poison_head({"revision": {"S": "many"}})),
    _poisoned("poisoned-snapshot", poison_head({"snapshot": {"S": "{"}})),
)
