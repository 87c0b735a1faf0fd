"""Watching an instance: its journal as it grows, its status, and an exit code that tells the ending."""

import json

import pytest

from aftercommit_cli import api
from tests.cli.played import recorded

QUICK = ("--interval", "0.05")


def as_of(name, **changes):
    return (200, {**recorded(name), **changes})


def revisions(*numbers):
    every = recorded("journal")["revisions"]
    return (200, {"revisions": [every[number - 1] for number in numbers]})


@pytest.mark.parametrize(
    ("name", "code", "told"),
    [
        ("completed", 0, '"tracking"'),
        ("faulted", 4, "ShippingFailed: shipping failed"),
        ("cancelled instance", 5, "cancelled"),
    ],
)
def test_the_exit_code_tells_how_it_ended(played, run, name, code, told):
    played.play("GET", "/instances/x", name)
    played.play("GET", "/instances/x/journal", "journal")
    result = run("watch", "x", *QUICK)
    assert result.exit_code == code
    assert told in result.stdout.splitlines()[-1]


def test_each_line_of_the_journal_is_told_once_and_a_status_when_it_changes(played, run):
    played.play("GET", "/instances/x/journal", revisions(), revisions(1), revisions(1), revisions(1, 2))
    played.play("GET", "/instances/x", "pending", *[as_of("pending", status="running")] * 2, "completed")
    result = run("watch", "x", *QUICK)
    assert result.exit_code == 0
    statuses = [line.split()[2] for line in result.stdout.splitlines()]
    assert statuses == [
        "pending",
        *("completed", "intended", "completed", "intended"),
        "running",
        "completed",
        "completed",
    ]


def test_on_a_terminal_the_status_is_a_line_that_changes_beside_the_journal(played, run):
    played.play("GET", "/instances/x", "suspended", "completed")
    played.play("GET", "/instances/x/journal", revisions(1))
    result = run("watch", "x", *QUICK, FORCE_COLOR="1", TERM="xterm")
    assert "suspended" in result.stderr
    assert "suspended" not in result.stdout
    assert "charge_card" in result.stdout


def test_what_it_waits_for_is_told(played, run):
    played.play("GET", "/instances/x", "suspended", "completed")
    played.play("GET", "/instances/x/journal", revisions())
    assert "suspended  task" in run("watch", "x", *QUICK).stdout


def test_a_journal_of_many_pages_is_followed_from_where_it_was_left(played, run):
    first, cursor = recorded("cut journal"), recorded("cut journal")["cursor"]
    played.play("GET", "/instances/x", "pending", "pending", "completed")
    played.play("GET", "/instances/x/journal", (200, first), revisions(), revisions(), revisions(2))
    result = run("watch", "x", *QUICK)
    assert "Completed" in result.stdout
    asked = [each.query.get("cursor") for each in played.asked if each.path.endswith("journal")]
    assert asked == [None, cursor, cursor, cursor]


def test_json_has_a_line_for_each_revision_and_a_last_one_for_the_instance(played, run):
    played.play("GET", "/instances/x", "pending", "completed")
    played.play("GET", "/instances/x/journal", revisions(1), revisions(1, 2))
    result = run("watch", "x", *QUICK, "--json")
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert lines == [*recorded("journal")["revisions"], recorded("completed")]


@pytest.mark.parametrize("away", [(502, b""), (503, {"message": "Service Unavailable"})])
def test_a_watch_outlives_an_api_that_is_away_for_a_moment(played, run, away):
    played.play("GET", "/instances/x", "pending", away, away, "completed")
    played.play("GET", "/instances/x/journal", revisions())
    result = run("watch", "x", *QUICK)
    assert result.exit_code == 0
    assert result.stderr.count("trying again") == 2


def test_a_watch_outlives_an_api_that_is_busy_for_longer(played, run, monkeypatch):
    monkeypatch.setattr(api, "PAUSES_SECONDS", (0.01,))
    busy = (503, {"error": {"code": "try_later", "message": "busy"}})
    played.play("GET", "/instances/x", *[busy] * 4, "completed")
    played.play("GET", "/instances/x/journal", revisions())
    assert run("watch", "x", *QUICK).exit_code == 0


def test_a_watch_ends_when_the_api_stays_away(played, run):
    played.play("GET", "/instances/x", (502, b""))
    assert run("watch", "x", *QUICK).exit_code == 3
    assert len(played.asked) == 5


def test_a_watch_of_nothing_is_refused(played, run):
    played.play("GET", "/instances/x", "not found")
    assert run("watch", "x").exit_code == 1


def test_a_watch_may_be_limited(played, run):
    played.play("GET", "/instances/x", "pending")
    played.play("GET", "/instances/x/journal", revisions())
    result = run("watch", "x", *QUICK, "--timeout", "0")
    assert result.exit_code == 6
    assert "not ended within 0 seconds" in result.stderr


@pytest.mark.parametrize("how", [(), ("--execute",)])
def test_a_start_can_be_watched(played, run, how):
    instance_id = recorded("dispatched")["instance_id"]
    played.play("POST", "/workflows/w/dispatch", "dispatched")
    played.play("POST", "/workflows/w/execute", as_of("pending", instance_id=instance_id))
    played.play("GET", f"/instances/{instance_id}", "faulted")
    played.play("GET", f"/instances/{instance_id}/journal", "journal")
    result = run("start", "w", "--watch", *how)
    assert result.exit_code == 4
    assert "charge_card" in result.stdout
