"""Doing one thing to many rows: shown first, asked for, with a bar, and told one by one what was refused."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from aftercommit_cli.call import Call
from aftercommit_cli.errors import INTERRUPTED, REFUSED, ProblemError, RefusedError

Row = dict[str, Any]


@dataclass(frozen=True)
class Deed:
    """What is done: its words, how a row is named, the call, and for a dry run why a row would be refused."""

    verb: str
    done: str
    one: str
    many: str
    keys: tuple[str, ...]
    act: Callable[[Row], Any]
    find_refusal: Callable[[Row], str | None] = lambda _: None

    def name(self, row: Row) -> str:
        """Return a row's ids, as the command takes them."""
        return " ".join(str(row[key]) for key in self.keys)

    def ids(self, row: Row) -> Row:
        """Return a row's ids by name."""
        return {key: row[key] for key in self.keys}

    def count(self, number: int) -> str:
        """Return a number of rows in words."""
        return f"{number} {self.one if number == 1 else self.many}"


@dataclass
class _Tally:
    done: list[Any] = field(default_factory=list)
    refused: list[Row] = field(default_factory=list)
    left: int = 0


def do_all(call: Call, deed: Deed, rows: Sequence[Row], *, dry_run: bool, yes: bool) -> int:
    """Do a deed to each row, and return the exit code: 1 if one was refused.

    A row's refusal stops no other. What was done before an interruption, or before the API was lost, is told.
    A dry run judges by what the rows say, and has the exit code that the deed would have.
    """
    output = call.output
    if dry_run:
        return _tell_dry_run(call, deed, rows)
    if not output.as_json:
        for row in rows:
            output.say(f"{deed.verb}  {deed.name(row)}")
    if not rows:
        none: Row = {deed.done: [], "refused": []}
        output.answer(none, lambda: output.remark(f"{deed.count(0)} matched."))
        return 0
    if not yes:
        click.confirm(f"{deed.verb.capitalize()} {deed.count(len(rows))}?", abort=True, err=True)
    tally = _Tally(left=len(rows))
    problem: BaseException | None = None
    try:
        _do(call, deed, rows, tally)
    except (KeyboardInterrupt, ProblemError) as error:
        problem = error
    _tell(call, deed, tally)
    if isinstance(problem, ProblemError):
        raise problem
    if problem:
        return INTERRUPTED
    return REFUSED if tally.refused else 0


def _tell_dry_run(call: Call, deed: Deed, rows: Sequence[Row]) -> int:
    output = call.output
    judged = [(row, deed.find_refusal(row)) for row in rows]

    def tell() -> None:
        for row, reason in judged:
            would = f"would be refused  {deed.name(row)}  {reason}" if reason else None
            output.say(would or f"would be {deed.done}  {deed.name(row)}")
        output.remark(f"{deed.count(len(rows))} matched.")

    answer: Row = {
        f"would_be_{deed.done}": [deed.ids(row) for row, reason in judged if not reason],
        "would_be_refused": [{**deed.ids(row), "reason": reason} for row, reason in judged if reason],
    }
    output.answer(answer, tell)
    return REFUSED if answer["would_be_refused"] else 0


def _do(call: Call, deed: Deed, rows: Sequence[Row], tally: _Tally) -> None:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    console = call.output.aside
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        for row in progress.track(rows, description=deed.verb):
            try:
                tally.done.append(deed.act(row))
            except RefusedError as error:
                tally.refused.append({**deed.ids(row), "error": error.error})
            tally.left -= 1


def _tell(call: Call, deed: Deed, tally: _Tally) -> None:
    output = call.output

    def tell() -> None:
        for each in tally.refused:
            field_name = f"{each['error']['field']}: " if each["error"].get("field") else ""
            output.say(f"refused  {deed.name(each)}  {field_name}{each['error'].get('message', '')}")
        left = f", {tally.left} not tried" if tally.left else ""
        output.say(f"{len(tally.done)} {deed.done}, {len(tally.refused)} refused{left}")

    answer: Row = {deed.done: tally.done, "refused": tally.refused}
    output.answer({**answer, "not_tried": tally.left} if tally.left else answer, tell)
