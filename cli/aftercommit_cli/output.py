"""Answers for people (tables and records of at most 80 columns where no terminal is wider) or as JSON."""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import click
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from aftercommit_cli.text import plain

_STYLES = {
    "completed": "green",
    "done": "green",
    "ok": "green",
    "running": "cyan",
    "pending": "cyan",
    "undone": "cyan",
    "open": "cyan",
    "suspended": "yellow",
    "retrying": "yellow",
    "warning": "yellow",
    "cancelled": "magenta",
    "failed": "red",
    "faulted": "red",
    "raised": "red",
    "dead": "red",
}
_SECONDS_OF_DAY = 86_400
_SECONDS_OF_HOUR = 3_600
_SECONDS_OF_MINUTE = 60
_TO_MINUTES = len("2026-01-01T00:00")
_TO_SECONDS = len("2026-01-01T00:00:00")


def coloured(status: Any) -> Text:
    """Return a status in its colour."""
    return Text(plain(status), style=_STYLES.get(str(status).strip(), ""))


def instant(value: Any, *, seconds: bool = True) -> str:
    """Return an instant (UTC) as people read it; nothing for none."""
    return plain(value)[: _TO_SECONDS if seconds else _TO_MINUTES].replace("T", " ") if value else ""


def duration(seconds: float) -> str:
    """Return a length of time in its largest unit."""
    for unit, size in (("d", _SECONDS_OF_DAY), ("h", _SECONDS_OF_HOUR), ("min", _SECONDS_OF_MINUTE)):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def failure(value: Any) -> str:
    """Return a failure as `type: message`."""
    if not isinstance(value, dict):
        return plain(value)
    return plain(f"{value.get('type', 'error')}: {value.get('message', '')}")


class Output:
    """Where a command's answers go."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self.console = Console(highlight=False, markup=False, emoji=False)
        # What is no answer: questions, bars, remarks.
        self.aside = Console(highlight=False, markup=False, emoji=False, stderr=True)

    def answer(self, body: Any, tell: Callable[[], None]) -> None:
        """Print an answer: as it is where JSON is asked for, else as `tell` does."""
        if self.as_json:
            click.echo(json.dumps(body, indent=2, ensure_ascii=False))
        else:
            tell()

    def json_line(self, value: Any) -> None:
        """Print a value as one line of JSON, at once."""
        click.echo(json.dumps(value, ensure_ascii=False))

    def say(self, text: str | Text) -> None:
        """Print a line."""
        self.console.print(plain(text) if isinstance(text, str) else text, soft_wrap=True)

    def wrapped(self, text: str | Text, *, indent: int = 0) -> None:
        """Print prose, wrapped, with all its lines indented."""
        self.console.print(
            Padding(plain(text) if isinstance(text, str) else text, (0, 0, 0, indent), expand=False)
        )

    def remark(self, text: str) -> None:
        """Print a line that is no part of the answer."""
        self.aside.print(plain(text), soft_wrap=True)

    def table(self, names: Sequence[str], rows: Iterable[Sequence[str | Text]], *, none: str) -> None:
        """Print a table; what does not fit is folded, never cut."""
        table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
        for name in names:
            table.add_column(name, overflow="fold")
        for row in rows:
            table.add_row(*row)
        if table.row_count:
            self.console.print(table)
        else:
            self.remark(none)

    def records(self, rows: Iterable[tuple[str, Sequence[str | Text]]], *, none: str) -> None:
        """Print for each row its ids, whole and ready to be copied, and under them what there is to know."""
        empty = True
        for ids, parts in rows:
            empty = False
            # Not wrapped here: a terminal that wraps a long id still copies it whole.
            self.console.print(Text(plain(ids), style="bold"), soft_wrap=True)
            for part in parts:
                if part:
                    self.wrapped(part, indent=2)
        if empty:
            self.remark(none)

    def fields(self, pairs: Iterable[tuple[str, str | Text | None]]) -> None:
        """Print names and values; those without a value are left out."""
        table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
        table.add_column(style="bold")
        table.add_column(overflow="fold")
        for name, value in pairs:
            if value:
                table.add_row(name, value)
        self.console.print(table)

    def more(self, answer: dict[str, Any]) -> None:
        """Say that a list goes on, if it does."""
        if answer.get("cursor") and not self.as_json:
            self.remark("... there is more: --all, or a higher --limit")


def joined(*parts: str | Text | None) -> Text:
    """Return parts side by side; those that are empty are left out."""
    return Text("  ").join(Text(part) if isinstance(part, str) else part for part in parts if part)
