"""One stack for all end-to-end tests: built, deployed and ended once."""

import os
import shutil
import socket
import time
from pathlib import Path

import pytest

from scripts.emulator import REGION, ROOT
from scripts.local_stack import STACK_NAME, deployed

# A build is kept by the path of its workflows, so the place is the same each time.
WORKFLOWS_DIR = ROOT / ".build/e2e-workflows"

# Leases and redeliveries that end while a test waits for them.
SWEEP_SECONDS = 4
HEAD_START_SECONDS = 15
ACCOUNT = "000000000000"
EVENT_QUEUE = "their-events"
PARAMETERS = {
    "WorkflowsModule": "e2e_workflows",
    "ExampleLedger": "true",
    "RunTimeoutSeconds": "8",
    "CommandVisibilitySeconds": "8",
    "AckTimeoutSeconds": "15",
    "EagerHeadStartSeconds": str(HEAD_START_SECONDS),
    "SweepIntervalSeconds": str(SWEEP_SECONDS),
    "LeasesMax": "2",
    # A deliverer of events that is killed is made good for soon.
    "EventSendTimeoutSeconds": "4",
    "EventClaimSeconds": "8",
    "EventQueueArn": f"arn:aws:sqs:{REGION}:{ACCOUNT}:{EVENT_QUEUE}",
    "LargePayloads": "true",
    "HttpPrivateAddresses": "true",  # what these tests call is on this machine
}
ENDED = ("completed", "faulted", "cancelled")
# Long enough for a busy machine: a test that fails waits for it, one that passes does not.
PATIENCE_SECONDS = 120


def stage_workflows(target: Path) -> Path:
    """Put the example and the workflows of these tests into one layer folder."""
    shutil.rmtree(target, ignore_errors=True)
    for source in (ROOT / "layers/workflows/workflows", Path(__file__).parent / "e2e_workflows"):
        shutil.copytree(source, target / source.name, ignore=shutil.ignore_patterns("__pycache__"))
    return target


def edit_build(lean: Path, name: str, texts: dict[str, str]) -> Path:
    """Copy a build, and give modules of its e2e_workflows other texts; returns the copy's folder."""
    copy = ROOT / ".build" / name
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(lean, copy, copy_function=os.link)
    for module, text in texts.items():
        path = copy / f"WorkflowsLayer/python/e2e_workflows/{module}.py"
        path.unlink()  # a link to the build's own
        path.write_text(text)
        for compiled in path.parent.glob(f"__pycache__/{module}.*"):
            compiled.unlink()
    return copy


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def await_that(condition, *, seconds=PATIENCE_SECONDS, explain=lambda: ""):
    """Poll until a condition returns something true, and return that."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.3)
    raise AssertionError(f"not within {seconds} seconds {explain()}")


# What leaves the stack otherwise than it found it comes late; what looks back at everything comes last.
LAST = ("test_releases.py", "test_updates.py", "test_rights.py")
LEFT_OUT = pytest.StashKey[int]()


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: LAST.index(item.path.name) if item.path.name in LAST else -1)


def pytest_deselected(items):
    for config in {item.config for item in items}:
        config.stash[LEFT_OUT] = config.stash.get(LEFT_OUT, 0) + len(items)


@pytest.fixture(scope="session")
def whole_session(request):
    """Skip what looks back at all of these tests, unless all have run, and none has failed."""
    folder = Path(__file__).parent
    chosen = [each for each in request.config.args if Path(each).resolve() != folder]
    if chosen or request.config.stash.get(LEFT_OUT, 0):
        pytest.skip("looks back at all end-to-end tests, and only some of them are run")
    if request.session.testsfailed:
        pytest.skip("looks back at all end-to-end tests, and some have failed")


@pytest.fixture(scope="session")
def stack(request):
    terminal = request.config.pluginmanager.getplugin("terminalreporter")
    with deployed(
        port=free_port(),
        parameters=PARAMETERS,
        workflows_dir=stage_workflows(WORKFLOWS_DIR),
        noting=True,
        say=terminal.write_line,
    ) as running:
        running.invoke("sweep", {})  # as the schedule does, a minute after the deploy for the first time
        yield running


def resources_of(stack):
    """Return the physical names of the stack's resources by those of the template."""
    pages = (
        stack.client("cloudformation").get_paginator("list_stack_resources").paginate(StackName=STACK_NAME)
    )
    return {
        each["LogicalResourceId"]: each["PhysicalResourceId"]
        for page in pages
        for each in page["StackResourceSummaries"]
    }


class Api:
    """The HTTP API, as these tests use it."""

    def __init__(self, stack):
        self.stack = stack

    def get(self, path, **headers):
        return self.stack.request("GET", path, headers=headers)

    def post(self, path, body=None, **headers):
        return self.stack.request("POST", path, body, headers)

    def dispatch(self, workflow, **values):
        answer = self.post(f"/workflows/{workflow}/dispatch", {"input": values})
        assert answer.status == 202, answer.body
        return answer.json()["instance_id"]

    def show(self, instance_id):
        answer = self.get(f"/instances/{instance_id}")
        assert answer.status == 200, answer.body
        return answer.json()

    def journal(self, instance_id):
        answer = self.get(f"/instances/{instance_id}/journal?limit=100")
        assert answer.status == 200, answer.body
        return [line for each in answer.json()["revisions"] for line in each["activities"]]

    def await_end(self, instance_id, *, seconds=PATIENCE_SECONDS):
        def ended():
            shown = self.show(instance_id)
            return shown if shown["status"] in ENDED else None

        return await_that(
            ended,
            seconds=seconds,
            explain=lambda: f"{self.show(instance_id)}\n{self.stack.describe_failures()[-3000:]}",
        )

    def await_dispatches(self, instance_id):
        """Wait until every dispatch of an instance is settled, and return them."""

        def settled():
            found = self.show(instance_id)["dispatches"]
            return found if found and all(each["status"] != "undone" for each in found) else None

        return await_that(settled, explain=lambda: self.show(instance_id))


@pytest.fixture(scope="session")
def api(stack):
    return Api(stack)


@pytest.fixture(scope="session")
def ledger(stack):
    """Return a function that reads an order's rows of the ledger: one for each activity execution."""

    def read(order_id):
        answer = stack.client("dynamodb").query(
            TableName=stack.outputs["LedgerTable"],
            KeyConditionExpression="order_id = :order",
            ExpressionAttributeValues={":order": {"S": order_id}},
            ConsistentRead=True,
        )
        return [{name: next(iter(value.values())) for name, value in row.items()} for row in answer["Items"]]

    return read


@pytest.fixture(scope="session")
def effects(ledger):
    """Return a function that reads an order's effects from the ledger, as (activity, execution id) pairs."""

    def read(order_id):
        return [(row["activity"], row["effect_id"].partition("#")[2]) for row in ledger(order_id)]

    return read


@pytest.fixture(scope="session")
def deadly_instance(api):
    """An instance whose step ends each worker that runs it; started early, as its end takes a few leases."""
    return api.dispatch("deadly", order_id="death-deadly")
