"""api: the HTTP API. Each route decodes, makes one call and encodes; errors are mapped once, here."""

import json
from typing import Any

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.event_handler.exceptions import NotFoundError as RouteNotFoundError
from aws_lambda_powertools.event_handler.middlewares import NextMiddleware
from aws_lambda_powertools.utilities.typing import LambdaContext

from aftercommit import clock
from aftercommit.backlog import list_open_stimuli, list_outbox
from aftercommit.cancel import cancel
from aftercommit.catalogue import describe_types
from aftercommit.client import StartRequest, bulk_dispatch, dispatch, dispatch_existing, execute
from aftercommit.definition_views import export_workflow, show_workflow, show_workflows
from aftercommit.delete import delete
from aftercommit.endpoints import answer
from aftercommit.errors import (
    DefinitionRefusedError,
    MalformedRequestError,
    MethodNotAllowedError,
    NewerFormError,
    RefusedError,
    TryLaterError,
)
from aftercommit.functions import descriptors
from aftercommit.http_parts import METHODS
from aftercommit.limits import (
    BULK_REQUESTS_MAX,
    CURSOR_CHARACTERS_MAX,
    MESSAGE_CHARACTERS_MAX,
    VERSION_MAX,
)
from aftercommit.log import logger
from aftercommit.model import InstanceStatus
from aftercommit.operations import (
    call_back,
    delete_dead_letter,
    find_dead_letter,
    read_stimulus_id,
    replay,
    resume_by_token,
    send_event,
    send_stimulus,
)
from aftercommit.publish import load_workflows, publish_draft, put_draft, retract
from aftercommit.redrive import redrive
from aftercommit.requests import (
    check_path,
    find_tenant,
    read_body,
    read_http_request,
    read_idempotency_key,
    read_items,
    read_number,
    read_parameter,
    read_tenant,
)
from aftercommit.settings import settings
from aftercommit.views import (
    Page,
    list_dead_letters,
    list_dispatches,
    list_incidents,
    list_instances,
    read_page,
    show_dispatch,
    show_instance,
    show_item,
    show_journal,
    show_stimulus,
)

EXECUTE_SECONDS = 25
load_workflows(settings().workflows_module)
app = APIGatewayHttpResolver()


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer a request."""
    answer: dict[str, Any] = app.resolve(event, context)
    return answer


def _json(status: int, body: Any) -> Response[str]:
    return Response(status, "application/json", json.dumps(body, ensure_ascii=False))


def _error(status: int, code: str, message: str, **more: Any) -> Response[str]:
    return _json(status, {"error": {"code": code, "message": message, **more}})


@app.exception_handler(RefusedError)
def refused(error: RefusedError) -> Response[str]:
    """Tell the caller what to change."""
    response = _json(error.status, {"error": _describe(error)})
    if isinstance(error, MethodNotAllowedError):
        response.headers["Allow"] = ", ".join(error.methods)
    return response


@app.exception_handler(TryLaterError)
def try_later(error: TryLaterError) -> Response[str]:
    """Ask the caller to come again."""
    return _json(503, {"error": _describe(error)})


def _describe(error: RefusedError | TryLaterError) -> dict[str, Any]:
    if isinstance(error, TryLaterError):
        logger.warning("try later", extra={"reason": str(error)})
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


@app.exception_handler(RouteNotFoundError)
def no_route(_: RouteNotFoundError) -> Response[str]:
    """Refuse what no route serves."""
    return _error(404, "not_found", "no such route")


@app.exception_handler(Exception)
def failed(_: Exception) -> Response[str]:
    """Log what happened, and say no more than that something did."""
    logger.exception("request failed")
    return _error(500, "internal", "something went wrong; the log has the details")


def bound_path(resolver: APIGatewayHttpResolver, next_middleware: NextMiddleware) -> Response[str]:
    """Refuse a path that names what can be nowhere, before anything looks for it."""
    check_path(resolver.current_event.path)
    response: Response[str] = next_middleware(resolver)
    return response


app.use(middlewares=[bound_path])


def _claims() -> dict[str, Any] | None:
    """Return what the caller's token says; None where requests are signed instead, or public."""
    authorizer = app.current_event["requestContext"].get("authorizer") or {}
    return authorizer["jwt"].get("claims", {}) if "jwt" in authorizer else None


