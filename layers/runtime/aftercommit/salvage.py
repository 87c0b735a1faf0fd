"""Salvage: reading outbox items for people, also those that cannot be read whole. Reading only."""

from collections.abc import Iterator
from typing import Any

from pynamodb.exceptions import AttributeDeserializationError

from aftercommit.tables import ItemRow

_KEY = ["owner_key", "item_id"]
_UNREADABLE = (AttributeDeserializationError, TypeError, ValueError)


def read_item(owner_key: str, item_id: str) -> ItemRow | None:
    """Return an item as it is now; of one that cannot be read, what still can be."""
    try:
        return ItemRow.get(owner_key, item_id, consistent_read=True)
    except ItemRow.DoesNotExist:
        return None
    except _UNREADABLE:
        return salvage(owner_key, item_id)


def read_items(owner_key: str, *, after: str | None = None) -> Iterator[ItemRow]:
    """Return the items of an owner behind one of them, in order; one that cannot be read hides no other."""
    try:
        for row in _query(owner_key, after):
            after = row.item_id
            yield row
    except _UNREADABLE:
        pass
    else:
        return
    for key in _query(owner_key, after, attributes_to_get=_KEY):
        if found := read_item(owner_key, key.item_id):
            yield found


def _query(owner_key: str, after: str | None, **more: Any) -> Iterator[ItemRow]:
    place = {"owner_key": {"S": owner_key}, "item_id": {"S": after}} if after else None
    return iter(ItemRow.query(owner_key, last_evaluated_key=place, consistent_read=True, **more))


def salvage(owner_key: str, item_id: str) -> ItemRow:
    """Return what can be read of an item, each attribute by itself; None stands for what cannot."""
    row = ItemRow(owner_key, item_id)
    for name in ItemRow.get_attributes().keys() - set(_KEY):
        setattr(row, name, _read(owner_key, item_id, name))
    return row


def _read(owner_key: str, item_id: str, name: str) -> Any:
    try:
        found = ItemRow.get(owner_key, item_id, consistent_read=True, attributes_to_get=[name])
    except (ItemRow.DoesNotExist, *_UNREADABLE):
        return None
    return getattr(found, name)
