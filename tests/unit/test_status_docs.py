"""docs/status.md names the statuses that the code has, and allows every change that the engine makes."""

import re
from pathlib import Path

import pytest

from aftercommit import DispatchWorkflow, Fault, Finish, If, Sequence, Step, Workflow, direct, var
from aftercommit.model import Execution, State
from aftercommit.statuses import ExecutionStatus, InstanceStatus, ItemStatus

PAGE = Path(__file__).parents[2] / "docs" / "status.md"
NOWHERE = "[*]"


def diagrams():
    """Return the arrows of each diagram, by the StrEnum that its section names."""
    found = {}
    for section in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]:
        name = re.search(r"`(\w+Status)`", section)[1]
        arrows = re.findall(r"^ +(\S+) --> (\[\*\]|\w+)", section, re.MULTILINE)
        found[name] = set(arrows)
    return found


ARROWS = diagrams()


@pytest.mark.parametrize("statuses", [InstanceStatus, ItemStatus, ExecutionStatus])
def test_a_diagram_has_exactly_the_statuses_of_the_code(statuses):
    drawn = {status for arrow in ARROWS[statuses.__name__] for status in arrow} - {NOWHERE}
    assert drawn == {each.value for each in statuses}


def test_endings_of_instances_lead_nowhere_else():
    for status in InstanceStatus:
        leads_to = {to for start, to in ARROWS["InstanceStatus"] if start == status.value}
        assert (leads_to == {NOWHERE}) is status.ended


def fail_once(context):
    if context.attempt == 1:
        raise ConnectionError("no answer")


def refuse():
    raise ValueError("never possible")


CHILD = Workflow("child", root=Finish("found"))
FAULTY_CHILD = Workflow("faulty-child", root=Fault("not possible"))
WORKFLOWS = [
    Workflow("plain", root=Sequence(Step("nothing"), If(var.x == 1, then=Finish()), Step("nothing"))),
    Workflow("retrying", root=Step("fail_once", retry={"attempts_max": 2})),
    Workflow("raising", incidents="continue", root=Sequence(Step("refuse"), Step("nothing"))),
    Workflow("faulting", incidents="continue", root=Sequence(Fault("no"))),
    Workflow("waiting", root=Sequence(DispatchWorkflow("child", wait=True), Step("nothing"))),
    Workflow("told", incidents="continue", root=DispatchWorkflow("faulty-child", wait=True)),
    Workflow("handling", root=DispatchWorkflow("faulty-child", wait=True, on={"Faulted": Step("nothing")})),
]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda each: each.id)
@pytest.mark.parametrize(("kind", "statuses"), [(State, "InstanceStatus"), (Execution, "ExecutionStatus")])
def test_every_change_that_the_engine_makes_is_drawn(workflow, kind, statuses, monkeypatch):
    changes = set()

    def watch(self, name, value):
        if name == "status":
            before = getattr(self, "status", None)
            if before != value:
                changes.add((before.value if before else NOWHERE, value.value))
        object.__setattr__(self, name, value)

    monkeypatch.setattr(kind, "__setattr__", watch, raising=False)
    activities = {"nothing": lambda: None, "fail_once": fail_once, "refuse": refuse}
    direct.run(workflow, workflows=[CHILD, FAULTY_CHILD], activities=activities)
    assert changes
    assert changes <= ARROWS[statuses]
