"""The Python in the documents runs as it stands there, tests in it included."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from aftercommit.activities import TYPES
from scripts.audit import PARENT, Instance, summary_line
from scripts.orders import expected, read_orders
from scripts.parameters import BUILT_FOR, merge
from tests.integration.template import load_template

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LINKING = [*DOCUMENTS, ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]

# Calls the tests that a document shows, as pytest would.
CALL_TESTS = """
for _name, _each in list(globals().items()):
    if _name.startswith("test_"):
        _each()
"""


def program_of(document: Path) -> str:
    """Return the document's `python` blocks, each line at its place, so that a traceback leads to it."""
    lines, inside = [], False
    for line in document.read_text(encoding="utf-8").splitlines():
        if line.startswith("```"):
            inside = line == "```python"
            lines.append("")
        else:
            lines.append(line if inside else "")
    return "\n".join(lines)


WITH_PYTHON = [each for each in DOCUMENTS if program_of(each).strip()]


def test_the_pages_on_workflows_have_python():
    names = {each.name for each in WITH_PYTHON}
    assert {"README.md", "activities.md", "writing-workflows.md", "testing-workflows.md"} <= names


def test_every_activity_has_a_section_with_its_properties_and_an_example():
    text = (ROOT / "docs" / "activities.md").read_text(encoding="utf-8")
    sections = {each.partition("\n")[0]: each for each in re.split(r"^#{2,3} ", text, flags=re.MULTILINE)}
    for name, kind in TYPES.items():
        assert "```python" in sections[name], name
        if name != "ParallelForEach":  # told by those of ForEach
            told = set(
                re.findall(r"`(\w+)`", "".join(re.findall(r"^\| ([^|]+) \|", sections[name], re.MULTILINE)))
            )
            assert told == set(kind.properties), name


@pytest.mark.parametrize("document", WITH_PYTHON, ids=lambda each: each.name)
def test_python_of_a_document_runs(document, tmp_path):
    # A process of its own: activities are registered by name, and documents use the same names.
    program = tmp_path / f"{document.stem.replace('-', '_')}.py"
    program.write_text(program_of(document) + CALL_TESTS, encoding="utf-8")
    ran = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr


def test_what_the_page_on_architecture_follows_step_by_step_is_there():
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    walks = re.findall(r"^## One \w+, step by step\n(.*?)(?=^## )", text, re.MULTILINE | re.DOTALL)
    assert len(walks) == 2
    runtime = ROOT / "layers/runtime/aftercommit"
    called = re.findall(r"`(\w+)\.(\w+)`", "".join(walks))
    assert len(called) > 20
    for module, name in called:
        if module == "api":
            assert (runtime / module / f"{name}.py").exists(), name
        else:
            source = (runtime / f"{module}.py").read_text(encoding="utf-8")
            assert re.search(rf"^(def|class) {name}\b", source, re.MULTILINE), (module, name)
    for route, module in re.findall(r"`(post_\w+)` in \*\*`api\.(\w+)`", "".join(walks)):
        assert f"def {route}(" in (runtime / "api" / f"{module}.py").read_text(encoding="utf-8")


@pytest.mark.parametrize("document", LINKING, ids=lambda each: each.name)
def test_links_of_a_document_lead_somewhere(document):
    targets = re.findall(r"\]\((?!https?://|#)([^)#]+)[^)]*\)", document.read_text(encoding="utf-8"))
    assert [each for each in targets if not (document.parent / each).exists()] == []


def test_the_page_on_the_api_lists_the_routes_that_the_template_has():
    template = (ROOT / "template.yaml").read_text(encoding="utf-8")
    deployed = set(re.findall(r"RouteKey: ([A-Z]+ /\S+)", template))
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `([A-Z]+ /[^\s`?\[]+)", page, re.MULTILINE)) == deployed


def test_parameters_that_the_page_on_deploying_names_exist_with_the_defaults_it_gives():
    template = (ROOT / "template.yaml").read_text(encoding="utf-8")
    defaults = dict(
        re.findall(
            r'^  (\w+):\n    Description: .*\n    Type: .*\n    Default: "?([^"\n]*)', template, re.MULTILINE
        )
    )
    page = (ROOT / "docs" / "deploying.md").read_text(encoding="utf-8")
    section = page.partition("| parameter | default |")[2].partition("\n\n")[0]
    named = {}
    for line in section.splitlines()[2:]:
        _, names, values, *_ = line.split("|")
        texts = [each.strip(" `").replace("none", "") for each in values.split(",")]
        named |= dict(zip(re.findall(r"`(\w+)`", names), texts, strict=True))
    assert named
    assert {name: defaults.get(name) for name in named} == named


def test_the_page_of_parameters_has_each_with_its_default_its_values_and_its_meaning():
    declared = load_template()["Parameters"]
    page = (ROOT / "docs" / "parameters.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+?) \| (.+) \|$", page, re.MULTILINE)
    assert sorted(name for name, *_ in rows) == sorted(declared)
    for name, default, values, meaning in rows:
        parameter = declared[name]
        assert default.strip("`").replace("none", "") == str(parameter["Default"]), name
        assert meaning == parameter["Description"], name
        if "MinValue" in parameter:
            assert values == f"{parameter['MinValue']} to {parameter['MaxValue']}", name
        if "AllowedValues" in parameter:
            assert re.findall(r"`(.*?)`", values) == [str(each) for each in parameter["AllowedValues"]], name


