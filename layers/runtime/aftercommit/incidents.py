"""Incidents: recorded faults, kept with their instance and listed for operators by tenant."""

from aftercommit import clock
from aftercommit.limits import MESSAGE_CHARACTERS_MAX
from aftercommit.model import Incident
from aftercommit.tables import IncidentRow, key_of
from aftercommit.writes import Put


def incident_put(
    tenant: str,
    instance_id: str,
    incident: Incident,
    at: float,
    *,
    item_id: str | None = None,
    ttl: int | None = None,
) -> Put:
    """Return the write that records an incident; it belongs into the commit that it tells of.

    Its id derives from what happened where, so recording it again changes nothing but the time.
    """
    moment = clock.to_text(at)
    return Put(
        "incident",
        IncidentRow(
            key_of(tenant, instance_id),
            f"incident#{incident.incident_id}",
            tenant=tenant,
            incident_id=incident.incident_id,
            instance_id=instance_id,
            activity_id=incident.activity_id,
            execution_id=incident.execution_id,
            item_id=item_id,
            error_type=incident.failure.type,
            message=incident.failure.message[:MESSAGE_CHARACTERS_MAX],
            created_at=moment,
            attention_at=moment,
            ttl=ttl,
        ),
    )
