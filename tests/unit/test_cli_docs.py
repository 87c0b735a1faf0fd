"""The page on the command line: sections, examples that can be given, and options that exist."""

import re
import shlex
from pathlib import Path

import pytest

from aftercommit_cli.program import COMMANDS, program

TEXT = (Path(__file__).parents[2] / "docs/cli.md").read_text(encoding="utf-8")
BY_NAME = {command.name: command for command in COMMANDS}
EXAMPLES = [
    line[line.index("aftercommit ") :].partition(" #")[0].partition(" && ")[0].partition(" | ")[0]
    for block in re.findall(r"^```\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    for line in block.splitlines()
    if "aftercommit " in line and not line.startswith(("pip", "ok", "eval"))
]


def test_every_command_has_a_section():
    assert sorted(re.findall(r"^### ([a-z-]+)$", TEXT, re.MULTILINE)) == sorted(BY_NAME)


@pytest.mark.parametrize("name", BY_NAME)
def test_every_command_has_an_example(name):
    assert [each for each in EXAMPLES if each.split()[1] == name]


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_can_be_given(example, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("order.json").write_text("{}")
    monkeypatch.setattr("sys.stdin.read", lambda: "{}", raising=False)
    words = shlex.split(example)[1:]
    if words == ["--help"]:
        return
    command = BY_NAME[words[0]]
    context = command.make_context(words[0], words[1:], parent=program.make_context("aftercommit", ["x"]))
    assert context.params is not None


def test_every_option_that_is_named_exists():
    known = {
        name
        for command in (*COMMANDS, program)
        for parameter in command.params
        for name in (*parameter.opts, *parameter.secondary_opts)
    }
    prose = re.sub(r"^```.*?^```", "", TEXT, flags=re.MULTILINE | re.DOTALL)
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", prose)) - known == set()
