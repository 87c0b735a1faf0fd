"""The example, and workflows whose steps sleep, die, overreach and fail: deployed by the end-to-end tests."""

from e2e_workflows.bad_days import awaiting_never, forgetting_late, idle, idling
from e2e_workflows.steps import (
    beyond_rights,
    deadly,
    faulty,
    forking,
    nested,
    nested_middle,
    noted,
    sleeping,
    two_generations,
)
from e2e_workflows.waits import asking, beginning, deciding, hearing, pausing, telling
from workflows import place_order, send_receipt, ship_order

__all__ = [
    "asking",
    "awaiting_never",
    "beginning",
    "beyond_rights",
    "deadly",
    "deciding",
    "faulty",
    "forgetting_late",
    "forking",
    "hearing",
    "idle",
    "idling",
    "nested",
    "nested_middle",
    "noted",
    "pausing",
    "place_order",
    "send_receipt",
    "ship_order",
    "sleeping",
    "telling",
    "two_generations",
]
