"""BulkDispatchWorkflows under the engine: what it intends, and in which commits."""

import pytest

from aftercommit import Finish, Sequence, Step, Workflow, expr, var
from aftercommit import inputs as given_inputs
from aftercommit.errors import DefinitionRefusedError
from aftercommit.jsons import dumps, size_of
from aftercommit.limits import (
    BULK_CHILDREN_MAX,
    COMMIT_BYTES_MAX,
    COMMIT_INTENTIONS_MAX,
    INPUT_BYTES_MAX,
    MOVES_MAX,
    TRANSACTION_BYTES_MAX,
)
from aftercommit.model import Cancel, Continue
from aftercommit.statuses import InstanceStatus, ItemCommand
from tests.unit.bulk_runs import bulk, joins, of, starts
from tests.unit.engine_runs import Run, failure_of, play

# --- the starts ---


def test_c19_each_item_has_a_start_of_its_own_with_its_own_input():
    run = Run(bulk([{"n": [1]}, {"n": [2]}], input={"n": var.item.n, "all": given_inputs.x}), inputs={"x": 5})
    assert [each["input"] for each in starts(run)] == [{"n": [1], "all": 5}, {"n": [2], "all": 5}]
    assert len({each.item_id for each in run.intentions}) == 2
    assert len({each["instance_id"] for each in starts(run)}) == 2


def test_c19_without_an_input_a_child_gets_its_item_as_it_is_and_its_index():
    run = Run(bulk(given_inputs.x), inputs={"x": ["{% 1 + 1 %}", {"deep": [1]}]})
    assert [each["input"] for each in starts(run)] == [
        {"item": "{% 1 + 1 %}", "index": 0},
        {"item": {"deep": [1]}, "index": 1},
    ]


def test_c19_the_correlation_id_is_of_the_item_or_the_parents():
    run = Run(bulk(["a", None], correlation_id=var.item))
    assert [each.get("correlation_id") for each in starts(run)] == ["a", None]


def test_items_and_indexes_may_have_other_names():
    run = Run(bulk(item="order", index="place", input={"o": var.order, "p": var.place}))
    assert [each["input"] for each in starts(run)] == [{"o": "a", "p": 0}, {"o": "b", "p": 1}]


def test_what_is_drawn_for_one_item_is_not_drawn_for_the_next_and_is_repeatable():
    root = bulk(input={"drawn": expr("$random()")})
    first, second = starts(Run(root)), starts(Run(root))
    assert first == second
    assert first[0]["input"] != first[1]["input"]


def test_identities_follow_from_the_execution_and_the_index():
    first, second = Run(bulk(wait=True)), Run(bulk(wait=True))
    assert [each.item_id for each in first.intentions] == [each.item_id for each in second.intentions]
    two = Run(Sequence(bulk(), bulk()))
    assert len({each["instance_id"] for each in starts(two)}) == 4


def test_item_ids_sort_by_index():
    run = play(Run(bulk(expr("[1..120]"))))
    names = [each.item_id for each in run.intentions]
    assert names == sorted(names)


def test_everything_of_the_command_is_stored():
    run = Run(bulk(version=7, channel="slow"))
    assert {(each["version"], each["channel"], each["depth"]) for each in starts(run)} == {(7, "slow", 1)}


def test_not_waiting_it_goes_on_at_once_naming_its_children():
    run = Run(bulk(result="x", on={"Dispatched": Step("next")}))
    assert run.ready == ["root.on.Dispatched"]
    named = [each["instance_id"] for each in starts(run)]
    assert run.state.variables["x"] == {"count": 2, "instance_ids": named}
    assert all("join" not in each for each in starts(run))


def test_not_waiting_for_many_it_names_the_first_only():
    run = play(Run(bulk(expr("[1..500]"), result="x")))
    assert run.state.variables["x"]["count"] == 500
    assert len(run.state.variables["x"]["instance_ids"]) == 100


def test_c21_an_empty_list_is_done_at_once():
    run = Run(bulk([], wait=True, result="x"))
    assert run.state.status == InstanceStatus.COMPLETED
    assert run.intentions == []
    assert run.state.variables["x"]["total"] == 0
    run = Run(bulk(var.nothing, result="x"))
    assert run.state.variables["x"] == {"count": 0, "instance_ids": []}


@pytest.mark.parametrize("items", [5, "text", {"a": 1}])
def test_items_that_are_no_list_fault(items):
    assert "expected a list" in failure_of(Run(bulk(given_inputs.x), inputs={"x": items})).message


