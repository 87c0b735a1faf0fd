"""A stimulus sent again under its Idempotency-Key is stored once, whoever dies and whatever gets lost."""

import pytest

from aftercommit.errors import KeyReusedError, TryLaterError
from aftercommit.limits import REQUEST_DAYS
from aftercommit.operations import send_event
from aftercommit.outbox import open_stimuli
from aftercommit.statuses import ItemStatus
from aftercommit.tables import ItemRow, RequestRow
from tests.integration.faults import Crash, no_answer
from tests.integration.handlers import Api, error_of
from tests.integration.waits import send, waiter, waiting

KEY = {"idempotency-key": "key-1"}
BODY = {"payload": {"order": "A"}, "input": 5}


@pytest.fixture
def w(world):
    world.publish(waiter)
    return world


def send_once(tenant="default", *, key="key-1", name="paid", value=5, **more):
    given = {"payload": {"order": "A"}, "correlation_id": None, "instance_id": None, **more}
    return send_event(tenant, name, value=value, idempotency_key=key, **given)


def stored():
    """Return the stimuli, without the rows that remember requests."""
    return list(ItemRow.scan(ItemRow.command == "stimulus"))


def test_the_repeat_of_a_call_finds_the_first_ones_stimulus(w):
    first = send_once()
    w.clock.at += 3
    assert send_once() == first
    [item] = stored()
    assert first == f"{item.owner_id}.{item.item_id}"


def test_a_repeat_after_it_was_applied_is_not_applied_to_the_next_wait(w):
    first = send_once()
    waiting(w)
    w.settle(seconds=60)
    second = waiting(w)
    assert send_once() == first
    w.settle(seconds=60)
    assert w.show(second)["status"] == "suspended"
    assert [item.status for item in stored()] == [ItemStatus.DONE]


@pytest.mark.parametrize(
    "other",
    [
        {"value": 6},
        {"payload": {"order": "B"}},
        {"name": "unpaid"},
        {"correlation_id": "c-1"},
        {"instance_id": "i-1"},
    ],
    ids=lambda other: next(iter(other)),
)
def test_another_stimulus_under_the_same_key_is_refused(w, other):
    send_once()
    with pytest.raises(KeyReusedError) as refused:
        send_once(**other)
    assert refused.value.field == "Idempotency-Key"
    assert len(stored()) == 1


def test_the_order_of_members_makes_no_other_stimulus(w):
    payload = {"order": "A", "line": 1}
    first = send_once(payload=payload)
    assert send_once(payload=dict(reversed(payload.items()))) == first


def test_other_keys_and_other_tenants_have_stimuli_of_their_own(w):
    names = {send_once(), send_once(key="key-2"), send_once("other"), send("paid", {"order": "A"}, 5)}
    assert len(names) == len(stored()) == 4


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_caller_that_dies_or_hears_nothing_sends_again_and_makes_one(w, faults, moment):
    getattr(faults, moment)("TransactWriteItems", Crash())
    with pytest.raises(Crash):
        send_once()
    assert len(stored()) == (moment == "after")
    name = send_once()
    [item] = stored()
    assert name == f"{item.owner_id}.{item.item_id}"


def test_a_write_whose_answer_was_lost_is_known_as_its_own(w, faults):
    faults.after("TransactWriteItems", no_answer())
    name = send_once()
    [item] = stored()
    assert name == f"{item.owner_id}.{item.item_id}"


def test_without_any_answer_the_caller_is_asked_to_come_again(w, faults):
    faults.before("TransactWriteItems", no_answer(), times=99)
    with pytest.raises(TryLaterError):
        send_once()
    assert stored() == []


@pytest.mark.parametrize(("late", "stimuli"), [(-1, 1), (0, 2)])
def test_a_key_counts_as_new_when_its_time_is_over_though_its_row_is_still_there(w, late, stimuli):
    first = send_once()
    w.clock.at += REQUEST_DAYS * 86_400 + late
    last = send_once()
    assert len(stored()) == stimuli
    assert (last == first) == (stimuli == 1)
    [request] = RequestRow.scan(RequestRow.item_id == "request")
    assert request.stimulus_id == last


def test_stimuli_with_a_key_stand_in_order_of_arrival_among_those_without(w):
    names = [send("paid", {"order": "A"}, 1)]
    w.clock.at += 0.01
    names.append(send_once())
    w.clock.at += 0.01
    names.append(send("paid", {"order": "A"}, 3))
    found = open_stimuli("default", names[0].partition(".")[0])
    assert [f"{item.owner_id}.{item.item_id}" for item in found] == names


@pytest.mark.parametrize("path", ["/events/paid", "/stimuli"])
def test_over_the_api_the_header_makes_a_repeat_the_same(w, path):
    api = Api()
    body = {**BODY, **({"name": "event:paid"} if path == "/stimuli" else {})}
    first = api.post(path, body, headers=KEY)
    assert first[0] == 202
    assert api.post(path, body, headers=KEY) == first
    error_of(
        api.post(path, {**body, "input": 6}, headers=KEY), 422, "idempotency_key_reused", "Idempotency-Key"
    )
    assert api.post(path, body)[1] != first[1]
    assert len(stored()) == 2
