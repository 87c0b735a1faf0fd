"""DynamoDB refuses keys that the stand-in takes: too long ones, and half characters."""

import json
from typing import Any

PARTITION_KEY_BYTES_MAX, SORT_KEY_BYTES_MAX = 2048, 1024
_PARTITION_KEYS = {
    *("owner_key", "instance_key", "definition_key", "stimulus_key", "correlation_key"),
    *("tenant", "published_by"),
}


class _Refused:
    """What botocore asks of an HTTP response that is an error."""

    status_code = 400
    headers: dict[str, str] = {}  # noqa: RUF012 - never changed


def refuse_what_no_key_holds(client: Any):
    """Let a client's calls be refused for their keys, as DynamoDB does; returns what ends that."""

    def look(model: Any, params: dict[str, Any], **_: Any) -> tuple[Any, dict[str, Any]] | None:
        told = _find_fault(json.loads(params["body"]), model.name)
        return (_Refused(), {"Error": {"Code": "ValidationException", "Message": told}}) if told else None

    client.meta.events.register_first("before-call.dynamodb", look)
    return lambda: client.meta.events.unregister("before-call.dynamodb", look)


def _find_fault(body: dict[str, Any], operation: str) -> str | None:
    try:
        json.dumps(body, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return "half a character"
    for place in (body.get("Key"), body.get("ExclusiveStartKey")):
        for name, value in (place or {}).items():
            longest = PARTITION_KEY_BYTES_MAX if name in _PARTITION_KEYS else SORT_KEY_BYTES_MAX
            if len(str(next(iter(value.values()))).encode()) > longest:
                return f"the key {name} is too long"
    if operation == "Query":
        given = [each["S"] for each in body.get("ExpressionAttributeValues", {}).values() if "S" in each]
        if any(len(each.encode()) > PARTITION_KEY_BYTES_MAX for each in given):
            return "a key is too long"
        if " BETWEEN " in body["KeyConditionExpression"] and given[-2] > given[-1]:
            return "the upper bound of BETWEEN is below the lower one"
    return None
