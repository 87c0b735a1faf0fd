"""Conditional updates of many rows in one request, each by itself: what one of them meets stops no other.

In a transaction one loser would fail all. A batch of one is a plain conditional update.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from aftercommit import aws
from aftercommit.ids import new_token
from aftercommit.limits import STATEMENTS_MAX
from aftercommit.log import logger
from aftercommit.tries import pause

TRIES_MAX = 4
_CONDITION = {"ConditionalCheckFailed", "ConditionalCheckFailedException"}
# What another try would not cure either.
_FINAL = {"ValidationError", "ValidationException", "ResourceNotFound", "ResourceNotFoundException"}
_FINAL |= {"AccessDenied", "AccessDeniedException", "ItemCollectionSizeLimitExceeded"}

Value = str | int


@dataclass(frozen=True)
class RowUpdate:
    """Set and remove attributes of one row, if it has all of `expected`."""

    key: dict[str, str]
    sets: dict[str, Value]
    expected: dict[str, Value]
    removes: tuple[str, ...] = field(default=())


def update_each(table: str, updates: Sequence[RowUpdate]) -> list[bool]:
    """Update rows, 25 a request; returns, in the order given, which of them were updated.

    One that was not met another state than expected, or DynamoDB could not serve it through all tries. After
    an answer that was lost, an update that took effect may be told as not made.
    """
    done = [False] * len(updates)
    for first in range(0, len(updates), STATEMENTS_MAX):
        _update_some(table, updates, list(range(first, min(first + STATEMENTS_MAX, len(updates)))), done)
    return done


def _update_some(table: str, updates: Sequence[RowUpdate], indexes: list[int], done: list[bool]) -> None:
    nonce = new_token()
    for number in range(TRIES_MAX):
        if number:
            pause(nonce, number)
        codes = _codes_of(table, [updates[index] for index in indexes])
        again = []
        for index, code in zip(indexes, codes, strict=True):
            done[index] = code is None
            if code is None or code in _CONDITION:
                continue
            if code in _FINAL:
                logger.error("row not updated", extra={**updates[index].key, "reason": code})
            else:
                again.append(index)
        indexes = again
        if not indexes:
            return
    logger.warning("rows not updated", extra={"rows": len(indexes)})


def _codes_of(table: str, updates: list[RowUpdate]) -> list[str | None]:
    """Make one request; returns for each update why it was refused, or None."""
    try:
        if len(updates) == 1:
            aws.client("dynamodb").update_item(**_plain_update(table, updates[0]))
            return [None]
        statements = [_statement(table, each) for each in updates]
        answer = aws.client("dynamodb").batch_execute_statement(Statements=statements)
    except ClientError as error:
        return [str(error.response["Error"]["Code"])] * len(updates)
    except BotoCoreError as error:  # no answer came: each may have been made
        return [type(error).__name__] * len(updates)
    return [each.get("Error", {}).get("Code") for each in answer["Responses"]]


def _statement(table: str, update: RowUpdate) -> dict[str, Any]:
    """Write an update in PartiQL; names are quoted, as some of them are its keywords."""
    sets = [f'SET "{name}" = ?' for name in update.sets]
    removes = [f'REMOVE "{name}"' for name in update.removes]
    wanted = update.key | update.expected
    conditions = " AND ".join(f'"{name}" = ?' for name in wanted)
    text = f'UPDATE "{table}" {" ".join(sets + removes)} WHERE {conditions}'
    values = (*update.sets.values(), *wanted.values())
    return {"Statement": text, "Parameters": [_typed(each) for each in values]}


def _plain_update(table: str, update: RowUpdate) -> dict[str, Any]:
    names = dict.fromkeys((*update.sets, *update.removes, *update.expected))
    name_of = {name: f"#{number}" for number, name in enumerate(names)}
    values: dict[str, Any] = {}

    def placed(prefix: str, given: dict[str, Value]) -> list[str]:
        for number, value in enumerate(given.values()):
            values[f":{prefix}{number}"] = _typed(value)
        return [f"{name_of[name]} = :{prefix}{number}" for number, name in enumerate(given)]

    text = f"SET {', '.join(placed('s', update.sets))}"
    if update.removes:
        text += f" REMOVE {', '.join(name_of[name] for name in update.removes)}"
    return {
        "TableName": table,
        "Key": {name: _typed(value) for name, value in update.key.items()},
        "UpdateExpression": text,
        "ConditionExpression": " AND ".join(placed("e", update.expected)),
        "ExpressionAttributeNames": {placeholder: name for name, placeholder in name_of.items()},
        "ExpressionAttributeValues": values,
    }


def _typed(value: Value) -> dict[str, str]:
    return {"S": value} if isinstance(value, str) else {"N": str(value)}
