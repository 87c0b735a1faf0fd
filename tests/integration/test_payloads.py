"""What is too large for a row: kept in S3, in the same commit, or refused with a clear fault."""

import json

import pytest

from aftercommit import (
    DispatchWorkflow,
    Event,
    Fork,
    Sequence,
    SetVariable,
    Step,
    Workflow,
    aws,
    clock,
    inputs,
    var,
)
from aftercommit.cancel import cancel
from aftercommit.delete import delete
from aftercommit.errors import SettingError, TooLargeError, TryLaterError
from aftercommit.limits import LARGE_STATE_BYTES_MAX, PAYLOAD_BYTES_MIN, PAYLOAD_COMMIT_SECONDS
from aftercommit.payloads import Payloads, discard_payloads, object_key
from aftercommit.settings import read_settings, settings
from aftercommit.sweep import sweep
from aftercommit.tables import PayloadsRow, key_of
from aftercommit.writes import commit
from tests.integration.faults import Crash, no_answer, refusal
from tests.integration.world import behaviours, effects, raw_rows

BUCKET = "their-payloads"
LARGE = "ä" * 500_000  # a million bytes
DAY_SECONDS = 86_400

child = Workflow(
    "child",
    inputs={"text": str},
    root=Step("act", name="below", value=inputs.text, result="made"),
    output={"made": var.made},
)
parent = Workflow(
    "parent",
    inputs={"text": str},
    root=Sequence(
        Step("act", name="first", value=inputs.text, result="made"),
        SetVariable("made", "gone again"),
        DispatchWorkflow("child", input={"text": inputs.text}, wait=True, result="child"),
        Step("act", name="last"),
    ),
    output=var.child.made,
)
one = Workflow("one", inputs={"text": str}, root=Step("act", name="only", result="made"), output=var.made)
waiting = Workflow(
    "waiting", inputs={"text": str}, root=DispatchWorkflow("child", input={"text": "small"}, wait=True)
)


@pytest.fixture
def stored(world, set_environment, faults):
    """The world with a bucket, and large payloads on."""
    aws.client("s3").create_bucket(Bucket=BUCKET)
    set_environment(PAYLOAD_BUCKET=BUCKET, LARGE_PAYLOADS="true")
    faults.watch("s3")
    world.publish(child, parent, one)
    return world


def objects():
    found = aws.client("s3").list_objects_v2(Bucket=BUCKET).get("Contents", [])
    return sorted(each["Key"] for each in found)


def announcements():
    return [row for row in raw_rows(settings().instances_table) if row["row"]["S"].startswith("payloads#")]


def overdue():
    return [row for row in announcements() if "due_at" in row]


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


def test_events_of_an_activity_keep_their_own_limit(stored):
    behaviours["only"] = lambda context, value: context.publish("said", input="x" * 300_000)
    instance_id = stored.dispatch("one", {"text": "t"})
    stored.settle()
    assert "a stimulus has at most 262144 bytes" in stored.show(instance_id)["failure"]["message"]


def test_without_the_switch_the_limits_are_those_of_rows(stored, set_environment):
    set_environment(LARGE_PAYLOADS="false")
    with pytest.raises(TooLargeError, match="262144"):
        stored.dispatch("one", {"text": LARGE})
    behaviours["only"] = lambda context, value: LARGE
    instance_id = stored.dispatch("one", {"text": "t"})
    stored.settle()
    assert stored.show(instance_id)["failure"]["type"] == "ResultTooLargeError"
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


# --- what dies, comes late, or is away ---


def test_objects_of_a_birth_that_never_came_are_removed_after_an_hour(stored, faults, log_lines):
    faults.before("TransactWriteItems", Crash())
    with pytest.raises(Crash):
        stored.dispatch("one", {"text": LARGE})
    assert len(objects()) == 1
    stored.clock.at += PAYLOAD_COMMIT_SECONDS - 1
    sweep()
    assert len(objects()) == 1
    stored.clock.at += 2
    sweep()
    assert objects() == overdue() == []
    [line] = [each for each in map(json.loads, log_lines) if each["message"] == "payloads discarded"]
    assert (line["objects"], line["reason"]) == (1, "their commit never came")


def test_a_step_whose_worker_dies_before_its_commit_runs_again_and_its_objects_go(stored, faults):
    instance_id = stored.dispatch("parent", {"text": LARGE})
    faults.before("TransactWriteItems", Crash(), match="revision#")
    with pytest.raises(Crash):
        stored.run(instance_id)
    stored.settle()
    assert stored.show(instance_id)["output"] == LARGE
    assert [name for name, _, _ in effects].count("first") == 2
    assert not overdue()
    named = {row["payloads"]["S"] for row in raw_rows(settings().instances_table) if "payloads" in row}
    named |= {row["payloads"]["S"] for row in raw_rows(settings().outbox_table) if "payloads" in row}
    assert {key.split("/")[2] for key in objects()} == named


