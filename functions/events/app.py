"""events: tell the sinks of new events, and of those that the sweep hands over.

It never fails a record: an event that could not be sent is still undone, and comes up again.
"""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from aftercommit import clock
from aftercommit.deliver_events import deliver_events
from aftercommit.log import logger, tell_failure


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Deliver the events of a batch of stream records, or those whose keys are given."""
    until = clock.now() + context.get_remaining_time_in_millis() / 1000
    keys = [(owner_key, event_id) for owner_key, event_id in event.get("keys", [])]
    for record in event.get("Records", []):
        try:
            named = record["dynamodb"]["Keys"]
            keys.append((named["owner_key"]["S"], named["item_id"]["S"]))
        except (KeyError, TypeError):
            logger.error("stream record without keys", extra={"event_id": record.get("eventID")})
    try:
        sent = deliver_events(keys, until=until)
        logger.info("delivered events", extra={"events": len(keys), "sent": sent})
    except Exception as error:  # noqa: BLE001 - a raise would block the shard
        tell_failure("events left to the sweep", error, events=len(keys))
    return {"batchItemFailures": []}
