"""Each command: what it asks of the API, what it prints, and the same as JSON."""

import json

import pytest

from aftercommit_cli.program import COMMANDS
from tests.cli.played import recorded

ID = "01M8QQ9KY48ZE8BPJKCCADP8TA"


def fits(text):
    return all(len(line) <= 80 for line in text.splitlines())


@pytest.mark.parametrize(
    ("arguments", "method", "path", "name"),
    [
        (["workflows"], "GET", "/workflows", "workflows"),
        (["workflows", "w"], "GET", "/workflows/w", "workflow"),
        (["start", "w"], "POST", "/workflows/w/dispatch", "dispatched"),
        (["start", "w", "--execute"], "POST", "/workflows/w/execute", "executed"),
        (["get", "x"], "GET", "/instances/x", "completed"),
        (["get", "x", "--journal"], "GET", "/instances/x/journal", "journal"),
        (["list", "--workflow", "w"], "GET", "/instances", "instances"),
        (["cancel", "x"], "POST", "/instances/x/cancel", "cancelled"),
        (["stimulus", "n"], "POST", "/stimuli", "stimulus"),
        (["event", "n"], "POST", "/events/n", "event"),
        (["complete", "t"], "POST", "/tasks/t/complete", "task completed"),
        (["outbox"], "GET", "/outbox", "outbox"),
        (["dispatches"], "GET", "/dispatches", "failed dispatches"),
        (["dispatches", "o"], "GET", "/dispatches", "dispatches of an owner"),
        (["dispatches", "o", "i"], "GET", "/dispatches/o/i", "dispatch"),
        (["redrive", "o", "i"], "POST", "/dispatches/o/i/redrive", "redriven"),
        (["dead-letters"], "GET", "/bookmark-queue/dead-letters", "dead letters"),
        (["dead-letters", "k.i"], "GET", "/bookmark-queue/dead-letters/k.i", "dead letter"),
        (["replay", "k.i"], "POST", "/bookmark-queue/dead-letters/k.i/replay", "replayed"),
        (["incidents"], "GET", "/incidents", "incidents"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_json_is_the_answer_of_the_api_and_text_is_something_else(played, run, arguments, method, path, name):
    played.play(method, path, name)
    assert run.json(*arguments) == recorded(name)
    told = run(*arguments)
    assert told.exit_code == 0, told.output
    assert told.stdout.strip()
    assert not told.stdout.startswith(("{", "["))


# --- workflows ---


def test_workflows_are_a_table(played, run):
    played.play("GET", "/workflows", "workflows")
    lines = run("workflows").stdout.splitlines()
    assert lines[0].split() == ["WORKFLOW", "VERSION", "PUBLISHED", "(UTC)"]
    assert [line.split()[:2] for line in lines[1:4]] == [
        ["place-order", "1"],
        ["send-receipt", "1"],
        ["ship-order", "1"],
    ]


def test_a_workflow_is_shown_with_its_tree_and_another_version_may_be_asked_for(played, run):
    played.play("GET", "/workflows/send-receipt", "workflow")
    told = run("workflows", "send-receipt", "--version", "1").stdout
    assert played.asked[0].query == {"version": "1"}
    assert '"activity": "mail_receipt"' in told
    assert run("workflows", "--version", "1").exit_code == 2


# --- start ---


def test_a_start_sends_what_it_is_given_and_prints_the_id(played, run):
    played.play("POST", "/workflows/place-order/dispatch", "dispatched")
    options = ["--correlation-id", "c", "--channel", "slow", "--idempotency-key", "k"]
    result = run("start", "place-order", "--input", '{"name": "Zoë"}', *options)
    assert result.stdout == f"{recorded('dispatched')['instance_id']}\n"
    [asked] = played.asked
    assert asked.body == {
        "input": {"name": "Zoë"},
        "correlation_id": "c",
        "channel": "slow",
    }
    assert asked.headers["idempotency-key"] == "k"
    assert asked.headers["content-type"] == "application/json"


def test_a_start_under_an_id_of_ones_own_bears_no_key_as_the_api_takes_one_of_the_two(played, run):
    played.play("POST", "/workflows/place-order/dispatch", "dispatched")
    assert run("start", "place-order", "--instance-id", "i").exit_code == 0
    [asked] = played.asked
    assert asked.body == {"input": {}, "instance_id": "i"}
    assert "idempotency-key" not in asked.headers


def test_two_starts_have_different_keys(played, run):
    played.play("POST", "/workflows/w/dispatch", "dispatched")
    run("start", "w")
    run("start", "w")
    assert len({each.headers["idempotency-key"] for each in played.asked}) == 2


def test_input_comes_from_a_file_or_from_standard_input(played, run, tmp_path):
    played.play("POST", "/workflows/w/dispatch", "dispatched")
    file = tmp_path / "order.json"
    file.write_text('{"from": "file"}')
    assert run("start", "w", "--input", f"@{file}").exit_code == 0
    assert run("start", "w", "--input", "-", stdin='{"from": "pipe"}').exit_code == 0
    assert run("start", "w").exit_code == 0
    assert [each.body["input"] for each in played.asked] == [{"from": "file"}, {"from": "pipe"}, {}]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("{", "is no JSON"),
        ("[1]", "must be a JSON object"),
        ("text", "a text needs quotes"),
        ("@nowhere.json", "cannot read nowhere.json"),
        ("-", "standard input is no JSON"),
    ],
)
def test_an_input_that_is_none_is_refused_before_anything_is_sent(played, run, given, reason):
    result = run("start", "w", "--input", given, stdin="")
    assert result.exit_code == 2
    assert reason in result.stderr
    assert "--input" in result.stderr
    assert played.asked == []


@pytest.mark.parametrize(
    ("name", "code"), [("executed", 0), ("suspended", 0), ("faulted", 4), ("cancelled instance", 5)]
)
def test_an_execution_tells_by_its_exit_code_how_it_ended(played, run, name, code):
    played.play("POST", "/workflows/w/execute", (200, recorded(name)))
    result = run("start", "w", "--execute")
    assert result.exit_code == code
    assert recorded(name)["instance_id"] in result.stdout


# --- instances ---


def test_an_instance_is_shown_with_all_that_is_known(played, run):
    played.play("GET", "/instances/x", "faulted")
    told = run("get", "x").stdout
    shown = recorded("faulted")
    assert "place-order version 1" in told
    assert "ShippingFailed: shipping failed" in told
    for each in shown["dispatches"]:
        assert each["instance_id"] in told
    assert fits("\n".join(told.splitlines()[:8]))


def test_a_task_is_shown_with_its_token_whole(played, run):
    played.play("GET", "/instances/x", "suspended")
    told = run("get", "x").stdout
    [bookmark] = recorded("suspended")["bookmarks"]
    assert f"    token {bookmark['token']}\n" in told
    assert '{"amount": 5}' in told


def test_a_journal_is_read_to_its_end(played, run):
    first, rest = recorded("cut journal"), recorded("journal")["revisions"][1:]
    played.play("GET", "/instances/x/journal", (200, first), (200, {"revisions": rest}))
    told = run("get", "x", "--journal").stdout
    assert played.asked[1].query["cursor"] == first["cursor"]
    lines = [line for each in recorded("journal")["revisions"] for line in each["activities"]]
    assert len(told.splitlines()) == len(lines)
    assert "charge_card" in told


def test_instances_are_a_table_that_fits(played, run):
    played.play("GET", "/instances", "instances")
    result = run("list", "--workflow", "send-receipt", "--status", "completed")
    assert played.asked[0].query == {
        "definition_id": "send-receipt",
        "status": "completed",
        "limit": "50",
    }
    assert fits(result.stdout)
    for each in recorded("instances")["instances"]:
        assert each["instance_id"] in result.stdout


def test_instances_are_found_by_correlation_id(played, run):
    played.play("GET", "/instances", "instances")
    assert run("list", "--correlation-id", "c").exit_code == 0
    assert played.asked[0].query == {"correlation_id": "c", "limit": "50"}


@pytest.mark.parametrize(
    "arguments",
    [[], ["--workflow", "w", "--correlation-id", "c"], ["--workflow", "w", "--status", "odd"]],
)
def test_a_list_of_what_is_not_clear_is_wrong_usage(run, arguments):
    assert run("list", *arguments).exit_code == 2


def test_a_list_follows_cursors_to_the_end_with_all(played, run):
    cut, rest = recorded("cut instances"), recorded("instances")["instances"][1:]
    played.play("GET", "/instances", (200, cut), (200, {"instances": rest}))
    answer = run.json("list", "--workflow", "w", "--all")
    assert answer == recorded("instances")
    assert [each.query.get("cursor") for each in played.asked] == [None, cut["cursor"]]
    assert [each.query["limit"] for each in played.asked] == ["100", "100"]


def test_a_list_follows_cursors_up_to_its_limit(played, run):
    cut = recorded("cut instances")
    played.play("GET", "/instances", (200, cut))
    answer = run.json("list", "--workflow", "w", "--limit", "2")
    assert len(answer["instances"]) == 2
    assert answer["cursor"] == cut["cursor"]
    assert [each.query["limit"] for each in played.asked] == ["2", "1"]


def test_a_list_that_goes_on_says_so_beside_the_answer(played, run):
    played.play("GET", "/instances", "cut instances")
    result = run("list", "--workflow", "w", "--limit", "1")
    assert "--all" in result.stderr
    assert "--all" not in result.stdout


def test_an_empty_list_says_so_beside_the_answer(played, run):
    played.play("GET", "/instances", (200, {"instances": []}))
    result = run("list", "--workflow", "w")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "No instances" in result.stderr


def test_cancel_says_what_it_did(played, run):
    played.play("POST", "/instances/a/cancel", "cancelled")
    played.play("POST", "/instances/b/cancel", "cancelled already")
    result = run("cancel", "a", "b")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == ["a  cancelled", "b  had ended already"]


def test_cancel_goes_on_after_one_that_is_refused(played, run):
    played.play("POST", "/instances/b/cancel", "cancelled")
    result = run("cancel", "nobody", "b")
    assert result.exit_code == 1
    assert result.stdout == "b  cancelled\n"
    assert result.stderr.startswith("nobody  ")


def test_json_of_several_cancels_is_one_object(played, run):
    played.play("POST", "/instances/a/cancel", "cancelled")
    played.play("POST", "/instances/b/cancel", "cancelled already")
    result = run("cancel", "a", "nobody", "b", "--json")
    assert (result.exit_code, result.stderr) == (1, "")
    answer = json.loads(result.stdout)
    assert answer["cancelled"] == [recorded("cancelled"), recorded("cancelled already")]
    [refused] = answer["refused"]
    assert (refused["instance_id"], refused["error"]["code"]) == ("nobody", "not_found")
    assert run.json("cancel", "a") == recorded("cancelled already") | recorded("cancelled")


# --- stimuli ---


@pytest.mark.parametrize(("command", "path"), [("stimulus", "/stimuli"), ("event", "/events/paid")])
def test_a_stimulus_sends_what_it_is_given(played, run, command, path):
    played.play("POST", path, command)
    options = ["--payload", '{"order": "A"}', "--input", "5", "--correlation-id", "c", "--instance-id", "i"]
    result = run(command, "paid", *options)
    assert result.stdout == f"{recorded(command)['stimulus_id']}\n"
    expected = {"payload": {"order": "A"}, "input": 5, "correlation_id": "c", "instance_id": "i"}
    assert played.asked[0].body == ({"name": "paid", **expected} if command == "stimulus" else expected)


def test_a_task_is_completed_with_its_result(played, run):
    played.play("POST", "/tasks/t0k/complete", "task completed")
    assert run("complete", "t0k", "--input", '"yes"').exit_code == 0
    assert run("complete", "t0k").exit_code == 0
    assert [each.body for each in played.asked] == [{"input": "yes"}, {}]
    assert played.asked[0].headers["authorization"].startswith("AWS4-HMAC-SHA256 ")


# --- what operators look at ---


def test_the_outbox_shows_what_redrive_takes_and_why_it_is_there(played, run):
    played.play("GET", "/outbox", (200, {"items": recorded("failed dispatches")["dispatches"]}))
    result = run("outbox", "--status", "failed", "--command", "start")
    assert played.asked[0].query == {"status": "failed", "command": "start", "limit": "50"}
    [item] = recorded("failed dispatches")["dispatches"]
    lines = result.stdout.splitlines()
    assert lines[0] == f"{item['owner_id']} {item['item_id']}"
    assert "send-receipt" in lines[1]
    assert result.stdout.rstrip().endswith(item["last_error"])
    assert fits(result.stdout)


def test_an_item_that_cannot_be_read_is_listed_too(played, run):
    played.play("GET", "/outbox", (200, {"items": [{"owner_id": "o", "item_id": "i", "attempts": 0}]}))
    result = run("outbox")
    assert result.exit_code == 0
    assert "cannot be read" in result.stdout


def test_dispatches_of_all_owners_are_those_that_failed(played, run):
    played.play("GET", "/dispatches", "failed dispatches")
    assert run("dispatches").exit_code == 0
    assert run("dispatches", "owner-1", "--status", "done").exit_code == 0
    assert [each.query for each in played.asked] == [
        {"status": "failed", "limit": "50"},
        {"owner_id": "owner-1", "status": "done", "limit": "50"},
    ]
    assert run("dispatches", "--status", "done").exit_code == 2


def test_incidents_of_an_instance_are_asked_for_by_its_id(played, run):
    played.play("GET", "/incidents", "incidents")
    assert run("incidents", "--instance", "i-1").exit_code == 0
    assert played.asked[0].query == {"instance_id": "i-1", "limit": "50"}


def test_an_instance_with_more_than_it_shows_names_the_commands(played, run):
    shown = {**recorded("faulted"), "more": ["incidents", "dispatches"]}
    played.play("GET", "/instances/i", (200, shown))
    told = run("get", "i").stderr
    assert f"aftercommit incidents --instance {shown['instance_id']} --all" in told
    assert f"aftercommit dispatches {shown['instance_id']} --all" in told


def test_dead_letters_show_what_replay_takes_and_why_they_are_there(played, run):
    played.play("GET", "/bookmark-queue/dead-letters", "dead letters")
    lines = run("dead-letters").stdout.splitlines()
    assert lines[0] == recorded("dead letters")["dead_letters"][0]["stimulus_id"]
    assert "nothing took it within 600 seconds" in lines[2]


def test_incidents_are_listed_with_their_instance(played, run):
    played.play("GET", "/incidents", "incidents")
    told = run("incidents").stdout
    assert "no-address\n" in told
    assert "ValueError: the parcel has no address" in told


@pytest.mark.parametrize("command", COMMANDS, ids=lambda each: each.name)
def test_no_two_parameters_of_a_command_share_a_name(command):
    names = [each.name for each in command.params]
    assert len(names) == len(set(names))


def test_help_names_every_command_and_version_is_told(run):
    told = run("--help").stdout
    for command in ("workflows", "start", "watch", "redrive", "replay", "init", "doctor"):
        assert f"  {command} " in told
    assert run("--version").stdout.startswith("aftercommit, version ")


def test_answers_keep_letters_of_any_language(played, run):
    played.play("GET", "/instances/x", "completed")
    assert "Zoë" in run("get", "x", "--json").stdout
    assert "Zoë" in run("get", "x").stdout
    assert json.loads(run("get", "x", "--json").stdout)["input"]["customer"] == "Zoë"
