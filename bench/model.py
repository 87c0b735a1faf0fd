"""The simulation's model of DynamoDB behind boto3's clients, for workloads that are too large for moto.

moto copies a table for each action of a transaction, and looks through all of it in a query. The contract in
tests/simulation/table_contract.py holds the model to what moto and the emulator answer.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from botocore.client import BaseClient
from botocore.exceptions import ClientError

from tests.simulation.dynamodb import DynamoDB, Index, Table


@contextmanager
def modelled() -> Iterator[None]:
    """Let the model answer every client of DynamoDB; their event hooks see requests and answers as ever."""
    tables = DynamoDB([], now=time.time)
    elsewhere = BaseClient._make_api_call  # noqa: SLF001 - the one place that all of a client's calls pass

    def call(client: Any, operation: str, arguments: dict[str, Any]) -> Any:
        if client.meta.service_model.service_name != "dynamodb":
            return elsewhere(client, operation, arguments)
        if operation == "CreateTable":
            table = _table_of(arguments)
            tables.tables[table.name] = table
            return {}
        return _answer(client, tables, operation, arguments)

    with mock.patch.object(BaseClient, "_make_api_call", call):
        yield


def _table_of(declared: dict[str, Any]) -> Table:
    def key_of(schema: list[dict[str, str]]) -> list[str]:
        return [each["AttributeName"] for each in schema]

    indexes = {
        each["IndexName"]: Index(*key_of(each["KeySchema"]))
        for each in declared.get("GlobalSecondaryIndexes", [])
    }
    return Table(declared["TableName"], *key_of(declared["KeySchema"]), indexes)


def _answer(client: Any, tables: DynamoDB, operation: str, arguments: dict[str, Any]) -> Any:
    told: dict[str, Any] = {"model": client.meta.service_model.operation_model(operation), "context": {}}
    before, after = f"before-parameter-build.dynamodb.{operation}", f"after-call.dynamodb.{operation}"
    client.meta.events.emit(before, params=arguments, **told)
    try:
        parsed = tables._make_api_call(operation, arguments)  # noqa: SLF001 - named as in a client
    except ClientError as error:
        client.meta.events.emit(after, parsed=error.response, http_response=None, **told)
        code = error.response["Error"]["Code"]
        raise client.exceptions.from_code(code)(error.response, operation) from None
    client.meta.events.emit(after, parsed=parsed, http_response=None, **told)
    return parsed
