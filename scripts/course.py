"""How a run of the demo or of the load begins and comes to rest, and what is told of the way."""

import contextlib
import threading
import time

from scripts.killer import Killer
from scripts.local_stack import Stack

QUIET_SECONDS_MAX = 40


def begin_sweeping(stack: Stack) -> None:
    """Make the first sweep: the schedule fires a minute after the deploy for the first time."""

    def sweep() -> None:
        # Its worker may be killed, as any other: then the schedule is the first.
        with contextlib.suppress(RuntimeError):
            stack.invoke("sweep", {})

    threading.Thread(target=sweep, daemon=True).start()


def await_quiet(stack: Stack) -> None:
    """Wait until no command is on its way any more: even the late ones must have had no effect."""
    deadline = time.monotonic() + QUIET_SECONDS_MAX
    while count_messages(stack) and time.monotonic() < deadline:
        time.sleep(0.5)


def count_messages(stack: Stack) -> int:
    """Count the messages of the command queue: waiting, delayed, and being served."""
    counts = (
        "ApproximateNumberOfMessages",
        "ApproximateNumberOfMessagesNotVisible",
        "ApproximateNumberOfMessagesDelayed",
    )
    answer = stack.client("sqs").get_queue_attributes(
        QueueUrl=stack.outputs["CommandQueueUrl"], AttributeNames=list(counts)
    )
    return sum(int(answer["Attributes"].get(name, 0)) for name in counts)


def describe_deaths(stack: Stack, killer: Killer) -> str:
    """Say how many workers were killed, and how many of them while they worked."""
    midway = stack.describe_failures().count("Worker process died")
    return f"workers killed: {killer.describe()} ({midway} in the middle of their work)"


def describe_deliveries(stack: Stack) -> str:
    """Say how many commands came again, as the runtime has logged it."""
    again = len(stack.logs("sweep", "swept instance")) + len(stack.logs("run", "no undone item"))
    return f"{again} commands delivered again"
