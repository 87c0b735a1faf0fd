"""What reaches workflows from outside: stimuli, events, and tasks that are done."""

from typing import Any

import click

from aftercommit_cli.call import Call, with_options
from aftercommit_cli.inputs import JSON, OBJECT, paged
from aftercommit_cli.output import coloured, instant, joined
from aftercommit_cli.text import plain


def _stimulus_options(function: Any) -> Any:
    options: list[tuple[tuple[str, ...], dict[str, Any]]] = [
        (("--payload",), {"type": OBJECT, "help": "What it is matched by: JSON, @FILE or -"}),
        (("--input", "value"), {"type": JSON, "help": "What it carries: JSON, @FILE or -"}),
        (("--correlation-id",), {"metavar": "ID", "help": "Only for instances with this one"}),
        (("--instance-id",), {"metavar": "ID", "help": "Only for this instance"}),
    ]
    for names, more in reversed(options):
        function = click.option(*names, **more)(function)
    return function


def _body(payload: Any, value: Any, names: dict[str, str | None]) -> dict[str, Any]:
    given = {"payload": payload, "input": value, **names}
    return {name: each for name, each in given.items() if each is not None}


def _tell_sent(call: Call, answer: dict[str, Any]) -> None:
    call.output.answer(answer, lambda: call.output.say(answer["stimulus_id"]))


@click.command()
@click.argument("name")
@_stimulus_options
@with_options
@click.pass_obj
def stimulus(call: Call, /, *, name: str, payload: Any, value: Any, **names: str | None) -> None:
    """Send the stimulus NAME: it resumes what waits for it, and starts what starts at it."""
    _tell_sent(call, call.api.post("stimuli", body={"name": name, **_body(payload, value, names)}))


@click.command()
@click.argument("name")
@_stimulus_options
@with_options
@click.pass_obj
def event(call: Call, /, *, name: str, payload: Any, value: Any, **names: str | None) -> None:
    """Publish the event NAME: the stimulus that Event activities wait for."""
    _tell_sent(call, call.api.post("events", name, body=_body(payload, value, names)))


@click.command()
@click.argument("task", metavar="TOKEN")
@click.option("--input", "value", type=JSON, help="Its result: JSON, @FILE or -")
@with_options
@click.pass_obj
def complete(call: Call, *, task: str, value: Any) -> None:
    """Complete the task of TOKEN, which `aftercommit get` shows."""
    answer = call.api.post("tasks", task, "complete", body={} if value is None else {"input": value})
    call.output.answer(answer, lambda: call.output.say("completed"))


def _told(each: dict[str, Any]) -> tuple[str, list[Any]]:
    said = joined(
        coloured(each["status"]),
        plain(each.get("name", "cannot be read")),
        instant(each["created_at"]),
        f"attempts {each['attempts']}",
    )
    return each["stimulus_id"], [said, plain(each.get("last_error", ""))]


@click.command("dead-letters")
@click.argument("dead_letter", required=False, metavar="[STIMULUS]")
@paged
@with_options
@click.pass_obj
def dead_letters(call: Call, *, dead_letter: str | None, limit: int | None) -> None:
    """List the stimuli that nothing took in time or that kept failing, oldest first; or show STIMULUS."""
    if dead_letter:
        answer = call.api.get("bookmark-queue", "dead-letters", dead_letter)
        rows = [_told(answer)]
    else:
        answer = call.api.page("dead_letters", "bookmark-queue", "dead-letters", limit=limit)
        rows = [_told(each) for each in answer["dead_letters"]]
    call.output.answer(answer, lambda: call.output.records(rows, none="No dead letters."))
    call.output.more(answer)
