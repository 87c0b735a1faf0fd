"""The metrics that alarms and dashboard name are those that the functions put: to the last dimension.

To CloudWatch, one with other dimensions is another metric, and an alarm on it stays quiet for ever.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from aftercommit.limits import QUEUE_DELAY_SECONDS_MAX
from tests.integration.template import load_template

ROOT = Path(__file__).parents[2]
TEMPLATE = load_template()
RESOURCES = TEMPLATE["Resources"]
FUNCTIONS = [each for each in RESOURCES.values() if each["Type"] == "AWS::Serverless::Function"]
OWN = TEMPLATE["Globals"]["Function"]["Environment"]["Variables"]["POWERTOOLS_METRICS_NAMESPACE"]
PUT = """
import os, sys
from aftercommit.log import count, gauge
for os.environ["POWERTOOLS_SERVICE_NAME"] in sys.argv[1:]:
    count("Counted", 2)
    gauge("Gauged", 0)
"""


def own_metrics():
    """Return the metrics that the runtime puts, by reading its source."""
    source = "\n".join(each.read_text() for each in (ROOT / "layers/runtime/aftercommit").rglob("*.py"))
    return set(re.findall(r'\b(?:count|gauge)\(\s*"(\w+)"', source)) | set(
        re.findall(r'_?tell(?:_item)?\("[^"]+", "(\w+)"', source)
    )


def watched():
    """Return each metric that an alarm names, as (namespace, name, {dimension: value}), by the alarm."""
    for name, each in RESOURCES.items():
        if each["Type"] == "AWS::CloudWatch::Alarm":
            of = each["Properties"]
            dimensions = {one["Name"]: str(one["Value"]) for one in of.get("Dimensions", [])}
            yield name, of["Namespace"], of["MetricName"], dimensions


def shown():
    """Return each metric on the dashboard, written out, by its widget."""
    # Names of resources stay as they are, so that what is compared is what the template says.
    body = RESOURCES["Dashboard"]["Properties"]["DashboardBody"]
    for widget in json.loads(body)["widgets"]:
        before = []
        for metric in widget["properties"]["metrics"]:
            names = [each for each in metric if isinstance(each, str)]
            if "..." in names:  # all that is not said anew
                names = [*before[: len(before) - len(names) + 1], *names[1:]]
            names = [before[at] if each == "." else each for at, each in enumerate(names)]
            before = names
            yield (
                widget["properties"]["title"],
                names[0],
                names[1],
                dict(zip(names[2::2], names[3::2], strict=True)),
            )


NAMED = [*watched(), *shown()]
NAMED_OWN = [each for each in NAMED if each[1] == OWN]


@pytest.fixture(scope="module")
def put_metrics():
    """Return (namespace, dimensions) of what functions put, each with the variables of the template."""
    services = [
        each["Properties"]["Environment"]["Variables"]["POWERTOOLS_SERVICE_NAME"] for each in FUNCTIONS
    ]
    environment = {**os.environ, "POWERTOOLS_METRICS_NAMESPACE": OWN}
    ran = subprocess.run(
        [sys.executable, "-c", PUT, *services], env=environment, capture_output=True, text=True, check=True
    )
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    assert len(lines) == 2 * len(services)
    return [
        (directive["Namespace"], [{name: line[name] for name in names} for names in directive["Dimensions"]])
        for line in lines
        for directive in line["_aws"]["CloudWatchMetrics"]
    ]


@pytest.mark.parametrize(("where", "namespace", "name", "dimensions"), NAMED_OWN)
def test_what_alarms_and_dashboard_name_is_the_very_metric_that_each_function_puts(
    put_metrics, where, namespace, name, dimensions
):
    assert name in own_metrics()
    for put_namespace, put_dimensions in put_metrics:
        assert (put_namespace, put_dimensions) == (namespace, [dimensions]), where


def test_alarms_and_dashboard_name_metrics_of_ours():
    assert {name for name, namespace, *_ in watched() if namespace == OWN} >= {"ItemsGivenUpAlarm"}
    assert len({each[2] for each in NAMED_OWN}) > 10


def test_the_documentation_tells_of_each_metric_that_is_put_and_of_no_other():
    text = (ROOT / "docs/operating.md").read_text()
    table = text[text.index("| metric |") :].partition("\n\n")[0]
    named = {name for row in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert named == own_metrics()


def test_every_function_that_an_alarm_is_on_is_among_the_errors_of_the_dashboard():
    on = {each[3]["FunctionName"] for each in watched() if each[1:3] == ("AWS/Lambda", "Errors")}
    seen = {each[3]["FunctionName"] for each in shown() if each[1:3] == ("AWS/Lambda", "Errors")}
    assert {f"${{{name}}}" for name in on} == seen


def test_the_command_queue_is_watched_for_its_age_beyond_what_messages_wait_by_design():
    [alarm] = [each for each in watched() if each[2] == "ApproximateAgeOfOldestMessage"]
    assert alarm[3] == {"QueueName": "CommandQueue.QueueName"}
    longest_run = TEMPLATE["Parameters"]["RunTimeoutSeconds"]["MaxValue"]
    assert RESOURCES[alarm[0]]["Properties"]["Threshold"] >= QUEUE_DELAY_SECONDS_MAX + longest_run
