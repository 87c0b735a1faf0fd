"""All scenarios, in the order in which random runs take their turns.

Add one to SCENARIOS of the `scenarios_of_...` that has its subject, and every write of it is crashed. A
scenario names the workflows that it starts (from `workflows_of_...`; those that they dispatch come along),
the endings and the effects that must come of it.
"""

from tests.simulation import (
    scenarios_of_activations,
    scenarios_of_bulks,
    scenarios_of_calls,
    scenarios_of_disturbances,
    scenarios_of_events,
    scenarios_of_http,
    scenarios_of_instances,
)

SCENARIOS = (
    *scenarios_of_instances.SCENARIOS,
    *scenarios_of_events.SCENARIOS,
    *scenarios_of_events.ORDERS,
    *scenarios_of_bulks.SCENARIOS,
    *scenarios_of_events.HEARD_AGAIN,
    *scenarios_of_calls.ACTING,
    *scenarios_of_activations.SCENARIOS,
    *scenarios_of_http.SCENARIOS,
    *scenarios_of_instances.INCIDENTS,
    *scenarios_of_disturbances.REFUSED,
    *scenarios_of_calls.SCENARIOS,
    *scenarios_of_disturbances.SCENARIOS,
)
BY_NAME = {each.name: each for each in SCENARIOS}
