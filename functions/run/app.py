"""run: serve command messages. Each is one call; a message that fails comes back by itself."""

from typing import Any

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.typing import LambdaContext

from aftercommit import clock
from aftercommit.burst import Worker
from aftercommit.commands import handle
from aftercommit.log import logger
from aftercommit.publish import load_workflows
from aftercommit.settings import settings

# Registers the activity functions, once per process.
load_workflows(settings().workflows_module)
processor = BatchProcessor(event_type=EventType.SQS, raise_on_entire_batch_failure=False)


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Serve a batch; returns the messages to be delivered again."""
    worker = Worker(clock.now() + context.get_remaining_time_in_millis() / 1000)

    def serve(record: SQSRecord) -> None:
        trace_header = record.attributes.aws_trace_header
        handle(record.body, worker, message_id=record.message_id, trace_header=trace_header)

    response: dict[str, Any] = process_partial_response(
        event=event, record_handler=serve, processor=processor, context=context
    )
    return response
