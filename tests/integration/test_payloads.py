"""What is too large for a row: kept in S3, in the same commit, or refused with a clear fault."""

import pytest

from aftercommit import (
    DispatchWorkflow,
    Sequence,
    Step,
    Workflow,
)
from aftercommit.errors import SettingError, TooLargeError
from aftercommit.limits import LARGE_STATE_BYTES_MAX, PAYLOAD_BYTES_MIN
from aftercommit.payloads import object_key
from aftercommit.settings import read_settings, settings
from tests.integration.payload_flows import LARGE, announcements, objects, overdue
from tests.integration.world import behaviours, effects, raw_rows

# --- all that can be large ---


def test_large_inputs_results_and_outputs_go_from_parent_to_child_and_back_whole(stored):
    instance_id = stored.dispatch("parent", {"text": LARGE})
    stored.settle()
    shown = stored.show(instance_id)
    assert (shown["status"], shown["input"], shown["output"]) == ("completed", {"text": LARGE}, LARGE)
    assert "left_out" not in shown
    assert [name for name, _, _ in effects] == ["first", "below", "last"]


def test_what_is_large_stands_in_no_row(stored):
    stored.dispatch("parent", {"text": LARGE})
    stored.settle()
    rows = raw_rows(settings().instances_table) + raw_rows(settings().outbox_table)
    assert max(len(str(row)) for row in rows) < PAYLOAD_BYTES_MIN
    assert {row["payloads"]["S"] for row in rows if "payloads" in row} <= {
        key.split("/")[2] for key in objects()
    }


def test_an_old_snapshot_is_removed_with_the_commit_of_the_next(stored):
    instance_id = stored.dispatch("parent", {"text": LARGE})
    stored.settle()
    head = stored.head(instance_id)
    snapshots = [key for key in objects() if key.endswith("/snapshot") and f"/{instance_id}/" in key]
    assert snapshots == [object_key(head.instance_key, head.payloads, "snapshot")]


def test_a_step_with_a_small_result_stores_no_object_however_large_the_state(stored, faults):
    instance_id = stored.dispatch("one", {"text": LARGE})
    before = faults.count("PutObject")
    stored.run(instance_id)
    assert faults.count("PutObject") == before + 1  # the snapshot of the ending


def test_every_announcement_is_settled_by_its_commit(stored):
    stored.dispatch("parent", {"text": LARGE})
    stored.settle(seconds=600)
    assert announcements()
    assert not overdue()


def test_what_is_small_stays_in_its_rows(stored, faults):
    instance_id = stored.dispatch("parent", {"text": "small"})
    stored.settle()
    assert stored.show(instance_id)["output"] == "small"
    assert faults.count("PutObject") == faults.count("GetObject") == 0
    assert not announcements()


def test_an_answer_leaves_out_what_no_answer_could_carry_and_says_so(stored):
    text = '"' * 600_000  # each quote is four characters in JSON inside JSON
    behaviours["only"] = lambda context, value: text
    instance_id = stored.dispatch("one", {"text": text})
    stored.settle()
    shown = stored.show(instance_id)
    assert shown["left_out"] == ["variables"]
    assert (shown["variables"], shown["input"], shown["output"]) == ({}, {"text": text}, text)


# --- limits, and the switch ---


def test_an_input_over_two_megabytes_is_refused_by_field(stored):
    with pytest.raises(TooLargeError, match="2097152") as caught:
        stored.dispatch("one", {"text": "x" * 2_100_000})
    assert caught.value.field == "input"
    assert not objects()


def test_a_result_over_two_megabytes_faults_its_step(stored):
    behaviours["only"] = lambda context, value: "x" * 2_100_000
    instance_id = stored.dispatch("one", {"text": "t"})
    stored.settle()
    assert stored.show(instance_id)["failure"]["type"] == "ResultTooLargeError"


def test_a_state_over_four_megabytes_faults_and_names_what_is_largest(stored):
    steps = [Step("act", name="s", result=f"r{number}") for number in range(3)]
    stored.publish(Workflow("growing", root=Sequence(*steps)))
    behaviours["s"] = lambda context, value: "x" * 1_500_000
    instance_id = stored.dispatch("growing")
    stored.settle()
    failure = stored.show(instance_id)["failure"]
    assert failure["type"] == "StateTooLargeError"
    assert str(LARGE_STATE_BYTES_MAX) in failure["message"]
    assert "r0 (1500002 bytes)" in failure["message"]
    assert "LargePayloads" not in failure["message"], "no more can be had"


def test_events_of_an_activity_keep_their_own_limit(stored):
    behaviours["only"] = lambda context, value: context.publish("said", input="x" * 300_000)
    instance_id = stored.dispatch("one", {"text": "t"})
    stored.settle()
    assert "a stimulus has at most 262144 bytes" in stored.show(instance_id)["failure"]["message"]


def test_without_the_switch_the_limits_are_those_of_rows_and_the_fault_names_the_switch(
    stored, set_environment
):
    set_environment(LARGE_PAYLOADS="false")
    with pytest.raises(TooLargeError, match=r"262144 bytes \(LargePayloads=true allows 2 MB\)"):
        stored.dispatch("one", {"text": LARGE})
    behaviours["only"] = lambda context, value: LARGE
    instance_id = stored.dispatch("one", {"text": "t"})
    stored.settle()
    failure = stored.show(instance_id)["failure"]
    assert failure["type"] == "ResultTooLargeError"
    assert "262144 bytes (LargePayloads=true allows 2 MB) fit" in failure["message"]
    assert not objects()


def test_without_the_switch_a_state_of_rows_stays_in_rows(stored, set_environment):
    set_environment(LARGE_PAYLOADS="false")
    instance_id = stored.dispatch("one", {"text": "x" * 250_000})
    stored.settle()
    assert stored.show(instance_id)["status"] == "completed"
    assert not objects()


def test_an_instance_that_was_born_large_goes_on_when_the_switch_is_off(stored, set_environment):
    instance_id = stored.dispatch("parent", {"text": "x" * 200_000})
    behaviours["first"] = lambda context, value: LARGE
    set_environment(LARGE_PAYLOADS="false")
    stored.settle()
    assert stored.show(instance_id)["status"] == "completed"


def test_a_parent_of_before_the_switch_is_told_that_its_childs_output_does_not_fit(stored, set_environment):
    set_environment(LARGE_PAYLOADS="false")
    stored.publish(
        Workflow("elder", root=DispatchWorkflow("child", input={"text": "t"}, wait=True, result="child"))
    )
    instance_id = stored.dispatch("elder")
    stored.run(instance_id)
    set_environment(LARGE_PAYLOADS="true")
    behaviours["below"] = lambda context, value: LARGE
    stored.settle()
    shown = stored.show(instance_id)
    assert (shown["status"], shown["failure"]["type"]) == ("faulted", "StateTooLargeError")
    assert "child (1000011 bytes)" in shown["failure"]["message"]


def test_the_switch_without_a_bucket_is_refused_at_the_start():
    tables = ("definitions", "instances", "outbox", "bookmarks", "triggers")
    given = {f"{name.upper()}_TABLE": name for name in tables}
    with pytest.raises(SettingError) as caught:
        read_settings({**given, "COMMAND_QUEUE_URL": "queue", "LARGE_PAYLOADS": "true"})
    assert caught.value.field == "LARGE_PAYLOADS"
