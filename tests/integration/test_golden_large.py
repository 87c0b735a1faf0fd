"""Golden rows of what is large, with the objects that they name; and announcements of what never came."""

import json

import pytest

from aftercommit import DispatchWorkflow, Sequence, Step, Workflow, aws, inputs, payloads, var
from aftercommit.delete import KEPT_SECONDS, delete
from aftercommit.errors import NotFoundError
from aftercommit.limits import PAYLOAD_COMMIT_SECONDS
from aftercommit.settings import settings
from aftercommit.sweep import sweep
from aftercommit.tables import PAYLOADS_PREFIX
from tests.integration.faults import Crash
from tests.integration.golden import (
    NEWEST,
    masked,
    of_every_version,
    put_rows,
    read_golden,
    take_rows,
    write_golden_if_asked,
)
from tests.integration.payload_flows import BUCKET, announcements, objects
from tests.integration.world import STARTED_AT, effects, raw_rows

LOADED_AT = STARTED_AT + 3 * PAYLOAD_COMMIT_SECONDS
LARGE_BYTES = 4_096  # what counts as large while these are written: golden files should not
TEXT = "é" * (LARGE_BYTES // 2)

below = Workflow("below", inputs={"text": str}, root=Sequence(), output={"made": inputs.text})
above = Workflow(
    "above",
    inputs={"text": str},
    root=Sequence(
        Step("act", name="first", value=inputs.text, result="made"),
        Step("act", name="second"),
        DispatchWorkflow("below", input={"text": var.made}, wait=True, result="told"),
        Step("act", name="last", value=var.told.made, result="end"),
    ),
    output=var.end,
)

# What becomes of each instance once its rows are loaded.
ENDINGS = {"held": "completed", "told": "completed", "died": "completed"}


@pytest.fixture(autouse=True)
def _bucket(world, faults, set_environment):
    set_environment(DUE_SHARDS="8", PAYLOAD_BUCKET=BUCKET, LARGE_PAYLOADS="true")
    aws.client("s3").create_bucket(Bucket=BUCKET)
    faults.watch("s3")


def write_rows(world, faults):
    """Bring a deployment of large instances into the middle of its work; returns its rows and objects."""
    world.publish(below, above)

    def start(instance_id):
        world.dispatch("above", {"text": TEXT}, instance_id=instance_id)

    def die(action, operation, **more):
        faults.before(operation, Crash(), **more)
        with pytest.raises(Crash):
            action()

    start("gone")
    world.settle(seconds=60)
    delete("default", "gone")
    die(lambda: start("never-born"), "TransactWriteItems")
    world.clock.at += PAYLOAD_COMMIT_SECONDS + 1
    sweep()  # its objects are given up
    die(lambda: start("doomed"), "TransactWriteItems")
    world.clock.at += PAYLOAD_COMMIT_SECONDS + 1
    die(sweep, "DeleteObject")  # amid giving them up
    die(lambda: start("announced"), "TransactWriteItems")
    for instance_id in ("held", "told"):
        start(instance_id)
        world.run(instance_id)
    world.handle_item(next(item for item in world.items("start") if item.owner_id == "told"))
    start("died")
    # The step before is committed, in a revision that the head does not cover yet.
    die(lambda: world.run("died"), "TransactWriteItems", match="revision#", skip=1)
    world.clock.at = LOADED_AT
    return take_rows(), {key: read_object(key) for key in objects()}


def read_object(key):
    return aws.client("s3").get_object(Bucket=BUCKET, Key=key)["Body"].read().decode()


def without_names(rows, objects_):
    """Return rows and objects with one name for all commits: the real ones are random."""
    names = {key.split("/")[2] for key in objects_} | {
        row["row"]["S"].removeprefix(PAYLOADS_PREFIX)
        for row in rows["InstancesTable"]
        if row["row"]["S"].startswith(PAYLOADS_PREFIX)
    }
    text = json.dumps([rows, sorted(objects_.items())])
    for name in names:
        text = text.replace(name, "name")
    rows, pairs = json.loads(text)
    return masked(rows), sorted(pairs)


def test_todays_writers_write_the_newest_golden_rows_and_objects_of_what_is_large(world, faults, monkeypatch):
    monkeypatch.setattr(payloads, "PAYLOAD_BYTES_MIN", LARGE_BYTES)
    rows, stored = write_rows(world, faults)
    write_golden_if_asked(large=rows, objects=stored)
    assert without_names(rows, stored) == without_names(
        read_golden(NEWEST, "large"), read_golden(NEWEST, "objects")
    )


def load(world, folder):
    put_rows(read_golden(folder, "large"))
    for key, text in read_golden(folder, "objects").items():
        aws.client("s3").put_object(Bucket=BUCKET, Key=key, Body=text.encode())
    world.clock.at = LOADED_AT


@of_every_version
def test_what_is_large_is_read_from_golden_objects_and_goes_on(world, folder):
    load(world, folder)
    for instance_id in ENDINGS:
        assert world.show(instance_id)["input"] == {"text": TEXT}
    world.settle(10_000)
    assert (world.raised, world.dead_letters()) == ([], [])
    assert {instance_id: world.statuses()[instance_id] for instance_id in ENDINGS} == ENDINGS
    assert all(world.show(instance_id)["output"] == TEXT for instance_id in ENDINGS)
    done = [(name, instance_id) for name, instance_id, _ in effects]
    told = "the first step of `died` is told by its revision, and not done again"
    assert sorted(done) == sorted([("second", "died"), *(("last", each) for each in ENDINGS)]), told


@of_every_version
def test_golden_announcements_of_commits_that_never_came_are_given_up_with_their_objects(world, folder):
    load(world, folder)
    given_up = ("never-born", "doomed", "announced")
    assert {key.split("/")[1] for key in objects()} > {"doomed", "announced"}
    assert {"due_at", "doomed"} <= next(row for row in announcements() if "#doomed" in str(row)).keys()
    world.settle(10_000)
    assert not {key.split("/")[1] for key in objects()} & {*given_up}
    left = {row["instance_key"]["S"].partition("#")[2]: row for row in announcements() if "ttl" in row}
    assert left.keys() >= {*given_up}
    assert not any("due_at" in row for row in announcements())


@of_every_version
def test_a_golden_deleted_instance_goes_in_time_with_its_objects(world, folder):
    load(world, folder)
    with pytest.raises(NotFoundError):
        world.show("gone")
    assert any(key.startswith("default/gone/") for key in objects())
    world.settle(KEPT_SECONDS)
    assert not any(key.startswith("default/gone/") for key in objects())
    assert "default#gone" not in {row["instance_key"]["S"] for row in raw_rows(settings().instances_table)}
