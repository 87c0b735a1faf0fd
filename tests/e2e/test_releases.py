"""Two builds of one stack, deployed over each other while workflows run, and at work side by side.

The newer build has a version 2 of most trees, with other steps, an activity that the older code lacks, and an
activity type that the older runtime lacks (newer_releases.py): in a workflow of its own, and in a version 2
that the rollback publishes over. It is deployed over the older, the older over it (a rollback), and it once
more, while a caller starts instances all the time.

Shown: whichever build meets an instance goes on with it, in the version that it started on; nothing is lost
or doubled; what the older code cannot do waits for the newer. Not shown by these deploys: a sandbox of the
old code that lives on beside the new one of the same function, as on AWS. The emulator ends the workers of a
function that is updated, amid their steps, which is a trial of its own. So in one test, processes of both
builds serve one queue. Both builds share the runtime but for the new activity type; what only a newer runtime
writes is met in tests/integration/test_newer_forms.py.
"""

import contextlib
import http.client
import itertools
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from scripts.emulator import ROOT
from scripts.local_build import built
from scripts.local_stack import deploy
from tests.e2e import racers
from tests.e2e.conftest import PARAMETERS, PATIENCE_SECONDS, WORKFLOWS_DIR, await_that, edit_build
from tests.e2e.racers import Racers

STEPS = {
    ("relayed", 1): {"first", "child", "last"},
    ("relayed", 2): {"first", "added", "child", "last"},
    ("released", 1): {"first", "last"},
    ("released", 2): {"first", "seal", "last"},
    ("napping", 1): {"first", "last"},
}
EACH = 3
DELAYS_SECONDS = (1, 4, 9)


class Caller:
    """Starts `relayed` all the time, each under a key of its own, and insists until told that it has."""

    def __init__(self, api):
        self.api = api
        self.versions = {}  # that each instance was found to have right after its start; by its id
        self.orders = {}
        self._stopping = threading.Event()

    def __enter__(self):
        self._pool = ThreadPoolExecutor(1)
        self._calling = self._pool.submit(self._call)
        return self

    def __exit__(self, *_):
        self._stopping.set()
        self._pool.shutdown()
        self._calling.result()

    def _call(self):
        for number in itertools.count():
            order_id = f"relayed-{number}"
            body = {"input": {"order_id": order_id, "seconds": DELAYS_SECONDS[number % len(DELAYS_SECONDS)]}}
            key = {"Idempotency-Key": order_id}
            started = self._insist("POST", "/workflows/relayed/dispatch", body, key)
            self.orders[order_id] = started["instance_id"]
            shown = self._insist("GET", f"/instances/{started['instance_id']}")
            self.versions[started["instance_id"]] = shown["version"]
            if self._stopping.wait(0.5):
                return

    def _insist(self, *request):
        """Ask until there is an answer: while it is deployed anew, the API may have none."""

        def answered():
            with contextlib.suppress(OSError, http.client.HTTPException):
                answer = self.api.stack.request(*request)
                assert answer.status in (200, 202) or answer.status >= 500, answer.body
                return answer.json() if answer.status < 500 else None
            return None

        return await_that(answered, explain=self.api.stack.describe_failures)

    def _count(self, version):
        return list(self.versions.values()).count(version)

    def await_more(self, version):
        """Wait until some more instances have started on a version."""
        enough = EACH + self._count(version)

        def started():
            assert not self._calling.done(), self._calling.result()
            return self._count(version) >= enough

        await_that(started, explain=lambda: self.versions)


class Releases:
    """What went on while the builds were deployed over each other."""

    def __init__(self, api, stack, builds):
        self.api, self.stack, self.builds = api, stack, builds
        self.starting = {}  # by build: the workflows that start by themselves once it is deployed
        self.held = {}  # by workflow and version: the instances that waited for a release, by order

    def deploy(self, build):
        deploy(self.builds[build], self.stack.emulator.port, PARAMETERS)
        self.starting[build] = [
            name for name in ("ringing", "chiming") if self.api.get(f"/workflows/{name}").json()["triggers"]
        ]

    def ring(self, version):
        """Tell the event at which `ringing` starts, and wait for what it starts of a version."""
        assert self.api.post("/events/ring", {}).status == 202
        await_that(lambda: version in self.rung(), explain=self.stack.describe_failures)

    def rung(self):
        """Return the versions of what has started so, first to last."""
        listed = self.api.get("/instances?definition_id=ringing").json()["instances"]
        return [each["version"] for each in reversed(listed)]

    def hold(self, workflow, version):
        """Start instances that wait for their release."""
        orders = [f"{workflow}-{version}-{number}" for number in range(EACH)]
        self.held[workflow, version] = held = {
            order_id: self.api.dispatch(workflow, order_id=order_id) for order_id in orders
        }
        for instance_id in held.values():
            await_that(lambda id_=instance_id: self.api.show(id_)["status"] == "suspended")
            assert self.api.show(instance_id)["version"] == version

    def release(self, workflow, version):
        for order_id in self.held[workflow, version]:
            assert self.api.post("/events/release", {"payload": {"order": order_id}}).status == 202

    def await_incidents(self, workflow, version):
        for instance_id in self.held[workflow, version].values():
            found = await_that(lambda id_=instance_id: self.api.show(id_)["incidents"])
            assert {each["error"]["type"] for each in found} == {"UnknownActivityError"}

    def await_left(self, workflow, version):
        """Wait until the older code has met each of these instances, and left it as it is."""
        for instance_id in self.held[workflow, version].values():
            path = f"/instances/{instance_id}"
            answer = await_that(lambda path_=path: (it := self.api.get(path_)).status == 503 and it)
            assert "newer code" in answer.json()["error"]["message"]
        assert await_that(lambda: self.stack.logs("run", f"workflow '{workflow}' version {version}"))


