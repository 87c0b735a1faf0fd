"""How long a Python file of the project may be."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOT_OURS = {"build", "dist", "node_modules", "venv"}  # what tools and people leave beside the project
LINES_MAX = 450


def find_too_long(root):
    return {
        path.relative_to(root).as_posix()
        for folder in root.glob("[!.]*")
        if folder.name not in NOT_OURS
        for path in folder.rglob("*.py")
        if len(path.read_text(encoding="utf-8").splitlines()) > LINES_MAX
    }


def test_no_file_is_too_long():
    assert find_too_long(ROOT) == set()


@pytest.mark.parametrize(("lines", "found"), [(LINES_MAX, set()), (LINES_MAX + 1, {"tests/unit/one.py"})])
def test_a_file_over_the_limit_is_found(tmp_path, lines, found):
    (tmp_path / "tests/unit").mkdir(parents=True)
    (tmp_path / "tests/unit/one.py").write_text("pass\n" * lines)
    assert find_too_long(tmp_path) == found
