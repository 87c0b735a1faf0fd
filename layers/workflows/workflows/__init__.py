"""The example: an order is paid, shipped by a child that it waits for, receipted by one it does not."""

from workflows.orders import place_order, send_receipt, ship_order

__all__ = ["place_order", "send_receipt", "ship_order"]
