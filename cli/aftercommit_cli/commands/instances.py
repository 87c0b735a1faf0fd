"""Instances: shown, listed, watched and cancelled."""

import click

from aftercommit_cli.again import Deed, do_all
from aftercommit_cli.call import Call, with_options
from aftercommit_cli.errors import REFUSED, RefusedError
from aftercommit_cli.inputs import paged
from aftercommit_cli.output import coloured, instant
from aftercommit_cli.text import plain
from aftercommit_cli.watching import journal_line, show_instance, watch_instance

STATUSES = ("pending", "running", "suspended", "completed", "faulted", "cancelled")


@click.command()
@click.argument("instance")
@click.option("--journal", is_flag=True, help="What it did, instead of how it is")
@with_options
@click.pass_obj
def get(call: Call, *, instance: str, journal: bool) -> None:
    """Show INSTANCE."""
    if not journal:
        shown = call.api.get("instances", instance)
        call.output.answer(shown, lambda: show_instance(call, shown))
        return
    answer = call.api.page("revisions", "instances", instance, "journal", limit=None)

    def tell() -> None:
        for revision in answer["revisions"]:
            for line in revision["activities"]:
                call.output.say(journal_line(line))

    call.output.answer(answer, tell)


@click.command("list")
@click.option("--workflow", metavar="NAME", help="Instances of this workflow ...")
@click.option("--correlation-id", metavar="ID", help="... or with this correlation id")
@click.option("--status", type=click.Choice(STATUSES), help="Only those with this status")
@paged
@with_options
@click.pass_obj
def list_(
    call: Call, *, workflow: str | None, correlation_id: str | None, status: str | None, limit: int | None
) -> None:
    """List instances, newest first."""
    if (workflow is None) == (correlation_id is None):
        raise click.UsageError("give one of --workflow and --correlation-id")
    answer = call.api.page(
        "instances",
        "instances",
        limit=limit,
        definition_id=workflow,
        correlation_id=correlation_id,
        status=status,
    )
    rows = [
        (
            plain(each["instance_id"]),
            plain(each["definition_id"]),
            coloured(each["status"]),
            instant(each["created_at"], seconds=False),
        )
        for each in answer["instances"]
    ]
    names = ("INSTANCE", "WORKFLOW", "STATUS", "CREATED (UTC)")
    call.output.answer(answer, lambda: call.output.table(names, rows, none="No instances."))
    call.output.more(answer)


@click.command()
@click.argument("instance")
@click.option(
    "--interval",
    type=click.FloatRange(min=0.05),
    default=1,
    show_default=True,
    metavar="SECONDS",
    help="Time between two looks",
)
@click.option("--timeout", type=click.FloatRange(min=0), metavar="SECONDS", help="Stop watching after this")
@with_options
@click.pass_obj
def watch(call: Call, *, instance: str, interval: float, timeout: float | None) -> None:
    """Follow INSTANCE until it ends.

    The exit code tells how: 0 completed, 4 faulted, 5 cancelled, 6 not within --timeout. With --json, a
    line for each revision, and a last one for the instance.
    """
    code = watch_instance(call, instance, interval=interval, timeout=timeout)
    click.get_current_context().exit(code)


@click.command()
@click.argument("instances", nargs=-1, required=True, metavar="INSTANCE...")
@with_options
@click.pass_obj
def cancel(call: Call, *, instances: tuple[str, ...]) -> None:
    """Cancel each INSTANCE, and the children that it waits for; what has ended stays as it is.

    With --json, the answer for one; for several an object of those `cancelled` and those `refused`.
    """
    if call.as_json and len(instances) > 1:
        rows = [{"instance_id": each} for each in instances]
        click.get_current_context().exit(do_all(call, _cancelling(call), rows, dry_run=False, yes=True))
    refused = 0
    for instance in instances:
        try:
            answer = call.api.post("instances", instance, "cancel")
        except RefusedError as error:
            if len(instances) == 1:
                raise
            refused += 1
            call.output.remark(f"{instance}  {error.message}")
            continue
        told = "cancelled" if answer["cancelled"] else "had ended already"
        call.output.answer(answer, lambda name=instance, told=told: call.output.say(f"{name}  {told}"))  # type: ignore[misc]
    click.get_current_context().exit(REFUSED if refused else 0)


def _cancelling(call: Call) -> Deed:
    return Deed(
        "cancel",
        "cancelled",
        "instance",
        "instances",
        ("instance_id",),
        lambda row: call.api.post("instances", row["instance_id"], "cancel"),
    )
