"""Stand-in for the handler of deliver."""

from typing import Any


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Say what came."""
    print("deliver", event)  # noqa: T201
    return {"batchItemFailures": []}
