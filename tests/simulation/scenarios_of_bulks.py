"""Scenarios of bulk dispatches."""

from tests.simulation.calls import Cancel, Start
from tests.simulation.scenario import BOTH, COMPLETED, Scenario

SCENARIOS = (
    Scenario("bulk", (Start("bulk"),), COMPLETED, {"counted": 3, "after": 1}),
    Scenario("bulk-unawaited", (Start("bulk-unawaited"),), COMPLETED, {"counted": 3, "after": 1}),
    Scenario("bulk-in-lanes", (Start("bulk-in-lanes"),), COMPLETED, {"counted": 4, "after": 1}),
    Scenario("bulk-tolerating", (Start("bulk-tolerating"),), COMPLETED, {"counted": 3, "after": 1}),
    # Those behind the failing one may begin before they are cancelled.
    Scenario(
        "bulk-failing",
        (Start("bulk-failing"),),
        COMPLETED,
        drops=True,
    ),
    Scenario("bulk-unknown", (Start("bulk-unknown"),), COMPLETED, thorough=False),
    Scenario(
        "bulk-handled",
        (Start("bulk-handled"),),
        COMPLETED,
    ),
    Scenario("bulk-abandoned", (Start("bulk-abandoned"),), COMPLETED, {"won": 1, "after": 1}, drops=True),
    Scenario("bulks-abandoned", (Start("bulks-abandoned"),), COMPLETED, {"won": 1}, drops=True),
    Scenario(
        "bulk-large",
        (Start("bulk-in-lanes"), Start("bulk", "other")),
        BOTH,
        {"counted": 7, "after": 2},
        limits={"COMMIT_INTENTIONS_MAX": 2},
    ),
    # The first cancel comes about when the last children are dispatched.
    Scenario(
        "bulk-cancelled",
        (Start("bulk-endless"), Start("bulk", "other")),
        {"parent": "cancelled", "other": "completed"},
        {"counted": 3, "after": 1},
        calls=(Cancel(after=0.1), Cancel(after=30)),
        limits={"COMMIT_INTENTIONS_MAX": 2},
    ),
    Scenario("bulk-twice", (Start("bulk-twice"),), COMPLETED, {"counted": 4, "after": 1}, thorough=False),
)