@pytest.fixture(scope="module")
def builds():
    with built(WORKFLOWS_DIR) as (folder, fresh):
        assert not fresh, "the build that the stack was deployed from"
        package = folder / "lean/WorkflowsLayer/python/e2e_workflows"
        initial = (package / "__init__.py").read_text()
        newer = {
            "releases": (ROOT / "tests/e2e/newer_releases.py").read_text(),
            "__init__": initial + "from e2e_workflows.releases import napping\n",
        }
        yield {"old": folder / "lean", "new": edit_build(folder / "lean", "e2e-newer", newer)}


@pytest.fixture(scope="module")
def releases(api, stack, builds):
    """An update, a rollback, and the update once more, while instances run and wait."""
    told = Releases(api, stack, builds)
    with Caller(api) as told.caller:
        told.caller.await_more(1)
        told.hold("released", 1)
        told.deploy("new")
        told.caller.await_more(2)
        told.release("released", 1)
        told.hold("released", 2)
        told.hold("napping", 1)
        told.ring(2)
        told.deploy("old")
        told.caller.await_more(1)
        told.ring(1)
        told.release("released", 2)
        told.release("napping", 1)
        told.await_incidents("released", 2)
        told.await_left("napping", 1)
        told.deploy("new")
        told.caller.await_more(2)
    return told


@pytest.fixture(scope="module")
def whole(api, ledger):
    """Return a function that asserts that an instance has done all that its version says, and all of it once.

    It returns the builds whose code has run a step of it.
    """

    def check(workflow, version, order_id, instance_id):
        shown = api.await_end(instance_id)
        assert shown["status"] == "completed"
        assert (shown["version"], shown["output"]) == (version, {"version": version})
        rows = ledger(order_id)
        assert Counter(row["activity"] for row in rows) == Counter(STEPS[workflow, version])
        return {row["build"] for row in rows}

    return check


def test_an_update_and_a_rollback_lose_and_double_nothing_of_what_runs_meanwhile(api, releases, whole):
    caller = releases.caller
    builds = {
        (version, build)
        for order_id, instance_id in caller.orders.items()
        for version in [caller.versions[instance_id]]
        for build in whole("relayed", version, order_id, instance_id)
    }
    assert builds >= {(1, "old"), (2, "new")}
    listed, cursor = [], ""
    while cursor is not None:
        page = api.get(f"/instances?definition_id=relayed&limit=100{cursor}").json()
        listed += [each["instance_id"] for each in page["instances"]]
        cursor = f"&cursor={page['cursor']}" if "cursor" in page else None
    assert sorted(listed) == sorted(caller.orders.values()), "each call has started one instance"


def test_a_rollback_brings_back_what_starts_by_itself(releases):
    assert releases.starting == {"old": ["ringing", "chiming"], "new": ["ringing"]}


def test_a_rollback_publishes_over_a_version_that_the_older_runtime_cannot_read(api, releases):
    assert releases.rung() == [2, 1], "what the newer version has left behind started nothing"
    for each in api.get("/instances?definition_id=ringing").json()["instances"]:
        assert api.await_end(each["instance_id"])["status"] == "completed"


def test_newer_code_ends_what_has_started_on_the_version_before(releases, whole):
    for order_id, instance_id in releases.held["released", 1].items():
        assert whole("released", 1, order_id, instance_id) == {"old", "new"}


def test_workers_of_two_builds_serve_one_queue(stack, builds, ledger):
    environment = racers.tables_and_queues(stack, "releases")
    workers = {
        build: Racers({**environment, "WORKFLOWS_PATH": str(folder / "WorkflowsLayer/python")}, racers=1)
        for build, folder in builds.items()
    }
    with contextlib.ExitStack() as closing, ThreadPoolExecutor() as both:
        started = {}
        for version, (build, worker) in enumerate(workers.items(), 1):
            closing.callback(worker.close)
            worker.one(racers.publish)
            for number in range(4):
                values = {"order_id": f"{build}-{number}", "seconds": 1}
                started[version, values["order_id"]] = worker.one(racers.dispatch, "relayed", values)
        ids = list(started.values())
        serving = [
            both.submit(worker.one, racers.serve_until_ended, ids, PATIENCE_SECONDS)
            for worker in workers.values()
        ]
        assert all(each.result() for each in serving)
        shown = {key: workers["old"].one(racers.show, each) for key, each in started.items()}
    served = set()
    for (version, order_id), each in shown.items():
        assert (each["status"], each["output"]) == ("completed", {"version": version})
        rows = ledger(order_id)
        assert Counter(row["activity"] for row in rows) == Counter(STEPS["relayed", version])
        served |= {(version, row["build"]) for row in rows}
    assert served == {(1, "old"), (1, "new"), (2, "old"), (2, "new")}


@pytest.mark.parametrize(("workflow", "version"), [("released", 2), ("napping", 1)])
def test_what_older_code_cannot_do_waits_and_ends_when_the_newer_is_back(releases, whole, workflow, version):
    for order_id, instance_id in releases.held[workflow, version].items():
        assert whole(workflow, version, order_id, instance_id) == {"new"}
