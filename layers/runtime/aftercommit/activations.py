"""Activations: of a definition that may have one live instance at a time, one row names its holder.

The row is put in the commit that creates the holder, and removed after the one that ends it. A death in
between leaves it behind: the next start finds that its holder has ended, and takes it over. So whether two
live at once rests on the conditions of that commit, never on the removal.
"""

from pynamodb.exceptions import PynamoDBException

from aftercommit.definition import Definition
from aftercommit.errors import ActivationRefusedError, ConditionFailedError, ContentionError, TryLaterError
from aftercommit.log import ids_of, logger, reason_of
from aftercommit.statuses import InstanceStatus
from aftercommit.tables import ActivationRow, HeadRow, key_of, split_key
from aftercommit.writes import Check, Put, Write, commit

_TRIES_MAX = 10
_ROW = "activation"
_ENDINGS = [each.value for each in InstanceStatus if each.ended]
_PURPOSES = frozenset({"activation", "holder"})


def activation_key_of(tenant: str, definition: Definition, correlation_id: str | None) -> str | None:
    """Return the key of what a start has to hold to be let in; None if nothing limits it."""
    activation_id = definition.derive_activation_id(correlation_id)
    # No instance can bear a name with # in it, so none shares the partition.
    return key_of(tenant, f"activation#{activation_id}") if activation_id else None


def activation_put(key: str, instance_id: str) -> Put:
    """Return the write by which a new instance takes a free activation; it belongs into its birth."""
    row = ActivationRow(key, _ROW, holder=instance_id)
    return Put("activation", row, ActivationRow.holder.does_not_exist())  # closes: two starts at once


def commit_birth(writes: list[Write]) -> None:
    """Commit a birth and what goes with it; an activation whose holder has ended is taken over.

    Raises ActivationRefusedError naming the holder if that one lives, ConditionFailedError for any other
    condition (that of the head first: an instance that is there already may be the holder itself), and what
    `commit` raises.
    """
    for _ in range(_TRIES_MAX):
        try:
            commit(writes)
        except ConditionFailedError as error:
            if error.purposes == {"payloads"}:
                raise TryLaterError("what was stored for this birth was given up before it came") from error
            if error.purposes - _PURPOSES:
                raise
            writes = _take_over(writes)
        else:
            return
    raise ContentionError("other starts of the same activation came first again and again")


def _take_over(writes: list[Write]) -> list[Write]:
    """Return the writes with conditions that fit the holder there is now."""
    rows = [each.row for each in writes if isinstance(each, Put)]
    wanted = next(row for row in rows if isinstance(row, ActivationRow))
    others = [each for each in writes if each.purpose not in _PURPOSES]
    try:
        holder = ActivationRow.get(wanted.instance_key, _ROW, consistent_read=True).holder
    except ActivationRow.DoesNotExist:
        return [*others, activation_put(wanted.instance_key, wanted.holder)]  # released since
    put = Put("activation", wanted, ActivationRow.holder == holder)  # closes: taken over by another since
    if holder == wanted.holder:
        return [*others, put]  # from an earlier life of this id: the condition on the head says the rest
    tenant, _ = split_key(wanted.instance_key)
    head = key_of(tenant, holder), "head"
    if _lives(head):
        raise ActivationRefusedError(holder)
    # Closes: what was read was half of a birth, or an id that was free has come to life again since.
    ended = HeadRow.status.is_in(*_ENDINGS) | HeadRow.instance_key.does_not_exist()
    return [*others, Check("holder", HeadRow, head, ended), put]


def _lives(head: tuple[str, str]) -> bool:
    # Only the status: what else stands in a head may be damaged.
    names = ["instance_key", "row", "status"]
    try:
        found = HeadRow.get(*head, consistent_read=True, attributes_to_get=names)
    except HeadRow.DoesNotExist:
        return False
    return found.status not in _ENDINGS


def release_activation(head: HeadRow) -> None:
    """Let the next one start, as this instance has ended; what fails is left to the takeover."""
    if not head.activation_key:
        return
    own = ActivationRow.holder == head.instance_id  # closes: another has taken it over since the ending
    try:
        ActivationRow(head.activation_key, _ROW).delete(condition=own)
    except PynamoDBException as error:
        logger.info("activation left", extra={**ids_of(head), "reason": reason_of(error)})