def _tenant() -> str:
    return read_tenant(app.current_event.headers, _claims())


def _query(name: str) -> str | None:
    return read_parameter(app.current_event.query_string_parameters.get(name), name)


def _page() -> Page:
    cursor = app.current_event.query_string_parameters.get("cursor")
    return read_page(_query("limit"), read_parameter(cursor, "cursor", most=CURSOR_CHARACTERS_MAX))


def _body(**known: str) -> dict[str, Any]:
    event = app.current_event
    return read_body(event.body, base64_encoded=bool(event.is_base64_encoded), known=known)


_START = {"input": "object", "correlation_id": "text", "instance_id": "text", "channel": "text"}


def _start_request(definition_id: str) -> StartRequest:
    key = read_idempotency_key(app.current_event.headers)
    return _start_of(definition_id, _body(**_START), key)


def _start_of(definition_id: str, body: dict[str, Any], idempotency_key: str | None) -> StartRequest:
    return StartRequest(
        tenant=_tenant(),
        definition_id=definition_id,
        input=body.get("input", {}),
        correlation_id=body.get("correlation_id"),
        instance_id=body.get("instance_id"),
        idempotency_key=idempotency_key,
        channel=body.get("channel"),
    )


@app.get("/health")
def health() -> Response[str]:
    """Say that the API answers."""
    return _json(200, {"status": "ok"})


@app.get("/openapi.json")
def get_openapi() -> Response[str]:
    """Give the description of all routes."""
    from aftercommit.openapi import describe_api  # few cold starts need it  # noqa: PLC0415

    return _json(200, describe_api())


@app.get("/activities")
def get_activities() -> Response[str]:
    """List the activity functions of the deployed code, and the activity types, with their JSON Schemas."""
    return _json(200, {"activities": descriptors(), "types": describe_types()})


@app.get("/workflows")
def get_workflows() -> Response[str]:
    """List what can be started."""
    return _json(200, show_workflows(_tenant()))


@app.get("/workflows/<id>")
def get_workflow(id: str) -> Response[str]:  # noqa: A002 - named as in the path
    """Show a definition, or give it as a draft of it is put."""
    version = _query("version")
    export = _query("export")
    if export not in (None, "true", "false"):
        raise MalformedRequestError("must be true or false", field="export")
    show = export_workflow if export == "true" else show_workflow
    number = None if version is None else read_number(version, "version", most=VERSION_MAX)
    return _json(200, show(_tenant(), id, number))


@app.put("/workflows/<id>")
def put_workflow(id: str) -> Response[str]:  # noqa: A002
    """Store a draft; a faulty one is refused with all its faults."""
    body = _body(**dict.fromkeys(("id", "version", "inputs", "root", "output", "options"), "any"))
    return _json(200, put_draft(_tenant(), id, body))


@app.post("/workflows/<id>/publish")
def post_publish(id: str) -> Response[str]:  # noqa: A002
    """Publish the draft."""
    return _json(200, {"id": id, "version": publish_draft(_tenant(), id)})


@app.post("/workflows/<id>/retract")
def post_retract(id: str) -> Response[str]:  # noqa: A002
    """Take the published version back."""
    retract(_tenant(), id)
    return _json(200, {"id": id})


@app.post("/workflows/<id>/dispatch")
def post_dispatch(id: str) -> Response[str]:  # noqa: A002
    """Start in the background."""
    return _json(202, {"instance_id": dispatch(_start_request(id))})


