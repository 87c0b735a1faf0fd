"""The catalogue: every activity type a tree may name."""

from aftercommit.activities.activity import Activity
from aftercommit.activities.dispatch_workflow import DispatchWorkflow
from aftercommit.activities.fault import Fault
from aftercommit.activities.finish import Finish
from aftercommit.activities.if_ import If
from aftercommit.activities.sequence import Sequence
from aftercommit.activities.set_variable import SetVariable
from aftercommit.activities.step import Step

TYPES: dict[str, type[Activity]] = {
    each.__name__: each for each in (DispatchWorkflow, Fault, Finish, If, Sequence, SetVariable, Step)
}

__all__ = [
    "TYPES",
    "Activity",
    "DispatchWorkflow",
    "Fault",
    "Finish",
    "If",
    "Sequence",
    "SetVariable",
    "Step",
]
