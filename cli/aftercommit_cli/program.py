"""The program: its commands, its shared options, and no traceback for anybody."""

import os
import sys
from typing import Any

import click
from botocore.exceptions import BotoCoreError, ClientError

from aftercommit_cli.account import explain
from aftercommit_cli.call import with_options
from aftercommit_cli.commands.health import doctor
from aftercommit_cli.commands.instances import cancel, get, list_, watch
from aftercommit_cli.commands.operating import dispatches, incidents, outbox, redrive, replay
from aftercommit_cli.commands.projects import init
from aftercommit_cli.commands.signals import complete, dead_letters, event, stimulus
from aftercommit_cli.commands.workflows import start, workflows
from aftercommit_cli.errors import INTERRUPTED, ProblemError

COMMANDS = (
    workflows,
    start,
    get,
    watch,
    list_,
    cancel,
    stimulus,
    event,
    complete,
    outbox,
    dispatches,
    redrive,
    dead_letters,
    replay,
    incidents,
    init,
    doctor,
)


class Program(click.Group):
    """A group of commands, in the order of a day's work, that ends every failure with one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the commands' names in their order here."""
        return [str(command.name) for command in COMMANDS]

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; whatever it raises becomes a line and an exit code."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except KeyboardInterrupt:
            click.echo("Stopped.", err=True)
            sys.exit(INTERRUPTED)
        except (BotoCoreError, ClientError) as error:
            raise explain(error) from error
        except Exception as error:
            if os.environ.get("AFTERCOMMIT_DEBUG"):
                raise
            raise ProblemError(
                f"unexpected: {type(error).__name__}: {error}\n(AFTERCOMMIT_DEBUG=1 shows where)"
            ) from error


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="aftercommit", prog_name="aftercommit")
@with_options
def program() -> None:
    """Durable workflows on AWS: start and watch them, look after a stack, begin a project.

    Exit codes: 0 done, 1 refused, 2 wrong usage, 3 not reached; a watch tells how its instance has ended.
    """


for _command in COMMANDS:
    program.add_command(_command)
