"""The tables and queues of a deployment, and putting a world in place of AWS."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from aftercommit import aws, clock, definitions, ids, log, tables
from aftercommit.settings import settings
from tests.simulation.dynamodb import Index, Table

QUEUES = {
    "commands": "queue/commands",
    "dead_letters": "queue/dead-letters",
    "ticks": "queue/ticks",
    "events": "queue/events",
}
ENVIRONMENT = {
    "DEFINITIONS_TABLE": "definitions",
    "INSTANCES_TABLE": "instances",
    "OUTBOX_TABLE": "outbox",
    "BOOKMARKS_TABLE": "bookmarks",
    "TRIGGERS_TABLE": "triggers",
    "COMMAND_QUEUE_URL": QUEUES["commands"],
    "COMMAND_DEAD_LETTER_QUEUE_URL": QUEUES["dead_letters"],
    "TICK_QUEUE_URL": QUEUES["ticks"],
    "EVENTS_FUNCTION": "events",
    "DUE_SHARDS": "2",  # fewer queries per sweep, and still more than one
}
_ROWS = (tables.DefinitionRow, tables.HeadRow, tables.ItemRow, tables.BookmarkRow, tables.TriggerRow)


def make_tables() -> list[Table]:
    """Return empty tables with the keys and indexes that the runtime's models name."""
    made = []
    for model in _ROWS:
        name = ENVIRONMENT[model.table_setting.upper()]
        made.append(
            Table(
                name,
                model._hash_keyname,
                model._range_keyname,
                {
                    index.Meta.index_name: Index(
                        next(k for k, each in index.Meta.attributes.items() if each.is_hash_key),
                        next(k for k, each in index.Meta.attributes.items() if each.is_range_key),
                    )
                    for index in model._indexes.values()
                },
            )
        )
    return made


class _SeededSecrets:
    """Stands in for the module `secrets`: random tokens that the seed decides."""

    def __init__(self, random: Any) -> None:
        self.random = random

    def token_hex(self, size: int) -> str:
        return f"{self.random.getrandbits(size * 8):0{size * 2}x}"


@contextmanager
def installed(world: Any, overrides: dict[str, str] | None = None) -> Iterator[None]:
    """Let the runtime in this process live in a world: its clients, clock, randomness, sleep and settings."""
    with (
        mock.patch.dict(os.environ, {**ENVIRONMENT, **(overrides or {})}),
        mock.patch.object(aws, "client", world.client),
        mock.patch.object(log.logger._logger, "disabled", new=True),
        mock.patch.object(log, "_put"),
        mock.patch.object(clock.clock, "now", world.local_now),
        mock.patch.object(ids, "secrets", _SeededSecrets(world.random_ids)),
        mock.patch.object(clock.clock, "sleep", world.sleep),
    ):
        _forget()
        try:
            yield
        finally:
            _forget()


def _forget() -> None:
    """Drop what the runtime remembers of another world, or of another deployment."""
    settings.cache_clear()
    definitions.load_definition.cache_clear()
    more = (tables.RevisionRow, tables.SnapshotRow, tables.IncidentRow, tables.TallyRow, tables.RequestRow)
    more += (tables.PayloadsRow,)
    for model in (*_ROWS, *more):
        model._connection = None
