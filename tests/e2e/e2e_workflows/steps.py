"""Each activity notes what it does, and in which process, in the example's ledger."""

import os
import signal
import time

from aftercommit import (
    ActivityContext,
    DispatchWorkflow,
    Retry,
    Sequence,
    Step,
    Workflow,
    activity,
    inputs,
    var,
)
from aftercommit.aws import client


def note_effect(name: str, order_id: str, context: ActivityContext, **more: str) -> None:
    client("dynamodb").put_item(
        TableName=os.environ["LEDGER_TABLE"],
        Item={
            "order_id": {"S": order_id},
            "effect_id": {"S": f"{name}#{context.idempotency_key}"},
            "activity": {"S": name},
            "instance_id": {"S": context.instance_id},
            "process_id": {"N": str(os.getpid())},
            "attempt": {"N": str(context.attempt)},
            **{key: {"S": value} for key, value in more.items()},
        },
    )


@activity(timeout_seconds=1)
def note(order_id: str, name: str, context: ActivityContext) -> str:
    note_effect(name, order_id, context)
    return name


@activity(timeout_seconds=1)
def sleep(order_id: str, seconds: int, context: ActivityContext) -> int:
    note_effect("sleep", order_id, context)
    time.sleep(seconds)
    return seconds


@activity(timeout_seconds=1)
def die(order_id: str, context: ActivityContext) -> None:
    note_effect("die", order_id, context)
    os.kill(os.getpid(), signal.SIGKILL)


@activity(timeout_seconds=1)
def fail(order_id: str) -> None:
    raise ValueError(f"no good: {order_id}")


@activity(timeout_seconds=1, retry=Retry(attempts_max=3, first_delay_seconds=1))
def fail_twice(order_id: str, context: ActivityContext) -> int:
    if context.attempt < 3:
        raise RuntimeError("not yet")
    note_effect("fail_twice", order_id, context)
    return context.attempt


@activity(timeout_seconds=1)
def overreach(order_id: str) -> list:
    """Try what no role of a function may do; returns what AWS answered."""
    database, answers = client("dynamodb"), []
    for name, call in (
        ("DeleteTable", lambda: database.delete_table(TableName=os.environ["INSTANCES_TABLE"])),
        ("Scan", lambda: database.scan(TableName=os.environ["INSTANCES_TABLE"])),
        ("PurgeQueue", lambda: client("sqs").purge_queue(QueueUrl=os.environ["COMMAND_QUEUE_URL"])),
    ):
        try:
            call()
            answers.append(f"{name}: allowed")
        except Exception as error:  # noqa: BLE001 - its text is what is asked for
            answers.append(f"{name}: {error}")
    return answers


@activity(timeout_seconds=1)
def fork(order_id: str, children: int, context: ActivityContext) -> list:
    return [
        context.dispatch("noted", {"order_id": order_id, "name": f"child-{number}"})
        for number in range(children)
    ]


noted = Workflow(
    "noted",
    version=1,
    inputs={"order_id": str, "name": str},
    root=Step(note, order_id=inputs.order_id, name=inputs.name, result="noted"),
    output={"noted": var.noted},
)

sleeping = Workflow(
    "sleeping",
    version=1,
    inputs={"order_id": str, "seconds": int},
    root=Sequence(
        Step(note, order_id=inputs.order_id, name="before"),
        Step(sleep, order_id=inputs.order_id, seconds=inputs.seconds, result="slept"),
        Step(note, order_id=inputs.order_id, name="after"),
    ),
    output={"slept": var.slept},
)

deadly = Workflow(
    "deadly",
    version=1,
    inputs={"order_id": str},
    root=Step(die, order_id=inputs.order_id),
)

faulty = Workflow(
    "faulty",
    version=1,
    inputs={"order_id": str},
    root=Sequence(
        Step(fail_twice, order_id=inputs.order_id, result="attempts"), Step(fail, order_id=inputs.order_id)
    ),
)

beyond_rights = Workflow(
    "beyond-rights",
    version=1,
    inputs={"order_id": str},
    root=Step(overreach, order_id=inputs.order_id, result="answers"),
    output={"answers": var.answers},
)

forking = Workflow(
    "forking",
    version=1,
    inputs={"order_id": str, "children": int},
    root=Step(fork, order_id=inputs.order_id, children=inputs.children, result="ids"),
    output={"ids": var.ids},
)

two_generations = Workflow(
    "two-generations",
    version=1,
    inputs={"order_id": str},
    root=Sequence(
        Step(note, order_id=inputs.order_id, name="first"),
        DispatchWorkflow(
            "noted", input={"order_id": inputs.order_id, "name": "middle"}, wait=True, result="child"
        ),
        Step(note, order_id=inputs.order_id, name="last"),
    ),
    output={"child": var.child},
)

nested_middle = Workflow(
    "nested-middle",
    version=1,
    inputs={"order_id": str},
    root=DispatchWorkflow("two-generations", input={"order_id": inputs.order_id}, wait=True, result="child"),
    output={"child": var.child},
)

nested = Workflow(
    "nested",
    version=1,
    inputs={"order_id": str},
    root=DispatchWorkflow("nested-middle", input={"order_id": inputs.order_id}, wait=True, result="child"),
    output={"child": var.child},
)
