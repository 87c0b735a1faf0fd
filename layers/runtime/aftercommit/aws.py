"""The AWS clients, made once per process: one botocore session, one client per service.

Endpoint, region and credentials come from the environment (AWS_ENDPOINT_URL for a local stack).
"""

from functools import cache
from typing import Any

from botocore.config import Config
from botocore.exceptions import ConnectionError as NoConnectionError
from botocore.exceptions import HTTPClientError
from botocore.session import Session, get_session

THROTTLED = {
    "ThrottlingError",
    "ThrottlingException",
    "ProvisionedThroughputExceeded",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "InternalServerError",
    "ServiceUnavailable",
}


@cache
def session() -> Session:
    """Return the process's botocore session."""
    return get_session()


@cache
def client(service: str, *, seconds: int | None = None) -> Any:
    """Return the client of a service, such as `dynamodb` or `sqs`.

    Time-outs are short against an invocation's time, so that a worker learns of an unknown outcome
    while it can still read what became of its write. With `seconds`, a call is made once, and takes three
    quarters of them at most.
    """
    config = Config(
        connect_timeout=2 if seconds is None else seconds / 4,
        read_timeout=8 if seconds is None else seconds / 2,
        retries={"total_max_attempts": 4 if seconds is None else 1, "mode": "standard"},
        max_pool_connections=10,
        parameter_validation=False,
    )
    return session().create_client(service, config=config)


def refusal_of(error: BaseException) -> dict[str, str]:
    """Return the {Code, Message} by which AWS has refused, of an error of botocore or PynamoDB; else {}."""
    # Not PynamoDB's own properties, which fail on a time-out: that has a response, which is None.
    response = getattr(getattr(error, "cause", error), "response", None) or {}
    refusal: dict[str, str] = response.get("Error", {})
    return refusal


def is_passing(error: BaseException) -> bool:
    """Whether AWS had too much to do, or no answer came: what heals by itself."""
    unheard = isinstance(getattr(error, "cause", error), NoConnectionError | HTTPClientError)
    return unheard or refusal_of(error).get("Code") in THROTTLED


def forget_clients() -> None:
    """Drop all clients: the next call makes new ones, for tests that change the environment."""
    client.cache_clear()
    session.cache_clear()
