"""OpenAPI: the description of the whole HTTP API, as it is served and stands in docs/openapi.json.

Only who asks for it pays for it: it is imported and built then.
"""

from typing import Any

from aftercommit.api_routes import ROUTES, Route
from aftercommit.api_schemas import ID, NAME, NUMBER, OBJECT, ref, schemas
from aftercommit.limits import (
    BODY_BYTES_MAX,
    CURSOR_CHARACTERS_MAX,
    IDEMPOTENCY_KEY_CHARACTERS_MAX,
    INPUT_BYTES_MAX,
    LARGE_BODY_BYTES_MAX,
    LARGE_VALUE_BYTES_MAX,
    PAGE_MAX,
    REQUEST_DAYS,
    TOKEN_CHARACTERS_MAX,
    VERSION_MAX,
)
from aftercommit.paging import Page
from aftercommit.requests import TENANT_PATTERN
from aftercommit.statuses import InstanceStatus, ItemCommand, ItemStatus
from aftercommit.tables import DEFAULT_TENANT

VERSION = "0.1.0"

_ERRORS = {
    400: "The body or a parameter is not of this form",
    401: "Without a token that is good",
    403: "Not signed, not permitted, or a token of another tenant",
    404: "There is none (or it is another tenant's)",
    409: "It contradicts something that exists",
    413: "It is too large",
    422: "It is of this form, and cannot be taken all the same",
    500: "Something went wrong, or a stored row cannot be read; the log has the details",
    503: "The database is busy, or only newer code can read what is asked for: send the same request again",
}
_ERROR_SCHEMAS = {401: "GatewayError", 403: "Forbidden"}


def describe_api() -> dict[str, Any]:
    """Return the description of the HTTP API, as OpenAPI 3.1."""
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Aftercommit",
            "version": VERSION,
            "license": {"name": "MIT", "identifier": "MIT"},
            "description": (
                f"Durable workflows. A body has at most {BODY_BYTES_MAX} bytes, an input {INPUT_BYTES_MAX} "
                f"({LARGE_BODY_BYTES_MAX} and {LARGE_VALUE_BYTES_MAX} with LargePayloads); "
                f"lists come in pages of at most {PAGE_MAX}."
            ),
        },
        "servers": [
            {
                "url": "https://{api}.execute-api.{region}.amazonaws.com",
                "variables": {"api": {"default": "api"}, "region": {"default": "us-east-1"}},
            }
        ],
        "paths": paths,
        "components": {
            "schemas": {**schemas(), "OpenApi": {**OBJECT, "description": "an OpenAPI document"}},
            "parameters": _parameters(),
            "responses": {str(status): _error(status) for status in _ERRORS},
            "securitySchemes": {
                "signature": {
                    "type": "apiKey",
                    "name": "Authorization",
                    "in": "header",
                    "description": "AWS Signature Version 4, for the service execute-api",
                    "x-amazon-apigateway-authtype": "awsSigv4",
                },
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "bearerFormat": "JWT",
                    "description": "where the deployment has an issuer; with the scope that a route names",
                },
            },
        },
    }


def _operation(route: Route) -> dict[str, Any]:
    names = [*route.query]
    if route.of_tenant:
        names.append("tenant")
    if route.keyed:
        names.append("idempotency_key")
    in_path = [_path_parameter(route, part) for part in route.path.split("/") if part.startswith("{")]
    written: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.summary,
        "tags": [route.path.split("/")[1].removesuffix(".json")],
        "parameters": [*in_path, *({"$ref": f"#/components/parameters/{name}"} for name in names)],
    }
    if route.body == "AnyContent":
        # Methods such as GET may come with one, too; only for these it is usual.
        if route.method in ("post", "put", "patch"):
            written["requestBody"] = {"content": {"*/*": {}}}
    elif route.body:
        written["requestBody"] = _body(route.body)
    # A deployment takes either signatures or tokens; by parameters, callbacks and endpoints need none.
    written["security"] = [{"signature": []}, {"token": [f"aftercommit/{route.scope}"]}]
    return {**written, "responses": _responses(route)}


def _path_parameter(route: Route, part: str) -> dict[str, Any]:
    name = part.strip("{}")
    schema = NAME
    if name == "token":
        schema = {**NAME, "maxLength": TOKEN_CHARACTERS_MAX}
    elif name == "id" and route.path.startswith(("/workflows", "/instances")):
        schema = ID
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _body(name: str) -> dict[str, Any]:
    required = bool(schemas()[name].get("required"))
    return {"required": required, "content": {"application/json": {"schema": ref(name)}}}


def _responses(route: Route) -> dict[str, Any]:
    if route.path.startswith("/endpoints"):
        # The workflow may answer with any status, these among them, and with any content.
        return {
            "202": {"description": "It has not answered (yet): {instance_id}"},
            "default": {"description": "What the workflow answers; or an error, in the form of all others"},
        }
    found: dict[str, Any] = {
        str(status): {
            "description": "Done" if status == 200 else "Taken, and goes on in the background",  # noqa: PLR2004
            "content": {"application/json": {"schema": ref(name)}},
        }
        for status, name in route.answers.items()
    }
    nowhere = {404} if "{" in route.path else set()  # a name that is too long for any
    for status in sorted({*route.errors, *nowhere, 401, 403, 500, 503}):
        found[str(status)] = {"$ref": f"#/components/responses/{status}"}
    return found


def _error(status: int) -> dict[str, Any]:
    schema = ref(_ERROR_SCHEMAS.get(status, "Error"))
    return {"description": _ERRORS[status], "content": {"application/json": {"schema": schema}}}


def _parameters() -> dict[str, Any]:
    whole_page = Page()
    return {
        "limit": _query("limit", {**NUMBER, "maximum": PAGE_MAX, "default": whole_page.limit}),
        "cursor": _query(
            "cursor", {"type": "string", "maxLength": CURSOR_CHARACTERS_MAX}, "as the page before gave it"
        ),
        "version": _query("version", {**NUMBER, "maximum": VERSION_MAX}, "default: the published one"),
        "export": _query("export", {"enum": ["true", "false"], "default": "false"}),
        **{
            name: _query(name, NAME)
            for name in ("definition_id", "correlation_id", "instance_id", "owner_id")
        },
        "instance_status": _query("status", {"enum": [each.value for each in InstanceStatus]}),
        "item_status": _query("status", {"enum": [each.value for each in ItemStatus]}),
        "outbox_status": {**_query("status", {"enum": ["pending", "failed"]}), "required": True},
        "command": _query("command", {"enum": [each.value for each in ItemCommand]}),
        "tenant": _header(
            "X-Tenant-Id",
            {"type": "string", "pattern": f"^{TENANT_PATTERN.pattern}$", "default": DEFAULT_TENANT},
        ),
        "idempotency_key": _header(
            "Idempotency-Key",
            {"type": "string", "minLength": 1, "maxLength": IDEMPOTENCY_KEY_CHARACTERS_MAX},
            "the same key with the same body does nothing again, with another body it is refused (422); "
            f"that of a stimulus is remembered for {REQUEST_DAYS} days",
        ),
    }


def _query(name: str, schema: dict[str, Any], description: str | None = None) -> dict[str, Any]:
    return _parameter("query", name, schema, description)


def _header(name: str, schema: dict[str, Any], description: str | None = None) -> dict[str, Any]:
    return _parameter("header", name, schema, description)


def _parameter(place: str, name: str, schema: dict[str, Any], description: str | None) -> dict[str, Any]:
    told = {"description": description} if description else {}
    return {"name": name, "in": place, **told, "schema": schema}
