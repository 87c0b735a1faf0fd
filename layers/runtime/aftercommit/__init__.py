"""Aftercommit: durable workflows whose effects happen only after the commit that decided them.

This is what workflows are written with; docs/writing-workflows.md shows how.
"""

from aftercommit.activities import DispatchWorkflow, Fault, Finish, If, Sequence, SetVariable, Step
from aftercommit.expressions import expr, inputs, var
from aftercommit.functions import ActivityContext, Retry, activity
from aftercommit.workflow import Workflow

__all__ = [
    "ActivityContext",
    "DispatchWorkflow",
    "Fault",
    "Finish",
    "If",
    "Retry",
    "Sequence",
    "SetVariable",
    "Step",
    "Workflow",
    "activity",
    "expr",
    "inputs",
    "var",
]
