"""api: the HTTP API. Its routes stand in aftercommit.api, by subject; errors are mapped once, here."""

from typing import Any

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.event_handler.exceptions import NotFoundError as RouteNotFoundError
from aws_lambda_powertools.event_handler.middlewares import NextMiddleware
from aws_lambda_powertools.utilities.typing import LambdaContext

from aftercommit.api import definitions, instances, starts, stimuli
from aftercommit.api.answers import answer_json, describe
from aftercommit.api.routing import ids_of_request
from aftercommit.errors import MethodNotAllowedError, RefusedError, TryLaterError
from aftercommit.log import about, add_ids, logger, tell_failure
from aftercommit.publish import load_workflows
from aftercommit.requests import check_path
from aftercommit.settings import settings

load_workflows(settings().workflows_module)
app = APIGatewayHttpResolver()


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer a request."""
    with about():  # no id that is added for this request outlives it
        answer: dict[str, Any] = app.resolve(event, context)
    return answer


def _error(status: int, code: str, message: str, **more: Any) -> Response[str]:
    return answer_json(status, {"error": {"code": code, "message": message, **more}})


@app.exception_handler(RefusedError)
def refused(error: RefusedError) -> Response[str]:
    """Tell the caller what to change."""
    response = answer_json(error.status, {"error": describe(error)})
    if isinstance(error, MethodNotAllowedError):
        response.headers["Allow"] = ", ".join(error.methods)
    return response


@app.exception_handler(TryLaterError)
def try_later(error: TryLaterError) -> Response[str]:
    """Ask the caller to come again."""
    return answer_json(503, {"error": describe(error)})


@app.exception_handler(RouteNotFoundError)
def no_route(_: RouteNotFoundError) -> Response[str]:
    """Refuse what no route serves."""
    return _error(404, "not_found", "no such route")


@app.exception_handler(Exception)
def failed(error: Exception) -> Response[str]:
    """Log what happened, and say no more than that something did."""
    tell_failure("request failed", error)
    return _error(500, "internal", "something went wrong; the log has the details")


def bound_path(resolver: APIGatewayHttpResolver, next_middleware: NextMiddleware) -> Response[str]:
    """Refuse a path that names what can be nowhere, before anything looks for it."""
    check_path(resolver.current_event.path)
    response: Response[str] = next_middleware(resolver)
    return response


def tell_ids(resolver: APIGatewayHttpResolver, next_middleware: NextMiddleware) -> Response[str]:
    """Have every line of the request bear its tenant, and the ids in its path."""
    add_ids(**ids_of_request(resolver.current_event))
    response: Response[str] = next_middleware(resolver)
    return response


app.use(middlewares=[bound_path, tell_ids])
for subject in (definitions, starts, instances, stimuli):
    app.include_router(subject.routes)


@app.get("/health")
def health() -> Response[str]:
    """Say that the API answers."""
    return answer_json(200, {"status": "ok"})


@app.get("/openapi.json")
def get_openapi() -> Response[str]:
    """Give the description of all routes."""
    from aftercommit.openapi import describe_api  # few cold starts need it  # noqa: PLC0415

    return answer_json(200, describe_api())
