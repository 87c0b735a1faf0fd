"""The newest golden rows are of every kind, with every attribute, command and status that the code has."""

import json

import pytest

from aftercommit import tables
from aftercommit.model import _COMMANDS
from aftercommit.statuses import InstanceStatus, ItemCommand, ItemStatus
from aftercommit.tables import (
    ActivationRow,
    BookmarkRow,
    CallbackRow,
    DefinitionRow,
    HeadRow,
    IncidentRow,
    ItemRow,
    PayloadsRow,
    RequestRow,
    RevisionRow,
    Row,
    SnapshotRow,
    TallyRow,
    TriggerRow,
)
from tests.integration.golden import GOLDEN, NEWEST, VERSIONS, read_golden

FILES = ("rows", "waits", "large", "marks")  # of rows
# How the rows of a kind are known among those of their table: by what stands first in their sort key, or as
# all that no other kind has.
KINDS = {
    DefinitionRow: ("version", "draft", "published"),
    HeadRow: ("head",),
    RevisionRow: ("revision",),
    SnapshotRow: ("snapshot",),
    PayloadsRow: ("payloads",),
    ActivationRow: ("activation",),
    IncidentRow: ("incident",),
    TallyRow: ("count",),
    CallbackRow: ("callback",),
    BookmarkRow: None,
    TriggerRow: None,
    RequestRow: ("request",),
    ItemRow: None,
}
MODELS = [each for each in vars(tables).values() if isinstance(each, type) and issubclass(each, Row)]
MODELS.remove(Row)


def first_of(model, row):
    """Return what stands first in a row's sort key."""
    return row[model._range_keyname]["S"].partition("#")[0]


def rows_of(model):
    """Return the newest golden rows of a kind."""
    table = "".join(part.title() for part in model.table_setting.split("_"))
    rows = [row for name in FILES for row in read_golden(NEWEST, name).get(table, [])]
    if KINDS[model]:
        return [row for row in rows if first_of(model, row) in KINDS[model]]
    others = {
        first
        for other, named in KINDS.items()
        if other.table_setting == model.table_setting
        for first in named or ()
    }
    return [row for row in rows if first_of(model, row) not in others]


def attributes_of(model):
    return {each.attr_name for each in model.get_attributes().values()}


def test_each_kind_of_row_is_known_here():
    assert set(KINDS) == set(MODELS)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_golden_rows_have_each_attribute_of_their_kind_and_no_other(model):
    rows = rows_of(model)
    assert set().union(*rows) == attributes_of(model)
    assert {first_of(model, row) for row in rows} >= set(KINDS[model] or ())


def test_each_golden_row_is_of_one_kind():
    stored = [row for name in FILES for rows in read_golden(NEWEST, name).values() for row in rows]
    assert sum(len(rows_of(model)) for model in MODELS) == len(stored)


def test_golden_rows_have_each_status():
    assert {row["status"]["S"] for row in rows_of(HeadRow)} == {each.value for each in InstanceStatus}
    assert {row["status"]["S"] for row in rows_of(ItemRow)} == {each.value for each in ItemStatus}


def test_each_kind_of_item_is_undone_among_the_golden_ones():
    undone = {row["command"]["S"] for row in rows_of(ItemRow) if row["status"]["S"] == "undone"}
    assert undone == {each.value for each in ItemCommand}


def test_golden_revisions_have_each_kind_of_command():
    texts = [row["commands"]["S"] for row in rows_of(RevisionRow) if "commands" in row]
    assert {each["command"]["kind"] for text in texts for each in json.loads(text)} == set(_COMMANDS)


def test_each_golden_folder_has_all_files():
    names = [{path.name for path in folder.iterdir()} for folder in VERSIONS]
    assert all(each == {f"{name}.json" for name in (*FILES, "objects", "messages")} for each in names), GOLDEN
