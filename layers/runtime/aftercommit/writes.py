"""Conditional writes, one or many, all or none: the one place where their failures are read.

A commit of one write is a plain conditional request, at half the price of a transaction. PynamoDB orders a
transaction's actions by kind (checks, deletes, puts, updates), so reasons are mapped back here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pynamodb.exceptions import PynamoDBException, TransactWriteError
from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action
from pynamodb.transactions import TransactWrite

from aftercommit import aws
from aftercommit.errors import ConditionFailedError, ContentionError, TryLaterError, UnwritableError
from aftercommit.ids import new_token
from aftercommit.log import count
from aftercommit.tables import Row, connection
from aftercommit.tries import pause

# What another try may cure. A conflict means that another transaction touched the same items just then.
_CONTENTION = {"TransactionConflict", "TransactionConflictException", "TransactionInProgressException"}
_CONDITION = {"ConditionalCheckFailed", "ConditionalCheckFailedException"}
TRIES_MAX = 6


@dataclass(frozen=True)
class Put:
    """Put `row`; `purpose` names this write when its condition fails."""

    purpose: str
    row: Row
    condition: Condition | None = None


@dataclass(frozen=True)
class Update:
    """Change a row by `actions`; `row` needs only its key."""

    purpose: str
    row: Row
    actions: Sequence[Action]
    condition: Condition | None


@dataclass(frozen=True)
class Delete:
    """Remove a row."""

    purpose: str
    row: Row
    condition: Condition | None = None


@dataclass(frozen=True)
class Check:
    """Require something of a row that the commit does not change; only beside other writes."""

    purpose: str
    model: type[Row]
    key: tuple[str, str]
    condition: Condition


Write = Put | Update | Delete | Check


def commit(writes: list[Write]) -> None:
    """Write all or none.

    Raises ConditionFailedError naming the writes whose condition did not hold; ContentionError or
    TryLaterError when DynamoDB could not serve it through all tries. After a time-out the outcome is
    unknown: the caller decides by reading back.
    """
    _commit(writes, _write_one if len(writes) == 1 else _write_all)


def _commit(writes: list[Write], write: Callable[[list[Write]], None]) -> None:
    nonce = new_token()
    for number in range(TRIES_MAX):
        try:
            write(writes)
        except PynamoDBException as error:
            failed = _read_failure(error, writes)
            if not isinstance(failed, TryLaterError) or number == TRIES_MAX - 1:
                raise failed from error
            pause(nonce, number)
        else:
            # An item's ack is in the commit of its effect: here both are made.
            count("ItemsDelivered", sum(each.purpose == "ack" for each in writes))
            return


def commit_unread(writes: list[Write]) -> None:
    """Write as `commit` does, without taking in the rows that result: for rows that cannot be read.

    A single update's answer brings the whole row; a transaction's does not.
    """
    _commit(writes, _write_all)


def _write_one(writes: list[Write]) -> None:
    [write] = writes
    if isinstance(write, Put):
        write.row.save(condition=write.condition)
    elif isinstance(write, Delete):
        write.row.delete(condition=write.condition)
    elif isinstance(write, Check):
        raise TypeError("a check alone writes nothing")
    else:
        write.row.update(actions=list(write.actions), condition=write.condition)


def _write_all(writes: list[Write]) -> None:
    with TransactWrite(connection=connection(), client_request_token=new_token()) as transaction:
        for write in writes:
            if isinstance(write, Put):
                transaction.save(write.row, condition=write.condition)
            elif isinstance(write, Delete):
                transaction.delete(write.row, condition=write.condition)
            elif isinstance(write, Check):
                transaction.condition_check(write.model, *write.key, condition=write.condition)
            else:
                transaction.update(write.row, actions=list(write.actions), condition=write.condition)


def in_sent_order(writes: list[Write]) -> list[Write]:
    """Return the writes in the order in which PynamoDB sends them, which reasons follow."""
    return [each for kind in (Check, Delete, Put, Update) for each in writes if isinstance(each, kind)]


def _read_failure(error: PynamoDBException, writes: list[Write]) -> Exception:
    if isinstance(error, TransactWriteError) and error.cancellation_reasons:
        return _read_reasons(error.cancellation_reasons, in_sent_order(writes))
    refusal = aws.refusal_of(error)
    code = refusal.get("Code")
    told = f"{error}: {code or type(error.cause).__name__}: {refusal.get('Message', '')}"
    if code in _CONDITION:
        return ConditionFailedError(frozenset({writes[0].purpose}))
    if code in _CONTENTION:
        return ContentionError(told)
    if code is None or code in aws.THROTTLED:  # no code: no answer came (time-out, connection lost)
        return TryLaterError(told)
    return UnwritableError(told) if code == "ValidationException" else error


def _read_reasons(reasons: list[Any], sent: list[Write]) -> Exception:
    codes = [reason.code if reason else None for reason in reasons]
    failed = frozenset(write.purpose for write, code in zip(sent, codes, strict=True) if code in _CONDITION)
    # A failed condition is final even if other items were merely contended.
    if failed:
        return ConditionFailedError(failed)
    if any(code in _CONTENTION for code in codes):
        return ContentionError(f"transaction conflict: {codes}")
    if any(code in aws.THROTTLED for code in codes):
        return TryLaterError(f"throttled: {codes}")
    told = "; ".join(str(reason.message) for reason in reasons if reason and reason.message)
    return UnwritableError(f"the transaction can never succeed: {told or codes}")
