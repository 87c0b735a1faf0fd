"""Publishing after a rollback: this code replaces and takes back versions that only newer code can read."""

import pytest

from aftercommit import Delay, Event, Sequence, StartAt, Step, Timer, Workflow, clock
from aftercommit.activities import TYPES
from aftercommit.definitions import find_pointer, load_definition
from aftercommit.delete import delete
from aftercommit.errors import NewerFormError
from aftercommit.occurrences import next_times, owner_of_occurrences
from aftercommit.publish import publish, retract
from aftercommit.sweep import sweep
from aftercommit.tables import SHARED_TENANT, ItemRow, key_of
from tests.integration.waits import send, trigger_rows
from tests.integration.world import STARTED_AT


class Nap(Delay):
    """An activity that only newer code has."""


def older(version, start):
    return Workflow("w", version=version, root=Sequence(start, Step("act", name="done")))


def newer(version, start):
    return Workflow("w", version=version, root=Sequence(start, Nap(1)))


def begin(**payload):
    return Event("begin", payload=payload, starts=True)


def every(seconds):
    return Timer(seconds, starts=True)


@pytest.fixture
def newer_code(monkeypatch):
    """Let code run that knows the activity, and then code that does not."""

    def run(action):
        with monkeypatch.context() as known:
            known.setitem(TYPES, "Nap", Nap)
            action()
        load_definition.cache_clear()

    return run


@pytest.fixture
def rolled_back(world, newer_code):
    """Publish a version 1, and under newer code a version 2; what follows is the code of before."""

    def publish_both(start, later_start):
        world.publish(older(1, start))
        newer_code(lambda: world.publish(newer(2, later_start)))
        with pytest.raises(NewerFormError):
            load_definition(SHARED_TENANT, "w", 2)

    return publish_both


def publish_own(start):
    """Publish as the custom resource of the older deploy does: its version 1 is stored already."""
    assert publish(SHARED_TENANT, older(1, start).definition)


def started(world):
    return [(int(head.version), head.status) for head in world.heads()]


def triggered():
    return [int(row.version) for row in trigger_rows()]


def armed():
    """Return version and time of each time of a schedule that is to come."""
    rows = ItemRow.query(key_of("default", owner_of_occurrences(SHARED_TENANT, "w")))
    return [
        (int(row.version), clock.from_text(row.deliver_at) - STARTED_AT)
        for row in rows
        if row.status == "undone"
    ]


def test_own_version_is_published_over_one_that_only_newer_code_can_read(world, rolled_back, log_lines):
    rolled_back(begin(), begin())
    publish_own(begin())
    assert find_pointer(SHARED_TENANT, "w") == 1
    assert "unknown activity type" in str([line for line in log_lines if "left behind" in str(line)])
    world.dispatch("w")
    assert [version for version, _ in started(world)] == [1]


def test_start_points_left_behind_by_a_rollback_start_nothing(world, rolled_back):
    rolled_back(begin(), begin())
    publish_own(begin())
    assert triggered() == [1, 2], "that of the newer version is not known to this code"
    send("begin")
    world.settle()
    assert started(world) == [(1, "completed")]


def test_start_points_left_behind_go_once_newer_code_is_back_and_replaces_their_version(
    world, rolled_back, newer_code
):
    rolled_back(begin(a=1), begin(a=2))
    publish_own(begin(a=1))
    newer_code(lambda: world.publish(newer(2, begin(a=2))))
    assert triggered() == [2]
    newer_code(lambda: world.publish(newer(3, begin(a=3))))
    assert triggered() == [3]


def test_a_version_that_only_newer_code_can_read_can_be_taken_back(world, rolled_back):
    rolled_back(begin(), begin())
    retract(SHARED_TENANT, "w")
    assert find_pointer(SHARED_TENANT, "w") is None
    send("begin")
    world.settle()
    assert (started(world), triggered()) == ([], [2])


def test_a_schedule_that_goes_on_unchanged_through_a_rollback_keeps_its_next_time(world, rolled_back):
    rolled_back(every(60), every(60))
    world.clock.at += 30
    publish_own(every(60))
    assert armed() == [(1, 60)]
    world.settle(seconds=35)
    assert started(world) == [(1, "completed")]


def test_times_of_a_schedule_of_newer_code_go_with_its_version(world, rolled_back):
    rolled_back(every(60), every(90))
    world.clock.at += 30
    publish_own(every(60))
    assert armed() == [(1, 90)], "60 from now; that of the newer version is not there any more"
    retract(SHARED_TENANT, "w")
    assert armed() == []


def test_times_of_a_schedule_of_newer_code_go_when_it_is_taken_back(world, rolled_back):
    rolled_back(every(60), every(90))
    retract(SHARED_TENANT, "w")
    assert (armed(), next_times(SHARED_TENANT, "w")) == ([], {})
    world.settle()
    assert started(world) == []


def test_a_time_that_comes_before_the_older_version_is_published_waits_for_it(world, rolled_back):
    rolled_back(every(60), every(60))
    world.settle(seconds=62)
    assert (started(world), armed()) == ([], [(2, 60)]), "left to newer code"
    publish_own(every(60))
    world.settle(seconds=30)
    assert started(world) == [(1, "completed")]


def test_an_instant_that_has_come_does_not_come_again_by_a_rollback(world, rolled_back):
    at = StartAt(clock.to_text(STARTED_AT + 60), starts=True)
    world.publish(older(1, at))
    world.settle(seconds=65)
    assert started(world) == [(1, "completed")]
    rolled_back(at, at)
    publish_own(at)
    world.settle()
    assert (started(world), armed()) == ([(1, "completed")], [])


def test_an_instant_that_has_come_does_not_come_again_though_its_instance_is_gone(world, rolled_back):
    at = StartAt(clock.to_text(STARTED_AT + 60), starts=True)
    world.publish(older(1, at))
    world.settle(seconds=65)
    [head] = world.heads()
    delete(head.tenant, head.instance_id)
    world.clock.at += 86_401
    sweep()
    rolled_back(at, at)
    publish_own(at)
    world.settle()
    assert (started(world), armed()) == ([], [])


def test_an_instant_that_is_still_to_come_comes_once_after_a_rollback(world, rolled_back):
    at = StartAt(clock.to_text(STARTED_AT + 60), starts=True)
    rolled_back(at, every(3_600))
    publish_own(at)
    world.settle(seconds=65)
    assert (started(world), armed()) == ([(1, "completed")], [])
