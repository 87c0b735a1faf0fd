"""The command line on the deployed stack, as a program of its own; and a new project, deployed."""

import json
import os
import subprocess
import sys

import pytest

from scripts.emulator import ROOT, clean_environment
from scripts.local_build import TOOLS, run_tool
from scripts.local_stack import STACK_NAME
from tests.e2e.conftest import await_that

ORDER = {
    "order_id": "cli-1",
    "customer": "Zoë",
    "amount": 4200,
    "address": "Main Street 1",
    "items": [{"sku": "a", "quantity": 2}],
}
PATH = os.pathsep.join([str(ROOT / "cli"), str(ROOT / "layers/runtime")])
SERVED = (ROOT / "template.yaml").read_text(encoding="utf-8")


class Commands:
    """Runs the program against an address, with a stack's name for what AWS itself is asked."""

    def __init__(self, stack, api_url, name):
        self.environment = {
            **clean_environment(),
            **stack.environment,
            "PYTHONPATH": PATH,
            "AFTERCOMMIT_API_URL": api_url,
            "AFTERCOMMIT_STACK": name,
        }

    def __call__(self, *arguments, stdin="", seconds=180):
        ran = subprocess.run(
            [sys.executable, "-m", "aftercommit_cli", *map(str, arguments)],
            env=self.environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        assert "Traceback" not in ran.stderr
        return ran

    def json(self, *arguments, code=0, **more):
        ran = self(*arguments, "--json", **more)
        assert ran.returncode == code, ran.stdout + ran.stderr
        return json.loads(ran.stdout)


@pytest.fixture(scope="module")
def cli(stack):
    return Commands(stack, stack.api_url, STACK_NAME)


def start(cli, workflow, **values):
    return cli.json("start", workflow, "--input", json.dumps(values))["instance_id"]


def test_an_order_is_started_watched_and_found_again(cli):
    ran = cli(
        "start", "place-order", "--input", "-", "--correlation-id", "cli", "--watch", stdin=json.dumps(ORDER)
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "charge_card" in ran.stdout
    assert '"tracking"' in ran.stdout.splitlines()[-1]
    listed = cli.json("list", "--correlation-id", "cli", "--all")["instances"]
    [order] = [each for each in listed if each["definition_id"] == "place-order"]
    shown = cli.json("get", order["instance_id"])
    assert shown["status"] == "completed"
    assert shown["input"] == ORDER
    assert order["instance_id"] in cli("list", "--workflow", "place-order", "--status", "completed").stdout


def test_a_fault_is_told_by_the_exit_code_and_found_among_the_incidents(cli):
    instance_id = start(cli, "faulty", order_id="cli-f")
    assert cli("watch", instance_id).returncode == 4
    assert instance_id in cli("incidents", "--all").stdout


def test_an_event_and_a_completed_task_let_instances_go_on(cli):
    hearing = start(cli, "hearing", order_id="cli-h")
    sent = cli.json("event", "paid", "--payload", '{"order": "cli-h"}', "--input", '{"by": "cli"}')
    assert sent["stimulus_id"]
    assert json.loads(cli("watch", hearing, "--json").stdout.splitlines()[-1])["output"] == {"by": "cli"}
    asking = cli.json("start", "asking", "--execute", "--input", '{"order_id": "cli-a"}')
    [bookmark] = asking["bookmarks"]
    assert cli("complete", bookmark["token"], "--input", '"yes"').returncode == 0
    assert cli("watch", asking["instance_id"]).returncode == 0


def test_a_cancelled_instance_is_told_by_the_exit_code(cli):
    instance_id = start(cli, "pausing", order_id="cli-c", seconds=3600)
    assert cli.json("cancel", instance_id)["cancelled"] is True
    assert cli("watch", instance_id).returncode == 5
    assert cli.json("cancel", instance_id)["cancelled"] is False


def test_a_refusal_names_the_field(cli):
    ran = cli("start", "place-order", "--input", json.dumps({**ORDER, "amount": "much"}))
    assert ran.returncode == 1
    assert ran.stderr.startswith("Error: input.amount: ")


def test_who_may_not_call_is_refused_and_a_dead_address_is_not_reached(cli, stack):
    iam = stack.client("iam")
    iam.create_user(UserName="cli-nobody")
    key = iam.create_access_key(UserName="cli-nobody")["AccessKey"]
    nobody = Commands(stack, stack.api_url, STACK_NAME)
    nobody.environment["AWS_ACCESS_KEY_ID"] = key["AccessKeyId"]
    nobody.environment["AWS_SECRET_ACCESS_KEY"] = key["SecretAccessKey"]
    refused = nobody("workflows")
    assert refused.returncode == 1
    assert "403" in refused.stderr
    assert cli("workflows", "--api-url", "http://127.0.0.1:9").returncode == 3


@pytest.mark.skipif("RouteKey: GET /outbox" not in SERVED, reason="the API does not serve it yet")
def test_what_is_pending_stands_in_the_outbox(cli):
    instance_id = start(cli, "pausing", order_id="cli-o", seconds=3600)
    cli("watch", instance_id, "--timeout", "20")
    items = cli.json("outbox", "--all")["items"]
    assert instance_id in [each["owner_id"] for each in items]
    cli("cancel", instance_id)


@pytest.mark.skipif("{id}/redrive" not in SERVED, reason="the API does not serve it yet")
def test_a_dispatch_that_failed_is_redriven_when_its_workflow_is_there(cli, api, stack):
    child = {"type": "DispatchWorkflow", "workflow": "cli-later"}
    for name, tree in (("cli-parent", child), ("cli-later", {"type": "Sequence", "activities": []})):
        if name == "cli-later":
            parent = start(cli, "cli-parent")
            [dispatch] = api.await_dispatches(parent)
            assert dispatch["status"] == "failed"
            assert dispatch["item_id"] in cli("dispatches").stdout
            assert "would be redriven" in cli("redrive", "--all", "--workflow", name, "--dry-run").stdout
        stored = stack.request("PUT", f"/workflows/{name}", {"root": tree})
        assert stored.status == 200, stored.body
        assert api.post(f"/workflows/{name}/publish").status == 200
    answer = cli.json("redrive", "--all", "--workflow", "cli-later", "--yes")
    assert [each["item_id"] for each in answer["redriven"]] == [dispatch["item_id"]]
    await_that(lambda: api.get(f"/instances/{dispatch['instance_id']}").status == 200)
    assert cli("watch", dispatch["instance_id"]).returncode == 0


# --- a project of one's own ---


@pytest.fixture(scope="module")
def project(stack, cli, tmp_path_factory):
    """Make a project and deploy it, as its README says, beside the stack of these tests."""
    folder = tmp_path_factory.mktemp("projects") / "cli-shop"
    made = cli("init", folder)
    assert made.returncode == 0, made.stderr
    environment = {**stack.environment, "SAM_CLI_POLL_DELAY": "0.3"}
    run_tool([TOOLS / "sam", "build"], folder)
    run_tool([TOOLS / "sam", "deploy", "--no-confirm-changeset", "--no-progressbar"], folder, environment)
    found = stack.client("cloudformation").describe_stacks(StackName="cli-shop")["Stacks"][0]["Outputs"]
    outputs = {each["OutputKey"]: each["OutputValue"] for each in found}
    address = f"{stack.endpoint_url}/_aws/execute-api/{outputs['ApiId']}"
    return Commands(stack, address, "cli-shop")


def test_a_new_project_deploys_and_its_example_runs(project):
    published = {each["id"] for each in project.json("workflows")["workflows"]}
    assert published == {"greet", "write-greeting"}
    ran = project("start", "greet", "--input", '{"name": "Ada"}', "--watch")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert '{"greeting": "Hello, Ada!"}' in ran.stdout.splitlines()[-1]


def test_the_doctor_finds_a_new_stack_well_and_tells_what_is_switched_off(project, stack):
    answer = project.json("doctor")
    levels = {each["check"]: each["level"] for each in answer["checks"]}
    # Its project names nobody for alarms to tell.
    assert levels.pop("alarm actions") == "warning"
    assert set(levels.values()) == {"ok"}, answer
    assert {"stack", "api", "clock", "workflows", "alarms"} <= levels.keys()
    assert len([name for name in levels if name.startswith("queue ")]) >= 4
    assert len([name for name in levels if name.startswith("mapping ")]) >= 3
    events = stack.client("events")
    [rule] = [each["Name"] for each in events.list_rules()["Rules"] if each["Name"].startswith("cli-shop")]
    events.disable_rule(Name=rule)
    try:
        ran = project("doctor")
    finally:
        events.enable_rule(Name=rule)
    assert ran.returncode == 1
    assert "DISABLED" in ran.stdout
    assert f"aws events enable-rule --name {rule}" in " ".join(ran.stdout.split())


def test_the_doctor_of_a_stack_that_is_not_there_says_so(project):
    ran = project("doctor", "--stack", "nowhere")
    assert ran.returncode == 1
    assert "nowhere" in ran.stderr
