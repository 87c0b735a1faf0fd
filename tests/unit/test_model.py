import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercommit.intentions import intend_start
from aftercommit.jsons import dumps, size_of
from aftercommit.model import (
    Abort,
    Bookmark,
    Cancel,
    Execution,
    Failure,
    Finish,
    Intention,
    Parent,
    Raise,
    Resume,
    Start,
    State,
    command_from_json,
    command_to_json,
)
from aftercommit.statuses import ExecutionStatus, InstanceStatus, ItemCommand
from tests.unit.trees import JSON

WORDS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)
FAILURES = st.builds(Failure, WORDS, st.text(st.characters(codec="utf-8"), max_size=12))
BODIES = st.dictionaries(WORDS, JSON, max_size=3)
INTENTIONS = st.builds(Intention, st.just(ItemCommand.START), WORDS, BODIES)
INSTANTS = st.just("") | st.just("2026-11-30T21:45:23.123Z")
COMMANDS = st.one_of(
    st.builds(Start),
    st.builds(Finish, WORDS, JSON | st.just(""), st.lists(INTENTIONS, max_size=2), INSTANTS),
    st.builds(Raise, WORDS, FAILURES, st.none() | st.just("2026-11-30T21:45:23.123Z"), INSTANTS),
    st.builds(Resume, WORDS, st.sampled_from(["Done", "Completed"]), JSON | st.just("")),
    st.builds(Cancel, st.text(st.characters(codec="utf-8"), max_size=12)),
    st.builds(Abort, FAILURES),
)
EXECUTIONS = st.builds(
    Execution,
    WORDS,
    WORDS,
    st.just("") | WORDS,
    st.integers(0, 5),
    st.sampled_from(list(ExecutionStatus)),
    st.integers(1, 5),
    st.dictionaries(WORDS, JSON, max_size=2),
)
BOOKMARKS = st.builds(Bookmark, WORDS, WORDS, st.sampled_from(["child", "retry"]), st.none() | WORDS)
STATES = st.builds(
    State,
    st.just("i"),
    BODIES,
    status=st.sampled_from(list(InstanceStatus)),
    correlation_id=st.none() | WORDS,
    parent=st.none() | st.builds(Parent, WORDS, st.just(""), st.none() | WORDS),
    depth=st.integers(0, 32),
    variables=BODIES,
    executions=st.lists(EXECUTIONS, max_size=3).map(lambda each: {x.execution_id: x for x in each}),
    ready=st.lists(WORDS, max_size=3),
    bookmarks=st.lists(BOOKMARKS, max_size=3).map(lambda each: {x.bookmark_id: x for x in each}),
    output=JSON,
    failure=st.none() | FAILURES,
)


@given(COMMANDS)
def test_a_stored_command_reads_back_as_it_was(command):
    assert command_from_json(json.loads(dumps(command_to_json(command)))) == command


@pytest.mark.parametrize("value", ["", 0, False, [], {}, None])
def test_a_result_that_counts_as_false_survives_being_stored(value):
    stored = command_from_json(json.loads(dumps(command_to_json(Finish("e", value)))))
    assert stored.result == value
    assert type(stored.result) is type(value)


@given(STATES)
def test_a_snapshot_reads_back_as_the_state_it_was_taken_of(state):
    read = State.from_json(
        json.loads(dumps(state.to_json())),
        instance_id=state.instance_id,
        status=state.status.value,
        correlation_id=state.correlation_id,
    )
    assert read == state


def test_a_snapshot_leaves_out_what_is_at_its_default():
    assert State("i", {}).to_json() == {"inputs": {}}


def test_an_intended_start_derives_everything_from_what_scheduled_it():
    def intend(scheduled_by):
        return intend_start(
            scheduled_by,
            definition_id="child",
            version=None,
            input={},
            correlation_id=None,
            channel=None,
            depth=1,
        )

    assert intend("a") == intend("a")
    assert intend("a").item_id != intend("b").item_id
    assert intend("a").body["instance_id"] != intend("b").body["instance_id"]
    assert intend("a").body.keys() == {"instance_id", "definition_id", "input", "depth"}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_what_is_no_json_is_not_written(value):
    with pytest.raises(ValueError, match="not JSON compliant"):
        dumps(value)


def test_a_size_counts_bytes_of_utf8():
    assert size_of("é") == len('"é"'.encode()) == 4


def test_the_three_endings_are_the_ended_statuses():
    assert {each for each in InstanceStatus if each.ended} == {"completed", "faulted", "cancelled"}
