"""The description of the HTTP API: valid, checked in, and of the routes that are deployed."""

import json
import re
import tomllib
from pathlib import Path

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from aftercommit import limits
from aftercommit.api_schemas import ERROR_CODES
from aftercommit.errors import RefusedError
from aftercommit.http_parts import METHODS
from aftercommit.openapi import VERSION, describe_api
from scripts.openapi import PATH, text_of_description
from tests.described import find_operation
from tests.integration.template import load_template

ROOT = Path(__file__).parents[2]
DESCRIPTION = describe_api()
OPERATIONS = {
    (method.upper(), path): operation
    for path, operations in DESCRIPTION["paths"].items()
    for method, operation in operations.items()
}


def test_it_is_valid_openapi():
    assert DESCRIPTION["openapi"].startswith("3.1")
    assert list(OpenAPIV31SpecValidator(DESCRIPTION).iter_errors()) == []


def test_what_is_checked_in_is_what_is_served():
    assert PATH.read_text(encoding="utf-8") == text_of_description(), "run make openapi"


def test_it_describes_the_routes_that_are_deployed_and_no_others():
    deployed = set()
    for each in load_template()["Resources"].values():
        if each["Type"] == "AWS::ApiGatewayV2::Route":
            method, path = each["Properties"]["RouteKey"].split(" ")
            methods = METHODS if method == "ANY" else (method,)
            deployed |= {(name, path.replace("+}", "}")) for name in methods}
    assert set(OPERATIONS) == deployed


def test_scopes_are_those_that_routes_ask_for():
    for each in load_template()["Resources"].values():
        if each["Type"] == "AWS::ApiGatewayV2::Route":
            method, path = each["Properties"]["RouteKey"].split(" ")
            scopes = each["Properties"]["AuthorizationScopes"]
            while scopes[0] != "HasJwt":  # without one only where a parameter says so
                scopes = scopes[2]
            for name in METHODS if method == "ANY" else (method,):
                security = OPERATIONS[name, path.replace("+}", "}")]["security"]
                assert security == [{"signature": []}, {"token": scopes[1]}]


def test_names_of_operations_are_unique():
    names = [each["operationId"] for each in OPERATIONS.values()]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_every_parameter_of_a_path_is_described(method, path):
    described = [each["name"] for each in OPERATIONS[method, path]["parameters"] if each.get("in") == "path"]
    assert described == re.findall(r"\{(\w+)\}", path)


def test_no_schema_is_left_over_or_missing():
    text = json.dumps(DESCRIPTION)
    for kind in ("schemas", "parameters", "responses"):
        named = set(re.findall(rf"#/components/{kind}/([\w.-]+)", text))
        assert named == set(DESCRIPTION["components"][kind])


def test_bounds_are_those_of_the_code():
    schemas, parameters = (DESCRIPTION["components"][each] for each in ("schemas", "parameters"))
    assert schemas["BulkStart"]["properties"]["items"]["maxItems"] == limits.BULK_REQUESTS_MAX
    assert schemas["Start"]["properties"]["correlation_id"]["maxLength"] == limits.NAME_CHARACTERS_MAX
    assert parameters["limit"]["schema"]["maximum"] == limits.PAGE_MAX
    assert parameters["cursor"]["schema"]["maxLength"] == limits.CURSOR_CHARACTERS_MAX
    assert parameters["version"]["schema"]["maximum"] == limits.VERSION_MAX
    assert parameters["idempotency_key"]["schema"]["maxLength"] == limits.IDEMPOTENCY_KEY_CHARACTERS_MAX


def test_its_version_is_the_projects():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == VERSION


def test_every_code_of_an_error_is_described_but_those_that_stay_inside():
    def codes(kind):
        return {kind.code}.union(*map(codes, kind.__subclasses__()))

    inside = {"setting", "malformed_message", "event_refused", "content_refused"}
    assert codes(RefusedError) - inside == set(ERROR_CODES) - {"try_later", "internal"}


@pytest.mark.parametrize(
    ("method", "path", "name"),
    [
        ("GET", "/bookmark-queue/dead-letters", "list_dead_letters"),
        ("GET", "/bookmark-queue/dead-letters/a.b", "show_dead_letter"),
        ("PATCH", "/endpoints/a/b/c", "call_endpoint_by_patch"),
        ("PATCH", "/health", None),
        ("GET", "/nowhere", None),
    ],
)
def test_a_call_finds_its_operation(method, path, name):
    found = find_operation(method, path)
    assert (found and found["operationId"]) == name
