"""Aftercommit: durable workflows whose effects happen only after the commit that decided them.

This is what workflows are written with; docs/writing-workflows.md shows how.
"""

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
    If,
    ParallelForEach,
    PublishEvent,
    RunTask,
    Sequence,
    SetVariable,
    StartAt,
    Step,
    Switch,
    Timer,
    Try,
    While,
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
    "If",
    "ParallelForEach",
    "PublishEvent",
    "Retry",
    "RunTask",
    "Sequence",
    "SetVariable",
    "StartAt",
    "Step",
    "Switch",
    "Timer",
    "Try",
    "While",
    "Workflow",
    "activity",
    "expr",
    "inputs",
    "var",
]
