"""New projects: the runtime as it is deployed, and around it an example, a test and settings to begin with.

A project deploys by itself: it holds a copy of the template, the functions and the runtime layer, so neither
a package of ours nor this program is needed to build it. The pages about just these, by which it is operated,
are with them. Nothing that exists is ever overwritten.
"""

import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from aftercommit_cli.errors import UsageProblemError

_HERE = Path(__file__).parent
# An installed package carries the parts of the runtime; a checkout has them where they belong.
_CARRIED = _HERE / "deployable"
_PARTS = _CARRIED if _CARRIED.is_dir() else _HERE.parents[1]

_STARTER = _HERE / "starter"
# Two have other names in here: tools would take them for settings of this repository.
_STARTER_FILES = {
    ".gitignore": "gitignore",
    "README.md": "README.md",
    "layers/workflows/requirements.txt": "layers/workflows/requirements.txt",
    "layers/workflows/workflows/__init__.py": "layers/workflows/workflows/__init__.py",
    "layers/workflows/workflows/greetings.py": "layers/workflows/workflows/greetings.py",
    "pyproject.toml": "pyproject.toml.txt",
    "samconfig.toml": "samconfig.toml",
    "tests/test_greetings.py": "tests/test_greetings.py",
}

# CloudFormation's rule, and short enough for the names that follow from it.
_STACK_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,39}")
_PYTHONS = ((3, 11), (3, 12), (3, 13), (3, 14))
_PYTHON_DEFAULT = (3, 13)
_NAMED_MAX = 5


def make_project(folder: Path, stack_name: str | None) -> list[str]:
    """Write a new project into a folder, and return its files.

    Raises UsageProblemError, without having written anything, if one of them is there already.
    """
    name = _to_stack_name(folder.resolve().name) if stack_name is None else stack_name
    if not _STACK_NAME.fullmatch(name):
        raise UsageProblemError(
            f"the stack's name must be 1 to 40 letters, digits or '-', a letter first (not {name!r})"
        )
    files = dict(_files(name))
    taken = [path for path in files if (folder / path).exists() or (folder / path).is_symlink()]
    if taken:
        named = ", ".join(taken[:_NAMED_MAX]) + (" ..." if len(taken) > _NAMED_MAX else "")
        raise UsageProblemError(f"{folder} has files of these names already: {named}")
    try:
        for path, content in files.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as file:
                file.write(content)
    except OSError as error:
        raise UsageProblemError(f"cannot write {error.filename}: {error.strerror}") from error
    return list(files)


def _to_stack_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-")[:40]


def _files(name: str) -> Iterator[tuple[str, bytes]]:
    version = sys.version_info[:2] if sys.version_info[:2] in _PYTHONS else _PYTHON_DEFAULT
    for path, source in sorted(_STARTER_FILES.items()):
        text = (_STARTER / source).read_text(encoding="utf-8")
        text = text.replace("STACK_NAME", name).replace("PYTHON_VERSION", "{}.{}".format(*version))
        yield path, text.encode()
    yield "template.yaml", (_PARTS / "template.yaml").read_bytes()
    for path in ("layers/runtime/Makefile", "layers/runtime/requirements.txt"):
        yield path, (_PARTS / path).read_bytes()
    yield from _tree(_PARTS / "docs", "docs")
    yield from _tree(_PARTS / "functions", "functions")
    yield from _tree(_runtime(), "layers/runtime/aftercommit")


def _runtime() -> Path:
    """Return the folder of the runtime's package, without importing it."""
    spec = importlib.util.find_spec("aftercommit")
    if spec is None or spec.origin is None:
        raise UsageProblemError("the package aftercommit is not installed")
    return Path(spec.origin).parent


def _tree(source: Path, target: str) -> Iterator[tuple[str, bytes]]:
    for path in sorted(source.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield f"{target}/{path.relative_to(source).as_posix()}", path.read_bytes()
