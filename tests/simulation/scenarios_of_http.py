"""Scenarios of HTTP requests that start workflows, and of callback addresses."""

from tests.simulation.calls import Request, Start, requested_id
from tests.simulation.scenario import CHILD, COMPLETED, Scenario, times

SCENARIOS = (
    Scenario(
        "http-start",
        (Request("answering", path="orders"), Request("answering", path="orders", after=0.01)),
        {requested_id("answering"): "completed"},
        {"answered": 1, "after": 1, **CHILD},
    ),
    # Two requests are two instances; what one is told is its own.
    Scenario(
        "http-starts",
        (Request("answering", path="orders"), Request("answering", path="orders", key="other")),
        {requested_id("answering"): "completed", requested_id("answering", "other"): "completed"},
        {"answered": 2, "after": 2, **times(CHILD, 2)},
        thorough=False,
    ),
    # However late what died comes to its wait, the callback is still there.
    Scenario(
        "early-callback",
        (Start("asking-early"),),
        COMPLETED,
        {"ask": 1, "called": 1},
        {"STIMULUS_OPEN_SECONDS": "7200"},
    ),
    Scenario(
        "late-callback",
        (Start("asking-late"),),
        COMPLETED,
        {"ask": 1, "called": 1},
        {"STIMULUS_OPEN_SECONDS": "7200"},
    ),
)
