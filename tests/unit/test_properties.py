"""Properties that hold for any activity type, and for any order in which what waits goes on."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercommit import engine
from aftercommit.activities import TYPES
from aftercommit.definition import _Reader, read_definition
from aftercommit.errors import DefinitionRefusedError
from aftercommit.ids import derive_id
from aftercommit.jsons import dumps
from aftercommit.model import (
    Continue,
    Finish,
    Resume,
    Start,
    State,
    Stimulate,
    command_from_json,
    command_to_json,
)
from aftercommit.statuses import InstanceStatus, Outcome
from tests.unit.catalogue import nodes, wrong_nodes

AT = 1_796_075_123.5


# --- trees ---


@pytest.mark.parametrize("kind", TYPES)
@given(data=st.data())
def test_any_activity_round_trips_through_json_whatever_its_properties(kind, data):
    node = data.draw(nodes(kind))
    # Past the checks of what properties say together, which few drawn nodes meet.
    read = _Reader(None, None).read_activity(json.loads(json.dumps(node)), "root", 1)
    assert read.to_json() == node


@pytest.mark.parametrize("kind", TYPES)
@given(data=st.data())
def test_any_properties_are_accepted_or_refused_with_paths_and_never_break_the_reader(kind, data):
    node = data.draw(nodes(kind))
    refused: list[tuple[str, str]] = []
    try:
        assert read_definition({"id": "w", "root": node}).root.to_json() == node
    except DefinitionRefusedError as error:
        refused = error.faults
    assert all(path.startswith("root") and message for path, message in refused)


@pytest.mark.parametrize(("kind", "name", "node"), [*wrong_nodes()], ids=str)
def test_a_property_of_a_wrong_type_is_refused_with_its_path(kind, name, node):
    with pytest.raises(DefinitionRefusedError) as refused:
        read_definition({"id": "w", "root": node})
    assert any(path.startswith(f"root.{name}") for path, _ in refused.value.faults)


# --- orders ---

WAITS = st.sampled_from(["Event", "Delay", "RunTask", "Step", "DispatchWorkflow"])
BRANCHES = st.lists(st.lists(WAITS, min_size=1, max_size=3), min_size=2, max_size=4)
ORDERS = st.lists(st.integers(0, 99), max_size=40)
_NODES = {
    "Event": lambda name: {"type": "Event", "name": name, "payload": {"n": name}, "result": name},
    "Delay": lambda name: {"type": "Delay", "seconds": 60},
    "RunTask": lambda name: {"type": "RunTask", "name": name, "result": name},
    "Step": lambda name: {"type": "Step", "activity": "act", "inputs": {"n": name}, "result": name},
    "DispatchWorkflow": lambda name: {
        "type": "DispatchWorkflow",
        "workflow": name,
        "wait": True,
        "result": name,
    },
}


def forked(branches):
    """Return a definition of branches that each wait several times, one after the other."""
    written = [
        {"type": "Sequence", "activities": [_NODES[wait](f"b{i}_{j}") for j, wait in enumerate(branch)]}
        for i, branch in enumerate(branches)
    ]
    return read_definition({"id": "w", "root": {"type": "Fork", "branches": written}})


def live(definition, order):
    """Bring an instance to its end, in an order; returns (state, intentions, commands)."""
    state, intentions, stored = State("i", {}), [], []
    picks = iter(order)
    command = Start()
    while True:
        decision = engine.advance(definition, state, command, AT)
        assert decision.applied
        intentions += decision.intentions
        stored.append(dumps(command_to_json(command)))
        if state.status.ended:
            return state, intentions, stored
        command = Continue() if state.agenda else _next(state, next(picks, 0))


def _next(state, pick):
    options = [*state.ready, *state.bookmarks]
    chosen = options[pick % len(options)]
    value = derive_id("value", chosen)
    if chosen in state.ready:
        return Finish(chosen, value)
    bookmark = state.bookmarks[chosen]
    if bookmark.stimulus:
        return Stimulate(bookmark.stimulus, value)
    outcome = Outcome.COMPLETED if bookmark.waits_for == "child" else Outcome.DONE
    return Resume(chosen, outcome, value)


@given(BRANCHES, ORDERS, ORDERS)
def test_any_order_of_resumes_ends_in_the_same_variables_and_the_same_intentions(branches, one, other):
    definition = forked(branches)
    (first, intended, _), (second, again, _) = live(definition, one), live(definition, other)
    assert first.status == second.status == InstanceStatus.COMPLETED
    assert first.variables == second.variables
    assert {each.item_id for each in intended} == {each.item_id for each in again}
    assert len({each.item_id for each in intended}) == len(intended)


@given(BRANCHES, ORDERS, st.integers(0, 20))
def test_replaying_the_committed_commands_gives_the_same_state_at_any_point(branches, order, point):
    definition = forked(branches)
    lived, intended, stored = live(definition, order)
    replayed, again = State("i", {}), []
    for number, text in enumerate(stored):
        if number == point:  # from here on, by another worker: from its snapshot
            told = json.loads(dumps(replayed.to_json()))
            replayed = State.from_json(told, instance_id="i", status=replayed.status.value)
        again += engine.advance(definition, replayed, command_from_json(json.loads(text)), AT).intentions
    assert replayed.to_json() == lived.to_json()
    assert [each.to_json() for each in again] == [each.to_json() for each in intended]
