import json

import pytest
from hypothesis import given

from aftercommit import (
    DispatchWorkflow,
    Fault,
    Finish,
    If,
    Sequence,
    SetVariable,
    Step,
    Workflow,
    activity,
    var,
)
from aftercommit import inputs as given_inputs
from aftercommit.definition import LEVELS_MAX, find_name_fault, read_definition
from aftercommit.errors import DefinitionRefusedError
from aftercommit.limits import DEFINITION_BYTES_MAX
from tests.unit.trees import DEFINITIONS


def faults_of(data, **options):
    with pytest.raises(DefinitionRefusedError) as caught:
        read_definition(data, **options)
    return dict(caught.value.faults)


@given(DEFINITIONS)
def test_any_tree_of_the_catalogue_round_trips_through_json(data):
    read = read_definition(json.loads(json.dumps(data)))
    assert read.root.to_json() == data["root"]
    again = read_definition(json.loads(json.dumps(read.data)), version=read.version)
    assert again.data == read.data
    assert again.fingerprint == read.fingerprint
    assert sorted(again.activities) == sorted(read.activities)


def test_a_workflow_written_in_python_is_the_same_data_as_one_written_as_json():
    @activity(name="charge_for_definition_test")
    def charge(order_id: str, amount: int) -> dict: ...

    written = Workflow(
        "place-order",
        version=3,
        inputs={"order_id": str, "amount": int},
        root=Sequence(
            Step(charge, order_id=given_inputs.order_id, amount=given_inputs.amount, result="payment"),
            If(
                var.payment.status == "ok",
                then=DispatchWorkflow(
                    "ship-order",
                    input={"order_id": given_inputs.order_id},
                    wait=True,
                    result="shipment",
                    on={"Faulted": Fault("shipping failed")},
                ),
                otherwise=Finish({"refused": True}),
            ),
            SetVariable("done", value=True),
        ),
        output={"tracking": var.shipment.tracking},
    ).to_json()
    assert written == {
        "id": "place-order",
        "version": 3,
        "inputs": {"order_id": {"type": "string"}, "amount": {"type": "integer"}},
        "root": {
            "type": "Sequence",
            "activities": [
                {
                    "type": "Step",
                    "activity": "charge_for_definition_test",
                    "inputs": {"order_id": "{% inputs.order_id %}", "amount": "{% inputs.amount %}"},
                    "result": "payment",
                },
                {
                    "type": "If",
                    "condition": '{% var.payment.status = "ok" %}',
                    "then": {
                        "type": "DispatchWorkflow",
                        "workflow": "ship-order",
                        "input": {"order_id": "{% inputs.order_id %}"},
                        "wait": True,
                        "result": "shipment",
                        "on": {"Faulted": {"type": "Fault", "message": "shipping failed"}},
                    },
                    "otherwise": {"type": "Finish", "output": {"refused": True}},
                },
                {"type": "SetVariable", "variable": "done", "value": True},
            ],
        },
        "output": {"tracking": "{% var.shipment.tracking %}"},
    }


def test_all_faults_are_told_at_once_each_with_its_path():
    data = {
        "id": "no spaces",
        "version": 0,
        "colour": "red",
        "inputs": {"amount": {"type": "intger"}},
        "output": "{% var.( %}",
        "options": {"commit": "never", "speed": 3},
        "root": {
            "type": "Sequence",
            "activities": [
                {"type": "Step", "inputs": 5, "retry": {"attempts_max": 0}},
                {"type": "Stepp"},
                {"type": "If", "condition": "{% 1 + %}", "then": {"type": "SetVariable", "variable": "9x"}},
                {"type": "DispatchWorkflow", "workflow": "", "wait": "yes", "version": True, "on": []},
                {"type": "Fault", "message": "x", "extra": 1},
                "not an activity",
                {"type": "Step", "activity": "a", "retry": {"attempt": 1}},
            ],
        },
    }
    faults = faults_of(data)
    assert set(faults) == {
        "colour",
        "id",
        "version",
        "inputs.amount.type",
        "output",
        "options.commit",
        "options.speed",
        "root.activities[0].activity",
        "root.activities[0].inputs",
        "root.activities[0].retry",
        "root.activities[1]",
        "root.activities[2].condition",
        "root.activities[2].then.variable",
        "root.activities[3].workflow",
        "root.activities[3].wait",
        "root.activities[3].version",
        "root.activities[3].on",
        "root.activities[4].extra",
        "root.activities[5]",
        "root.activities[6].retry",
    }
    assert faults["root.activities[0].activity"] == "is missing"
    assert "attempts_max" in faults["root.activities[0].retry"]
    assert faults["root.activities[6].retry"] == "got an unexpected keyword argument 'attempt'"
    assert faults["root.activities[1]"] == 'unknown activity type "Stepp"'


@pytest.mark.parametrize("data", [None, [], "text", 5])
def test_a_definition_that_is_no_object_is_refused(data):
    assert "expected an object" in faults_of(data)["definition"]


def test_a_definition_without_a_root_is_refused():
    assert faults_of({"id": "a"}) == {"root": "is missing"}


