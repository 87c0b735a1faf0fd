"""Builds the stack for the emulator with the real SAM CLI, and only when its sources have changed.

Sources are copied to .build first: a build never sees half an edit, and a user's own workflows
can stand in for the example without touching it.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import botocore

from scripts.emulator import ROOT, clean_environment

TOOLS = ROOT / ".tools/sam/bin"
UV = ROOT / ".tools/uv/bin"
PYTHON_RUNTIME = f"python{sys.version_info.major}.{sys.version_info.minor}"

# Raise it when a build of the same sources would come out different.
BUILD_FORMAT = 4

# What the runtime itself calls; botocore finds the others in the development environment (of one version).
KEPT_SERVICES = {"dynamodb", "sqs"}
DATA_PATH = Path(botocore.__file__).parent / "data"

TO_JSON = """
import json, pathlib, sys
from samcli.yamlhelper import yaml_parse
source, target = map(pathlib.Path, sys.argv[1:])
target.write_text(json.dumps(yaml_parse(source.read_text()), indent=1))
"""

IGNORED = shutil.ignore_patterns("__pycache__", "*.pyc", ".*", "*.egg-info")


class BuildError(Exception):
    """The stack could not be built or deployed, with what the tool said."""


def run_tool(
    arguments: Sequence[str | Path], folder: Path, environment: Mapping[str, str] | None = None
) -> None:
    """Run a tool to its end, quietly; raises BuildError with its output if it fails.

    Ends the tool and its children when this process is interrupted.
    """
    process = subprocess.Popen(
        arguments,
        cwd=folder,
        env=clean_environment()
        | {"SAM_CLI_TELEMETRY": "0", "PATH": os.pathsep.join([str(TOOLS), str(UV), os.environ["PATH"]])}
        | dict(environment or {}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate()
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    if process.returncode != 0:
        raise BuildError(f"{Path(arguments[0]).name} {arguments[1]} failed:\n{output}")


@contextlib.contextmanager
def built(workflows_dir: Path | None = None) -> Iterator[tuple[Path, bool]]:
    """Yield the folder of a build, and whether it was built just now.

    It holds `built`, which is what `sam build` made, and `lean`, which is what the emulator gets.
    Nobody else builds there while the context is open.
    """
    folder = ROOT / ".build" / ("example" if workflows_dir is None else f"own-{_name_of(workflows_dir)}")
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _stage(folder / "sources", workflows_dir)
        fingerprint = _fingerprint(folder / "sources")
        stamp = folder / "fingerprint"
        fresh = not stamp.exists() or stamp.read_text() != fingerprint
        if fresh:
            stamp.unlink(missing_ok=True)
            _build(folder)
            stamp.write_text(fingerprint)
        yield folder, fresh


def _name_of(folder: Path) -> str:
    return hashlib.sha256(bytes(folder.resolve())).hexdigest()[:12]


def _stage(target: Path, workflows_dir: Path | None) -> None:
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    shutil.copy(ROOT / "template.yaml", target)
    for name in ("functions", "layers/runtime"):
        shutil.copytree(ROOT / name, target / name, ignore=IGNORED)
    _stage_workflows(target / "layers/workflows", (workflows_dir or ROOT / "layers/workflows").resolve())


def _stage_workflows(target: Path, source: Path) -> None:
    """Copy a layer's folder (it holds packages), or make one around a single package."""
    if not source.is_dir():
        raise BuildError(f"WORKFLOWS_DIR: there is no folder {source}")
    if not (source / "__init__.py").exists():
        if not any(source.glob("*/__init__.py")):
            raise BuildError(f"WORKFLOWS_DIR: {source} has no __init__.py, nor has any folder in it")
        shutil.copytree(source, target, ignore=IGNORED)
        return
    shutil.copytree(source, target / "workflows", ignore=IGNORED)
    requirements = target / "workflows/requirements.txt"
    if requirements.exists():
        requirements.rename(target / "requirements.txt")


def _fingerprint(folder: Path) -> str:
    digest = hashlib.sha256(f"{BUILD_FORMAT} {PYTHON_RUNTIME}".encode())
    digest.update((ROOT / "uv.lock").read_bytes())
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        content = path.read_bytes()
        digest.update(f"\0{path.relative_to(folder)}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def _build(folder: Path) -> None:
    run_tool(
        [
            TOOLS / "sam",
            "build",
            "--build-dir",
            folder / "built",
            "--parallel",
            "--parameter-overrides",
            f"PythonRuntime={PYTHON_RUNTIME}",
        ],
        folder / "sources",
    )
    _make_lean(folder / "built", folder / "lean")


def _make_lean(built_folder: Path, lean: Path) -> None:
    """Copy a build to what the emulator can start quickly; code and versions stay the same.

    The emulator unpacks all layers anew for each worker, where AWS mounts them: so most of botocore's data
    (2,000 files) stays out, and is found through AWS_DATA_PATH.
    """
    shutil.rmtree(lean, ignore_errors=True)
    shutil.copytree(built_folder, lean, ignore=_ignore_service_models, copy_function=os.link)
    # As JSON, which sam reads a hundred times faster than YAML; it reads its template seven times.
    template = lean / "template.yaml"
    template.unlink()
    run_tool([TOOLS / "python", "-c", TO_JSON, built_folder / "template.yaml", template], lean)


def _ignore_service_models(folder: str, names: list[str]) -> list[str]:
    if not folder.endswith("/botocore/data"):
        return []
    return [name for name in names if name not in KEPT_SERVICES and Path(folder, name).is_dir()]
