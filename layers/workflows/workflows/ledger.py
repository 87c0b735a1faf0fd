"""The example's outside world: a table in which each activity notes what it has done, and for whom.

Only a deployment with an example ledger has one (the template's parameter ExampleLedger, which the demo
sets to compare effects with instances); without it, nothing is noted.
"""

import os

from aftercommit import ActivityContext


def record(activity: str, order_id: str, context: ActivityContext) -> None:
    """Note an effect under the activity execution's stable id: done twice, it is still one."""
    table = os.environ.get("LEDGER_TABLE")
    if not table:
        return
    from aftercommit.aws import client  # noqa: PLC0415 - only a deployment with a ledger needs it

    client("dynamodb").put_item(
        TableName=table,
        Item={
            "order_id": {"S": order_id},
            "effect_id": {"S": f"{activity}#{context.idempotency_key}"},
            "activity": {"S": activity},
            "instance_id": {"S": context.instance_id},
        },
    )