def test_a_commit_whose_objects_are_being_given_up_cannot_come(stored):
    payloads = Payloads(key_of("default", "i"), large=True)
    payloads.take("snapshot", LARGE)
    [own] = payloads.store(clock.now())
    stored.clock.at += PAYLOAD_COMMIT_SECONDS + 1
    discard_payloads(payloads.instance_key, own.row.row)
    before = stored.everything()
    with pytest.raises(Exception, match="payloads"):
        commit([own])
    assert stored.everything() == before
    assert not objects()


def test_a_commit_that_came_first_keeps_its_objects(stored):
    payloads = Payloads(key_of("default", "i"), large=True)
    payloads.take("snapshot", LARGE)
    [own] = payloads.store(clock.now())
    commit([own])
    stored.clock.at += PAYLOAD_COMMIT_SECONDS + 1
    discard_payloads(payloads.instance_key, own.row.row)
    assert len(objects()) == 1


def test_an_announcement_that_comes_late_does_not_undo_its_commit(stored, faults):
    """A first try that timed out may arrive when the second try, and then the commit, have been."""
    payloads = Payloads(key_of("default", "i"), large=True)
    payloads.take("snapshot", LARGE)
    faults.after("PutItem", no_answer(), match="payloads#")
    [own] = payloads.store(clock.now())  # its second try meets the first
    commit([own])
    late = PayloadsRow(payloads.instance_key, own.row.row, due_shard=0, due_at=clock.to_text(clock.now()))
    with pytest.raises(Exception, match="conditional"):
        late.save(condition=PayloadsRow.instance_key.does_not_exist())
    sent = [body for name, body in faults.sent if name == "PutItem" and "payloads#" in str(body)]
    assert all("attribute_not_exists" in body["ConditionExpression"] for body in sent)
    assert not overdue()


def test_a_worker_that_finds_its_objects_given_up_commits_nothing_and_tries_again(stored, faults):
    instance_id = stored.dispatch("one", {"text": LARGE})

    def stand_still():
        stored.clock.at += PAYLOAD_COMMIT_SECONDS + 60
        [row] = overdue()
        discard_payloads(row["instance_key"]["S"], row["row"]["S"])

    faults.meanwhile("TransactWriteItems", stand_still)
    with pytest.raises(TryLaterError):
        stored.run(instance_id)
    assert not stored.revisions(instance_id)
    stored.settle()
    assert stored.show(instance_id)["status"] == "completed"


def test_a_birth_that_finds_its_objects_given_up_tells_the_caller_to_try_later(stored, faults):
    def stand_still():
        stored.clock.at += PAYLOAD_COMMIT_SECONDS + 60
        [row] = overdue()
        discard_payloads(row["instance_key"]["S"], row["row"]["S"])

    faults.meanwhile("TransactWriteItems", stand_still)
    with pytest.raises(TryLaterError):
        stored.dispatch("one", {"text": LARGE}, idempotency_key="k")
    assert stored.heads() == []
    instance_id = stored.dispatch("one", {"text": LARGE}, idempotency_key="k")
    stored.settle()
    assert stored.show(instance_id)["status"] == "completed"


def test_a_sweep_that_dies_while_it_discards_goes_on_later(stored, faults):
    faults.before("TransactWriteItems", Crash())
    with pytest.raises(Crash):
        stored.dispatch("one", {"text": LARGE})
    stored.clock.at += PAYLOAD_COMMIT_SECONDS + 1
    faults.after("DeleteObject", Crash())
    with pytest.raises(Crash):
        sweep()
    [row] = overdue()
    assert row["doomed"] == {"BOOL": True}
    stored.clock.at += settings().ack_timeout_seconds + 1
    sweep()
    assert objects() == overdue() == []
    [row] = announcements()
    assert int(row["ttl"]["N"]) > stored.clock.at + DAY_SECONDS  # no late try can announce it anew until then


def test_while_s3_is_away_a_caller_is_told_so_and_nothing_is_born(stored, faults):
    faults.before("PutObject", refusal("SlowDown"), times=10)
    with pytest.raises(TryLaterError, match="SlowDown"):
        stored.dispatch("one", {"text": LARGE})
    assert stored.heads() == []
    stored.settle()
    assert overdue() == []


