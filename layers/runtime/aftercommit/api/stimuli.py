"""What instances wait for: stimuli and events, tokens, callbacks; and the queue of what came too early."""

from typing import Any

from aws_lambda_powertools.event_handler import Response

from aftercommit.api.answers import answer_json
from aftercommit.api.routing import Routes
from aftercommit.backlog import list_open_stimuli
from aftercommit.errors import MalformedRequestError
from aftercommit.http_parts import METHODS
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
from aftercommit.requests import find_tenant
from aftercommit.views import list_dead_letters, show_stimulus

_STIMULUS = {
    "payload": "object",
    "input": "any",
    "correlation_id": "text",
    "instance_id": "text",
    "execution_id": "text",
}
routes = Routes()


@routes.post("/stimuli")
def post_stimulus() -> Response[str]:
    """Store a stimulus."""
    body = routes.body(name="text", **_STIMULUS)
    if "name" not in body:
        raise MalformedRequestError("is missing", field="name")
    return answer_json(202, {"stimulus_id": send_stimulus(routes.tenant(), body.pop("name"), **_told(body))})


@routes.post("/events/<name>")
def post_event(name: str) -> Response[str]:
    """Store the stimulus of an event."""
    tenant, told = routes.tenant(), _told(routes.body(**_STIMULUS))
    return answer_json(202, {"stimulus_id": send_event(tenant, name, **told)})


def _told(body: dict[str, Any]) -> dict[str, Any]:
    return {
        "payload": body.get("payload", {}),
        "value": body.get("input"),
        "correlation_id": body.get("correlation_id"),
        "instance_id": body.get("instance_id"),
        "execution_id": body.get("execution_id"),
        "idempotency_key": routes.idempotency_key(),
    }


@routes.post("/bookmarks/<token>/resume")
def post_resume(token: str) -> Response[str]:
    """Resume the bookmark that a token stands for."""
    resume_by_token(routes.tenant(), token, routes.body(input="any").get("input"))
    return answer_json(202, {})


@routes.post("/tasks/<token>/complete")
def post_complete(token: str) -> Response[str]:
    """Complete a task; the same as resuming its bookmark."""
    return post_resume(token)


@routes.get("/bookmark-queue")
def get_bookmark_queue() -> Response[str]:
    """List the open stimuli."""
    return answer_json(200, list_open_stimuli(routes.tenant(), routes.page()))


@routes.get("/bookmark-queue/dead-letters")
def get_dead_letters() -> Response[str]:
    """List the dead letters."""
    return answer_json(200, list_dead_letters(routes.tenant(), routes.page()))


@routes.get("/bookmark-queue/dead-letters/<id>")
def get_dead_letter(id: str) -> Response[str]:  # noqa: A002
    """Show a dead letter."""
    return answer_json(200, show_stimulus(find_dead_letter(routes.tenant(), *read_stimulus_id(id))))


@routes.post("/bookmark-queue/dead-letters/<id>/replay")
def post_replay(id: str) -> Response[str]:  # noqa: A002
    """Make a dead letter an open stimulus again, once."""
    return answer_json(202, {"stimulus_id": replay(routes.tenant(), *read_stimulus_id(id))})


@routes.delete("/bookmark-queue/dead-letters/<id>")
def remove_dead_letter(id: str) -> Response[str]:  # noqa: A002
    """Remove a dead letter."""
    delete_dead_letter(routes.tenant(), *read_stimulus_id(id))
    return answer_json(200, {})


@routes.route("/callbacks/<token>", method=list(METHODS))
def any_callback(token: str) -> Response[str]:
    """Take the call of a callback address, once."""
    # Not the path as it was called: it holds the token.
    tenant = find_tenant(routes.current_event.headers, routes.claims())
    call_back(tenant, token, routes.http_request("callbacks"))
    return answer_json(202, {})
