"""The rows of the released schema, as the audit reads them."""

import json
from pathlib import Path

import pytest

from scripts.audit import Item
from scripts.console import RunError
from scripts.reading import plain, to_instance

STORED = json.loads((Path(__file__).parents[1] / "golden/v1/rows.json").read_text(encoding="utf-8"))


def rows_of(instance_id):
    found = [plain(row) for row in STORED["InstancesTable"]]
    return {row["row"]: row for row in found if row["instance_key"] == f"default#{instance_id}"}


def items_of(instance_id):
    found = [plain(row) for row in STORED["OutboxTable"]]
    return {
        row["item_id"]: Item(
            row["item_id"], row["owner_id"], row["command"], row.get("definition_id"), row["status"]
        )
        for row in found
        if row["owner_id"] == instance_id
    }


def test_an_instance_tells_what_its_steps_have_done_and_what_it_has_dispatched():
    told = to_instance(rows_of("told"), items_of("told"))
    assert (told.definition_id, told.status, told.parent_id) == ("golden-parent", "suspended", None)
    assert [activity for activity, _ in told.done] == ["act"]
    (dispatch,) = told.dispatches
    assert (dispatch.definition_id, dispatch.status) == ("golden-child", "done")
    child = to_instance(rows_of(dispatch.child_id), {})
    assert (child.status, child.parent_id) == ("completed", "told")


def test_a_dispatch_without_its_item_has_no_status():
    (dispatch,) = to_instance(rows_of("told"), {}).dispatches
    assert dispatch.status is None


def test_a_fault_is_read_with_its_type():
    assert to_instance(rows_of("faulted"), {}).outcome == "faulted: Stock"


def test_a_snapshot_with_a_row_of_its_own_is_found():
    rows = rows_of("large")
    assert "snapshot" not in rows["head"]
    assert to_instance(rows, {}).status == "suspended"


def test_an_instance_whose_snapshot_is_missing_is_told():
    rows = {name: row for name, row in rows_of("large").items() if not name.startswith("snapshot")}
    with pytest.raises(RunError, match="large has no snapshot"):
        to_instance(rows, {})
