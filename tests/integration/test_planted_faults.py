"""A simulation that finds nothing may look at nothing: each planted fault must make it fail.

Each test weakens one thing that the runtime does, in this process only, and strikes a scenario that rests on
it, write by write, until a check speaks up.
"""

from dataclasses import replace

import pytest

from aftercommit import (
    activations,
    attempts,
    burst,
    checkpoint,
    delete,
    deliver,
    endpoints,
    engine,
    instances,
    operations,
    outbox,
    payloads,
    publish,
    resume,
    start,
    stimulate,
    sweep,
    writes,
)
from aftercommit.tables import HeadRow, ItemRow
from aftercommit.writes import Put, Update
from tests.simulation import scenarios, world
from tests.simulation.faults import Fault, FaultKind
from tests.simulation.runs import Run, simulate
from tests.simulation.weather import CALM, DOUBLED

# Modules that commit, each by the name it imported.
COMMITTING = (
    activations,
    attempts,
    checkpoint,
    delete,
    instances,
    operations,
    outbox,
    payloads,
    publish,
    resume,
    stimulate,
    sweep,
)


def first_violation(scenario, *kinds, weather=CALM):
    """Strike write by write; return the first violations, or an empty list."""
    calm, found = simulate(Run(scenario, weather=weather))
    for write in range(1, calm.writes + 1):
        for kind in kinds:
            if found:
                return found
            _, found = simulate(Run(scenario, 0, (Fault(write, kind),), weather))
    return found


def checks_of(violations):
    """Return the names of the checks that spoke up."""
    return {each.partition(":")[0] for each in violations}


def rewrite_commits(monkeypatch, change):
    """Let `change` rewrite each write of each commit; it returns None to leave one out."""

    def commit(given):
        changed = [each for each in map(change, given) if each is not None]
        if changed:
            writes.commit(changed)

    for module in COMMITTING:
        monkeypatch.setattr(module, "commit", commit)


@pytest.mark.parametrize(
    ("scenario", "kinds", "weather"),
    [
        ("wait", (FaultKind.CRASH_AFTER, FaultKind.FREEZE), CALM),
        ("refused-yet-sent", (FaultKind.FREEZE,), CALM),
        ("given-up-yet-sent", (FaultKind.FREEZE,), CALM),
        ("sweep-races-stream", (FaultKind.CRASH_BEFORE,), DOUBLED),
    ],
)
def test_nothing_is_found_where_nothing_is_planted(scenario, kinds, weather):
    assert first_violation(scenario, *kinds, weather=weather) == []


def test_ack_without_its_condition_is_found(monkeypatch):
    def ack(item, at):
        return replace(real_ack(item, at), condition=ItemRow.owner_key.exists())

    real_ack = outbox.ack
    for module in (outbox, burst, resume):
        monkeypatch.setattr(module, "ack", ack)
    found = checks_of(first_violation("refused-yet-sent", FaultKind.FREEZE))
    assert found & {"check_i3_no_duplicate", "check_i7_endings_are_told"}


def test_give_up_without_its_condition_is_found(monkeypatch):
    def change(write):
        return replace(write, condition=ItemRow.owner_key.exists()) if write.purpose == "failed" else write

    rewrite_commits(monkeypatch, change)
    found = checks_of(first_violation("given-up-yet-sent", FaultKind.FREEZE))
    assert found & {"check_i3_no_duplicate", "check_i7_endings_are_told"}


def test_revision_put_over_another_is_found(monkeypatch):
    monkeypatch.setattr(checkpoint, "_revision_put", lambda row: Put("revision", row))
    assert "check_i4_fencing" in checks_of(first_violation("wait", FaultKind.FREEZE))


def test_head_written_without_its_lease_and_its_revision_is_found(monkeypatch):
    def change(write):
        if write.purpose == "revision":
            return Put("revision", write.row)
        return replace(write, condition=HeadRow.instance_key.exists()) if write.purpose == "head" else write

    rewrite_commits(monkeypatch, change)
    assert first_violation("several", FaultKind.FREEZE)


def test_claim_without_its_condition_is_found(monkeypatch):
    def claim(item, at):
        actions = [ItemRow.sends.set(item.sends + 1)]
        writes.commit(
            [Update("claim", ItemRow(item.owner_key, item.item_id), actions, ItemRow.body.exists())]
        )
        return True

    monkeypatch.setattr(deliver, "claim", claim)
    found = [each for seed in range(20) for each in simulate(Run("sweep-races-stream", seed))[1]]
    assert "check_one_send_per_claim" in checks_of(found)


