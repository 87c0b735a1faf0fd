"""place-order dispatches ship-order and waits for it, and send-receipt and does not."""

from aftercommit import (
    ActivityContext,
    DispatchWorkflow,
    Fault,
    If,
    Retry,
    Sequence,
    Step,
    Workflow,
    activity,
    inputs,
    var,
)
from workflows.ledger import record

AMOUNT_MAX = 10_000

# What each of these activities needs: with less left of its invocation, it starts in a fresh one.
ACTIVITY_SECONDS = 3


class CarrierUnavailableError(Exception):
    """The carrier does not answer just now."""


@activity(retry=Retry(attempts_max=5, first_delay_seconds=2), timeout_seconds=ACTIVITY_SECONDS)
def charge_card(order_id: str, amount: int, context: ActivityContext) -> dict:
    """Charge the customer's card; the payment provider refuses amounts over 10,000."""
    if amount > AMOUNT_MAX:
        return {"status": "refused", "reason": "over the limit"}
    record("charge_card", order_id, context)
    return {"status": "ok", "payment_id": f"pay-{context.idempotency_key[:12]}"}


@activity(timeout_seconds=ACTIVITY_SECONDS)
def reserve_stock(order_id: str, items: list, context: ActivityContext) -> dict:
    """Reserve every item of the order."""
    record("reserve_stock", order_id, context)
    return {"reserved": sum(item["quantity"] for item in items)}


@activity(retry=Retry(attempts_max=5, first_delay_seconds=1), timeout_seconds=ACTIVITY_SECONDS)
def book_carrier(order_id: str, address: str, context: ActivityContext) -> dict:
    """Book a carrier; the first try for a remote address finds nobody."""
    if "remote" in address.lower() and context.attempt == 1:
        raise CarrierUnavailableError("no carrier answers; trying again")
    record("book_carrier", order_id, context)
    return {"carrier": "Snail & Sons", "tracking": f"T-{context.idempotency_key[:10]}"}


@activity(timeout_seconds=ACTIVITY_SECONDS)
def hand_over(order_id: str, tracking: str, address: str, context: ActivityContext) -> str:
    """Hand the parcel over; an address without a street cannot be served."""
    if not address.strip():
        raise ValueError("the parcel has no address")
    record("hand_over", order_id, context)
    return tracking


@activity(timeout_seconds=ACTIVITY_SECONDS)
def mail_receipt(order_id: str, customer: str, amount: int, context: ActivityContext) -> str:
    """Mail the receipt."""
    record("mail_receipt", order_id, context)
    return f"receipt for {customer}: {amount}"


ship_order = Workflow(
    "ship-order",
    version=1,
    inputs={"order_id": str, "address": str, "items": list},
    root=Sequence(
        Step(reserve_stock, order_id=inputs.order_id, items=inputs["items"], result="stock"),
        Step(book_carrier, order_id=inputs.order_id, address=inputs.address, result="booking"),
        Step(
            hand_over,
            order_id=inputs.order_id,
            tracking=var.booking.tracking,
            address=inputs.address,
            result="handed_over",
        ),
    ),
    output={"tracking": var.handed_over, "carrier": var.booking.carrier},
)

send_receipt = Workflow(
    "send-receipt",
    version=1,
    inputs={"order_id": str, "customer": str, "amount": int},
    root=Step(
        mail_receipt,
        order_id=inputs.order_id,
        customer=inputs.customer,
        amount=inputs.amount,
        result="receipt",
    ),
    output={"receipt": var.receipt},
)

place_order = Workflow(
    "place-order",
    version=1,
    inputs={"order_id": str, "customer": str, "amount": int, "address": str, "items": list},
    root=Sequence(
        Step(charge_card, order_id=inputs.order_id, amount=inputs.amount, result="payment"),
        If(
            var.payment.status == "ok",
            then=Sequence(
                DispatchWorkflow(
                    "send-receipt",
                    input={
                        "order_id": inputs.order_id,
                        "customer": inputs.customer,
                        "amount": inputs.amount,
                    },
                ),
                DispatchWorkflow(
                    "ship-order",
                    input={
                        "order_id": inputs.order_id,
                        "address": inputs.address,
                        "items": inputs["items"],
                    },
                    wait=True,
                    result="shipment",
                    on={"Faulted": Fault("shipping failed", code="ShippingFailed")},
                ),
            ),
            otherwise=Fault("payment refused", code="PaymentRefused"),
        ),
    ),
    output={"tracking": var.shipment.tracking, "payment_id": var.payment.payment_id},
)
