"""Redrive and replay: one or all that match, shown first, asked for, and every refusal told."""

import json
import os
import signal
import threading

import pytest

from tests.cli.played import recorded

LETTERS = "/bookmark-queue/dead-letters"


def dispatch(number, workflow="send-receipt"):
    [found] = recorded("failed dispatches")["dispatches"]
    return {**found, "owner_id": f"o{number}", "item_id": f"i{number}", "definition_id": workflow}


@pytest.fixture
def failed(played):
    """Three failed dispatches on two pages, of which the second one is refused."""
    pages = [
        (200, {"dispatches": [dispatch(1), dispatch(2)], "cursor": "next"}),
        (200, {"dispatches": [dispatch(3, "ship-order")]}),
    ]
    played.play("GET", "/dispatches", *pages)
    for number, name in ((1, "redriven"), (2, "redrive refused"), (3, "redriven")):
        played.play("POST", f"/dispatches/o{number}/i{number}/redrive", name)
    return played


def posted(played):
    return [each.path for each in played.asked if each.method == "POST"]


def test_one_dispatch_is_redriven_by_its_ids(failed, run):
    result = run("redrive", "o1", "i1")
    assert (result.exit_code, result.stdout) == (0, "redriven  o1 i1\n")
    assert posted(failed) == ["/dispatches/o1/i1/redrive"]


def test_one_that_is_refused_is_told_with_the_reason(failed, run):
    result = run("redrive", "o2", "i2")
    assert result.exit_code == 1
    assert recorded("redrive refused")["error"]["message"] in result.stderr


def test_a_dry_run_of_all_shows_them_and_does_nothing(failed, run):
    result = run("redrive", "--all", "--dry-run")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [f"would be redriven  o{each} i{each}" for each in (1, 2, 3)]
    assert "3 failed dispatches matched" in result.stderr
    assert posted(failed) == []
    assert [each.query.get("cursor") for each in failed.asked] == [None, "next"]
    assert {each.query["status"] for each in failed.asked} == {"failed"}


def test_a_dry_run_of_one_looks_whether_it_is_there(played, run):
    played.play("GET", "/dispatches/o/i", "dispatch")
    assert run("redrive", "o", "i", "--dry-run").exit_code == 0
    assert run("redrive", "o", "other", "--dry-run").exit_code == 1
    assert posted(played) == []


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"status": "done"}, "it is done"),
        ({"status": "undone"}, "it is undone"),
        ({"wait": True}, "its owner waited"),
    ],
)
def test_a_dry_run_of_one_that_cannot_be_redriven_says_why(played, run, change, reason):
    played.play("GET", "/dispatches/o1/i1", (200, {**dispatch(1), **change}))
    result = run("redrive", "o1", "i1", "--dry-run")
    assert result.exit_code == 1
    assert result.stdout.startswith(f"would be refused  o1 i1  {reason}")
    answer = json.loads(run("redrive", "o1", "i1", "--dry-run", "--json").stdout)
    [refused] = answer["would_be_refused"]
    assert (answer["would_be_redriven"], refused["item_id"], reason in refused["reason"]) == ([], "i1", True)


def test_all_leaves_out_what_was_told_to_an_owner_that_waited(played, run):
    told = {**dispatch(2), "wait": True}
    played.play("GET", "/dispatches", (200, {"dispatches": [dispatch(1), told]}))
    played.play("POST", "/dispatches/o1/i1/redrive", "redriven")
    assert run("redrive", "--all", "--dry-run").stdout == "would be redriven  o1 i1\n"
    assert run("redrive", "--all", "--yes").exit_code == 0
    assert posted(played) == ["/dispatches/o1/i1/redrive"]


def test_all_are_redriven_after_a_yes_and_what_was_refused_is_told(failed, run):
    result = run("redrive", "--all", stdin="y\n")
    assert result.exit_code == 1
    assert "Redrive 3 failed dispatches?" in result.stderr
    assert posted(failed) == [f"/dispatches/o{each}/i{each}/redrive" for each in (1, 2, 3)]
    refused, summary = result.stdout.splitlines()[-2:]
    assert refused == f"refused  o2 i2  id: {recorded('redrive refused')['error']['message']}"
    assert summary == "2 redriven, 1 refused"


def test_on_a_terminal_a_bar_shows_how_far_it_is(failed, run):
    result = run("redrive", "--all", "--yes", FORCE_COLOR="1", TERM="xterm")
    assert "3/3" in result.stderr
    assert "3/3" not in result.stdout
    assert "3/3" not in run("redrive", "--all", "--yes").stderr


@pytest.mark.parametrize("answer", ["n\n", ""])
def test_without_a_yes_nothing_is_done(failed, run, answer):
    result = run("redrive", "--all", stdin=answer)
    assert result.exit_code == 1
    assert posted(failed) == []


def test_only_dispatches_of_a_workflow_are_redriven_where_one_is_named(failed, run):
    result = run("redrive", "--all", "--workflow", "ship-order", "--yes")
    assert result.exit_code == 0
    assert posted(failed) == ["/dispatches/o3/i3/redrive"]
    assert result.stdout.splitlines()[-1] == "1 redriven, 0 refused"


