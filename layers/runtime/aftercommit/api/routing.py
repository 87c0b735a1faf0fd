"""The routes of one subject, and what the request that is being answered says."""

from contextlib import suppress
from typing import Any

from aws_lambda_powertools.event_handler.api_gateway import Router
from aws_lambda_powertools.utilities.data_classes.common import BaseProxyEvent

from aftercommit.errors import RefusedError
from aftercommit.limits import CURSOR_CHARACTERS_MAX
from aftercommit.paging import Page, read_page
from aftercommit.requests import (
    find_tenant,
    read_body,
    read_http_request,
    read_idempotency_key,
    read_parameter,
    read_tenant,
)
from aftercommit.settings import body_bytes_max
from aftercommit.tables import DEFAULT_TENANT

# What the parts of a path are the ids of, by its first part. None of them is a token.
_NAMED = {
    "bookmark-queue": ("", "stimulus_id"),
    "dispatches": ("owner_id", "item_id"),
    "instances": ("instance_id",),
    "workflows": ("definition_id",),
}


def ids_of_request(event: BaseProxyEvent) -> dict[str, str]:
    """Return the tenant and the ids that a request names, for its lines in the log."""
    first, *parts = event.path.strip("/").split("/")
    ids = {name: part for name, part in zip(_NAMED.get(first, ()), parts, strict=False) if name}
    with suppress(RefusedError):  # its route tells the caller
        tenant = find_tenant(event.headers, claims_of(event))
        if tenant or first != "callbacks":  # there it may be the token that says it
            ids["tenant"] = tenant or DEFAULT_TENANT
    return ids


def claims_of(event: BaseProxyEvent) -> dict[str, Any] | None:
    """Return what the caller's token says; None where requests are signed instead, or public."""
    authorizer = event["requestContext"].get("authorizer") or {}
    return authorizer["jwt"].get("claims", {}) if "jwt" in authorizer else None


class Routes(Router):
    """Routes, to be included in the API; while one answers, its request is read here.

    Reading raises MalformedRequestError, naming the field, for what no request may hold.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # it has no annotations

    def claims(self) -> dict[str, Any] | None:
        """Return what the caller's token says; None where requests are signed instead, or public."""
        return claims_of(self.current_event)

    def tenant(self) -> str:
        """Return the tenant that the call is for."""
        return read_tenant(self.current_event.headers, self.claims())

    def query(self, name: str) -> str | None:
        """Return a parameter of the query."""
        return read_parameter(self.current_event.query_string_parameters.get(name), name)

    def page(self) -> Page:
        """Return which page of a list is asked for."""
        cursor = self.current_event.query_string_parameters.get("cursor")
        return read_page(self.query("limit"), read_parameter(cursor, "cursor", most=CURSOR_CHARACTERS_MAX))

    def body(self, **known: str) -> dict[str, Any]:
        """Return the body, an object of the fields that are `known`, each with its kind."""
        event = self.current_event
        return read_body(
            event.body, base64_encoded=bool(event.is_base64_encoded), known=known, bytes_max=body_bytes_max()
        )

    def idempotency_key(self) -> str | None:
        """Return the Idempotency-Key."""
        return read_idempotency_key(self.current_event.headers)

    def http_request(self, path: str) -> dict[str, Any]:
        """Return the whole request as a workflow sees it, under a path of its own."""
        event = self.current_event
        return read_http_request(
            event.http_method.upper(),
            path,
            query=event.query_string_parameters,
            headers=event.headers,
            body=event.body,
            base64_encoded=bool(event.is_base64_encoded),
        )
