"""New projects."""

import shlex
from pathlib import Path

import click

from aftercommit_cli.call import Call, with_options
from aftercommit_cli.projects import make_project


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--name", metavar="NAME", help="Name of its stack, instead of the folder's")
@with_options
@click.pass_obj
def init(call: Call, *, folder: Path, name: str | None) -> None:
    """Make a new project in FOLDER: an example, its test, and a template that deploys. Overwrites nothing."""
    files = make_project(folder, name)
    call.output.answer(
        {"folder": str(folder), "files": files},
        lambda: call.output.say(
            f"{len(files)} files written. Its README.md has the next steps:\n\n"
            f"  cd {shlex.quote(str(folder))}\n  python -m pytest\n  sam build && sam deploy"
        ),
    )
