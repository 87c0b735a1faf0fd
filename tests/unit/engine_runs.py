"""Instances under the engine by itself, and short ways to look at what became of them."""

import json

from aftercommit import SetVariable, Workflow, engine, expr
from aftercommit.jsons import dumps
from aftercommit.model import Continue, Failure, Parent, Raise, Resume, Start, State, Stimulate
from aftercommit.model import Finish as StepFinished
from aftercommit.sizes import measured
from aftercommit.statuses import InstanceStatus, ItemCommand

AT = 1_796_075_123.5
PARENT = Parent("the-parent", "the-item", "the-bookmark")
LATER = "2026-11-30T21:45:25.000Z"


class Run:
    """An instance under the engine, and all that its commands decided."""

    def __init__(self, root, *, parent=None, inputs=None, output=None, incidents="fault"):
        self.definition = Workflow("w", root=root, output=output, incidents=incidents).definition
        self.state = State("i", inputs or {}, parent=parent)
        self.intentions, self.incidents, self.journal = [], [], []
        self.mark = None
        self.give(Start())

    def give(self, command):
        decision = engine.advance(self.definition, self.state, command, AT)
        self.intentions += decision.intentions
        self.incidents += decision.incidents
        self.journal += decision.journal
        self.mark = decision.mark or self.mark
        return decision.applied

    def finish(self, result=None):
        return self.give(StepFinished(self.state.ready[0], result))

    def fail(self, *, retry_at=None, kind="OSError"):
        return self.give(Raise(self.state.ready[0], Failure(kind, "gone"), retry_at))

    def resume(self, outcome, value=None):
        return self.give(Resume(next(iter(self.state.bookmarks)), outcome, value))

    @property
    def ready(self):
        return [self.state.executions[each].activity_id for each in self.state.ready]


def assert_sizes_are_exact(state):
    """What was kept up by commands is what a fresh count of the snapshot gives."""
    if state.status.ended:
        return
    fresh = State.from_json(json.loads(dumps(state.to_json())), instance_id="i", status=state.status.value)
    assert measured(state) == measured(fresh)
    assert state.bytes == fresh.bytes


def failure_of(run):
    assert run.state.status == InstanceStatus.FAULTED
    return run.state.failure


def play(run):
    """Carry out what a large decision has left."""
    while run.state.agenda:
        assert run.give(Continue())
    return run


def finish_all(run, result=None):
    while run.state.ready:
        run.finish(result)
        play(run)
    return run


def happen(run, name, value=None, **payload):
    return run.give(Stimulate({"name": f"event:{name}", "payload": payload}, value))


def waiting(run):
    return sorted(
        run.state.executions[each.execution_id].activity_id for each in run.state.bookmarks.values()
    )


def withdrawn(run):
    """Return the ids of the children that cancel intentions speak of."""
    cancels = [each.body for each in run.intentions if each.command == ItemCommand.CANCEL]
    apart = [part["body"] for body in cancels for part in body.get("parts", [])]
    cancels = [*apart, *(body for body in cancels if "parts" not in body)]
    pairs = [pair for body in cancels for pair in [body, *body.get("more", [])]]
    return [pair["instance_id"] for pair in pairs]


def children(run):
    return [each.body["instance_id"] for each in run.intentions if each.command == ItemCommand.START]


def append(value):
    """Return an activity that notes a value down in `seen`."""
    return SetVariable("seen", expr(f"$append(var.seen ? var.seen : [], [{value}])"))
