"""What starts instances, by name or by an HTTP request, and runs those that are there."""

from typing import Any

from aws_lambda_powertools.event_handler import Response

from aftercommit import clock
from aftercommit.api.answers import answer_json, answer_written, describe
from aftercommit.api.routing import Routes
from aftercommit.client import StartRequest, bulk_dispatch, dispatch, dispatch_existing, execute
from aftercommit.endpoints import answer
from aftercommit.http_parts import METHODS
from aftercommit.limits import BULK_REQUESTS_MAX
from aftercommit.requests import read_items
from aftercommit.statuses import InstanceStatus
from aftercommit.views import show_instance

EXECUTE_SECONDS = 25
_START = {"input": "object", "correlation_id": "text", "instance_id": "text", "channel": "text"}
_ENDPOINTS = "/endpoints/"

routes = Routes()


def _start_request(definition_id: str) -> StartRequest:
    key = routes.idempotency_key()
    return _start_of(definition_id, routes.body(**_START), key)


def _start_of(definition_id: str, body: dict[str, Any], idempotency_key: str | None) -> StartRequest:
    return StartRequest(
        tenant=routes.tenant(),
        definition_id=definition_id,
        input=body.get("input", {}),
        correlation_id=body.get("correlation_id"),
        instance_id=body.get("instance_id"),
        idempotency_key=idempotency_key,
        channel=body.get("channel"),
    )


@routes.post("/workflows/<id>/dispatch")
def post_dispatch(id: str) -> Response[str]:  # noqa: A002
    """Start in the background."""
    return answer_json(202, {"instance_id": dispatch(_start_request(id))})


@routes.post("/workflows/<id>/bulk-dispatch")
def post_bulk_dispatch(id: str) -> Response[str]:  # noqa: A002
    """Start several in the background; one that is refused stops none of the others."""
    items = read_items(routes.body(items="any"), _START, BULK_REQUESTS_MAX)
    key = routes.idempotency_key()
    requests = [
        # Each its own key, so that sending them again starts only those that were not stored.
        _start_of(id, item, f"{key}#{index}" if key else None)
        for index, item in enumerate(items)
    ]
    results = [
        {"instance_id": each} if isinstance(each, str) else {"error": describe(each)}
        for each in bulk_dispatch(requests)
    ]
    return answer_json(202, {"results": results})


@routes.post("/workflows/<id>/execute")
def post_execute(id: str) -> Response[str]:  # noqa: A002
    """Start and run now: 200 when it waits or has ended, 202 when it goes on in the background."""
    request = _start_request(id)
    instance_id = execute(request, deadline=clock.now() + EXECUTE_SECONDS)
    shown = show_instance(request.tenant, instance_id)
    rests = shown["status"] not in (InstanceStatus.PENDING, InstanceStatus.RUNNING)
    return answer_json(200 if rests else 202, shown)


@routes.post("/instances/<id>/dispatch")
def post_instance_dispatch(id: str) -> Response[str]:  # noqa: A002
    """Run an existing instance in the background."""
    dispatch_existing(routes.tenant(), id)
    return answer_json(202, {"instance_id": id})


# A rule's variable ends at a slash; the path of an endpoint goes on to the end.
@routes.route(f"{_ENDPOINTS}.+", method=list(METHODS))
def any_endpoint() -> Response[str]:
    """Start what starts at a request, and answer as it does; 202 if it has not (yet)."""
    tenant = routes.tenant()
    request = routes.http_request(routes.current_event.path.removeprefix(_ENDPOINTS))
    key = routes.idempotency_key()
    found = answer(tenant, request, idempotency_key=key, deadline=clock.now() + EXECUTE_SECONDS)
    if found.response:
        return answer_written(found.response)
    return answer_json(202, {"instance_id": found.instance_id})
