"""Makes the command queue deliver messages twice, which SQS may do, and the emulator never does by itself.

It follows the outbox's stream and puts copies of command messages into the command queue: the bodies that
the runtime sends, since a message carries keys only.
"""

import random
from collections.abc import Iterator
from itertools import count
from typing import Any

from aftercommit.queue import Message
from scripts.background import Background
from scripts.local_stack import Stack

EVERY = 5  # item as it appears, and as it is settled; and start
# A copy comes at once, while the first is being served; or later, when the item is long settled.
DELAYS_SECONDS = (0, 0, 1, 3, 20)
POLL_SECONDS = 0.3
BATCH_MAX = 10  # of SendMessageBatch


class Duplicator(Background):
    """Sends commands of a tenant again, as long as its context is open.

    Every fifth item's command when the item appears, and every fifth's after it was settled; besides, every
    fifth of the starts of which it is told (`started`).
    """

    def __init__(self, stack: Stack, tenant: str) -> None:
        super().__init__()
        self.stack = stack
        self.items = 0  # that have appeared
        self.copies = 0  # sent in all
        self.late = 0  # of them, after the item was settled
        self._settled = 0
        self._starts = count(1)
        self._tenant = tenant
        self._waiting: list[Message] = []
        self._dice = random.Random()  # noqa: S311 - chance, no secret

    def started(self, instance_id: str) -> None:
        """Hear of an instance that was started; its first command is no item's. For any thread."""
        if next(self._starts) % EVERY == 0:
            self._waiting.append(Message(self._tenant, instance_id=instance_id))

    def describe(self) -> str:
        """Say how many commands were sent again."""
        return f"{self.copies} command messages sent again, {self.late} of them after their item was settled"

    def work(self) -> None:
        """Follow the stream, and send copies."""
        stream = self.stack.client("dynamodb").describe_table(TableName=self.stack.outputs["OutboxTable"])
        arn = stream["Table"]["LatestStreamArn"]
        streams = self.stack.client("dynamodbstreams")
        shards = streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]
        iterators = [
            streams.get_shard_iterator(StreamArn=arn, ShardId=each["ShardId"], ShardIteratorType="LATEST")[
                "ShardIterator"
            ]
            for each in shards
        ]
        while not self.is_stopped(POLL_SECONDS):
            answers = [streams.get_records(ShardIterator=each) for each in iterators]
            iterators = [each["NextShardIterator"] for each in answers if "NextShardIterator" in each]
            for answer in answers:
                self._waiting += self.choose(answer["Records"])
            self._send()

    def choose(self, records: list[dict[str, Any]]) -> Iterator[Message]:
        """Choose what is sent again, going by records of the outbox's stream."""
        for record in records:
            image = record["dynamodb"].get("NewImage", {})
            if not image or image["tenant"]["S"] != self._tenant:
                continue
            message = Message(self._tenant, owner_id=image["owner_id"]["S"], item_id=image["item_id"]["S"])
            if record["eventName"] == "INSERT":
                self.items += 1
                if self.items % EVERY == 0:
                    yield message
            elif image["status"]["S"] != "undone":
                self._settled += 1
                if self._settled % EVERY == 0:
                    self.late += 1
                    yield message

    def _send(self) -> None:
        # Others may add meanwhile: only what is taken off here is sent.
        while self._waiting:
            batch = [self._waiting.pop() for _ in range(min(BATCH_MAX, len(self._waiting)))]
            answer = self.stack.client("sqs").send_message_batch(
                QueueUrl=self.stack.outputs["CommandQueueUrl"],
                Entries=[
                    {
                        "Id": str(number),
                        "MessageBody": each.to_text(),
                        "DelaySeconds": self._dice.choice(DELAYS_SECONDS),
                        "MessageGroupId": each.tenant,
                    }
                    for number, each in enumerate(batch)
                ],
            )
            self.copies += len(answer["Successful"])