@pytest.mark.parametrize("environment", ["dev", "prod"])
def test_what_samconfig_sets_are_parameters_of_the_template_and_told(environment):
    declared = load_template()["Parameters"]
    page = (ROOT / "docs" / "parameters.md").read_text(encoding="utf-8")
    for word in set(merge(environment, [])) - set(BUILT_FOR):
        name, _, value = word.partition("=")
        assert value in [str(each) for each in declared[name].get("AllowedValues", [value])], name
        assert f"`{word}`" in page, word


def test_parameters_given_by_hand_count_more_than_those_of_samconfig():
    assert "LogRetentionDays=90" in merge("prod", [])
    merged = merge("prod", ["LogRetentionDays=365", "LogLevel=ERROR"])
    assert {"LogRetentionDays=365", "LogLevel=ERROR", "DoneRetentionDays=7"} <= set(merged)
    assert "LogRetentionDays=90" not in merged
    with pytest.raises(ValueError, match="dev, prod"):
        merge("production", [])
    with pytest.raises(ValueError, match="Key=Value"):
        merge("dev", ["LogLevel"])


@pytest.mark.parametrize("environment", ["dev", "prod"])
def test_what_is_built_for_is_named_at_every_deploy_and_may_be_given(environment):
    declared = load_template()["Parameters"]
    assert merge(environment, [])[:2] == list(BUILT_FOR)
    runtime, architecture = (each.partition("=")[2] for each in BUILT_FOR)
    assert runtime in declared["PythonRuntime"]["AllowedValues"]
    assert architecture == declared["Architecture"]["Default"]
    assert merge(environment, ["Architecture=x86_64"])[:2] == [BUILT_FOR[0], "Architecture=x86_64"]


BENCH = json.loads((ROOT / "bench" / "results" / "latest.json").read_text(encoding="utf-8"))


def test_dollars_of_the_readme_and_of_the_comparison_are_those_of_the_last_bench():
    awaited, step = (
        round(BENCH["workloads"][name]["usd_per_million"]["total"]) for name in ("awaited", "one-step")
    )
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"An awaited child costs about {awaited} dollars per million, a single step {step}," in readme
    assert round(BENCH["idle_usd_per_month"]["total"]) == 1
    requests = BENCH["workloads"]["awaited"]["write_requests"]
    comparison = " ".join((ROOT / "docs" / "comparison.md").read_text(encoding="utf-8").split())
    assert (
        f"(`awaited`) is {requests} write requests and about **{awaited} dollars per million**" in comparison
    )
    assert f"a single step about {step}." in comparison


def test_figures_of_the_page_on_costs_are_those_of_the_last_bench():
    page = (ROOT / "docs" / "costs.md").read_text(encoding="utf-8")
    names = re.findall(r"`([a-z-]+)`", re.search(r"^\| one workflow \|(.*)$", page, re.MULTILINE)[1])
    for told, key in (("requests", "write_requests"), ("units", "write_units")):
        [row] = re.findall(rf"^\| DynamoDB write {told} \|(.*)\|$", page, re.MULTILINE)
        counted = {name: BENCH["workloads"][name][key] for name in names}
        assert dict(zip(names, map(int, row.split("|")), strict=True)) == counted


def test_what_a_child_of_a_bulk_costs_is_what_the_last_bench_counted():
    page = (ROOT / "docs" / "costs.md").read_text(encoding="utf-8")
    table = re.search(r"^\| children \|(.*)\|\n.*\n((?:\|.*\n)+)", page, re.MULTILINE)
    sizes = [each.strip().replace(",", "") for each in table[1].split("|")]
    assert sizes == list(BENCH["bulks"])
    told = dict(re.findall(r"^\| (.+?) \|(.*)\|$", table[2], re.MULTILINE))
    for name, key in (
        ("DynamoDB write units per child", "write_units_per_child"),
        ("DynamoDB read units per child", "read_units_per_child"),
        ("SQS messages per child", "sqs_sends_per_child"),
        ("resumes of the parent", "resumes"),
    ):
        counted = [each[key] for each in BENCH["bulks"].values()]
        assert [float(each) for each in told[name].split("|")] == pytest.approx(counted, abs=0.051), name


def test_the_demos_last_line_in_the_readme_is_what_its_orders_come_to():
    orders = read_orders()
    ended = [
        Instance(str(number), PARENT, each["order_id"], expected(each).partition(":")[0], None)
        for number, each in enumerate(orders)
    ]
    assert f"\n{summary_line(len(orders), ended, [])}\n" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_source_of_the_comparison_is_listed_and_used():
    text, _, sources = (
        (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8").partition("\n## Sources\n")
    )
    used = {int(each) for group in re.findall(r"\[(\d[\d, ]*)\](?!\()", text) for each in group.split(",")}
    assert sorted(used) == [int(each) for each in re.findall(r"^(\d+)\. ", sources, re.MULTILINE)]
