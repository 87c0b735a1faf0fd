"""The example: an order is paid, shipped by a child workflow that it waits for, and receipted by one that it does not."""

from workflows.orders import place_order, send_receipt, ship_order

__all__ = ["place_order", "send_receipt", "ship_order"]
