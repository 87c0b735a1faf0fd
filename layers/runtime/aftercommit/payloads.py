"""Payloads: texts too large for a row, kept in S3 under the name of the commit that refers to them.

Before a commit: first a row that announces its objects, due so that the sweep finds it, then the objects.
The commit takes that row's due time away in its transaction. So objects whose row is not due any more belong
to a commit, and those whose row comes due belong to none: they go. If a worker dies anywhere in between, the
sweep clears up. What belongs to a commit goes with the instance, and so does its row: were it removed, an
announcement that comes late could not see that its commit has been.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from aftercommit import aws, clock
from aftercommit.errors import ConditionFailedError, NewerFormError, PayloadsAwayError
from aftercommit.ids import new_token
from aftercommit.limits import (
    PAYLOAD_BYTES_MIN,
    PAYLOAD_COMMIT_SECONDS,
    PAYLOAD_DOOMED_SECONDS,
    ROW_TEXT_BYTES_MAX,
)
from aftercommit.log import count, logger, reason_of
from aftercommit.settings import settings
from aftercommit.tables import PAYLOADS_PREFIX, PayloadsRow, ids_of_instance, removal_shard, split_key
from aftercommit.writes import Put, Update, Write, commit


class PayloadMissingError(Exception):
    """An object that a row refers to is not there."""


@dataclass
class Payloads:
    """The large texts of one commit of an instance; its rows name them by `name`."""

    instance_key: str
    large: bool  # whether the instance may be; one that is not still has room for what others send it
    name: str = field(default_factory=new_token)
    texts: dict[str, str] = field(default_factory=dict)

    def is_large(self, text: str) -> bool:
        """Whether a text is better kept in S3."""
        least = PAYLOAD_BYTES_MIN if self.large else ROW_TEXT_BYTES_MAX
        return bool(settings().payload_bucket) and len(text.encode()) >= least

    def take(self, member: str, text: str) -> bool:
        """Take a text in if it is better kept in S3, and return whether; its row then has `name` instead."""
        if not self.is_large(text):
            return False
        self.texts[member] = text
        return True

    def store(self, at: float) -> list[Write]:
        """Store what was taken in; returns the write by which the commit makes it its own, if there is any.

        Its condition fails if the objects were given up meanwhile. Raises PayloadsAwayError if S3 is away.
        """
        if not self.texts:
            return []
        _, instance_id = split_key(self.instance_key)
        row = PayloadsRow(
            self.instance_key,
            PAYLOADS_PREFIX + self.name,
            due_shard=removal_shard(instance_id),
            due_at=clock.to_text(at + PAYLOAD_COMMIT_SECONDS),
        )
        # Closes: this very request comes late, after another try of it and the commit.
        new = PayloadsRow.instance_key.does_not_exist()
        with suppress(ConditionFailedError):  # an earlier try has come through: the name is this commit's own
            commit([Put("payloads", row, new)])
        for member, text in self.texts.items():
            _call("put_object", Key=object_key(self.instance_key, self.name, member), Body=text.encode())
        count("PayloadsStored", len(self.texts))
        # Closes: this worker stood still for so long that the sweep is giving its objects up.
        announced = PayloadsRow.due_at.exists() & PayloadsRow.doomed.does_not_exist()
        key = PayloadsRow(self.instance_key, row.row)
        return [Update("payloads", key, [PayloadsRow.due_at.remove()], announced)]


def object_key(instance_key: str, name: str, member: str) -> str:
    """Return an object's key: tenant, instance, commit and member, in this order."""
    return f"{prefix_of(instance_key)}{name}/{member}"


def prefix_of(instance_key: str) -> str:
    """Return what the keys of all objects of an instance begin with."""
    tenant, instance_id = split_key(instance_key)
    return f"{tenant}/{instance_id}/"


def read_payload(instance_key: str, name: str, member: str) -> str:
    """Read a text back.

    Raises PayloadMissingError, PayloadsAwayError if S3 is away, and NewerFormError where the deployment names
    no bucket: what is kept there waits until it does.
    """
    if not settings().payload_bucket:
        raise NewerFormError(f"{member} of {instance_key} is kept in S3, and PAYLOAD_BUCKET is not set")
    answer = _call("get_object", Key=object_key(instance_key, name, member))
    try:
        content: bytes = answer["Body"].read()
    except (BotoCoreError, OSError) as error:
        raise PayloadsAwayError(f"S3: {error}") from error
    return content.decode()


def remove_payload(instance_key: str, name: str, member: str) -> None:
    """Remove a text that no row names any more; what fails is left, and goes with the instance."""
    try:
        _call("delete_object", Key=object_key(instance_key, name, member))
    except PayloadsAwayError as error:
        told = {**ids_of_instance(instance_key), "reason": reason_of(error)}
        logger.warning("old payload not removed", extra=told)


def discard_payloads(instance_key: str, row: str) -> None:
    """Remove the objects of a commit that never came, announced by a row that is due.

    First the row is doomed, so that the commit cannot come any more, and last it is due no more: dying midway
    leaves it due.
    """
    at = clock.now()
    again = clock.to_text(at + settings().ack_timeout_seconds)
    # Closes: the commit came first, and the row is not due any more; or another sweep is at it.
    overdue = PayloadsRow.due_at <= clock.to_text(at)
    actions = [PayloadsRow.doomed.set(True), PayloadsRow.due_at.set(again)]
    try:
        commit([Update("doom", PayloadsRow(instance_key, row), actions, overdue)])
    except ConditionFailedError:
        return
    removed = remove_payloads(instance_key, row)
    # The row stays for some days: while it is there, no late try can announce what is gone.
    over = [PayloadsRow.due_at.remove(), PayloadsRow.ttl.set(int(at) + PAYLOAD_DOOMED_SECONDS)]
    commit([Update("payloads", PayloadsRow(instance_key, row), over, PayloadsRow.doomed.exists())])
    told = {**ids_of_instance(instance_key), "objects": removed, "reason": "their commit never came"}
    logger.info("payloads discarded", extra=told)
    count("PayloadsDiscarded", removed)


def remove_payloads(instance_key: str, row: str) -> int:
    """Remove the objects that a row announces, before the row goes; returns how many there were."""
    removed = 0
    for key in _list_under(f"{prefix_of(instance_key)}{row.removeprefix(PAYLOADS_PREFIX)}/"):
        _call("delete_object", Key=key)
        removed += 1
    return removed


def _list_under(prefix: str) -> Iterator[str]:
    more: dict[str, str] = {}
    while True:
        page = _call("list_objects_v2", Prefix=prefix, **more)
        yield from (each["Key"] for each in page.get("Contents", []))
        if not page.get("IsTruncated"):
            return
        more = {"ContinuationToken": page["NextContinuationToken"]}


def _call(operation: str, **arguments: Any) -> Any:
    try:
        return getattr(aws.client("s3"), operation)(Bucket=settings().payload_bucket, **arguments)
    except (ClientError, BotoCoreError) as error:
        if isinstance(error, ClientError) and error.response["Error"]["Code"] == "NoSuchKey":
            raise PayloadMissingError(arguments["Key"]) from None
        # Whatever refuses it (busy, a key or a policy taken away) is outside the instance, and heals.
        raise PayloadsAwayError(f"S3: {error}") from error
