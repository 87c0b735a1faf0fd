"""What a page of the documentation shows: its fenced blocks, in order, and the commands in them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"

# Commands of the program that only ask: what they print changes with time, and asking again changes nothing.
ASKING = ("workflows", "get", "watch", "list", "incidents", "dispatches", "dead-letters", "outbox", "doctor")

_FILES = ("py", "toml", "diff")
_BLOCK = re.compile(r"^```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
# The paragraph before the block of a file ends with the file's name.
_NAMED = re.compile(r"`(?P<path>[^`\s]+)`:$")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and the file that it is the text of, if it is one."""

    kind: str
    text: str
    path: str | None = None

    def applied_to(self, before: str) -> str:
        """Return what a file is after a reader has written this block, or made the change that it shows."""
        if self.kind != "diff":
            return self.text
        lines = self.text.splitlines(keepends=True)
        old, new = ("".join(line[1:] for line in lines if line[0] in kinds) for kinds in (" -", " +"))
        if before.count(old) != 1:
            raise ValueError(f"{self.path} does not hold what is to be changed: {old}")
        return before.replace(old, new)


def blocks_of(page: str) -> Iterator[Block]:
    """Yield the fenced blocks of a page."""
    for found in _BLOCK.finditer(page):
        is_file = found["kind"] in _FILES
        named = _NAMED.search(page[: found.start()].rstrip()) if is_file else None
        yield Block(found["kind"], found["text"], named["path"] if named else None)


def commands_of(page: str, *programs: str) -> Iterator[str]:
    """Yield the command lines of a page that call one of these programs, without their comments."""
    for block in blocks_of(page):
        if block.kind not in ("", "sh"):
            continue
        for line in block.text.replace("\\\n", " ").splitlines():
            for command in re.split(r" && | \| ", line.partition(" #")[0]):
                # Variables before a command are for make.
                words = re.sub(r"^(\w+=\S+ )+", "", command.strip())
                if words.partition(" ")[0] in programs:
                    yield command.strip()


def prints(expected: str, printed: str) -> bool:
    """Tell whether a command printed what a page says: `...` is anything, alone in a line any lines."""
    pattern = ""
    for line in expected.splitlines():
        if line.strip() == "...":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += (
                r"\s*" + ".*?".join(map(re.escape, line.split("..."))).replace(r"\ ", r"\s+") + r"\s*\n"
            )
    return re.fullmatch(pattern, printed if printed.endswith("\n") else printed + "\n") is not None
