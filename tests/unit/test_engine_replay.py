"""Replay: commands as they are stored, applied again, give the same state and the same decisions."""

import json

from hypothesis import given
from hypothesis import strategies as st

from aftercommit import engine
from aftercommit.definition import read_definition
from aftercommit.jsons import dumps
from aftercommit.model import (
    Cancel,
    Continue,
    Failure,
    Raise,
    Resume,
    Start,
    State,
    Stimulate,
    command_from_json,
    command_to_json,
)
from aftercommit.model import Finish as StepFinished
from tests.unit.engine_runs import AT, PARENT, assert_sizes_are_exact
from tests.unit.trees import TREES

KINDS = ["finish", "raise", "retry", "resume", "stimulus", "cancel"]
# A cancel ends all that could follow, so it comes seldom.
CHOICES = st.tuples(st.sampled_from([*KINDS[:5] * 6, "cancel"]), st.integers(0, 9))
STEPS = st.lists(CHOICES, max_size=12)
OPTIONS = [{"incidents": "fault"}, {"incidents": "continue"}]
GIVEN = {"a": 5, "total": 1}


def _commands(definition, choices):
    """Play an instance by chance; returns the commands that applied, as they are stored."""
    state = State("i", GIVEN, parent=PARENT)
    stored = []
    for number, (kind, chosen) in enumerate([("", 0), *choices]):
        each = _choose(state, kind, chosen) if number else Start()
        if each is None or not engine.advance(definition, state, each, AT).applied:
            continue
        stored.append(dumps(command_to_json(each)))
        while state.agenda:
            assert engine.advance(definition, state, Continue(), AT).applied
            stored.append(dumps(command_to_json(Continue())))
        assert_sizes_are_exact(state)
    return state, stored


def _choose(state, kind, number):
    if kind == "cancel":
        return Cancel("enough")
    if state.bookmarks and (kind in ("resume", "stimulus") or not state.ready):
        return _end_wait(list(state.bookmarks.values())[number % len(state.bookmarks)], kind, number)
    if not state.ready:
        return None
    step = state.ready[number % len(state.ready)]
    if kind == "raise":
        return Raise(step, Failure(["E", "HttpTimeoutError"][number % 2], "e"))
    if kind == "retry":
        return Raise(step, Failure("E", "e"), "2026-11-30T21:45:25.000Z")
    results = [number, "", None, {"a": [number]}, {"status": 200, "body": number}, {"status": 404}]
    return StepFinished(step, results[number % len(results)])


def _end_wait(bookmark, kind, number):
    if bookmark.stimulus and kind == "stimulus":
        return Stimulate(bookmark.stimulus, [number])
    if bookmark.waits_for == "children":
        counts = {"total": 1, "completed": 0, "faulted": 0, "cancelled": 0, "dispatch_failed": 0}
        outcome = ["Completed", "Faulted"][number % 2]
        return Resume(bookmark.bookmark_id, outcome, {**counts, outcome.lower(): 1, "unfinished": number % 3})
    if bookmark.waits_for != "child":
        return Resume(bookmark.bookmark_id, "Done", number)
    outcome = ["Completed", "Faulted", "Cancelled", "DispatchFailed"][number % 4]
    return Resume(bookmark.bookmark_id, outcome, {"type": "E", "message": "m"} if number % 4 else number)


def _replay(definition, state, stored):
    decisions = [
        engine.advance(definition, state, command_from_json(json.loads(each)), AT) for each in stored
    ]
    assert all(each.applied for each in decisions)
    return decisions


@given(TREES, STEPS, st.integers(0, 20))
def test_a_snapshot_at_any_point_and_the_commands_after_it_give_the_same_state(root, choices, point):
    definition = read_definition({"id": "w", "root": root, "options": OPTIONS[point % 2]})
    lived, stored = _commands(definition, choices)
    state = State("i", GIVEN, parent=PARENT)
    head = stored[:point]
    _replay(definition, state, head)
    while state.agenda:  # a burst never ends in the middle of a decision
        head.append(stored[len(head)])
        _replay(definition, state, head[-1:])
    loaded = State.from_json(
        json.loads(dumps(state.to_json())),
        instance_id="i",
        status=state.status.value,
        correlation_id=state.correlation_id,
    )
    _replay(definition, loaded, stored[len(head) :])
    assert loaded.to_json() == lived.to_json()
    assert (loaded.status, loaded.correlation_id) == (lived.status, lived.correlation_id)


@given(TREES, STEPS)
def test_a_replay_decides_the_same_intentions(root, choices):
    definition = read_definition({"id": "w", "root": root})
    _, stored = _commands(definition, choices)
    one, other = (_replay(definition, State("i", GIVEN), stored) for _ in range(2))
    assert one == other