@app.post("/workflows/<id>/bulk-dispatch")
def post_bulk_dispatch(id: str) -> Response[str]:  # noqa: A002
    """Start several in the background; one that is refused stops none of the others."""
    items = read_items(_body(items="any"), _START, BULK_REQUESTS_MAX)
    key = read_idempotency_key(app.current_event.headers)
    requests = [
        # Each its own key, so that sending them again starts only those that were not stored.
        _start_of(id, item, f"{key}#{index}" if key else None)
        for index, item in enumerate(items)
    ]
    results = [
        {"instance_id": each} if isinstance(each, str) else {"error": _describe(each)}
        for each in bulk_dispatch(requests)
    ]
    return _json(202, {"results": results})


@app.post("/workflows/<id>/execute")
def post_execute(id: str) -> Response[str]:  # noqa: A002
    """Start and run now: 200 when it waits or has ended, 202 when it goes on in the background."""
    request = _start_request(id)
    instance_id = execute(request, deadline=clock.now() + EXECUTE_SECONDS)
    shown = show_instance(request.tenant, instance_id)
    rests = shown["status"] not in (InstanceStatus.PENDING, InstanceStatus.RUNNING)
    return _json(200 if rests else 202, shown)


@app.get("/instances")
def get_instances() -> Response[str]:
    """List the instances of a definition or a correlation id."""
    page = _page()
    shown = list_instances(
        _tenant(),
        definition_id=_query("definition_id"),
        correlation_id=_query("correlation_id"),
        status=_query("status"),
        page=page,
    )
    return _json(200, shown)


@app.get("/instances/<id>")
def get_instance(id: str) -> Response[str]:  # noqa: A002
    """Show an instance."""
    return _json(200, show_instance(_tenant(), id))


@app.get("/instances/<id>/journal")
def get_journal(id: str) -> Response[str]:  # noqa: A002
    """Show what an instance did."""
    return _json(200, show_journal(_tenant(), id, _page()))


@app.post("/instances/<id>/dispatch")
def post_instance_dispatch(id: str) -> Response[str]:  # noqa: A002
    """Run an existing instance in the background."""
    dispatch_existing(_tenant(), id)
    return _json(202, {"instance_id": id})


@app.get("/dispatches")
def get_dispatches() -> Response[str]:
    """List the dispatches of an owner, or those that failed."""
    page = _page()
    shown = list_dispatches(_tenant(), owner_id=_query("owner_id"), status=_query("status"), page=page)
    return _json(200, shown)


@app.get("/dispatches/<owner_id>/<id>")
def get_dispatch(owner_id: str, id: str) -> Response[str]:  # noqa: A002
    """Show a dispatch."""
    return _json(200, show_dispatch(_tenant(), owner_id, id))


@app.post("/dispatches/<owner_id>/<id>/redrive")
def post_redrive(owner_id: str, id: str) -> Response[str]:  # noqa: A002
    """Make a dispatch that was given up undone again."""
    return _json(202, show_item(redrive(_tenant(), owner_id, id)))


@app.get("/outbox")
def get_outbox() -> Response[str]:
    """List what is pending, or what failed."""
    page = _page()
    return _json(200, list_outbox(_tenant(), status=_query("status"), command=_query("command"), page=page))


@app.post("/instances/<id>/cancel")
def post_cancel(id: str) -> Response[str]:  # noqa: A002
    """Cancel an instance; one that has ended stays as it is."""
    cancelled = cancel(_tenant(), id, "cancelled over the API")
    return _json(200, {"instance_id": id, "cancelled": cancelled})


@app.delete("/instances/<id>")
def delete_instance(id: str) -> Response[str]:  # noqa: A002
    """Delete an ended instance; its rows go a day later."""
    delete(_tenant(), id)
    return _json(202, {"instance_id": id})


_STIMULUS = {
    "payload": "object",
    "input": "any",
    "correlation_id": "text",
    "instance_id": "text",
    "execution_id": "text",
}


@app.post("/stimuli")
def post_stimulus() -> Response[str]:
    """Store a stimulus."""
    body = _body(name="text", **_STIMULUS)
    if "name" not in body:
        raise MalformedRequestError("is missing", field="name")
    return _json(202, {"stimulus_id": send_stimulus(_tenant(), body.pop("name"), **_told(body))})


