"""Instances, and what they have left behind: their dispatches, items and incidents."""

from aws_lambda_powertools.event_handler import Response

from aftercommit.api.answers import answer_json
from aftercommit.api.routing import Routes
from aftercommit.backlog import list_outbox
from aftercommit.cancel import cancel
from aftercommit.delete import delete
from aftercommit.redrive import redrive
from aftercommit.views import (
    list_dispatches,
    list_incidents,
    list_instances,
    show_dispatch,
    show_instance,
    show_item,
    show_journal,
)

routes = Routes()


@routes.get("/instances")
def get_instances() -> Response[str]:
    """List the instances of a definition or a correlation id."""
    page = routes.page()
    shown = list_instances(
        routes.tenant(),
        definition_id=routes.query("definition_id"),
        correlation_id=routes.query("correlation_id"),
        status=routes.query("status"),
        page=page,
    )
    return answer_json(200, shown)


@routes.get("/instances/<id>")
def get_instance(id: str) -> Response[str]:  # noqa: A002
    """Show an instance."""
    return answer_json(200, show_instance(routes.tenant(), id))


@routes.get("/instances/<id>/journal")
def get_journal(id: str) -> Response[str]:  # noqa: A002
    """Show what an instance did."""
    return answer_json(200, show_journal(routes.tenant(), id, routes.page()))


@routes.post("/instances/<id>/cancel")
def post_cancel(id: str) -> Response[str]:  # noqa: A002
    """Cancel an instance; one that has ended stays as it is."""
    cancelled = cancel(routes.tenant(), id, "cancelled over the API")
    return answer_json(200, {"instance_id": id, "cancelled": cancelled})


@routes.delete("/instances/<id>")
def delete_instance(id: str) -> Response[str]:  # noqa: A002
    """Delete an ended instance; its rows go a day later."""
    delete(routes.tenant(), id)
    return answer_json(202, {"instance_id": id})


@routes.get("/dispatches")
def get_dispatches() -> Response[str]:
    """List the dispatches of an owner, or those that failed and wait for an operator."""
    page = routes.page()
    shown = list_dispatches(
        routes.tenant(), owner_id=routes.query("owner_id"), status=routes.query("status"), page=page
    )
    return answer_json(200, shown)


@routes.get("/dispatches/<owner_id>/<id>")
def get_dispatch(owner_id: str, id: str) -> Response[str]:  # noqa: A002
    """Show a dispatch."""
    return answer_json(200, show_dispatch(routes.tenant(), owner_id, id))


@routes.post("/dispatches/<owner_id>/<id>/redrive")
def post_redrive(owner_id: str, id: str) -> Response[str]:  # noqa: A002
    """Make a dispatch that was given up undone again."""
    return answer_json(202, show_item(redrive(routes.tenant(), owner_id, id)))


@routes.get("/outbox")
def get_outbox() -> Response[str]:
    """List what is pending, or what failed."""
    page = routes.page()
    shown = list_outbox(
        routes.tenant(), status=routes.query("status"), command=routes.query("command"), page=page
    )
    return answer_json(200, shown)


@routes.get("/incidents")
def get_incidents() -> Response[str]:
    """List the recorded faults of a tenant, newest first, or those of an instance."""
    instance_id = routes.query("instance_id")
    return answer_json(200, list_incidents(routes.tenant(), routes.page(), instance_id=instance_id))
