"""The sample orders, run without AWS: each ends as its content says."""

import json

import pytest

from aftercommit.direct import run
from aftercommit.jsons import size_of
from aftercommit.limits import INLINE_SNAPSHOT_BYTES_MAX, INPUT_BYTES_MAX
from scripts.orders import ORDERS, expected
from workflows import place_order, send_receipt, ship_order

SAMPLES = [json.loads(line) for line in ORDERS.read_text(encoding="utf-8").splitlines()]


def test_there_are_50_varied_orders():
    assert len({each["order_id"] for each in SAMPLES}) == len(SAMPLES) == 50
    outcomes = [expected(each) for each in SAMPLES]
    assert outcomes.count("faulted: PaymentRefused") == 5
    assert outcomes.count("faulted: ShippingFailed") == 4
    assert outcomes.count("completed") == 41
    assert sum(1 for each in SAMPLES if "remote" in each["address"].lower()) >= 5
    assert sum(1 for each in SAMPLES if not json.dumps(each, ensure_ascii=False).isascii()) >= 8


def test_some_orders_are_large_and_none_too_large():
    sizes = sorted(size_of(each) for each in SAMPLES)
    assert sizes[-1] > 10 * INLINE_SNAPSHOT_BYTES_MAX
    assert sizes[-1] < INPUT_BYTES_MAX


@pytest.mark.parametrize("order", SAMPLES, ids=lambda order: order["order_id"])
def test_an_order_ends_as_its_content_says(order):
    result = run(place_order, order, workflows=[ship_order, send_receipt])
    told = f"{result.status}: {result.failure.type}" if result.failure else str(result.status)
    assert told == expected(order)
