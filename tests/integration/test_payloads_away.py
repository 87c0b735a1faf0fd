"""Payloads whose worker dies, whose announcement comes late, or whose bucket is away."""

import json

import pytest

from aftercommit import (
    DispatchWorkflow,
    Event,
    Fork,
    Workflow,
    aws,
    clock,
    inputs,
)
from aftercommit.cancel import cancel
from aftercommit.delete import delete
from aftercommit.errors import TryLaterError
from aftercommit.limits import PAYLOAD_COMMIT_SECONDS
from aftercommit.payloads import Payloads, discard_payloads, object_key
from aftercommit.settings import settings
from aftercommit.sweep import sweep
from aftercommit.tables import PayloadsRow, key_of
from aftercommit.writes import commit
from tests.integration.faults import Crash, no_answer, refusal
from tests.integration.payload_flows import (
    BUCKET,
    DAY_SECONDS,
    LARGE,
    announcements,
    objects,
    overdue,
)
from tests.integration.world import effects, raw_rows


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


def stand_still(world):
    """Let a worker stand still for so long that the sweep gives its objects up."""
    world.clock.at += PAYLOAD_COMMIT_SECONDS + 60
    [row] = overdue()
    discard_payloads(row["instance_key"]["S"], row["row"]["S"])


def test_a_worker_that_finds_its_objects_given_up_commits_nothing_and_tries_again(stored, faults):
    instance_id = stored.dispatch("one", {"text": LARGE})

    faults.meanwhile("TransactWriteItems", lambda: stand_still(stored))
    with pytest.raises(TryLaterError):
        stored.run(instance_id)
    assert not stored.revisions(instance_id)
    stored.settle()
    assert stored.show(instance_id)["status"] == "completed"


def test_a_birth_that_finds_its_objects_given_up_tells_the_caller_to_try_later(stored, faults):
    faults.meanwhile("TransactWriteItems", lambda: stand_still(stored))
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
