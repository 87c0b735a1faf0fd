"""The AWS clients, made once per process: one botocore session, one client per service.

Endpoint, region and credentials come from the environment (AWS_ENDPOINT_URL for a local stack).
"""

from functools import cache
from typing import Any

from botocore.config import Config
from botocore.session import Session, get_session


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


def forget_clients() -> None:
    """Drop all clients: the next call makes new ones, for tests that change the environment."""
    client.cache_clear()
    session.cache_clear()
