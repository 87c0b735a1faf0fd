"""Stand-in for the handler of run."""

from typing import Any


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Say what came."""
    print("run", event)  # noqa: T201
    return {"batchItemFailures": []}
