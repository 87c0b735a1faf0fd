"""What can be started: activities, definitions and drafts."""

from aws_lambda_powertools.event_handler import Response

from aftercommit.api.answers import answer_json
from aftercommit.api.routing import Routes
from aftercommit.catalogue import describe_types
from aftercommit.definition_views import export_workflow, list_workflows, show_workflow
from aftercommit.errors import MalformedRequestError
from aftercommit.functions import descriptors
from aftercommit.limits import VERSION_MAX
from aftercommit.publish import publish_draft, put_draft, retract
from aftercommit.requests import read_number

routes = Routes()


@routes.get("/activities")
def get_activities() -> Response[str]:
    """List the activity functions of the deployed code, and the activity types, with their JSON Schemas."""
    return answer_json(200, {"activities": descriptors(), "types": describe_types()})


@routes.get("/workflows")
def get_workflows() -> Response[str]:
    """List what can be started."""
    return answer_json(200, list_workflows(routes.tenant(), routes.page()))


@routes.get("/workflows/<id>")
def get_workflow(id: str) -> Response[str]:  # noqa: A002
    """Show a definition, or give it as a draft of it is put."""
    version = routes.query("version")
    export = routes.query("export")
    if export not in (None, "true", "false"):
        raise MalformedRequestError("must be true or false", field="export")
    show = export_workflow if export == "true" else show_workflow
    number = None if version is None else read_number(version, "version", most=VERSION_MAX)
    return answer_json(200, show(routes.tenant(), id, number))


@routes.put("/workflows/<id>")
def put_workflow(id: str) -> Response[str]:  # noqa: A002
    """Store a draft; a faulty one is refused with all its faults."""
    body = routes.body(**dict.fromkeys(("id", "version", "inputs", "root", "output", "options"), "any"))
    return answer_json(200, put_draft(routes.tenant(), id, body))


@routes.post("/workflows/<id>/publish")
def post_publish(id: str) -> Response[str]:  # noqa: A002
    """Publish the draft."""
    return answer_json(200, {"id": id, "version": publish_draft(routes.tenant(), id)})


@routes.post("/workflows/<id>/retract")
def post_retract(id: str) -> Response[str]:  # noqa: A002
    """Take the published version back."""
    retract(routes.tenant(), id)
    return answer_json(200, {"id": id})
