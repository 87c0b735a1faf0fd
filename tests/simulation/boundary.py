"""The boundary between the runtime and AWS: where its clients are replaced, and calls are refused."""

from typing import Any, Protocol

from botocore.exceptions import ConnectTimeoutError, ReadTimeoutError

from tests.simulation.dynamodb import cancelled, failed
from tests.simulation.faults import FaultKind

SERVICES = ("dynamodb", "sqs", "lambda", "s3")


class Called(Protocol):
    """What serves the calls."""

    def call(self, service: str, operation: str, arguments: dict[str, Any]) -> Any:
        """Serve one."""


class Boundary:
    """What stands in for a botocore client: each call goes through the world."""

    _request_signer = None  # PynamoDB asks for it

    def __init__(self, world: Called, service: str) -> None:
        self.world = world
        self.service = service

    def _make_api_call(self, operation: str, arguments: dict[str, Any]) -> Any:
        return self.world.call(self.service, operation, arguments)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        operation = "".join(part.capitalize() for part in name.split("_"))
        return lambda **arguments: self._make_api_call(operation, arguments)


def refuse(kind: FaultKind, service: str, operation: str, arguments: dict[str, Any]) -> None:
    """Raise what a call that meets this kind of fault gets for an answer, if it gets none of its own."""
    if kind == FaultKind.LOST:
        raise ConnectTimeoutError(endpoint_url=service)
    if kind == FaultKind.LATE:
        raise ReadTimeoutError(endpoint_url=service)
    if kind == FaultKind.THROTTLE:
        raise failed("ThrottlingException", "Rate exceeded", operation)
    if kind == FaultKind.CONFLICT and operation == "TransactWriteItems":
        others = len(arguments["TransactItems"]) - 1
        raise cancelled([{"Code": "TransactionConflict"}] + [{"Code": "None"}] * others)
    if kind == FaultKind.CONFLICT and service == "dynamodb":
        raise failed("TransactionConflictException", "Transaction is ongoing for the item", operation)
