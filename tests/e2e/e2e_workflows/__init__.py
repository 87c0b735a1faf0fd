"""The example, and workflows whose steps sleep, die, overreach and fail: deployed by the end-to-end tests."""

from e2e_workflows.bad_days import awaiting_never, forgetting_late, idle, idling
from e2e_workflows.bulks import bulk, bulk_child
from e2e_workflows.heavy import heavy, heavy_child
from e2e_workflows.releases import chiming, relayed, relayed_child, released, ringing
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
    "awaiting_never",
    "beginning",
    "beyond_rights",
    "bulk",
    "bulk_child",
    "chiming",
    "deadly",
    "deciding",
    "expecting",
    "faulty",
    "forgetting_late",
    "forking",
    "hearing",
    "heavy",
    "heavy_child",
    "idle",
    "idling",
    "nested",
    "nested_middle",
    "noted",
    "ordering",
    "pausing",
    "place_order",
    "placing",
    "relayed",
    "relayed_child",
    "released",
    "ringing",
    "send_receipt",
    "ship_order",
    "sleeping",
    "telling",
    "two_generations",
]
