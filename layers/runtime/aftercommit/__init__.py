"""Aftercommit: durable workflows whose effects happen only after the commit that decided them.

This is what workflows are written with; docs/writing-workflows.md shows how.

Its names are looked up when they are asked for: importing `aftercommit.events` alone stays light.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aftercommit.activities import (
        Break,
        BulkDispatchWorkflows,
        Correlate,
        Cron,
        Delay,
        DispatchWorkflow,
        Event,
        Fault,
        Finish,
        Flowchart,
        ForEach,
        Fork,
        HttpEndpoint,
        If,
        ParallelForEach,
        PublishEvent,
        RunTask,
        SendHttpRequest,
        Sequence,
        SetVariable,
        StartAt,
        Step,
        Switch,
        Timer,
        Try,
        While,
        WriteHttpResponse,
    )
    from aftercommit.expressions import expr, inputs, var
    from aftercommit.functions import ActivityContext, Retry, activity
    from aftercommit.workflow import Workflow

__all__ = [
    "ActivityContext",
    "Break",
    "BulkDispatchWorkflows",
    "Correlate",
    "Cron",
    "Delay",
    "DispatchWorkflow",
    "Event",
    "Fault",
    "Finish",
    "Flowchart",
    "ForEach",
    "Fork",
    "HttpEndpoint",
    "If",
    "ParallelForEach",
    "PublishEvent",
    "Retry",
    "RunTask",
    "SendHttpRequest",
    "Sequence",
    "SetVariable",
    "StartAt",
    "Step",
    "Switch",
    "Timer",
    "Try",
    "While",
    "Workflow",
    "WriteHttpResponse",
    "activity",
    "expr",
    "inputs",
    "var",
]

# Where a name is that is no activity type.
_HOMES = {
    "ActivityContext": "functions",
    "Retry": "functions",
    "Workflow": "workflow",
    "activity": "functions",
    "expr": "expressions",
    "inputs": "expressions",
    "var": "expressions",
}


def __getattr__(name: str) -> Any:
    """Find a name of `__all__` where it is at home, and keep it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_HOMES.get(name, 'activities')}"), name)
    globals()[name] = found
    return found