def test_a_step_that_names_an_activity_the_code_lacks_is_refused_when_the_code_is_known():
    data = {"id": "a", "root": {"type": "Step", "activity": "gone"}}
    assert read_definition(data).definition_id == "a"
    assert read_definition(data, known=frozenset({"gone"})).definition_id == "a"
    assert "gone" in faults_of(data, known=frozenset({"other"}))["root.activity"]


def test_nesting_beyond_the_limit_is_a_fault_with_its_path():
    root = {"type": "Finish"}
    for _ in range(LEVELS_MAX):
        root = {"type": "Sequence", "activities": [root]}
    faults = faults_of({"id": "a", "root": root})
    assert list(faults) == ["root" + ".activities[0]" * LEVELS_MAX]


def test_a_definition_too_large_to_store_is_refused_with_the_limit():
    data = {"id": "a", "root": {"type": "Finish", "output": "x" * DEFINITION_BYTES_MAX}}
    assert str(DEFINITION_BYTES_MAX) in faults_of(data)["definition"]


def test_the_fingerprint_tells_trees_apart_but_neither_versions_nor_the_order_of_properties():
    tree = {"id": "a", "root": {"type": "Step", "activity": "b", "inputs": {"x": 1, "y": 2}}}
    turned = {"root": {"inputs": {"y": 2, "x": 1}, "activity": "b", "type": "Step"}, "version": 7, "id": "a"}
    other = {"id": "a", "root": {"type": "Step", "activity": "b", "inputs": {"x": 1, "y": 3}}}
    assert read_definition(tree).fingerprint == read_definition(turned).fingerprint
    assert read_definition(tree).fingerprint != read_definition(other).fingerprint


@pytest.mark.parametrize("name", ["a", "A-b_c.d", "0", "x" * 200])
def test_good_names(name):
    assert find_name_fault(name) is None


@pytest.mark.parametrize("name", ["", "-a", ".a", "a b", "a#b", "a/b", "ä", "x" * 201, None, 5, "a\n"])
def test_bad_names(name):
    assert "begin with a letter or digit" in find_name_fault(name)


def test_a_result_of_what_gives_none_is_refused_with_its_path():
    branch = {"type": "SetVariable", "variable": "x", "result": "y"}
    faults = faults_of({"id": "a", "root": {"type": "Fork", "branches": [branch], "result": "z"}})
    assert faults == {
        "root.result": "Fork has no such property",
        "root.branches[0].result": "SetVariable has no such property",
    }


@pytest.mark.parametrize(
    ("wait", "possible"),
    [
        (None, ["Dispatched"]),
        (False, ["Dispatched"]),
        (True, ["Completed", "Faulted", "Cancelled", "DispatchFailed"]),
    ],
)
def test_a_branch_for_an_outcome_that_cannot_happen_is_refused(wait, possible):
    outcomes = ["Dispatched", "Completed", "Faulted", "Cancelled", "DispatchFailed", "faulted"]
    root = {
        "type": "DispatchWorkflow",
        "workflow": "c",
        "on": {each: {"type": "Finish"} for each in outcomes},
    }
    if wait is not None:
        root["wait"] = wait
    faults = faults_of({"id": "a", "root": root})
    assert set(faults) == {f"root.on.{each}" for each in outcomes if each not in possible}
    assert all(", ".join(possible) in message for message in faults.values())


@pytest.mark.parametrize(
    ("root", "path", "told"),
    [
        ({"type": "Fork", "branches": [], "wait": "some"}, "root.wait", "must be one of all, any"),
        ({"type": "Fork", "branches": [], "wait": ["all"]}, "root.wait", "must be one of all, any"),
        ({"type": "Try", "body": {"type": "Finish"}, "errors": "E"}, "root.errors", "a list of texts"),
        ({"type": "Try", "body": {"type": "Finish"}, "errors": ["E", 5]}, "root.errors", "a list of texts"),
        ({"type": "Try"}, "root.body", "is missing"),
        ({"type": "Try", "body": {"type": "Finish"}, "finally": []}, "root.finally", "expected an activity"),
        ({"type": "Switch", "value": 1, "cases": []}, "root.cases", "an object of activities"),
        ({"type": "Delay"}, "root.seconds", "is missing"),
        ({"type": "Event", "name": "e", "payload": "text"}, "root.payload", "must be an object"),
        ({"type": "Event", "name": "e", "starts": 1}, "root.starts", "must be true or false"),
        ({"type": "RunTask", "name": ""}, "root.name", "not empty"),
        ({"type": "While", "condition": "{% 1 + %}", "body": {"type": "Finish"}}, "root.condition", ""),
        (
            {"type": "ForEach", "items": [], "body": {"type": "Finish"}, "item": "a b"},
            "root.item",
            "a variable's name",
        ),
        (
            {"type": "ForEach", "items": [], "body": {"type": "Finish"}, "index": "item"},
            "root.index",
            "is the name of the item",
        ),
    ],
)
def test_faults_of_the_catalogue_are_told_with_their_paths(root, path, told):
    faults = faults_of({"id": "a", "root": root})
    assert list(faults) == [path]
    assert told in faults[path]
