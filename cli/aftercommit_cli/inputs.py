"""JSON that a caller gives: on the command line, in a file, or on standard input."""

import functools
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click


class JsonType(click.ParamType):
    """JSON as it stands, `@FILE` for a file's, `-` for that of standard input."""

    name = "json"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read the JSON; a click.BadParameter says what is wrong and where."""
        if not isinstance(value, str):
            return value
        text, where = value, "it"
        if value in ("-", "@-"):
            text, where = sys.stdin.read(), "standard input"
        elif value.startswith("@"):
            where = value[1:]
            try:
                text = Path(where).read_text(encoding="utf-8")
            except OSError as error:
                self.fail(f"cannot read {where}: {error.strerror}", param, ctx)
            except UnicodeDecodeError:
                self.fail(f"{where} is not UTF-8", param, ctx)
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            reason = f"{where} is no JSON ({error})"
            hint = "" if where != "it" else f"; a text needs quotes: '{json.dumps(value)[:60]}'"
            self.fail(reason + hint, param, ctx)


class ObjectType(JsonType):
    """The same, and an object."""

    name = "json object"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read the object."""
        found = super().convert(value, param, ctx)
        if not isinstance(found, dict):
            self.fail("must be a JSON object: {...}", param, ctx)
        return found


JSON = JsonType()
OBJECT = ObjectType()


def paged(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a list; the command gets `limit`: a number, or None for all."""

    @click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="Rows at most")
    @click.option("--all", "every", is_flag=True, help="Every row, however many there are")
    @functools.wraps(function)
    def limited(*arguments: Any, limit: int, every: bool, **more: Any) -> None:
        function(*arguments, limit=None if every else limit, **more)

    return limited
