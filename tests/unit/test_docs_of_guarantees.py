"""docs/guarantees.md names tests, checks and scenarios that exist, and leaves out no promise."""

import ast
import re
from collections import defaultdict
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.pages import DOCS
from tests.simulation.checks import CHECKS
from tests.simulation.scenarios import SCENARIOS

TESTS = Path(__file__).parents[1]
PAGE = (DOCS / "guarantees.md").read_text(encoding="utf-8")
SECTIONS = {each.partition("\n")[0]: each for each in re.split(r"^#{2,3} ", PAGE, flags=re.MULTILINE)[1:]}
PROMISES = [each for each in SECTIONS if re.match(r"I\d+ ", each)]
LAYERS = ("unit", "integration", "e2e")
CHECK_NAMES = {each.__name__ for each in CHECKS}
SCENARIO_NAMES = {each.name for each in SCENARIOS}


def functions_of(path):
    return {
        node.name
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef)
    }


EXISTING = {
    f"{path.relative_to(TESTS).as_posix()}::{name}"
    for layer in LAYERS
    for path in (TESTS / layer).glob("test_*.py")
    for name in functions_of(path)
    if name.startswith("test_")
}


def ids_of(test):
    """Return the ids of behaviours that a test's name begins with."""
    return re.findall(r"[cr]\d\d(?=_)", re.match(r"(?:[a-z]\d+_)*", test.partition("::test_")[2])[0])


BY_ID = defaultdict(set)
for _test in EXISTING:
    for _id in ids_of(_test):
        BY_ID[_id].add(_test)


def named_tests(text):
    return set(re.findall(r"`([\w/]+\.py::\w+)`", text))


def shown_by_simulation(text):
    """Return what the lines on the simulation, or cells that name checks, quote: checks and scenarios."""
    lines = re.findall(r"^- simulation: (.*?)(?=^- |^$)", text, re.MULTILINE | re.DOTALL)
    lines += re.findall(r"^\|.*\| (`check_.*?)(?:;.*)? \|$", text, re.MULTILINE)
    return [name for line in lines for name in re.findall(r"`([^`]+)`", line)]


def test_every_test_that_is_named_exists():
    assert named_tests(PAGE) - EXISTING == set()


def test_every_file_that_is_named_exists():
    names = set(re.findall(r"`((?:unit|integration|e2e)/\w+\.py)(?:::\w+)?`", PAGE))
    assert [each for each in names if not (TESTS / each).exists()] == []


def test_every_check_and_scenario_that_is_named_exists():
    named = shown_by_simulation(PAGE)
    assert {each for each in named if each.startswith("check_")} - CHECK_NAMES == set()
    scenarios = {each for each in named if not each.startswith("check_")}
    assert len(scenarios) > 20
    missing = [each for each in scenarios if not any(fnmatch(name, each) for name in SCENARIO_NAMES)]
    assert missing == []


def test_every_promise_has_a_section_and_tests_that_show_it():
    assert [each.split()[0] for each in PROMISES] == [f"I{number}" for number in range(1, 13)]
    for name in PROMISES:
        layers = {each.partition("/")[0] for each in named_tests(SECTIONS[name])}
        assert "integration" in layers, name


@pytest.mark.parametrize("check", sorted(each for each in CHECK_NAMES if re.match(r"check_i\d+_", each)))
def test_every_check_of_a_promise_stands_in_its_section(check):
    number = re.match(r"check_i(\d+)_", check)[1]
    [section] = [SECTIONS[each] for each in PROMISES if each.startswith(f"I{number} ")]
    assert check in shown_by_simulation(section)


def test_every_behaviour_that_tests_bear_has_a_row_with_a_test_of_its_id():
    rows = re.findall(r"^\| ([cr]\d\d) \| .+ \| `(.+)` \|$", PAGE, re.MULTILINE)
    assert [name for name, _ in rows] == sorted(BY_ID)
    assert [name for name, test in rows if test not in BY_ID[name]] == []


def test_a_name_that_does_not_exist_would_be_found():
    assert named_tests("`unit/test_ids.py::test_nothing`") - EXISTING
    assert shown_by_simulation("- simulation: `check_nothing`; `wait`,\n  `none`\n\n") == [
        "check_nothing",
        "wait",
        "none",
    ]
