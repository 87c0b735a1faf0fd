"""The checks of bulk dispatches find what is planted; and what only holds one up is made good by its join."""

import json

import pytest

from aftercommit import attempts, checkpoint, join, tallies
from aftercommit.joins import judge
from aftercommit.places import Join
from tests.integration.test_planted_faults import checks_of, first_violation, rewrite_commits
from tests.simulation.faults import FaultKind
from tests.simulation.runs import Run, simulate

LEFT_OUT = {
    "tally": "check_endings_are_counted_once",
    "mark": "check_endings_are_counted_once",
}


@pytest.mark.parametrize("purpose", LEFT_OUT)
def test_an_ending_that_is_not_told_is_found(monkeypatch, purpose):
    rewrite_commits(monkeypatch, lambda write: None if write.purpose == purpose else write)
    found = checks_of(first_violation("bulk-tolerating", FaultKind.CRASH_AFTER))
    assert LEFT_OUT[purpose] in found


def test_an_ending_that_is_told_in_a_commit_of_its_own_is_found(monkeypatch):
    def in_two(writes):
        tally = [each for each in writes if each.purpose == "tally"]
        real_commit([each for each in writes if each.purpose != "tally"])
        if tally:
            real_commit(tally)

    real_commit = checkpoint.commit
    monkeypatch.setattr(checkpoint, "commit", in_two)
    found = checks_of(first_violation("bulk", FaultKind.CRASH_BEFORE))
    assert "check_endings_are_counted_once" in found


def test_lanes_that_do_not_hold_are_found(monkeypatch):
    monkeypatch.setattr(Join, "sleeps", False)
    assert checks_of(first_violation("bulk-in-lanes", FaultKind.FREEZE)) == {"check_lanes_hold"}


def test_children_that_are_not_handed_over_are_found(monkeypatch):
    def forgetting(body, tally):
        return judge({**body, "handlers": []}, tally)

    for module in (join, tallies):
        monkeypatch.setattr(module, "judge", forgetting)
    assert "check_bulk_is_told_once" in checks_of(first_violation("bulk-handled", FaultKind.FREEZE))


def test_without_a_wake_the_join_finds_who_overslept(monkeypatch):
    for module in (checkpoint, attempts):
        real_commit = module.commit

        def commit(writes, real_commit=real_commit):
            real_commit([each for each in writes if each.purpose != "wake"])

        monkeypatch.setattr(module, "commit", commit)
    world, violations = simulate(Run("bulk-in-lanes"))
    assert violations == []
    woken = [
        call for call in world.trace if call.what == "UpdateItem" and "asleep" in json.dumps(call.arguments)
    ]
    assert woken


def test_without_hints_the_sweep_brings_everything_to_its_end(monkeypatch):
    monkeypatch.setattr(checkpoint, "hurry", lambda *_: None)
    for scenario in ("bulk", "bulk-in-lanes", "bulk-handled", "bulk-failing"):
        assert simulate(Run(scenario))[1] == []
