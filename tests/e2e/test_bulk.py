"""A fan-out over a thousand children while workers are killed: each runs, and the parent goes on once."""

import random
import time

from tests.e2e.conftest import ENDED, await_that

CHILDREN = 1_000
KILLS = 6
SECONDS_BETWEEN_KILLS = 3
# A busy machine takes its time; by itself it is a minute.
PATIENCE_SECONDS = 600


class Killer:
    """Ends a worker now and then, up to a number of times."""

    def __init__(self, stack):
        self.stack = stack
        self.killed = 0
        self.last_at = 0.0

    def strike(self):
        if self.killed == KILLS or time.monotonic() - self.last_at < SECONDS_BETWEEN_KILLS:
            return
        function = random.choice(["run", "run", "deliver"])
        pids = self.stack.worker_pids(function)
        if pids and self.stack.kill_worker(function, random.choice(pids)):
            self.killed += 1
            self.last_at = time.monotonic()


def read_all(api, path, name):
    """Return everything that a list has, page by page."""
    found, cursor = [], ""
    while True:
        answer = api.get(f"{path}&limit=100{cursor}")
        assert answer.status == 200, answer.body
        page = answer.json()
        found += page[name]
        if "cursor" not in page:
            return found
        cursor = f"&cursor={page['cursor']}"


def test_r02_a_thousand_children_are_joined_though_workers_are_killed(api, stack):
    instance_id = api.dispatch("bulk", children=CHILDREN)
    killer = Killer(stack)

    def ended():
        killer.strike()
        shown = api.show(instance_id)
        return shown if shown["status"] in ENDED else None

    shown = await_that(ended, seconds=PATIENCE_SECONDS, explain=stack.describe_failures)
    assert killer.killed == KILLS
    assert shown["status"] == "completed", shown["failure"]
    told = shown["output"]
    assert (told["total"], told["completed"]) == (CHILDREN, CHILDREN)
    assert told["outputs"] == list(range(1, CHILDREN + 1))

    dispatches = read_all(api, f"/dispatches?owner_id={instance_id}", "dispatches")
    assert {(each["status"], each["outcome"]) for each in dispatches} == {("done", "Completed")}
    assert len({each["instance_id"] for each in dispatches}) == CHILDREN
    children = read_all(api, "/instances?definition_id=bulk-child", "instances")
    assert {each["instance_id"] for each in children} == {each["instance_id"] for each in dispatches}
    assert len(children) == CHILDREN
    assert {each["status"] for each in children} == {"completed"}

    ends = [line for line in api.journal(instance_id) if line["status"] == "completed"]
    assert [line["outcome"] for line in ends] == ["Completed"], "the parent went on just once"
