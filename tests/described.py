"""Checks answers of the HTTP API against its description, which names every member that one may have."""

import json
import re
from functools import cache
from itertools import islice

from jsonschema import Draft202012Validator

from aftercommit.openapi import describe_api


@cache
def description():
    return _strict(json.loads(json.dumps(describe_api())))


def _strict(schema):
    """Return a part of the description in which objects have no members but those that it names.

    Programs that read answers pass over what they do not know; here it is something that was left untold.
    """
    if isinstance(schema, list):
        return [_strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {name: _strict(each) for name, each in schema.items()}
    if schema.get("type") == "object" and "properties" in schema:
        closed.setdefault("additionalProperties", False)
    return closed


@cache
def _patterns():
    paths = sorted(description()["paths"], key=lambda each: each.count("{"))  # the plainest first
    return {
        path: re.compile(
            re.sub(r"\{path\}", ".+", path) if "{path}" in path else re.sub(r"\{\w+\}", "[^/]+", path)
        )
        for path in paths
    }


def find_operation(method, path):
    """Return what the description says of a call, or None if it has no such route."""
    for template, pattern in _patterns().items():
        if pattern.fullmatch(path):
            return description()["paths"][template].get(method.lower())
    return None


@cache
def _validator(operation_id, status):
    operations = [each for path in description()["paths"].values() for each in path.values()]
    [operation] = [each for each in operations if each["operationId"] == operation_id]
    response = operation["responses"].get(status)
    assert response, f"{operation_id} answers {status}, which its description does not name"
    if "$ref" in response:
        response = description()["components"]["responses"][response["$ref"].rpartition("/")[2]]
    schema = response["content"]["application/json"]["schema"]
    return Draft202012Validator({**schema, "components": description()["components"]})


def check_answer(method, path, answer):
    """Fail if an answer, as Lambda gives it to API Gateway, is not one that the description tells of."""
    operation = find_operation(method, path)
    if operation is None:
        assert answer["statusCode"] == 404, f"{method} {path} is not described"
        return
    if "default" in operation["responses"]:
        return  # the workflow's own
    found = _validator(operation["operationId"], str(answer["statusCode"]))
    errors = islice(found.iter_errors(json.loads(answer["body"])), 3)  # a long list would repeat itself
    faults = [f"{each.json_path}: {each.message[:200]}" for each in errors]
    assert not faults, f"{method} {path} answers {answer['statusCode']} otherwise than described: {faults}"
