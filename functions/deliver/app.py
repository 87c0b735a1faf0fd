"""deliver: hand new outbox items from the stream to the queue.

It never fails a record: an item that could not be delivered is still undone, and the sweep's. A stream shard
is never held up.
"""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from aftercommit.deliver import deliver
from aftercommit.log import logger, tell_failure


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Deliver the items of a batch of stream records."""
    keys: list[tuple[str, str]] = []
    for record in event.get("Records", []):
        try:
            named = record["dynamodb"]["Keys"]
            keys.append((named["owner_key"]["S"], named["item_id"]["S"]))
        except (KeyError, TypeError):
            logger.error("stream record without keys", extra={"event_id": record.get("eventID")})
    try:
        sent = deliver(keys)
        logger.info("delivered", extra={"records": len(keys), "sent": sent})
    except Exception as error:  # noqa: BLE001 - a raise would block the shard
        tell_failure("delivery left to the sweep", error, records=len(keys))
    return {"batchItemFailures": []}
