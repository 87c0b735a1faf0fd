"""Bulk dispatches under the engine, and short ways to look at what they intend."""

from aftercommit import BulkDispatchWorkflows
from aftercommit.statuses import ItemCommand

DONE = {"total": 2, "completed": 2, "faulted": 0, "cancelled": 0, "dispatch_failed": 0, "outputs": ["x", "y"]}
FAILED = {**DONE, "completed": 1, "faulted": 1, "failures": [{"index": 1, "error": {"message": "no"}}]}


def bulk(items=("a", "b"), workflow="child", **more):
    return BulkDispatchWorkflows(workflow, list(items) if isinstance(items, tuple) else items, **more)


def of(run, command):
    return [each for each in run.intentions if each.command == command]


def starts(run):
    return [each.body for each in of(run, ItemCommand.START)]


def joins(run):
    return [each.body for each in of(run, ItemCommand.JOIN)]
