"""Aftercommit: durable workflows whose effects happen only after the commit that decided them.

This is what workflows are written with; docs/writing-workflows.md shows how.
"""

from aftercommit.activities import (
    Break,
    Correlate,
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
    "Correlate",
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
    "Try",
    "While",
    "Workflow",
    "WriteHttpResponse",
    "activity",
    "expr",
    "inputs",
    "var",
]
