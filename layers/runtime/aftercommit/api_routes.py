"""The routes of the HTTP API as data: what each takes and answers, for its description.

Tests compare them with those that are deployed, and with what they answer.
"""

from dataclasses import dataclass

from aftercommit.http_parts import METHODS

_PAGED = ("limit", "cursor")
_TAKES_BODY = (400, 413, 422)
_STARTS = (*_TAKES_BODY, 404, 409)


@dataclass(frozen=True)
class Route:
    """One route. `errors` are those beside 401, 403, 500 and 503, which any route may give."""

    method: str
    path: str
    name: str
    summary: str
    answers: dict[int, str]
    errors: tuple[int, ...] = ()
    query: tuple[str, ...] = ()
    body: str | None = None
    keyed: bool = False  # takes an Idempotency-Key
    of_tenant: bool = True
    scope: str = "read"  # what a caller with a token needs


ROUTES = (
    Route("get", "/health", "show_health", "Say that the API answers", {200: "Health"}, of_tenant=False),
    Route("get", "/openapi.json", "show_openapi", "Give this description", {200: "OpenApi"}, of_tenant=False),
    Route(
        "get",
        "/activities",
        "list_activities",
        "List the deployed activity functions and the activity types, with their JSON Schemas",
        {200: "Catalogue"},
        of_tenant=False,
    ),
    Route(
        "get",
        "/workflows",
        "list_workflows",
        "List what can be started, by name",
        {200: "Workflows"},
        (400,),
        _PAGED,
    ),
    Route(
        "get",
        "/workflows/{id}",
        "show_workflow",
        "Show a definition, or with export give just what PUT takes",
        {200: "ShownOrExport"},
        (400, 404),
        ("version", "export"),
    ),
    Route(
        "put",
        "/workflows/{id}",
        "put_workflow",
        "Store a draft; a faulty one is refused with every fault",
        {200: "Stored"},
        _TAKES_BODY,
        body="Draft",
        scope="publish",
    ),
    Route(
        "post",
        "/workflows/{id}/publish",
        "publish_workflow",
        "Publish the draft as the next version",
        {200: "Published"},
        (400, 404, 422),
        scope="publish",
    ),
    Route(
        "post",
        "/workflows/{id}/retract",
        "retract_workflow",
        "Let nothing start it any more; what runs goes on",
        {200: "Retracted"},
        (400, 404),
        scope="publish",
    ),
    Route(
        "post",
        "/workflows/{id}/dispatch",
        "dispatch_workflow",
        "Start in the background",
        {202: "Started"},
        _STARTS,
        body="Start",
        keyed=True,
        scope="start",
    ),
    Route(
        "post",
        "/workflows/{id}/bulk-dispatch",
        "bulk_dispatch_workflow",
        "Start several in the background; one that is refused stops none of the others",
        {202: "BulkStarted"},
        (400, 413),
        body="BulkStart",
        keyed=True,
        scope="start",
    ),
    Route(
        "post",
        "/workflows/{id}/execute",
        "execute_workflow",
        "Start and run now: 200 when it waits or has ended, 202 when it goes on in the background",
        {200: "Instance", 202: "Instance"},
        _STARTS,
        body="Start",
        keyed=True,
        scope="start",
    ),
    Route(
        "get",
        "/instances",
        "list_instances",
        "List the instances of a definition or of a correlation id (one of both is needed), newest first",
        {200: "Instances"},
        (400,),
        ("definition_id", "correlation_id", "instance_status", *_PAGED),
    ),
    Route("get", "/instances/{id}", "show_instance", "Show an instance", {200: "Instance"}, (400, 404)),
    Route(
        "get",
        "/instances/{id}/journal",
        "show_journal",
        "Show what an instance did, revision by revision",
        {200: "Journal"},
        (400, 404),
        _PAGED,
    ),
    Route(
        "post",
        "/instances/{id}/dispatch",
        "dispatch_instance",
        "Run an existing instance in the background",
        {202: "Started"},
        (400, 404, 409),
        scope="operate",
    ),
    Route(
        "post",
        "/instances/{id}/cancel",
        "cancel_instance",
        "End it as cancelled, and the children that it waits for; one that has ended stays as it is",
        {200: "Cancelled"},
        (400, 404),
        scope="operate",
    ),
    Route(
        "delete",
        "/instances/{id}",
        "delete_instance",
        "Delete an ended instance; its rows go a day later",
        {202: "Started"},
        (400, 404, 409),
        scope="operate",
    ),
    Route(
        "get",
        "/dispatches",
        "list_dispatches",
        "List the dispatches of an owner, or (status=failed) all that failed and no parent was told of",
        {200: "Dispatches"},
        (400,),
        ("owner_id", "item_status", *_PAGED),
    ),
    Route(
        "get",
        "/dispatches/{owner_id}/{id}",
        "show_dispatch",
        "Show a dispatch",
        {200: "Dispatch"},
        (400, 404),
    ),
    Route(
        "post",
        "/dispatches/{owner_id}/{id}/redrive",
        "redrive_dispatch",
        "Try a failed dispatch again that nobody waits for",
        {202: "Dispatch"},
        (400, 404, 409),
        scope="redrive",
    ),
    Route(
        "get",
        "/outbox",
        "list_outbox",
        "List what is pending, or what failed",
        {200: "OutboxItems"},
        (400,),
        ("outbox_status", "command", *_PAGED),
    ),
    Route(
        "post",
        "/events/{name}",
        "send_event",
        "Publish an event",
        {202: "Sent"},
        _TAKES_BODY,
        body="Event",
        keyed=True,
        scope="start",
    ),
    Route(
        "post",
        "/stimuli",
        "send_stimulus",
        "Send a stimulus of any name",
        {202: "Sent"},
        _TAKES_BODY,
        body="NamedStimulus",
        keyed=True,
        scope="start",
    ),
    Route(
        "post",
        "/bookmarks/{token}/resume",
        "resume_bookmark",
        "Resume the bookmark that a token stands for, once",
        {202: "Nothing"},
        (*_TAKES_BODY, 404),
        body="Resume",
        scope="start",
    ),
    Route(
        "post",
        "/tasks/{token}/complete",
        "complete_task",
        "Complete a task, once; the token stands with the instance's bookmarks",
        {202: "Nothing"},
        (*_TAKES_BODY, 404),
        body="Resume",
        scope="start",
    ),
    Route(
        "get",
        "/bookmark-queue",
        "list_open_stimuli",
        "List the stimuli that nothing has taken yet",
        {200: "OpenStimuli"},
        (400,),
        _PAGED,
    ),
    Route(
        "get",
        "/bookmark-queue/dead-letters",
        "list_dead_letters",
        "List the stimuli that nothing took in time, or that kept failing",
        {200: "DeadLetters"},
        (400,),
        _PAGED,
    ),
    Route(
        "get",
        "/bookmark-queue/dead-letters/{id}",
        "show_dead_letter",
        "Show a dead letter",
        {200: "Stimulus"},
        (400, 404),
    ),
    Route(
        "post",
        "/bookmark-queue/dead-letters/{id}/replay",
        "replay_dead_letter",
        "Send a dead letter again, once",
        {202: "Sent"},
        (400, 404, 409),
        scope="redrive",
    ),
    Route(
        "delete",
        "/bookmark-queue/dead-letters/{id}",
        "remove_dead_letter",
        "Remove a dead letter",
        {200: "Nothing"},
        (400, 404),
        scope="operate",
    ),
    Route(
        "get",
        "/incidents",
        "list_incidents",
        "List the recorded faults of all instances, newest first, or those of one",
        {200: "Incidents"},
        (400,),
        ("instance_id", *_PAGED),
    ),
    *(
        Route(
            method.lower(),
            "/callbacks/{token}",
            f"call_back_by_{method.lower()}",
            "Call a callback address that an instance has given out; the first call counts",
            {202: "Nothing"},
            (*_TAKES_BODY, 404),
            body="AnyContent",
            scope="start",
        )
        for method in METHODS
    ),
    *(
        Route(
            method.lower(),
            "/endpoints/{path}",
            f"call_endpoint_by_{method.lower()}",
            "Start the workflow that starts at this path (which may have slashes) and method",
            {202: "Started"},
            body="AnyContent",
            keyed=True,
            scope="start",
        )
        for method in METHODS
    ),
)