def test_json_names_what_was_redriven_and_what_was_refused(failed, run):
    result = run("redrive", "--all", "--yes", "--json")
    assert result.exit_code == 1
    answer = json.loads(result.stdout)
    assert answer["redriven"] == [recorded("redriven")] * 2
    assert answer["refused"] == [
        {"owner_id": "o2", "item_id": "i2", "error": recorded("redrive refused")["error"]}
    ]


def test_json_of_a_dry_run_names_what_would_be_redriven(failed, run):
    answer = run.json("redrive", "--all", "--workflow", "ship-order", "--dry-run")
    assert answer == {"would_be_redriven": [{"owner_id": "o3", "item_id": "i3"}], "would_be_refused": []}


def test_what_was_done_before_the_api_was_lost_is_told(failed, run):
    failed.play("POST", "/dispatches/o2/i2/redrive", (502, b""))
    result = run("redrive", "--all", "--yes")
    assert result.exit_code == 3
    assert result.stdout.splitlines()[-1] == "1 redriven, 0 refused, 2 not tried"
    assert "502" in result.stderr


@pytest.fixture
def interruptible():
    """Let SIGINT interrupt, as in a terminal: what a shell runs in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_what_was_done_before_an_interruption_is_told(failed, run):
    over = threading.Event()

    def interrupt():
        os.kill(os.getpid(), signal.SIGINT)  # as Ctrl-C does, while the program waits for this answer
        over.wait(30)
        return 200, {}

    failed.play("POST", "/dispatches/o2/i2/redrive", interrupt)
    result = run("redrive", "--all", "--yes")
    over.set()
    assert result.exit_code == 130
    assert result.stdout.splitlines()[-1] == "1 redriven, 0 refused, 2 not tried"
    assert posted(failed) == [f"/dispatches/o{each}/i{each}/redrive" for each in (1, 2)]


def test_nothing_that_failed_is_nothing_to_do(played, run):
    played.play("GET", "/dispatches", (200, {"dispatches": []}))
    result = run("redrive", "--all")
    assert result.exit_code == 0
    assert "0 failed dispatches matched" in result.stderr
    assert run.json("redrive", "--all") == {"redriven": [], "refused": []}


@pytest.mark.parametrize(
    "arguments",
    [[], ["o"], ["o", "i", "--all"], ["o", "--all"], ["o", "i", "--workflow", "w"]],
    ids=lambda value: " ".join(value) or "nothing",
)
def test_a_redrive_of_what_is_not_clear_is_wrong_usage(played, run, arguments):
    assert run("redrive", *arguments).exit_code == 2
    assert played.asked == []


# --- replay: the same, for dead letters ---


@pytest.fixture
def letters(played):
    [first, second] = recorded("dead letters")["dead_letters"]
    letters = [{**first, "name": "event:paid"}, {**second, "name": "nobody"}]
    played.play("GET", LETTERS, (200, {"dead_letters": letters}))
    for each, name in zip(letters, ("replayed", "replay refused"), strict=True):
        played.play("GET", f"{LETTERS}/{each['stimulus_id']}", (200, each))
        played.play("POST", f"{LETTERS}/{each['stimulus_id']}/replay", name)
    return [each["stimulus_id"] for each in letters]


def test_one_dead_letter_is_replayed_by_its_id(played, run, letters):
    result = run("replay", letters[0])
    assert (result.exit_code, result.stdout) == (0, f"replayed as  {recorded('replayed')['stimulus_id']}\n")
    assert posted(played) == [f"{LETTERS}/{letters[0]}/replay"]
    assert run("replay", letters[1]).exit_code == 1


def test_all_dead_letters_are_replayed_and_refusals_told(played, run, letters):
    result = run("replay", "--all", "--yes")
    assert result.exit_code == 1
    assert len(posted(played)) == 2
    assert result.stdout.splitlines()[-1] == "1 replayed, 1 refused"
    assert f"refused  {letters[1]}  id: replayed already" in result.stdout


def test_dead_letters_of_a_name_alone_can_be_replayed(played, run, letters):
    assert run("replay", "--all", "--name", "event:paid", "--yes").exit_code == 0
    assert posted(played) == [f"{LETTERS}/{letters[0]}/replay"]


def test_a_dry_run_of_a_replay_does_nothing(played, run, letters):
    result = run("replay", "--all", "--dry-run")
    assert result.stdout.splitlines() == [f"would be replayed  {each}" for each in letters]
    assert run("replay", letters[0], "--dry-run").stdout == f"would be replayed  {letters[0]}\n"
    assert posted(played) == []


def test_a_dry_run_of_a_replay_knows_a_letter_that_was_replayed(played, run, letters):
    [first, _] = recorded("dead letters")["dead_letters"]
    played.play("GET", f"{LETTERS}/{letters[0]}", (200, {**first, "replayed_as": "k.later"}))
    result = run("replay", letters[0], "--dry-run")
    assert result.exit_code == 1
    assert result.stdout == f"would be refused  {letters[0]}  replayed already, as k.later\n"


@pytest.mark.parametrize("arguments", [[], ["k.i", "--all"], ["k.i", "--name", "n"]])
def test_a_replay_of_what_is_not_clear_is_wrong_usage(run, arguments):
    assert run("replay", *arguments).exit_code == 2
