"""One instance, shown whole or followed until it ends."""

import json
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from rich.text import Text

from aftercommit_cli.api import PAGE_MAX
from aftercommit_cli.call import Call
from aftercommit_cli.errors import CANCELLED, FAULTED, TIME_UP, ProblemError
from aftercommit_cli.output import coloured, failure, instant, joined
from aftercommit_cli.text import plain

_EXIT_CODES = {"completed": 0, "faulted": FAULTED, "cancelled": CANCELLED}
# So many polls in a row may fail before a watch gives up.
_FAILURES_MAX = 5


def exit_code_of(status: str) -> int:
    """Return the exit code that tells how an instance has ended; 0 while it has not."""
    return _EXIT_CODES.get(status, 0)


def show_instance(call: Call, shown: dict[str, Any]) -> None:
    """Tell what the API says about an instance."""
    parent = shown.get("parent") or {}
    call.output.fields(
        [
            ("instance", plain(shown["instance_id"])),
            ("workflow", plain(f"{shown['definition_id']} version {shown['version']}")),
            ("status", coloured(shown["status"])),
            ("waits for", _waits(shown)),
            ("failure", failure(shown["failure"]) if shown.get("failure") else None),
            ("created", instant(shown["created_at"])),
            ("updated", instant(shown["updated_at"])),
            ("ended", instant(shown.get("ended_at"))),
            ("correlation", plain(shown["correlation_id"]) if shown.get("correlation_id") else None),
            ("parent", plain(parent["instance_id"]) if parent.get("instance_id") else None),
            *((name, _as_json(shown.get(name))) for name in ("input", "variables", "output")),
        ]
    )
    for title, lines in (
        ("dispatches", [_dispatch(each) for each in shown.get("dispatches", [])]),
        ("tasks", [_task(each) for each in shown.get("bookmarks", []) if each.get("token")]),
        ("incidents", [_incident(each) for each in shown.get("incidents", [])]),
    ):
        if lines:
            call.output.say(f"\n{title}")
        for line in lines:
            call.output.say(line)
    options = {"dispatches": "dispatches", "incidents": "incidents --instance"}
    for name in shown.get("more", []):
        call.output.remark(
            f"... more: aftercommit {options.get(name, name)} {plain(shown['instance_id'])} --all"
        )


def _as_json(value: Any) -> str | None:
    return None if value in (None, {}) else plain(json.dumps(value, ensure_ascii=False))


def _waits(shown: dict[str, Any]) -> str:
    counts = Counter(each["waits_for"] for each in shown.get("bookmarks", []))
    return ", ".join(f"{kind} x {count}" if count > 1 else kind for kind, count in sorted(counts.items()))


def _dispatch(each: dict[str, Any]) -> Text:
    what = plain(each.get("definition_id", ""))
    return joined(
        f"  {plain(each['instance_id'])}", coloured(each["status"]), what, plain(each.get("last_error", ""))
    )


def _task(each: dict[str, Any]) -> str:
    inputs = _as_json(each.get("inputs")) or "{}"
    return f"  {plain(each['activity_id'])}  inputs {inputs}\n    token {each['token']}"


def _incident(each: dict[str, Any]) -> str:
    return f"  {instant(each['created_at'])}  {plain(each.get('activity_id', ''))}  {failure(each['error'])}"


def journal_line(line: dict[str, Any]) -> Text:
    """Return a line of a journal."""
    attempt = f"attempt {line['attempt']}" if line.get("attempt", 1) > 1 else ""
    child = f"instance {plain(line['instance_id'])}" if line.get("instance_id") else ""
    return joined(
        instant(line.get("at")),
        coloured(f"{line['status']:9}"),
        plain(line.get("activity_id", "")),
        plain(line.get("activity") or line.get("type", "")),
        plain(line.get("outcome", "")),
        attempt,
        child,
        failure(line["error"]) if line.get("error") else "",
    )


class _Follower:
    """Reads an instance and what its journal has got since the last time."""

    def __init__(self, call: Call, instance_id: str) -> None:
        self._api = call.api
        self._instance_id = instance_id
        self._cursor: str | None = None
        self._seen = 0

    def read(self) -> dict[str, Any]:
        shown: dict[str, Any] = self._api.get("instances", self._instance_id)
        return shown

    def new_revisions(self) -> Iterator[dict[str, Any]]:
        while True:
            page = self._api.get(
                "instances", self._instance_id, "journal", limit=str(PAGE_MAX), cursor=self._cursor
            )
            for revision in page["revisions"]:
                if revision["revision"] > self._seen:
                    yield revision
                    self._seen = revision["revision"]
            if "cursor" not in page:
                return
            self._cursor = page["cursor"]


def watch_instance(call: Call, instance_id: str, *, interval: float = 1, timeout: float | None = None) -> int:
    """Follow an instance until it ends, and return the exit code that tells how."""
    follower = _Follower(call, instance_id)
    started = time.monotonic()
    told, failures = "", 0
    output = call.output
    # The line is drawn on terminals only; the rest is the same everywhere.
    with output.aside.status(f"{plain(instance_id)} ...") as line:
        while True:
            try:
                # In this order: of an instance that has ended, the journal is then whole.
                shown = follower.read()
                for revision in follower.new_revisions():
                    _tell_revision(call, revision)
            except ProblemError as error:
                failures += 1
                if failures == _FAILURES_MAX or not error.is_passing:
                    raise
                output.remark(f"{error.message}; trying again")
            else:
                failures = 0
                line.update(joined(plain(instance_id), coloured(shown["status"]), _waits(shown)))
                if shown["status"] in _EXIT_CODES:
                    _tell_end(call, shown)
                    return _EXIT_CODES[shown["status"]]
                told = _tell_change(call, shown, told)
            if timeout is not None and time.monotonic() - started >= timeout:
                output.remark(f"not ended within {timeout:g} seconds")
                return TIME_UP
            time.sleep(interval)


def _tell_revision(call: Call, revision: dict[str, Any]) -> None:
    if call.as_json:
        call.output.json_line(revision)
        return
    for line in revision["activities"]:
        call.output.say(journal_line(line))


def _tell_change(call: Call, shown: dict[str, Any], told: str) -> str:
    """Tell a status once, where no live line shows it."""
    now = f"{shown['status']} {_waits(shown)}"
    if now != told and not call.as_json and not call.output.aside.is_terminal:
        call.output.say(joined(instant(shown["updated_at"]), coloured(shown["status"]), _waits(shown)))
    return now


def _tell_end(call: Call, shown: dict[str, Any]) -> None:
    if call.as_json:
        call.output.json_line(shown)
        return
    result = failure(shown["failure"]) if shown.get("failure") else _as_json(shown.get("output")) or ""
    call.output.say(joined(instant(shown.get("ended_at")), coloured(shown["status"]), result))
