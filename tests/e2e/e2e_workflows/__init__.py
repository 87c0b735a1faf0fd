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
from e2e_workflows.waits import (
    alone,
    announcing,
    asking,
    beginning,
    deciding,
    hearing,
    pausing,
    placing,
    telling,
)
from e2e_workflows.web import asking_web, expecting, ordering
from workflows import place_order, send_receipt, ship_order

__all__ = [
    "alone",
    "announcing",
    "asking",
    "asking_web",
    "beginning",
    "beyond_rights",
    "deadly",
    "deciding",
    "expecting",
    "faulty",
    "forking",
    "hearing",
    "nested",
    "nested_middle",
    "noted",
    "ordering",
    "pausing",
    "place_order",
    "placing",
    "send_receipt",
    "ship_order",
    "sleeping",
    "telling",
    "two_generations",
]
