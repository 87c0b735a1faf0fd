"""How answers are written."""

import json
from typing import Any

from aws_lambda_powertools.event_handler import Response

from aftercommit.errors import DefinitionRefusedError, NewerFormError, RefusedError, TryLaterError
from aftercommit.jsons import dumps
from aftercommit.limits import MESSAGE_CHARACTERS_MAX
from aftercommit.log import logger, reason_of


def answer_json(status: int, body: Any) -> Response[str]:
    """Answer with JSON."""
    return Response(status, "application/json", dumps(body))


def describe(error: RefusedError | TryLaterError) -> dict[str, Any]:
    """Return {code, message, field?, faults?}: the `error` of an answer."""
    if isinstance(error, TryLaterError):
        logger.warning("try later", extra={"reason": reason_of(error)})
        newer = isinstance(error, NewerFormError)
        why = "only newer code than what is deployed can read this" if newer else "the database is busy"
        return {"code": "try_later", "message": f"{why}; send the same request again"}
    told: dict[str, Any] = {"code": error.code, "message": error.message[:MESSAGE_CHARACTERS_MAX]}
    if error.field:
        told["field"] = error.field
    if isinstance(error, DefinitionRefusedError):
        told["faults"] = [
            {"path": path, "message": message[:MESSAGE_CHARACTERS_MAX]} for path, message in error.faults
        ]
    return told


def answer_written(response: dict[str, Any]) -> Response[str]:
    """Answer as a workflow's WriteHttpResponse says."""
    headers, body = dict(response["headers"]), response["body"]
    if body is not None:
        is_text = isinstance(body, str)
        headers.setdefault("content-type", "text/plain; charset=utf-8" if is_text else "application/json")
        body = body if is_text else json.dumps(body, ensure_ascii=False)
    return Response(response["status"], None, body or "", headers)