def test_ending_that_is_not_told_is_found(monkeypatch):
    def end(self, status, **more):
        parent, self.state.parent = self.state.parent, None
        real_end(self, status, **more)
        self.state.parent = parent

    real_end = engine._Advance.end
    monkeypatch.setattr(engine._Advance, "end", end)
    assert checks_of(first_violation("wait")) >= {"check_i2_no_loss"}


def test_lease_that_leaves_the_head_not_due_is_found(monkeypatch):
    def change(write):
        if write.purpose != "lease":
            return write
        kept = [each for each in write.actions if "due_at" not in str(each)]
        assert len(kept) == len(write.actions) - 1
        return replace(write, actions=kept)

    rewrite_commits(monkeypatch, change)
    assert "check_i2_no_loss" in checks_of(first_violation("wait", FaultKind.CRASH_AFTER))


def test_item_that_is_not_due_is_found(monkeypatch):
    def change(write):
        if write.purpose == "item":
            write.row.due_at = None
        return write

    rewrite_commits(monkeypatch, change)
    assert "check_i2_no_loss" in checks_of(first_violation("eager-off"))


def test_items_put_before_their_revision_are_found(monkeypatch):
    def commit(given):
        items = [each for each in given if each.purpose == "item"]
        rest = [each for each in given if each.purpose != "item"]
        for each in (items, rest):
            if each:
                writes.commit(each)

    monkeypatch.setattr(checkpoint, "commit", commit)
    found = checks_of(first_violation("no-wait", FaultKind.CRASH_AFTER))
    assert found & {"check_i1_no_ghost", "check_i5_one_commit"}


def test_items_put_after_their_revision_are_found(monkeypatch):
    def commit(given):
        items = [each for each in given if each.purpose == "item"]
        writes.commit([each for each in given if each.purpose != "item"])
        if items:
            writes.commit(items)

    monkeypatch.setattr(checkpoint, "commit", commit)
    found = checks_of(first_violation("no-wait", FaultKind.CRASH_AFTER))
    assert found & {"check_i2_no_loss", "check_i5_one_commit"}


def test_child_id_that_differs_by_attempt_is_found(monkeypatch):
    def birth_writes(birth, at, **more):
        return real_puts(replace(birth, instance_id=f"{birth.instance_id}-{int(at)}"), at, **more)

    real_puts = start.birth_writes
    monkeypatch.setattr(start, "birth_writes", birth_writes)
    assert "check_i1_no_ghost" in checks_of(first_violation("no-wait"))


def test_unreadable_item_that_stops_its_batch_is_found(monkeypatch):
    monkeypatch.setattr(deliver, "find_item", lambda *names: ItemRow.get("#".join(names[:2]), names[2]))
    monkeypatch.setattr(deliver, "set_aside", lambda *told: None)
    monkeypatch.setattr(world, "SECONDS_MAX", 600)
    found = checks_of(first_violation("poisoned-item"))
    assert found & {"check_i2_no_loss", "check_i9_no_starvation", "check_no_surprise"}


def test_takeover_from_a_holder_that_lives_is_found(monkeypatch):
    monkeypatch.setattr(activations, "_lives", lambda head: False)
    rewrite_commits(monkeypatch, lambda each: None if each.purpose == "holder" else each)
    assert "check_one_live" in checks_of(first_violation("singleton-at-once"))


def test_step_that_runs_before_its_stimulus_is_committed_is_found(monkeypatch):
    monkeypatch.setattr(burst, "Stimulate", ())  # nothing is one, so nothing is committed first
    found = checks_of(first_violation("multi-use-overlap", FaultKind.CRASH_AFTER, weather=DOUBLED))
    assert "check_i1_no_ghost" in found
    assert "check_i3_no_duplicate" in checks_of(simulate(Run("sent-for-two-rounds"))[1])


def test_stimulus_that_may_be_applied_again_is_found(monkeypatch):
    real_ack = stimulate.ack
    monkeypatch.setattr(
        stimulate, "ack", lambda item, at: replace(real_ack(item, at), condition=ItemRow.owner_key.exists())
    )
    assert "check_i6_once_per_stimulus" in checks_of(first_violation("sent-for-two-rounds", FaultKind.FREEZE))


def test_stimulus_that_is_settled_without_an_effect_is_found(monkeypatch):
    monkeypatch.setattr(stimulate, "_keep_open", outbox.settle)
    assert "check_i8_early_is_not_lost" in checks_of(first_violation("sent-early"))


def test_stimulus_that_goes_before_an_earlier_one_is_found(monkeypatch):
    monkeypatch.setattr(stimulate, "_those_before", lambda item, so_far: [])
    found = [each for seed in range(9) for each in simulate(Run("sent-for-two-rounds", seed))[1]]
    assert "check_i8_oldest_first" in checks_of(found)


