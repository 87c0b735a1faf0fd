"""Each built function starts with its own artefact and its layers only, as in a sandbox."""

import json
import subprocess
import sys

import pytest

from scripts.emulator import ROOT
from scripts.local_build import built
from scripts.local_stack import FUNCTIONS

ENVIRONMENT = {
    "AWS_DEFAULT_REGION": "us-east-1",
    "COMMAND_QUEUE_URL": "https://sqs.invalid/commands",
    "DEFINITIONS_TABLE": "definitions",
    "INSTANCES_TABLE": "instances",
    "OUTBOX_TABLE": "outbox",
    "BOOKMARKS_TABLE": "bookmarks",
    "TRIGGERS_TABLE": "triggers",
    "POWERTOOLS_METRICS_NAMESPACE": "Aftercommit",
    "POWERTOOLS_SERVICE_NAME": "test",
    "TICK_QUEUE_URL": "https://sqs.invalid/ticks",
}
SCRIPT = """
import json, sys
sys.path[:0] = json.loads(sys.argv[1])
import app
assert callable(app.handler)
print(json.dumps([each.__file__ for each in sys.modules.values() if getattr(each, "__file__", None)]))
"""


@pytest.fixture(scope="module")
def artefacts():
    with built() as (folder, _):
        yield folder / "built"


def start(*folders):
    """Import `app` in an interpreter that knows the standard library and `folders`, and nothing else."""
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", SCRIPT, json.dumps([str(each) for each in folders])],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )


def parts(artefacts, function):
    return [
        artefacts / f"{function.capitalize()}Function",
        artefacts / "RuntimeLayer/python",
        artefacts / "WorkflowsLayer/python",
    ]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_starts_from_its_artefact_and_its_layers_alone(artefacts, function):
    found = start(*parts(artefacts, function))
    assert found.returncode == 0, found.stderr
    files = json.loads(found.stdout)
    assert [each for each in files if "site-packages" in each or each.startswith(f"{ROOT}/layers")] == []


def test_a_function_does_not_start_without_its_layers(artefacts):
    own, runtime, workflows = parts(artefacts, "run")
    assert "No module named" in start(own).stderr
    assert "No module named 'workflows'" in start(own, runtime).stderr
    assert "No module named" in start(own, workflows).stderr


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_holds_its_handler_only(artefacts, function):
    own = parts(artefacts, function)[0]
    files = {each.relative_to(own).as_posix() for each in own.rglob("*.py")}
    assert files == {"app.py"}


def test_the_runtime_layer_holds_the_runtime_and_its_locked_dependencies(artefacts):
    layer = artefacts / "RuntimeLayer/python"
    installed = {
        f"{name.replace('_', '-')}=={version}".lower()
        for name, version in (each.stem.rsplit("-", 1) for each in layer.glob("*.dist-info"))
    }
    locked = {
        line.strip().lower()
        for line in (ROOT / "layers/runtime/requirements.txt").read_text().splitlines()
        if "==" in line
    }
    assert installed == {each.partition(" ")[0] for each in locked}
    assert (layer / "aftercommit/__init__.py").exists()


@pytest.mark.parametrize("package", ["RuntimeLayer/python/aftercommit", "WorkflowsLayer/python"])
def test_a_layer_holds_nothing_of_the_tests(artefacts, package):
    names = {part for each in (artefacts / package).rglob("*") for part in each.relative_to(artefacts).parts}
    assert [name for name in names if name.startswith(("test", "conftest", "e2e")) or name == "pytest"] == []
    assert not (artefacts / "RuntimeLayer/python/moto").exists()


def test_modules_are_compiled_for_where_the_layer_is_mounted(artefacts):
    cached = list((artefacts / "RuntimeLayer/python/aftercommit/__pycache__").glob("engine.*.pyc"))
    assert len(cached) == 1
    assert b"/opt/python/aftercommit/engine.py" in cached[0].read_bytes()
