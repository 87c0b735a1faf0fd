"""Endpoints: start the workflow that waits for HTTP requests at a path, and find what it has answered."""

from dataclasses import dataclass

from aftercommit.activities.http_endpoint import http_stimulus
from aftercommit.bookmarks import stimulus_id_of
from aftercommit.client import StartPoint, StartRequest, execute
from aftercommit.errors import (
    ConflictError,
    MethodNotAllowedError,
    NotFoundError,
    OvertakenError,
    RefusedError,
    TryLaterError,
)
from aftercommit.http_parts import METHODS, find_path_fault
from aftercommit.instances import find_whole
from aftercommit.jsons import Json
from aftercommit.log import logger, reason_of
from aftercommit.tables import TriggerRow
from aftercommit.triggers import find_triggers


@dataclass(frozen=True)
class Answer:
    """What has come of a request so far: the instance, and {status, headers, body} if it has written them."""

    instance_id: str
    response: dict[str, Json] | None


def answer(tenant: str, request: dict[str, Json], *, idempotency_key: str | None, deadline: float) -> Answer:
    """Run the workflow that starts at a request, until it waits, ends, or time is up.

    The same request under the same Idempotency-Key starts nothing again. Raises NotFoundError,
    MethodNotAllowedError, ConflictError if several workflows start there, or what `client.execute` raises.
    """
    row = _find_start(tenant, request["path"], request["method"])
    asked = StartRequest(
        tenant,
        row.definition_id,
        {},
        idempotency_key=idempotency_key,
        start_point=StartPoint(row.owner, int(row.version), row.activity_id, request),
    )
    instance_id = execute(asked, deadline=deadline)
    return Answer(instance_id, _find_response(tenant, instance_id))


def _find_start(tenant: str, path: str, method: str) -> TriggerRow:
    if find_path_fault(path):
        raise NotFoundError("no endpoint of this path", field="path")
    found = _starts(tenant, path, method)
    names = sorted({row.definition_id for row in found})
    if len(names) > 1:
        told = " and ".join(repr(name) for name in names)
        raise ConflictError(f"workflows {told} both start at {method} {path}", field="path")
    if found:
        return found[0]
    if methods := [each for each in METHODS if _starts(tenant, path, each)]:
        raise MethodNotAllowedError(f"this endpoint takes {', '.join(methods)}", methods)
    raise NotFoundError("no endpoint of this path", field="path")


def _starts(tenant: str, path: str, method: str) -> list[TriggerRow]:
    return find_triggers(tenant, stimulus_id_of(http_stimulus(path, method)))


def _find_response(tenant: str, instance_id: str) -> dict[str, Json] | None:
    try:
        found = find_whole(tenant, instance_id)
    except (OvertakenError, RefusedError, TryLaterError) as error:
        # The request was taken: an error now would have it sent again.
        logger.warning(
            "response not read",
            extra={"tenant": tenant, "instance_id": instance_id, "reason": reason_of(error)},
        )
        return None
    return found[1].response if found else None