def test_request_that_does_not_look_for_its_earlier_self_is_found(monkeypatch):
    def change(write):
        return Put(write.purpose, write.row) if write.purpose == "request" else write

    rewrite_commits(monkeypatch, change)
    assert "check_answers" in checks_of(first_violation("sent-late", FaultKind.CRASH_AFTER))


def test_replay_without_its_mark_is_found(monkeypatch):
    def change(write):
        return None if write.purpose == "replay" else write

    rewrite_commits(monkeypatch, change)
    assert "check_one_replay" in checks_of(first_violation("two-replays"))


def test_start_points_that_stay_when_their_version_goes_are_found(monkeypatch):
    real_writes = publish.trigger_writes
    monkeypatch.setattr(publish, "trigger_writes", lambda rows, before: real_writes(rows, []))
    assert "check_triggers_are_those_published" in checks_of(first_violation("retract-while-starting"))


def test_start_of_what_is_not_published_any_more_is_found(monkeypatch):
    real_writes = publish.trigger_writes
    monkeypatch.setattr(publish, "trigger_writes", lambda rows, before: real_writes(rows, []))
    monkeypatch.setattr(
        "aftercommit.triggers.find_published_version", lambda tenant, definition_id: (tenant, 1)
    )
    assert "check_i10_published_is_fixed" in checks_of(first_violation("retract-while-starting"))


def test_head_that_goes_before_its_rows_is_found(monkeypatch):
    def remove_rows(head, until):
        HeadRow(head.instance_key, "head").delete()
        real_remove(head, until)

    real_remove = delete.remove_rows
    monkeypatch.setattr(sweep, "remove_rows", remove_rows)
    assert "check_deleted_is_gone" in checks_of(first_violation("deleted"))


@pytest.mark.parametrize(
    ("module", "name", "planted"),
    [(delete, "_find_needed", lambda head, until: None), (delete, "KEPT_SECONDS", 3_600)],
)
def test_ended_instance_that_goes_too_early_is_found(monkeypatch, module, name, planted):
    monkeypatch.setattr(module, name, planted)
    shorter = replace(scenarios.BY_NAME["ended-go"], days=1.6)  # nobody redrives what is gone
    monkeypatch.setitem(scenarios.BY_NAME, "ended-go", shorter)
    assert "check_nothing_goes_too_early" in checks_of(first_violation("ended-go"))


def test_ended_instance_that_never_goes_is_found(monkeypatch):
    monkeypatch.setattr(checkpoint, "_due_actions", lambda *_: [HeadRow.due_at.remove()])
    assert "check_ended_go" in checks_of(first_violation("ended-go"))


def test_callback_address_that_is_good_twice_is_found(monkeypatch):
    def unconditioned(given):
        writes.commit([Put(each.purpose, each.row) if isinstance(each, Put) else each for each in given])

    monkeypatch.setattr(operations, "commit", unconditioned)
    found = first_violation("early-callback", FaultKind.CRASH_AFTER)
    assert "check_i6_once_per_callback" in checks_of(found)


def test_answer_that_is_not_committed_is_found(monkeypatch):
    monkeypatch.setattr(endpoints, "_find_response", lambda tenant, instance_id: {"status": 200})
    assert "check_i1_answers_are_committed" in checks_of(first_violation("http-start"))


def test_objects_that_nobody_announces_are_found(monkeypatch):
    rewrite_commits(monkeypatch, lambda write: None if write.purpose == "payloads" else write)
    assert "check_payloads_are_removed" in checks_of(first_violation("payloads", FaultKind.CRASH_BEFORE))


def test_commits_that_leave_their_objects_announced_are_found(monkeypatch):
    def change(write):
        return None if write.purpose == "payloads" and isinstance(write, Update) else write

    rewrite_commits(monkeypatch, change)
    assert "check_payloads_are_there" in checks_of(simulate(Run("payloads"))[1])


def test_an_announcement_that_may_come_after_its_commit_is_found(monkeypatch):
    def change(write):
        is_put = write.purpose == "payloads" and isinstance(write, Put)
        return replace(write, condition=None) if is_put else write

    rewrite_commits(monkeypatch, change)
    calm, _ = simulate(Run("payloads"))
    # The message comes back as its last acknowledgement is lost: so the world is there for what comes late.
    lost = Fault(calm.writes, FaultKind.CRASH_BEFORE)
    runs = (Run("payloads", 0, (Fault(write, FaultKind.LATE), lost)) for write in range(1, calm.writes))
    assert any("check_payloads_are_there" in checks_of(simulate(run)[1]) for run in runs)


def test_objects_that_stay_when_their_instance_goes_are_found(monkeypatch):
    monkeypatch.setattr(delete, "remove_payloads", lambda instance_key, row: 0)
    assert "check_payloads_are_removed" in checks_of(simulate(Run("payloads-deleted"))[1])
