"""Golden files: the rows of small deployments in the middle of their work; loading them means going on.

`test_golden*.py` write them, load them, and compare what today's writers write. After a change of the stored
form that is meant, and that still reads the old one, write a new folder beside the old ones, under the next
number:

    AFTERCOMMIT_GOLDEN=tests/golden/v2 pytest tests/integration/test_golden*.py
"""

import json
import os
from pathlib import Path

import pytest

from aftercommit import aws
from tests.integration.world import raw_rows

GOLDEN = Path(__file__).parents[1] / "golden"
VERSIONS = sorted((path for path in GOLDEN.iterdir() if path.is_dir()), key=lambda path: int(path.name[1:]))
NEWEST = VERSIONS[-1]
TABLES = ("DefinitionsTable", "InstancesTable", "OutboxTable", "BookmarksTable", "TriggersTable")
RANDOM = ("nonce", "lease_token", "secret")  # what differs from run to run

of_every_version = pytest.mark.parametrize("folder", VERSIONS, ids=lambda folder: folder.name)


def take_rows(tables=TABLES):
    """Return the rows that are stored now, by table."""
    return {
        table: sorted(raw_rows(table), key=lambda row: json.dumps(row, sort_keys=True)) for table in tables
    }


def put_rows(tables):
    """Store rows by table, as they are."""
    for table, rows in tables.items():
        for row in rows:
            aws.client("dynamodb").put_item(TableName=table, Item=row)


def read_golden(folder, name):
    return json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))


def write_golden_if_asked(**files):
    """Write files where the environment says, and leave it at that for this test."""
    if not (wanted := os.environ.get("AFTERCOMMIT_GOLDEN")):
        return
    folder = Path(wanted)
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in files.items():
        text = json.dumps(value, indent=1, ensure_ascii=False, sort_keys=True)
        (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    pytest.skip(f"wrote {folder}")


def masked(tables):
    """Return rows without what is random, their JSON texts read."""
    return {
        table: sorted(
            (
                {
                    name: "random" if name in RANDOM else _read(next(iter(value.items())))
                    for name, value in row.items()
                }
                for row in rows
            ),
            key=lambda row: json.dumps(row, sort_keys=True),
        )
        for table, rows in tables.items()
    }


def _read(typed):
    kind, value = typed
    if kind == "S" and value[:1] in ("{", "["):
        return [kind, json.loads(value)]
    return [kind, value]
