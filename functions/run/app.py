"""run: serve command messages. Each is one call; a message that fails comes back by itself."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from aftercommit import clock
from aftercommit.burst import Worker
from aftercommit.commands import handle
from aftercommit.log import logger
from aftercommit.publish import load_workflows
from aftercommit.settings import settings

# Registers the activity functions, once per process.
load_workflows(settings().workflows_module)


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Serve a batch; returns the messages to be delivered again."""
    worker = Worker(clock.now() + context.get_remaining_time_in_millis() / 1000)
    failures = []
    # A plain loop: Powertools' batch processor makes up a tenth of a cold start.
    for record in event["Records"]:
        message_id = record["messageId"]
        try:
            handle(record["body"], worker, message_id=message_id)
        except Exception:  # noqa: BLE001 - whatever the reason, this message comes again, and no other
            logger.exception("command failed", extra={"message_id": message_id})
            failures.append({"itemIdentifier": message_id})
    return {"batchItemFailures": failures}
