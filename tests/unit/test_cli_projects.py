"""New projects: complete, working, the runtime as it is deployed, and nothing overwritten."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from aftercommit.openapi import VERSION
from scripts.parameters import BUILT_FOR, merge

ROOT = Path(__file__).parents[2]


@pytest.fixture
def project(run, tmp_path):
    folder = tmp_path / "my shop"
    assert run("init", folder).exit_code == 0
    return folder


def files_of(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_a_project_holds_the_runtime_as_it_is_deployed(project):
    made = files_of(project)
    expected = {
        f"{part}/{name}": content
        for part in ("docs", "functions", "layers/runtime")
        for name, content in files_of(ROOT / part).items()
    }
    expected["template.yaml"] = (ROOT / "template.yaml").read_bytes()
    assert {name: made.get(name) for name in expected} == expected


def test_what_its_template_and_the_doctor_refer_to_is_in_it(project):
    told = [project / "template.yaml", ROOT / "cli/aftercommit_cli/findings.py"]
    named = {page for each in told for page in re.findall(r"docs/[a-z-]+\.md", each.read_text())}
    assert "docs/operating.md" in named
    for page in named:
        for link in re.findall(r"\]\(([a-z-]+\.md)", (project / page).read_text()):
            assert (project / "docs" / link).is_file(), (page, link)


def test_its_tests_pass_against_the_runtime_in_it(project):
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "2 passed" in ran.stdout


def test_it_is_named_for_its_folder_and_built_for_the_python_at_hand(project):
    settings = tomllib.loads((project / "samconfig.toml").read_text())["default"]
    assert settings["global"]["parameters"] == {
        "stack_name": "my-shop",
        "parameter_overrides": " ".join(BUILT_FOR),
    }
    assert tomllib.loads((project / "pyproject.toml").read_text())["project"]["name"] == "my-shop"
    for name in ("README.md", "samconfig.toml", "pyproject.toml"):
        text = (project / name).read_text()
        assert "STACK_NAME" not in text
        assert "PYTHON_VERSION" not in text
    assert ".aws-sam/" in (project / ".gitignore").read_text()


def test_the_stack_to_rely_on_has_the_parameters_of_this_repositorys_own(project):
    settings = tomllib.loads((project / "samconfig.toml").read_text())["prod"]
    given = settings["global"]["parameters"]
    assert given["stack_name"] == settings["deploy"]["parameters"]["s3_prefix"] == "my-shop-prod"
    assert given["parameter_overrides"].split() == merge("prod", [])


def test_its_readme_says_which_version_of_the_runtime_it_holds(project):
    told = re.findall(r"version (\d+\.\d+\.\d+)", (project / "README.md").read_text())
    assert told == [VERSION]


def test_another_name_may_be_given(run, tmp_path):
    assert run("init", tmp_path / "x", "--name", "orders").exit_code == 0
    assert 'stack_name = "orders"' in (tmp_path / "x" / "samconfig.toml").read_text()


def test_it_may_join_what_is_there_already(run, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    assert run("init", tmp_path, "--name", "shop").exit_code == 0
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert (tmp_path / "template.yaml").exists()


@pytest.mark.parametrize("taken", ["README.md", "layers/runtime/aftercommit/engine.py"])
def test_nothing_is_written_where_a_file_is_in_the_way(run, tmp_path, taken):
    mine = tmp_path / taken
    mine.parent.mkdir(parents=True, exist_ok=True)
    mine.write_text("mine")
    result = run("init", tmp_path, "--name", "shop")
    assert result.exit_code == 2
    assert taken in result.stderr
    assert files_of(tmp_path) == {taken: b"mine"}


def test_a_second_init_changes_nothing(run, project):
    before = files_of(project)
    assert run("init", project).exit_code == 2
    assert files_of(project) == before


def test_a_link_that_leads_nowhere_is_in_the_way_too(run, tmp_path):
    (tmp_path / "README.md").symlink_to(tmp_path / "gone")
    assert run("init", tmp_path, "--name", "shop").exit_code == 2
    assert not (tmp_path / "gone").exists()


@pytest.mark.parametrize("name", ["1st", "a b", "", "x" * 41, "-a"])
def test_a_name_that_no_stack_can_have_is_refused(run, tmp_path, name):
    result = run("init", tmp_path / "x", "--name", name)
    assert result.exit_code == 2
    assert not (tmp_path / "x").exists()


def test_a_file_instead_of_a_folder_is_refused(run, tmp_path):
    (tmp_path / "file").write_text("")
    assert run("init", tmp_path / "file").exit_code == 2
    assert run("init", tmp_path / "file" / "below", "--name", "shop").exit_code == 2


def test_json_names_what_was_written(run, tmp_path):
    answer = run.json("init", tmp_path / "shop")
    assert answer["folder"] == str(tmp_path / "shop")
    assert sorted(answer["files"]) == sorted(files_of(tmp_path / "shop"))


def test_an_installed_package_makes_the_same_project(project, tmp_path):
    """Lay out what a wheel installs, as pyproject.toml says, and run it from there."""
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    site = tmp_path / "site"
    places = {package: Path(package).name for package in wheel["packages"]} | wheel["force-include"]
    for source, target in places.items():
        (site / target).parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (ROOT / source).is_dir() else shutil.copy
        copy(ROOT / source, site / target)
    made = tmp_path / "made" / project.name
    subprocess.run(
        [sys.executable, "-m", "aftercommit_cli", "init", made],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(site)},
        check=True,
        capture_output=True,
    )
    assert files_of(made) == files_of(project)
    carried = subprocess.run(
        [sys.executable, "-c", "from aftercommit_cli.projects import _PARTS; print(_PARTS)"],
        env={**os.environ, "PYTHONPATH": str(site)},
        check=True,
        capture_output=True,
        text=True,
    )
    assert carried.stdout.strip() == str(site / "aftercommit_cli/deployable")
