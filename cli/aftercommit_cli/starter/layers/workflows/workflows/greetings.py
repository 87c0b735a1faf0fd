"""The example: greet somebody, and let a second workflow write it down."""

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


@activity
def compose(name: str) -> str:
    """Compose the greeting."""
    return f"Hello, {name}!"


@activity(retry=Retry(attempts_max=5, first_delay_seconds=2))
def write_down(text: str, context: ActivityContext) -> dict:
    """Write it down; the key is the same on every attempt, so a second one changes nothing."""
    return {"text": text, "written_as": context.idempotency_key}


write_greeting = Workflow(
    "write-greeting",
    version=1,
    inputs={"text": str},
    root=Step(write_down, text=inputs.text, result="written"),
    output={"text": var.written.text},
)

greet = Workflow(
    "greet",
    version=1,
    inputs={"name": str},
    root=Sequence(
        Step(compose, name=inputs.name, result="greeting"),
        DispatchWorkflow("write-greeting", input={"text": var.greeting}, wait=True, result="written"),
    ),
    output={"greeting": var.written.text},
)
