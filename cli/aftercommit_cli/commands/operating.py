"""What operators look at, and their second tries."""

from typing import Any

import click

from aftercommit_cli.again import Deed, do_all
from aftercommit_cli.call import Call, with_options
from aftercommit_cli.inputs import paged
from aftercommit_cli.output import coloured, duration, failure, instant, joined
from aftercommit_cli.text import plain


def _told_item(each: dict[str, Any]) -> tuple[str, list[Any]]:
    age = each.get("age")
    first = joined(
        coloured(each.get("status", "cannot be read")),
        plain(each.get("command", "")),
        plain(each.get("definition_id", "")),
        f"attempts {each['attempts']}",
        f"age {duration(age)}" if age is not None else instant(each.get("created_at")),
        f"due {instant(each['due_at'])}" if each.get("due_at") else "",
    )
    starts = "starts " if each.get("command") == "start" else ""
    instance = f"{starts}instance {plain(each['instance_id'])}" if each.get("instance_id") else ""
    return f"{each['owner_id']} {each['item_id']}", [first, instance, plain(each.get("last_error", ""))]


@click.command()
@click.option(
    "--status", type=click.Choice(["pending", "failed"]), default="pending", show_default=True, help="Which"
)
@click.option("--command", metavar="NAME", help="Only of this kind: start, resume, cancel, stimulus, ...")
@paged
@with_options
@click.pass_obj
def outbox(call: Call, *, status: str, command: str | None, limit: int | None) -> None:
    """List what is still to be delivered, or what was given up: age, attempts, last error."""
    answer = call.api.page("items", "outbox", limit=limit, status=status, command=command)
    rows = [_told_item(each) for each in answer["items"]]
    call.output.answer(answer, lambda: call.output.records(rows, none="No such items."))
    call.output.more(answer)


@click.command()
@click.argument("owner", required=False)
@click.argument("item", required=False)
@click.option(
    "--status",
    type=click.Choice(["undone", "done", "failed", "cancelled"]),
    help="Only those with this status",
)
@paged
@with_options
@click.pass_obj
def dispatches(
    call: Call, *, owner: str | None, item: str | None, status: str | None, limit: int | None
) -> None:
    """List the dispatches of the instance OWNER, or show one of them; without OWNER, all that failed.

    Of these, those that a parent waited for are left out: it was told, and has gone on.
    """
    if item:
        answer = call.api.get("dispatches", owner or "", item)
        rows = [_told_item(answer)]
    else:
        wanted = status or (None if owner else "failed")
        if not owner and wanted != "failed":
            raise click.UsageError("give an OWNER: across all owners, only failed dispatches are listed")
        answer = call.api.page("dispatches", "dispatches", limit=limit, owner_id=owner, status=wanted)
        rows = [_told_item(each) for each in answer["dispatches"]]
    call.output.answer(answer, lambda: call.output.records(rows, none="No such dispatches."))
    call.output.more(answer)


@click.command()
@click.option("--instance", metavar="ID", help="Only those of this instance, all of them")
@paged
@with_options
@click.pass_obj
def incidents(call: Call, *, instance: str | None, limit: int | None) -> None:
    """List recorded faults of all instances, newest first."""
    answer = call.api.page("incidents", "incidents", limit=limit, instance_id=instance)
    rows: list[tuple[str, list[Any]]] = [
        (
            each["instance_id"],
            [
                joined(instant(each["created_at"]), plain(each.get("activity_id", ""))),
                failure(each["error"]),
            ],
        )
        for each in answer["incidents"]
    ]
    call.output.answer(answer, lambda: call.output.records(rows, none="No incidents."))
    call.output.more(answer)


def _repeating(function: Any) -> Any:
    options: list[tuple[tuple[str, ...], dict[str, Any]]] = [
        (("--all", "every"), {"is_flag": True, "help": "All that match, instead of one"}),
        (("--dry-run",), {"is_flag": True, "help": "Only show what would be done"}),
        (("--yes",), {"is_flag": True, "help": "Do not ask"}),
    ]
    for names, more in reversed(options):
        function = click.option(*names, **more)(function)
    return function


def _find_refusal_to_redrive(row: dict[str, Any]) -> str | None:
    if row.get("status") not in (None, "failed"):  # of one that cannot be read, it may be missing
        return f"it is {row['status']}"
    return "its owner waited for it, and was told that it failed" if row.get("wait") else None


def _find_refusal_to_replay(row: dict[str, Any]) -> str | None:
    return f"replayed already, as {row['replayed_as']}" if row.get("replayed_as") else None


@click.command()
@click.argument("owner", required=False)
@click.argument("item", required=False)
@_repeating
@click.option("--workflow", metavar="NAME", help="With --all: only dispatches of this workflow")
@with_options
@click.pass_obj
def redrive(
    call: Call,
    *,
    owner: str | None,
    item: str | None,
    every: bool,
    dry_run: bool,
    yes: bool,
    workflow: str | None,
) -> None:
    """Try a failed dispatch again, under its old id: that of OWNER and ITEM, or --all."""
    if every == bool(owner and item) or (every and owner) or (workflow and not every):
        raise click.UsageError("give OWNER and ITEM, or --all (with --workflow, if you like)")
    deed = Deed(
        "redrive",
        "redriven",
        "failed dispatch",
        "failed dispatches",
        ("owner_id", "item_id"),
        lambda row: call.api.post("dispatches", row["owner_id"], row["item_id"], "redrive"),
        _find_refusal_to_redrive,
    )
    if every:
        found = call.api.rows("dispatches", "dispatches", status="failed")
        # One among them may have been set aside and told to the owner that waited: it cannot be redriven.
        rows = [row for row in found if workflow in (None, row.get("definition_id")) and not row.get("wait")]
    elif dry_run:
        rows = [call.api.get("dispatches", owner or "", item or "")]
    else:
        answer = call.api.post("dispatches", owner or "", item or "", "redrive")
        call.output.answer(answer, lambda: call.output.say(f"redriven  {owner} {item}"))
        return
    click.get_current_context().exit(do_all(call, deed, rows, dry_run=dry_run, yes=yes))


@click.command()
@click.argument("dead_letter", required=False, metavar="[STIMULUS]")
@_repeating
@click.option("--name", help="With --all: only stimuli of this name (an event's is event:NAME)")
@with_options
@click.pass_obj
def replay(
    call: Call, *, dead_letter: str | None, every: bool, dry_run: bool, yes: bool, name: str | None
) -> None:
    """Send a dead letter again, once: that of STIMULUS, or --all."""
    if every == bool(dead_letter) or (name and not every):
        raise click.UsageError("give a STIMULUS, or --all (with --name, if you like)")
    deed = Deed(
        "replay",
        "replayed",
        "dead letter",
        "dead letters",
        ("stimulus_id",),
        lambda row: call.api.post("bookmark-queue", "dead-letters", row["stimulus_id"], "replay"),
        _find_refusal_to_replay,
    )
    if every:
        found = call.api.rows("dead_letters", "bookmark-queue", "dead-letters")
        rows = [row for row in found if name in (None, row.get("name"))]
    elif dry_run:
        rows = [call.api.get("bookmark-queue", "dead-letters", dead_letter or "")]
    else:
        answer = call.api.post("bookmark-queue", "dead-letters", dead_letter or "", "replay")
        call.output.answer(answer, lambda: call.output.say(f"replayed as  {answer['stimulus_id']}"))
        return
    click.get_current_context().exit(do_all(call, deed, rows, dry_run=dry_run, yes=yes))