@app.post("/events/<name>")
def post_event(name: str) -> Response[str]:
    """Store the stimulus of an event."""
    return _json(202, {"stimulus_id": send_event(_tenant(), name, **_told(_body(**_STIMULUS)))})


def _told(body: dict[str, Any]) -> dict[str, Any]:
    return {
        "payload": body.get("payload", {}),
        "value": body.get("input"),
        "correlation_id": body.get("correlation_id"),
        "instance_id": body.get("instance_id"),
        "execution_id": body.get("execution_id"),
        "idempotency_key": read_idempotency_key(app.current_event.headers),
    }


@app.post("/bookmarks/<token>/resume")
def post_resume(token: str) -> Response[str]:
    """Resume the bookmark that a token stands for."""
    resume_by_token(_tenant(), token, _body(input="any").get("input"))
    return _json(202, {})


@app.post("/tasks/<token>/complete")
def post_complete(token: str) -> Response[str]:
    """Complete a task; the same as resuming its bookmark."""
    return post_resume(token)


@app.get("/bookmark-queue")
def get_bookmark_queue() -> Response[str]:
    """List the open stimuli."""
    return _json(200, list_open_stimuli(_tenant(), _page()))


@app.get("/bookmark-queue/dead-letters")
def get_dead_letters() -> Response[str]:
    """List the dead letters."""
    return _json(200, list_dead_letters(_tenant(), _page()))


@app.get("/bookmark-queue/dead-letters/<id>")
def get_dead_letter(id: str) -> Response[str]:  # noqa: A002
    """Show a dead letter."""
    return _json(200, show_stimulus(find_dead_letter(_tenant(), *read_stimulus_id(id))))


@app.post("/bookmark-queue/dead-letters/<id>/replay")
def post_replay(id: str) -> Response[str]:  # noqa: A002
    """Make a dead letter an open stimulus again, once."""
    return _json(202, {"stimulus_id": replay(_tenant(), *read_stimulus_id(id))})


@app.delete("/bookmark-queue/dead-letters/<id>")
def remove_dead_letter(id: str) -> Response[str]:  # noqa: A002
    """Remove a dead letter."""
    delete_dead_letter(_tenant(), *read_stimulus_id(id))
    return _json(200, {})


@app.get("/incidents")
def get_incidents() -> Response[str]:
    """List the recorded faults of a tenant, newest first."""
    return _json(200, list_incidents(_tenant(), _page()))


_ENDPOINTS = "/endpoints/"


# A rule's variable ends at a slash; the path of an endpoint goes on to the end.
@app.route(f"{_ENDPOINTS}.+", method=list(METHODS))
def any_endpoint() -> Response[str]:
    """Start what starts at a request, and answer as it does; 202 if it has not (yet)."""
    tenant = _tenant()
    event = app.current_event
    request = _http_request(event.path.removeprefix(_ENDPOINTS))
    key = read_idempotency_key(event.headers)
    found = answer(tenant, request, idempotency_key=key, deadline=clock.now() + EXECUTE_SECONDS)
    return _written(found.response) if found.response else _json(202, {"instance_id": found.instance_id})


@app.route("/callbacks/<token>", method=list(METHODS))
def any_callback(token: str) -> Response[str]:
    """Take the call of a callback address, once."""
    # Not the path as it was called: it holds the token.
    tenant = find_tenant(app.current_event.headers, _claims())
    call_back(tenant, token, _http_request("callbacks"))
    return _json(202, {})


def _http_request(path: str) -> dict[str, Any]:
    event = app.current_event
    return read_http_request(
        event.http_method.upper(),
        path,
        query=event.query_string_parameters,
        headers=event.headers,
        body=event.body,
        base64_encoded=bool(event.is_base64_encoded),
    )


def _written(response: dict[str, Any]) -> Response[str]:
    headers, body = dict(response["headers"]), response["body"]
    if body is not None:
        is_text = isinstance(body, str)
        headers.setdefault("content-type", "text/plain; charset=utf-8" if is_text else "application/json")
        body = body if is_text else json.dumps(body, ensure_ascii=False)
    return Response(response["status"], None, body or "", headers)
