"""Eight workers at once, in processes of their own, on tables that nobody else delivers from."""

from collections import Counter

import pytest

from tests.e2e import racers
from tests.e2e.racers import RACERS, Racers

ROUNDS = 50


@pytest.fixture(scope="module")
def workers(stack):
    racing = Racers(racers.tables_and_queues(stack, "races"))
    racing.one(racers.publish)
    yield racing
    racing.close()


def start_items(workers, owner_id):
    return [each for each in workers.one(racers.show_items, owner_id) if each["command"] == "start"]


def completed(shown):
    lines = [line for each in shown["journal"] for line in each["activities"]]
    return [line["execution_id"] for line in lines if line["status"] == "completed"]


def assert_whole(shown, status="completed"):
    """A log without gaps, in which each execution has ended once."""
    assert shown["status"] == status
    assert [each["revision"] for each in shown["journal"]] == list(range(1, len(shown["journal"]) + 1))
    assert len(set(completed(shown))) == len(completed(shown))


def test_eight_deliveries_of_one_dispatch_and_of_one_resume_have_one_effect_each(workers, effects):
    parents = {}
    for number in range(ROUNDS):
        order_id = f"race-{number}"
        parent_id = workers.one(racers.dispatch, "two-generations", {"order_id": order_id})
        parents[order_id] = parent_id
        workers.one(racers.handle, {"instance_id": parent_id})

        [start] = start_items(workers, parent_id)
        workers.all_at_once(racers.handle, {"owner_id": parent_id, "item_id": start["item_id"]})
        child_id = start["instance_id"]
        [resume] = workers.one(racers.show_items, child_id)
        assert resume["command"] == "resume"
        [acked] = start_items(workers, parent_id)
        assert acked["status"] == "done"

        workers.all_at_once(racers.handle, {"owner_id": child_id, "item_id": resume["item_id"]})
        [told] = workers.one(racers.show_items, child_id)
        assert told["status"] == "done"
        if number % 5 == 0:  # once more, a while later: nothing is acked or moved again
            workers.all_at_once(racers.handle, {"owner_id": parent_id, "item_id": start["item_id"]})
            workers.all_at_once(racers.handle, {"owner_id": child_id, "item_id": resume["item_id"]})
            assert start_items(workers, parent_id) == [acked]
            assert workers.one(racers.show_items, child_id) == [told]

        parent, child = (workers.one(racers.show, each) for each in (parent_id, child_id))
        assert_whole(parent)
        assert_whole(child)
        assert child["parent"] == {"instance_id": parent_id, "item_id": start["item_id"]}
        assert Counter(activity for activity, _ in effects(order_id)) == {"first": 1, "middle": 1, "last": 1}

    before = {order_id: workers.one(racers.show, each) for order_id, each in parents.items()}
    workers.one(racers.drain)
    for order_id, parent_id in parents.items():
        assert workers.one(racers.show, parent_id) == before[order_id]
        assert len(effects(order_id)) == 3


def test_eight_claims_of_one_item_have_one_winner(workers):
    parent_id = workers.one(racers.dispatch, "forking", {"order_id": "race-claim", "children": ROUNDS})
    workers.one(racers.handle, {"instance_id": parent_id})
    items = start_items(workers, parent_id)
    assert len(items) == ROUNDS
    for each in items:
        won = workers.all_at_once(racers.claim, parent_id, each["item_id"])
        assert sorted(won) == [False] * (RACERS - 1) + [True]
    assert {each["sends"] for each in start_items(workers, parent_id)} == {1}


def test_eight_deliverers_of_one_item_send_it_once(workers):
    parent_id = workers.one(racers.dispatch, "forking", {"order_id": "race-deliver", "children": ROUNDS})
    workers.one(racers.handle, {"instance_id": parent_id})
    for each in start_items(workers, parent_id):
        assert sum(workers.all_at_once(racers.deliver, parent_id, each["item_id"])) == 1
    assert {each["sends"] for each in start_items(workers, parent_id)} == {1}


def test_eight_sweeps_side_by_side_share_the_work(workers, effects):
    parent_id = workers.one(racers.dispatch, "forking", {"order_id": "race-sweep", "children": 40})
    workers.one(racers.handle, {"instance_id": parent_id})
    workers.all_at_once(racers.sweep)
    assert {each["sends"] for each in start_items(workers, parent_id)} == {1}
    workers.one(racers.drain)
    assert {each["status"] for each in start_items(workers, parent_id)} == {"done"}
    assert len(effects("race-sweep")) == 40


def test_eight_starts_of_one_request_make_one_instance_with_one_effect(workers, effects):
    for number in range(ROUNDS // 3):
        order_id = f"race-start-{number}"
        values = {"order_id": order_id, "name": "once"}
        ids = workers.all_at_once(racers.dispatch, "noted", values, f"key-{number}")
        assert len(set(ids)) == 1
        workers.all_at_once(racers.handle, {"instance_id": ids[0]})
        assert_whole(workers.one(racers.show, ids[0]))
        assert len(effects(order_id)) == 1


def test_eight_executions_of_one_instance_id_have_one_effect(workers, effects):
    for number in range(ROUNDS // 3):
        order_id = f"race-execute-{number}"
        values = {"order_id": order_id, "name": "once"}
        ids = workers.all_at_once(racers.execute, "noted", values, order_id)
        assert set(ids) == {order_id}
        assert_whole(workers.one(racers.show, order_id))
        assert len(effects(order_id)) == 1


def test_eight_starts_of_what_runs_one_at_a_time_make_one_instance(workers):
    for number in range(ROUNDS // 3):
        arguments = ("alone", {"order_id": "race-alone"}, f"race-alone-{number}")
        for _ in range(2):  # first on a free place, then on one that was left behind
            started = workers.all_at_once(racers.dispatch_one, *arguments)
            [holder] = [instance_id for instance_id, _ in started if instance_id]
            assert [refused for _, refused in started if refused] == [holder] * (RACERS - 1)
            assert workers.one(racers.show, holder)["status"] == "pending"
            workers.one(racers.cancel_leaving_its_row, holder)
