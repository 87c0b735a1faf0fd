"""Stand-in for the handler of sweep."""

from typing import Any


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Say what came."""
    print("sweep", event)  # noqa: T201
    return {"batchItemFailures": []}