def test_more_items_than_one_dispatch_may_have_fault_before_any_is_dispatched():
    run = Run(bulk(given_inputs.x, wait=True), inputs={"x": [1] * (BULK_CHILDREN_MAX + 1)})
    failure = failure_of(run)
    assert failure.type == "TooManyItemsError"
    assert str(BULK_CHILDREN_MAX) in failure.message
    assert run.intentions == []


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"input": expr("var.item")}, "expected an object"),
        ({"concurrent_max": expr("0")}, "expected a whole number from 1"),
        ({"concurrent_max": expr("'2'")}, "expected a whole number from 1"),
        ({"tolerated_failures": expr("-1"), "wait": True}, "expected a whole number from 0"),
        ({"tolerated_failures": expr("'101%'"), "wait": True}, "expected a whole number from 0"),
        ({"correlation_id": 5}, "a correlation id is a text"),
    ],
)
def test_what_makes_no_sense_for_these_items_faults(more, told):
    assert told in failure_of(Run(bulk(**more))).message


@pytest.mark.parametrize(
    ("more", "place"),
    [
        ({"concurrent_max": 0}, "concurrent_max"),
        ({"concurrent_max": True}, "concurrent_max"),
        ({"concurrent_max": "3"}, "concurrent_max"),
        ({"tolerated_failures": -1, "wait": True}, "tolerated_failures"),
        ({"tolerated_failures": "20", "wait": True}, "tolerated_failures"),
        ({"tolerated_failures": "120%", "wait": True}, "tolerated_failures"),
        ({"tolerated_failures": 1}, "tolerated_failures"),
        ({"each_completed": Finish()}, "each_completed"),
        ({"each_faulted": Finish()}, "each_faulted"),
        ({"batch_max": 101, "wait": True}, "batch_max"),
        ({"index": "item"}, "index"),
        ({"on": {"Completed": Finish()}}, "on.Completed"),
        ({"on": {"Cancelled": Finish()}, "wait": True}, "on.Cancelled"),
    ],
)
def test_what_can_never_make_sense_is_refused_naming_the_property(more, place):
    with pytest.raises(DefinitionRefusedError) as caught:
        _ = Workflow("w", root=bulk(**more)).definition
    assert [each for each, _ in caught.value.faults] == [f"root.{place}"]


# --- over many commits ---


def commits_of(run_of):
    """Play a decision to its end; returns the number of intentions and bytes of each commit."""
    run = Run(*run_of[0], **run_of[1])
    commits, done = [], 0
    while True:
        new = run.intentions[done:]
        commits.append((len(new), sum(size_of(each.body) for each in new)))
        done = len(run.intentions)
        if not run.state.agenda:
            return run, commits
        assert run.give(Continue())


def test_r02_a_fan_out_of_ten_thousand_takes_commits_of_bounded_size_and_few_moves():
    run, commits = commits_of([[bulk(expr("[1..10000]"), wait=True)], {}])
    assert len(starts(run)) == 10_000
    assert max(count for count, _ in commits) <= COMMIT_INTENTIONS_MAX
    assert run.state.moves < MOVES_MAX / 50
    assert len(dumps(run.state.to_json())) < 2_000
    assert run.state.status == InstanceStatus.SUSPENDED


def test_commits_are_bounded_in_bytes_too():
    root = bulk(expr("[1..40]"), input={"x": given_inputs.x}, wait=True)
    run, commits = commits_of([[root], {"inputs": {"x": "x" * 200_000}}])
    assert len(starts(run)) == 40
    assert COMMIT_BYTES_MAX < max(bytes_ for _, bytes_ in commits) < TRANSACTION_BYTES_MAX - 500_000


def test_the_join_is_stored_behind_all_children():
    run, _ = commits_of([[bulk(expr("[1..200]"), wait=True)], {}])
    assert [each.command for each in run.intentions].index(ItemCommand.JOIN) == 200


def test_the_journal_has_a_line_per_commit_not_per_child():
    run, commits = commits_of([[bulk(expr("[1..200]"), wait=True)], {}])
    lines = [line for line in run.journal if line["status"] == "intended"]
    assert len(lines) == len(commits)
    assert sum(line["count"] for line in lines) == 200


def test_an_input_that_is_too_large_faults_naming_its_item_and_cancels_those_before():
    text = "x" * (INPUT_BYTES_MAX - 20)
    root = bulk(["a", text], input={"given": var.item, "index": var.index}, wait=True)
    run = Run(root)
    assert failure_of(run).type == "InputTooLargeError"
    assert "for item 1" in run.state.failure.message
    assert len(of(run, ItemCommand.CANCEL)) == 1


def test_what_ends_a_fan_out_midway_cancels_what_it_has_started():
    run = Run(bulk(expr("[1..200]"), wait=True))
    assert run.state.agenda
    run.give(Cancel("enough"))
    [cancel] = of(run, ItemCommand.CANCEL)
    assert cancel.body["join_id"] == run.intentions[0].item_id[:32]
    assert joins(run) == []
