"""PartiQL as the runtime writes it, for stand-ins that know none, or none of its conditions.

A statement becomes the conditional UpdateItem that it stands for; one of another form is refused.
"""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from botocore.exceptions import ClientError

_CHANGE = r'(?:SET "\w+" = \?|REMOVE "\w+")'
_EQUAL = r'"\w+" = \?'
_STATEMENT = re.compile(rf'UPDATE "([^"]+)" ((?:{_CHANGE} )+)WHERE ({_EQUAL}(?: AND {_EQUAL})*)')
STATEMENTS_MAX = 25


def to_update(statement: dict[str, Any], key_names: Sequence[str]) -> dict[str, Any]:
    """Return the arguments of the UpdateItem that a statement stands for; raises ValueError if it is none."""
    match = _STATEMENT.fullmatch(statement["Statement"])
    if not match:
        raise ValueError(f"not as the runtime writes it: {statement['Statement']}")
    table, changes, where = match.groups()
    sets = re.findall(r'SET "(\w+)" = \?', changes)
    removes = re.findall(r'REMOVE "(\w+)"', changes)
    wanted = re.findall(r'"(\w+)" = \?', where)
    parameters = statement["Parameters"]
    if len(parameters) != len(sets) + len(wanted):
        raise ValueError("Number of parameters in request and statement don't match.")
    given = dict(zip(wanted, parameters[len(sets) :], strict=True))
    key = {name: given.pop(name) for name in key_names}
    names = {f"#{name}": name for name in (*sets, *removes, *given, key_names[0])}
    values = {f":s_{name}": value for name, value in zip(sets, parameters, strict=False)}
    values |= {f":e_{name}": value for name, value in given.items()}
    text = "SET " + ", ".join(f"#{name} = :s_{name}" for name in sets)
    if removes:
        text += " REMOVE " + ", ".join(f"#{name}" for name in removes)
    # An update of a row that is not there is refused; it makes none.
    conditions = [f"attribute_exists (#{key_names[0]})", *(f"#{name} = :e_{name}" for name in given)]
    return {
        "TableName": table,
        "Key": key,
        "UpdateExpression": text,
        "ConditionExpression": " AND ".join(conditions),
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": values,
    }


def execute_batch(
    statements: list[dict[str, Any]],
    update_item: Callable[..., Any],
    key_names_of: Callable[[str], Sequence[str]],
) -> dict[str, Any]:
    """Answer a BatchExecuteStatement by one update for each statement; what one meets stops no other."""
    if not 1 <= len(statements) <= STATEMENTS_MAX:
        raise ValueError(f"Member must have length less than or equal to {STATEMENTS_MAX}")
    responses: list[dict[str, Any]] = []
    for each in statements:
        table = each["Statement"].split('"')[1]
        try:
            update_item(**to_update(each, key_names_of(table)))
        except ClientError as error:
            code = (
                error.response["Error"]["Code"]
                .removesuffix("Exception")
                .replace("Validation", "ValidationError")
            )
            responses.append({"TableName": table, "Error": {"Code": code, "Message": str(error)}})
        else:
            responses.append({"TableName": table})
    return {"Responses": responses}


def teach(
    client: Any, key_names_of: Callable[[str], Sequence[str]], update_item: Callable[..., Any] | None = None
) -> Callable[[], None]:
    """Let a botocore client's BatchExecuteStatement be answered so; returns what ends that.

    `update_item` makes the updates, in place of the client's own.
    """
    name = "before-call.dynamodb"

    def answer(model: Any, params: dict[str, Any], **_: Any) -> tuple[Any, dict[str, Any]] | None:
        if model.name != "BatchExecuteStatement":
            return None
        statements = json.loads(params["body"])["Statements"]
        try:
            return _Answered(), execute_batch(statements, update_item or client.update_item, key_names_of)
        except ValueError as error:
            refused = {"Error": {"Code": "ValidationException", "Message": str(error)}}
            return _Refused(), refused

    # Last, so that faults which tests have planted go first.
    client.meta.events.register_last(name, answer)
    return lambda: client.meta.events.unregister(name, answer)


class _Answered:
    """What botocore asks of an HTTP response."""

    status_code = 200
    headers: ClassVar[dict[str, str]] = {}


class _Refused(_Answered):
    """Likewise, of one that is an error."""

    status_code = 400
