"""Many starts in one call of the API: each on its own."""

import pytest

from aftercommit import Sequence, Workflow
from aftercommit.limits import BULK_REQUESTS_MAX
from aftercommit.writes import TRIES_MAX
from tests.integration.faults import refusal

PATH = "/workflows/asked/bulk-dispatch"
asked = Workflow("asked", inputs={"n": int}, root=Sequence(), activation="correlation")


@pytest.fixture
def post(world, api):
    world.publish(asked)

    def post(items, **more):
        return api.post(PATH, {"items": items}, **more)

    return post


def item(number, **more):
    return {"input": {"n": number}, **more}


def test_each_is_started_and_told_in_the_order_of_the_call(world, post):
    status, body = post([item(1), item(2, instance_id="second"), item(3, correlation_id="c")])
    assert status == 202
    ids = [each["instance_id"] for each in body["results"]]
    assert ids[1] == "second"
    assert len(world.messages) == 3
    world.settle()
    assert [world.show(each)["input"] for each in ids] == [{"n": 1}, {"n": 2}, {"n": 3}]
    assert set(world.statuses().values()) == {"completed"}


def test_one_that_is_refused_stops_none_of_the_others(world, post):
    live = world.dispatch("asked", {"n": 0}, correlation_id="taken")
    _, body = post(
        [
            item("no number"),
            item(2, correlation_id="taken"),
            item(3, channel="nowhere"),
            item(4, instance_id="?"),
            item(5),
        ]
    )
    *refused, last = body["results"]
    assert [each["error"]["code"] for each in refused] == [
        "input_refused",
        "activation_refused",
        "refused",
        "malformed",
    ]
    assert live in refused[1]["error"]["message"]
    assert refused[0]["error"]["field"] == "input.n"
    assert len(world.heads()) == 2
    assert world.head(last["instance_id"]).status == "pending"


def test_a_busy_database_is_told_for_the_one_it_met(world, post, faults):
    faults.before("TransactWriteItems", refusal("ThrottlingException"), times=TRIES_MAX)
    faults.before("PutItem", refusal("ThrottlingException"), times=TRIES_MAX)
    _, body = post([item(1), item(2)])
    assert body["results"][0]["error"]["code"] == "try_later"
    assert world.head(body["results"][1]["instance_id"]).status == "pending"


def test_the_same_call_under_the_same_key_starts_nothing_twice(world, post):
    first = post([item(1), item(2)], headers={"Idempotency-Key": "k"})
    assert post([item(1), item(2)], headers={"Idempotency-Key": "k"}) == first
    assert len(world.heads()) == 2
    _, other = post([item(1), item(7)], headers={"Idempotency-Key": "k"})
    assert other["results"][0] == first[1]["results"][0]
    assert other["results"][1]["error"]["code"] == "idempotency_key_reused"


@pytest.mark.parametrize(
    ("items", "field"),
    [
        (None, "items"),
        ([], "items"),
        ("many", "items"),
        ([item(1)] * (BULK_REQUESTS_MAX + 1), "items"),
        ([item(1), 5], "items[1]"),
        ([item(1), {"inputs": {}}], "items[1].inputs"),
        ([{"input": []}], "items[0].input"),
        ([{"correlation_id": ""}], "items[0].correlation_id"),
    ],
)
def test_a_body_of_another_form_is_refused_whole_naming_the_member(world, post, items, field):
    status, body = post(items)
    assert (status, body["error"]["code"], body["error"]["field"]) == (400, "malformed", field)
    assert world.heads() == []


def test_an_unknown_workflow_is_told_for_each(api, world):
    _, body = api.post("/workflows/nobody/bulk-dispatch", {"items": [{}, {}]})
    assert [each["error"]["code"] for each in body["results"]] == ["not_found", "not_found"]
