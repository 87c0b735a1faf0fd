"""An SQS queue: SendMessageBatch, one event as JSON in each message, its id and name as attributes."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from botocore.exceptions import ClientError

from aftercommit import aws
from aftercommit.errors import ContentRefusedError
from aftercommit.ids import derive_id
from aftercommit.limits import QUEUE_BATCH_MAX
from aftercommit.settings import settings
from aftercommit.sinks.sink import Outgoing, Refusal, refused

_CONTENT = {"InvalidMessageContents", "BatchRequestTooLong", "InvalidParameterValue"}


class Queue:
    """The queue of EVENT_QUEUE_ARN; a .fifo one itself drops what it has had within five minutes."""

    name = "queue"
    events_max = QUEUE_BATCH_MAX
    bytes_max = 256 * 1024

    def send(self, events: Sequence[Outgoing], seconds: float) -> list[Refusal | None]:
        """Send events; each is taken or refused by itself."""
        del seconds  # the client's own time-out, three quarters of a send's, is never longer
        arn = settings().event_queue_arn
        client = aws.client("sqs", seconds=settings().event_send_timeout_seconds)
        entries = [
            _entry(str(number), each, ordered=arn.endswith(".fifo")) for number, each in enumerate(events)
        ]
        try:
            answer = client.send_message_batch(QueueUrl=_url_of(arn), Entries=entries)
        except ClientError as error:
            code = error.response["Error"]["Code"].removeprefix("AWS.SimpleQueueService.")
            if code in _CONTENT:
                raise ContentRefusedError(str(error)) from error
            raise
        results: list[Refusal | None] = [None] * len(events)
        for each in answer.get("Failed", []):
            content = bool(each.get("SenderFault"))
            results[int(each["Id"])] = refused(each["Code"], str(each.get("Message", "")), content=content)
        return results


@cache
def _url_of(arn: str) -> str:
    account, name = arn.split(":")[-2:]
    answer = aws.client("sqs").get_queue_url(QueueName=name, QueueOwnerAWSAccountId=account)
    return str(answer["QueueUrl"])


def _entry(number: str, event: Outgoing, *, ordered: bool) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "Id": number,
        "MessageBody": event.text(),
        "MessageAttributes": {
            name: {"DataType": "String", "StringValue": event.body[name]} for name in ("id", "name")
        },
        # One busy tenant must not hold back the others: standard queues deliver groups fairly.
        "MessageGroupId": event.tenant,
    }
    if ordered:
        entry["MessageDeduplicationId"] = derive_id("event", event.tenant, event.event_id)
    return entry
