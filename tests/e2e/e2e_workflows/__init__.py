"""The example, and workflows whose steps sleep, die, overreach and fail: deployed by the end-to-end tests."""

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
from workflows import place_order, send_receipt, ship_order

__all__ = [
    "beyond_rights",
    "deadly",
    "faulty",
    "forking",
    "nested",
    "nested_middle",
    "noted",
    "place_order",
    "send_receipt",
    "ship_order",
    "sleeping",
    "two_generations",
]
