"""Stand-in for the API's handler."""

import json
from typing import Any


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Answer every request with what was asked."""
    return {"statusCode": 200, "body": json.dumps({"status": "ok", "route": event.get("routeKey")})}
