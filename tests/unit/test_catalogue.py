"""The catalogue as data: what a tree's reader takes, the schemas take, and the other way round."""

import json

import pytest
from hypothesis import given

from aftercommit import schema
from aftercommit.activities import TYPES
from aftercommit.catalogue import describe_types, schema_of_type
from aftercommit.definition import read_definition
from aftercommit.errors import DefinitionRefusedError
from aftercommit.keywords import find_keyword_faults, find_misfits
from tests.unit.trees import DEFINITIONS


def misfits(node):
    return list(find_misfits(schema_of_type(TYPES[node["type"]]), node, "node"))


def test_every_type_is_described_once_with_a_schema_that_is_one():
    described = describe_types()
    assert [each["type"] for each in described] == sorted(TYPES)
    for each in described:
        assert each["description"].endswith(".")
        assert list(find_keyword_faults(each["schema"], "schema")) == []
    assert json.loads(json.dumps(described)) == described


@given(DEFINITIONS)
def test_every_node_that_the_reader_takes_fits_the_schema_of_its_type(data):
    for activity in read_definition(data).activities.values():
        assert misfits(activity.to_json()) == []


NODES = [
    ({"type": "Event", "name": "e", "scope": "all"}, {"scope": "one"}),
    ({"type": "Event", "name": "e"}, {"name": ""}),
    ({"type": "Event", "name": "e"}, {"name": None}),
    ({"type": "Event", "name": "e"}, {"starts": "yes"}),
    ({"type": "Event", "name": "e"}, {"payload": [1]}),
    ({"type": "Event", "name": "e"}, {"payload": "no expression"}),
    ({"type": "Event", "name": "e"}, {"result": "no name"}),
    ({"type": "Event", "name": "e"}, {"each": {"type": "Nothing"}}),
    ({"type": "Event", "name": "e"}, {"more": 1}),
    ({"type": "DispatchWorkflow", "workflow": "w"}, {"version": 0}),
    ({"type": "DispatchWorkflow", "workflow": "w"}, {"on": [1]}),
    ({"type": "Sequence", "activities": []}, {"activities": [1]}),
    ({"type": "Step", "activity": "a"}, {"retry": "often"}),
    ({"type": "Try", "body": {"type": "Finish"}}, {"errors": "E"}),
    (
        {"type": "Flowchart", "activities": {"a": {"type": "Finish"}}, "start": "a"},
        {"connections": [{"from": "a"}]},
    ),
]


@pytest.mark.parametrize(("good", "change"), NODES, ids=lambda each: json.dumps(each)[:50])
def test_what_the_reader_refuses_in_a_property_does_not_fit_either(good, change):
    assert misfits(good) == []
    bad = {name: value for name, value in {**good, **change}.items() if value is not None}
    assert misfits(bad) != []
    read_definition({"id": "w", "root": good})
    with pytest.raises(DefinitionRefusedError):
        read_definition({"id": "w", "root": bad})


def test_a_schema_can_be_an_input_of_a_workflow_itself():
    assert schema.find_schema_faults({"node": schema_of_type(TYPES["Event"])}, "inputs") == []
