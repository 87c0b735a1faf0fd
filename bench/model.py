"""The simulation's model of DynamoDB, and a queue, behind boto3's clients: for workloads too large for moto.

moto copies a table for each action of a transaction, looks through all of it in a query, and looks at each
message of a queue in each call. The contract in tests/simulation/table_contract.py holds the model to what
moto and the emulator answer.
"""

import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from botocore.client import BaseClient
from botocore.exceptions import ClientError

from tests.simulation.dynamodb import DynamoDB, Index, Table


@contextmanager
def modelled() -> Iterator[None]:
    """Let models answer all clients of DynamoDB and SQS; event hooks see requests and answers as ever."""
    tables = DynamoDB([], now=time.time)
    queues = Queues()
    elsewhere = BaseClient._make_api_call  # noqa: SLF001 - the one place that all of a client's calls pass

    def call(client: Any, operation: str, arguments: dict[str, Any]) -> Any:
        service = client.meta.service_model.service_name
        if service == "sqs":
            return _answer(client, queues, operation, arguments)
        if service != "dynamodb":
            return elsewhere(client, operation, arguments)
        if operation == "CreateTable":
            table = _table_of(arguments)
            tables.tables[table.name] = table
            return {}
        return _answer(client, tables, operation, arguments)

    with mock.patch.object(BaseClient, "_make_api_call", call):
        yield


class Queues:
    """Queues that give each message once, at once and in the order of their coming, whatever its delay."""

    def __init__(self) -> None:
        self.waiting: dict[str, deque[dict[str, Any]]] = {}
        self.received: dict[str, dict[str, Any]] = {}

    def _make_api_call(self, operation: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if operation == "CreateQueue":
            self.waiting[arguments["QueueName"]] = deque()
            return {"QueueUrl": arguments["QueueName"]}
        if operation == "DeleteMessage":
            del self.received[arguments["ReceiptHandle"]]
            return {}
        waiting = self.waiting[arguments["QueueUrl"]]
        if operation == "SendMessageBatch":
            waiting.extend(arguments["Entries"])
            return {"Successful": [{"Id": each["Id"]} for each in arguments["Entries"]]}
        if operation == "SendMessage":
            waiting.append(arguments)
            return {}
        if operation == "ReceiveMessage":
            taken = [waiting.popleft() for _ in range(min(len(waiting), arguments["MaxNumberOfMessages"]))]
            return {"Messages": [self._receive(each) for each in taken]} if taken else {}
        raise NotImplementedError(operation)

    def _receive(self, sent: dict[str, Any]) -> dict[str, Any]:
        handle = f"message-{id(sent)}"
        self.received[handle] = sent
        attributes = {"ApproximateReceiveCount": "1", "SentTimestamp": str(int(time.time() * 1000))}
        return {
            "MessageId": handle,
            "ReceiptHandle": handle,
            "Body": sent["MessageBody"],
            "Attributes": attributes,
        }


def _table_of(declared: dict[str, Any]) -> Table:
    def key_of(schema: list[dict[str, str]]) -> list[str]:
        return [each["AttributeName"] for each in schema]

    indexes = {
        each["IndexName"]: Index(*key_of(each["KeySchema"]))
        for each in declared.get("GlobalSecondaryIndexes", [])
    }
    return Table(declared["TableName"], *key_of(declared["KeySchema"]), indexes)


def _answer(client: Any, model: DynamoDB | Queues, operation: str, arguments: dict[str, Any]) -> Any:
    told: dict[str, Any] = {"model": client.meta.service_model.operation_model(operation), "context": {}}
    service = client.meta.service_model.service_id.hyphenize()
    before, after = f"before-parameter-build.{service}.{operation}", f"after-call.{service}.{operation}"
    client.meta.events.emit(before, params=arguments, **told)
    try:
        parsed = model._make_api_call(operation, arguments)  # noqa: SLF001 - named as in a client
    except ClientError as error:
        client.meta.events.emit(after, parsed=error.response, http_response=None, **told)
        code = error.response["Error"]["Code"]
        raise client.exceptions.from_code(code)(error.response, operation) from None
    client.meta.events.emit(after, parsed=parsed, http_response=None, **told)
    return parsed
