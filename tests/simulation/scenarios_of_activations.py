"""Scenarios of workflows of which one instance lives at a time, in all or per correlation id."""

from tests.simulation.calls import Start
from tests.simulation.scenario import BOTH, COMPLETED, Scenario

SCENARIOS = (
    # Which of those that come at once is let in is open, and with faults one may come after the other.
    Scenario("singleton-at-once", (Start("only-one"), Start("only-one", "other")), {}, seeds=2),
    Scenario(
        "singleton-at-its-end",
        (Start("only-one"), *(Start("only-one", f"other-{n}", after=20.4 + n * 0.01) for n in range(6))),
        {},
        seeds=2,
        thorough=False,
    ),
    Scenario(
        "singleton-in-turn",
        (Start("only-one"), Start("only-one", "other", after=1_500)),
        BOTH,
        {"only": 2, "only-end": 2},
    ),
    Scenario(
        "one-per-correlation",
        (
            Start("one-each", correlation_id="a"),
            Start("one-each", "other", correlation_id="b"),
            Start("one-each", "third"),
            Start("one-each", "fourth"),
            Start("one-each", "refused", correlation_id="a", after=10),
        ),
        {**BOTH, "third": "completed", "fourth": "completed"},
        thorough=False,
    ),
    Scenario(
        "singleton-dispatch",
        (Start("refused-child"),),
        COMPLETED,
        {"long-one": 1, "refused": 1, "after": 1},
        thorough=False,
    ),
    Scenario("singleton-starts", (Start("opening-twice"),), COMPLETED, {"begun-once": 1}, thorough=False),
)