def test_while_s3_is_away_no_start_uses_its_attempts_up(stored, faults):
    instance_id = stored.dispatch("parent", {"text": LARGE})
    stored.run(instance_id)
    faults.before("GetObject", refusal("SlowDown"), times=1_000)
    stored.settle(seconds=600)
    item = stored.item("start")
    assert (item.status, int(item.attempts)) == ("undone", 0)
    faults.close()
    stored.settle()
    assert stored.show(instance_id)["output"] == LARGE


def test_while_s3_is_away_one_child_holds_back_no_others_cancel(stored, faults):
    stored.publish(
        Workflow("heavy-idle", inputs={"text": str}, root=Event("never")),
        Workflow("light-idle", root=Event("never")),
        Workflow(
            "both",
            inputs={"text": str},
            root=Fork(
                DispatchWorkflow("heavy-idle", input={"text": inputs.text}, wait=True),
                DispatchWorkflow("light-idle", wait=True),
            ),
        ),
    )
    instance_id = stored.dispatch("both", {"text": LARGE})
    stored.settle(seconds=60)
    cancel("default", instance_id, "enough")
    faults.before("GetObject", refusal("SlowDown"), times=2)
    stored.settle()
    assert set(stored.statuses().values()) == {"cancelled"}


def test_while_s3_is_away_a_worker_gives_its_lease_back_and_counts_as_no_death(stored, faults):
    instance_id = stored.dispatch("one", {"text": LARGE})
    faults.before("GetObject", no_answer(), times=10)
    for _ in range(2):
        with pytest.raises(TryLaterError):
            stored.run(instance_id)
    head = stored.head(instance_id)
    assert (head.lease_token, int(head.leases), int(head.released)) == (None, 2, 2)
    faults.close()
    stored.settle()
    assert stored.show(instance_id)["status"] == "completed"


def test_an_old_snapshot_that_cannot_be_removed_stays_and_goes_with_the_instance(stored, faults):
    instance_id = stored.dispatch("one", {"text": LARGE})
    faults.before("DeleteObject", refusal("SlowDown"), times=10)
    stored.run(instance_id)
    assert len(objects()) == 2
    faults.close()
    delete("default", instance_id)
    stored.settle(seconds=2 * DAY_SECONDS)
    assert objects() == announcements() == []


def test_a_removed_instance_takes_all_its_objects_with_it_and_no_others(stored):
    gone, kept = (stored.dispatch("parent", {"text": LARGE}) for _ in range(2))
    stored.settle()
    others = [key for key in objects() if f"/{gone}/" not in key]
    delete("default", gone)
    stored.settle(seconds=2 * DAY_SECONDS)
    assert objects() == others
    assert stored.show(kept)["output"] == LARGE


def test_a_lost_object_is_an_incident_that_names_it_and_heals_when_it_is_back(stored):
    instance_id = stored.dispatch("one", {"text": LARGE})
    [key] = objects()
    content = aws.client("s3").get_object(Bucket=BUCKET, Key=key)["Body"].read()
    aws.client("s3").delete_object(Bucket=BUCKET, Key=key)
    stored.run(instance_id)
    [incident] = stored.incidents()
    assert (incident.error_type, key in incident.message) == ("UnreadableInstanceError", True)
    aws.client("s3").put_object(Bucket=BUCKET, Key=key, Body=content)
    stored.settle()
    assert stored.show(instance_id)["status"] == "completed"


def test_a_childs_lost_input_is_told_to_its_parent(stored):
    instance_id = stored.dispatch("parent", {"text": LARGE})
    stored.run(instance_id)
    item = stored.item("start")
    aws.client("s3").delete_object(Bucket=BUCKET, Key=object_key(item.owner_key, item.payloads, item.item_id))
    stored.settle()
    shown = stored.show(instance_id)
    assert "the input of outbox item" in shown["failure"]["message"]


def test_without_a_name_for_the_bucket_what_is_kept_there_waits(stored, set_environment):
    instance_id = stored.dispatch("parent", {"text": LARGE})
    stored.run(instance_id)
    set_environment(PAYLOAD_BUCKET="", LARGE_PAYLOADS="false")
    stored.settle(seconds=300)
    item = stored.item("start")
    assert (item.status, "PAYLOAD_BUCKET is not set" in item.last_error) == ("undone", True)
    assert stored.incidents() == []
    set_environment(PAYLOAD_BUCKET=BUCKET)
    stored.settle()
    assert stored.show(instance_id)["status"] == "completed"


def test_objects_are_named_by_tenant_instance_and_commit(stored):
    instance_id = stored.dispatch("one", {"text": LARGE}, tenant="acme")
    [key] = objects()
    assert key == f"acme/{instance_id}/{stored.head(instance_id, 'acme').payloads}/snapshot"
