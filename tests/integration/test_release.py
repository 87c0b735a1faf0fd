"""A database that is away costs time only: leases are given back, and no worker counts as dead."""

import pytest

from aftercommit import Sequence, Step, Workflow
from aftercommit.errors import TryLaterError
from aftercommit.instances import lease, load, release
from aftercommit.settings import settings
from aftercommit.writes import TRIES_MAX
from tests.integration.faults import Crash, refusal
from tests.integration.world import effects

throttled = refusal("ProvisionedThroughputExceededException")
two_steps = Workflow("two-steps", root=Sequence(Step("act", name="a"), Step("act", name="b")))


@pytest.fixture
def born(world):
    world.publish(two_steps)
    return world.dispatch("two-steps")


def fail_commits(faults, bursts):
    faults.before("PutItem", throttled, times=bursts * TRIES_MAX, match="revision#")


def test_throttling_through_many_leases_faults_no_instance(world, faults, born):
    often = 2 * settings().leases_max + 1
    fail_commits(faults, often)
    for _ in range(often):
        with pytest.raises(TryLaterError):
            world.run(born)
        assert load_stalled(world, born) == 0
    world.run(born)
    assert world.show(born)["status"] == "completed"
    assert world.incidents() == []
    head = world.head(born)
    assert (head.leases, head.released) == (None, None)


def load_stalled(world, instance_id):
    """Return how many workers would count as dead to one that took the lease now, and give it back."""
    held = load(lease("default", instance_id, world.clock.at + 60, waiting=False))
    release(held.head)
    return held.stalled


def test_a_lease_given_back_can_be_taken_at_once(world, faults, born):
    fail_commits(faults, 1)
    with pytest.raises(TryLaterError):
        world.run(born)
    assert world.head(born).lease_until is None
    world.run(born)
    assert [name for name, _, _ in effects] == ["a", "a", "b"]


def test_workers_that_die_still_count_between_those_that_give_back(world, faults, born):
    for number in range(1, 4):
        fail_commits(faults, 1)
        with pytest.raises(TryLaterError):
            world.run(born)
        faults.before("PutItem", Crash(), match="revision#")
        with pytest.raises(Crash):
            world.run(born)
        world.clock.at += 130
        assert load_stalled(world, born) == number


def test_progress_before_the_trouble_is_kept(world, faults, born):
    faults.before("TransactWriteItems", throttled, times=TRIES_MAX, match="revision#0000000002")
    with pytest.raises(TryLaterError):
        world.run(born)
    world.run(born)
    assert world.show(born)["status"] == "completed"
    assert [name for name, _, _ in effects] == ["a", "b", "b"]


def test_a_lease_that_another_worker_has_taken_is_not_given_back(world, born):
    held = load(lease("default", born, world.clock.at + 10, waiting=False))
    world.clock.at += 11
    taken = lease("default", born, world.clock.at + 60, waiting=False)
    release(held.head)
    head = world.head(born)
    assert (head.lease_token, head.released) == (taken.lease_token, None)


def test_a_lease_that_cannot_be_given_back_runs_out(world, faults, born):
    fail_commits(faults, 1)
    faults.before("UpdateItem", throttled, times=TRIES_MAX, match="released")
    with pytest.raises(TryLaterError):
        world.run(born)
    assert world.head(born).lease_until
    world.clock.at += 130
    world.run(born)
    assert world.show(born)["status"] == "completed"


def test_a_worker_that_committed_before_it_gave_back_leaves_no_count_below_zero(world, faults, born):
    faults.before("TransactWriteItems", throttled, times=TRIES_MAX, match="revision#0000000002")
    with pytest.raises(TryLaterError):
        world.run(born)
    assert (len(world.revisions(born)), int(world.head(born).released)) == (1, 1)
    assert load_stalled(world, born) == 0
