"""What can be started, and starting it."""

import json
import uuid
from typing import Any

import click

from aftercommit_cli.call import Call, with_options
from aftercommit_cli.inputs import OBJECT, paged
from aftercommit_cli.output import instant
from aftercommit_cli.text import plain
from aftercommit_cli.watching import exit_code_of, show_instance, watch_instance


@click.command()
@click.argument("workflow", required=False)
@click.option("--version", type=click.IntRange(min=1), help="Another version than the published one")
@paged
@with_options
@click.pass_obj
def workflows(call: Call, *, workflow: str | None, version: int | None, limit: int | None) -> None:
    """List what can be started, or show WORKFLOW's definition."""
    if workflow is None:
        if version is not None:
            raise click.BadOptionUsage("version", "--version needs a WORKFLOW")
        answer = call.api.page("workflows", "workflows", limit=limit)
        rows = [
            (plain(each["id"]), str(each["version"]), instant(each["published_at"]))
            for each in answer["workflows"]
        ]
        call.output.answer(
            answer,
            lambda: call.output.table(
                ("WORKFLOW", "VERSION", "PUBLISHED (UTC)"), rows, none="No workflow is published."
            ),
        )
        call.output.more(answer)
        return
    definition = call.api.get("workflows", workflow, version=str(version) if version else None)
    call.output.answer(definition, lambda: _tell_definition(call, definition))


def _tell_definition(call: Call, definition: dict[str, Any]) -> None:
    versions = ", ".join(str(each) for each in definition.get("versions", []))
    call.output.fields(
        [
            ("workflow", plain(definition["id"])),
            ("version", str(definition["version"])),
            ("published", str(definition.get("published_version") or "none")),
            ("versions", versions),
        ]
    )
    for name in ("inputs", "root", "output", "options"):
        if definition.get(name) is not None:
            call.output.say(f"\n{name}")
            call.output.say(json.dumps(definition[name], indent=2, ensure_ascii=False))


@click.command()
@click.argument("workflow")
@click.option("--input", "value", type=OBJECT, help="Its input: JSON, @FILE, or - for standard input")
@click.option("--correlation-id", metavar="ID", help="An id under which this and its children are found")
@click.option("--instance-id", metavar="ID", help="The instance's id, instead of a new one")
@click.option(
    "--idempotency-key",
    metavar="KEY",
    help="A key under which this is started once, however often it is sent",
)
@click.option("--channel", metavar="NAME", help="The queue to start it through")
@click.option("--execute", is_flag=True, help="Run it now, and show it when it waits or has ended")
@click.option("--watch", is_flag=True, help="Watch it until it ends (see: aftercommit watch)")
@with_options
@click.pass_obj
def start(
    call: Call,
    /,
    *,
    workflow: str,
    value: dict[str, Any] | None,
    idempotency_key: str | None,
    execute: bool,
    watch: bool,
    **names: str | None,
) -> None:
    """Start WORKFLOW, in the background unless told otherwise."""
    body = {"input": value or {}, **{name: text for name, text in names.items() if text is not None}}
    # One key for all tries of this call, so that an answer that was lost starts nothing twice. An id of the
    # caller's own does the same, and the API takes one of the two.
    if idempotency_key is None and names["instance_id"] is None:
        idempotency_key = str(uuid.uuid4())
    key = {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
    if execute:
        shown = call.api.post("workflows", workflow, "execute", body=body, headers=key)
        if not watch:
            call.output.answer(shown, lambda: show_instance(call, shown))
            click.get_current_context().exit(exit_code_of(shown["status"]))
        instance_id = shown["instance_id"]
    else:
        answer = call.api.post("workflows", workflow, "dispatch", body=body, headers=key)
        instance_id = answer["instance_id"]
        if not watch:
            call.output.answer(answer, lambda: call.output.say(instance_id))
            return
    click.get_current_context().exit(watch_instance(call, instance_id))
