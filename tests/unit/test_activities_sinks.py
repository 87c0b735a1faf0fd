"""PublishEvent for sinks: what it intends, and what makes no sense."""

import pytest

import aftercommit
from aftercommit import PublishEvent, Sequence, Step, Workflow, direct, inputs
from aftercommit.definition import read_definition
from aftercommit.errors import DefinitionRefusedError
from aftercommit.limits import EVENT_BYTES_MAX


def run(activity, **given):
    declared = {name: {} for name in given}
    return direct.run(Workflow("w", inputs=declared, root=activity), given)


def test_an_event_for_sinks_is_told_to_them_and_is_no_stimulus():
    listener = Workflow("listener", root=PublishEvent("x"))
    activity = PublishEvent(
        "order/placed",
        payload={"order": inputs.id},
        input={"amount": inputs.amount},
        correlation_id="c-1",
        sinks=["bus", "stimuli"],
    )
    result = direct.run(
        Workflow("w", inputs={"id": {}, "amount": {}}, root=activity),
        {"id": "o-1", "amount": 5},
        workflows=[listener],
    )
    [told] = result.events
    assert told.pop("id")
    assert told.pop("ts") > 0
    assert told == {
        "name": "order/placed",
        "data": {"amount": 5},
        "payload": {"order": "o-1"},
        "correlation_id": "c-1",
        "sinks": ["bus", "stimuli"],
    }
    assert result.children == []


def test_each_execution_has_an_event_of_its_own_and_a_repeat_the_same():
    root = Sequence(PublishEvent("n", sinks=["bus"]), PublishEvent("n", sinks=["bus"]))
    first = [each["id"] for each in run(root).events]
    assert len(set(first)) == 2
    assert [each["id"] for each in run(root).events] == first


def test_without_an_input_its_data_is_empty():
    assert run(PublishEvent("n", sinks=["queue"])).events[0]["data"] == {}


@pytest.mark.parametrize("given", ["text", 5, [1]])
def test_what_sinks_are_told_is_an_object(given):
    result = run(PublishEvent("n", input=inputs.x, sinks=["bus"]), x=given)
    assert result.status == "faulted"
    assert "is an object" in result.failure.message
    assert result.events == []


def test_an_event_that_no_sink_could_take_faults():
    result = run(PublishEvent("n", input={"x": inputs.x}, sinks=["bus"]), x="y" * EVENT_BYTES_MAX)
    assert result.status == "faulted"
    assert str(EVENT_BYTES_MAX) in result.failure.message


@pytest.mark.parametrize(
    ("more", "place"),
    [
        ({"sinks": []}, "root.sinks"),
        ({"sinks": ["kafka"]}, "root.sinks"),
        ({"sinks": ["bus", "bus"]}, "root.sinks"),
        ({"sinks": "bus"}, "root.sinks"),
        ({"sinks": [5]}, "root.sinks"),
        ({"sinks": [["bus"]]}, "root.sinks"),
        ({"sinks": ["bus"], "local": True}, "root.local"),
        ({"sinks": ["bus"], "name": "n" * 256}, "root.name"),
    ],
)
def test_sinks_that_make_no_sense_are_refused_by_path(more, place):
    root = {"type": "PublishEvent", "name": "n", **more}
    with pytest.raises(DefinitionRefusedError) as caught:
        read_definition({"id": "w", "root": root}, version=1)
    assert place in [path for path, _ in caught.value.faults]


def test_as_data_and_in_python_it_is_the_same():
    written = PublishEvent("n", sinks=["bus"]).to_json()
    assert written == {"type": "PublishEvent", "name": "n", "sinks": ["bus"]}
    read = read_definition({"id": "w", "root": written}, version=1)
    assert read.root.sinks == ["bus"]


# --- from within an activity ---


def run_activity(function):
    return direct.run(Workflow("w", root=Step("tell")), activities={"tell": function})


def test_an_activity_tells_sinks_with_its_result():
    data = {"n": 1}

    def tell(context):
        context.publish("order/placed", {"order": 1}, data, correlation_id="c-1", sinks=["bus"])
        context.publish("order/placed", sinks=["queue"])
        data["n"] = 2

    first, second = run_activity(tell).events
    assert (first["name"], first["data"], first["sinks"]) == ("order/placed", {"n": 1}, ["bus"])
    assert (first["payload"], first["correlation_id"]) == ({"order": 1}, "c-1")
    assert (second["data"], second["sinks"]) == ({}, ["queue"])
    assert first["id"] != second["id"]


@pytest.mark.parametrize(
    "more",
    [
        {"sinks": []},
        {"sinks": ["kafka"]},
        {"input": "text", "sinks": ["bus"]},
        {"input": {"x": "y" * EVENT_BYTES_MAX}, "sinks": ["bus"]},
    ],
)
def test_an_activity_that_tells_sinks_nonsense_raises(more):
    result = run_activity(lambda context: context.publish("n", **more))
    assert result.status == "faulted"
    assert result.events == []


def test_every_name_of_the_package_is_found_and_no_other():
    for name in aftercommit.__all__:
        assert getattr(aftercommit, name).__class__ is not type(aftercommit), "a module of the same name"
    with pytest.raises(AttributeError):
        aftercommit.nothing  # noqa: B018
