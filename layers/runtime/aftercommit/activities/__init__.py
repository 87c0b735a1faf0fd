"""The catalogue: every activity type a tree may name."""

from aftercommit.activities.activity import Activity
from aftercommit.activities.bulk_dispatch_workflows import BulkDispatchWorkflows
from aftercommit.activities.correlate import Correlate
from aftercommit.activities.dispatch_workflow import DispatchWorkflow
from aftercommit.activities.event import Event, PublishEvent, RunTask
from aftercommit.activities.fault import Fault
from aftercommit.activities.finish import Finish
from aftercommit.activities.flowchart import Flowchart
from aftercommit.activities.fork import Fork
from aftercommit.activities.http_endpoint import HttpEndpoint, WriteHttpResponse
from aftercommit.activities.if_ import If
from aftercommit.activities.loops import Break, ForEach, ParallelForEach, While
from aftercommit.activities.send_http_request import SendHttpRequest
from aftercommit.activities.sequence import Sequence
from aftercommit.activities.set_variable import SetVariable
from aftercommit.activities.step import Step
from aftercommit.activities.switch import Switch
from aftercommit.activities.timers import Cron, Delay, StartAt, Timer
from aftercommit.activities.try_ import Try

TYPES: dict[str, type[Activity]] = {
    each.__name__: each
    for each in (
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
}

__all__ = [
    "TYPES",
    "Activity",
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
    "WriteHttpResponse",
]
