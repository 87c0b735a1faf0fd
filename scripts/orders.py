"""The sample orders of the demo and of the load run: how each is posted, and what must become of it."""

import http.client
import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from scripts.audit import PARENT
from scripts.console import RunError
from scripts.emulator import ROOT
from scripts.local_stack import Stack

ORDERS = ROOT / "events/orders.jsonl"
AMOUNT_MAX = 10_000  # what the example's payment provider accepts
PAID = frozenset({"charge_card", "mail_receipt", "reserve_stock", "book_carrier"})

# Shorter than is right for production: a dead worker's lease ends, and the sweep comes, while one watches.
PARAMETERS = {
    "ExampleLedger": "true",
    "RunTimeoutSeconds": "8",
    "CommandVisibilitySeconds": "8",
    "AckTimeoutSeconds": "15",
    "EagerHeadStartSeconds": "15",
    "SweepIntervalSeconds": "2",
    # The killer is not the orders' fault, so they are not to be stopped for it.
    "LeasesMax": "100",
}


def read_orders() -> list[dict[str, Any]]:
    """Read the sample orders."""
    return [json.loads(line) for line in ORDERS.read_text(encoding="utf-8").splitlines()]


def expected(order: Mapping[str, Any]) -> str:
    """Return the outcome that an order should have, going by what it holds."""
    if order["amount"] > AMOUNT_MAX:
        return "faulted: PaymentRefused"
    if not order["address"].strip():
        return "faulted: ShippingFailed"
    return "completed"


def owed(order: Mapping[str, Any]) -> frozenset[str]:
    """Return the activities whose effect an order must have had, going by what it holds."""
    if order["amount"] > AMOUNT_MAX:
        return frozenset()
    return PAID | {"hand_over"} if order["address"].strip() else PAID


class NoAnswerError(RunError):
    """Nobody knows whether the order has started: there was no answer, or one of an outage."""


def post_order(stack: Stack, order: Mapping[str, Any], tenant: str | None = None) -> str:
    """Start an order under its id as Idempotency-Key; returns its instance id.

    Raises RunError if it is refused, and NoAnswerError if it may have started or not.
    """
    headers = {"Idempotency-Key": order["order_id"]} | ({"X-Tenant-Id": tenant} if tenant else {})
    body = {"input": order, "correlation_id": order["order_id"]}
    try:
        answer = stack.request("POST", f"/workflows/{PARENT}/dispatch", body, headers)
    except (OSError, http.client.HTTPException) as error:
        raise NoAnswerError(f"order {order['order_id']} could not be posted: {error!r}") from error
    told = f"{answer.status} {answer.body!r}"
    if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        raise NoAnswerError(f"order {order['order_id']} could not be posted: {told}")
    if answer.status != HTTPStatus.ACCEPTED:
        raise RunError(f"order {order['order_id']} was refused: {told}")
    instance_id: str = answer.json()["instance_id"]
    return instance_id
