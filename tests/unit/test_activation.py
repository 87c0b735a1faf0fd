"""The option `activation`: how it is written, what it limits, and direct execution with it."""

import pytest

from aftercommit import Delay, DispatchWorkflow, Event, Fork, PublishEvent, Sequence, Workflow, direct, var
from aftercommit.definition import read_definition
from aftercommit.errors import DefinitionRefusedError
from aftercommit.statuses import InstanceStatus


def single(activation="singleton", **more):
    return Workflow("single", activation=activation, root=Delay(60), **more)


def test_the_option_stands_in_the_tree_only_if_it_limits_something():
    assert "options" not in single("always").data
    assert single().data["options"] == {"activation": "singleton"}
    assert read_definition(single("correlation").data).activation == "correlation"
    assert read_definition(single("always").data).activation == "always"


def test_another_word_is_refused_naming_the_option():
    with pytest.raises(DefinitionRefusedError) as caught:
        single("twice")
    assert caught.value.field == "options.activation"
    assert "always, singleton, correlation" in caught.value.message


@pytest.mark.parametrize(
    ("activation", "first", "second", "same"),
    [
        ("singleton", None, "a", True),
        ("singleton", "a", "b", True),
        ("correlation", "a", "a", True),
        ("correlation", "a", "b", False),
    ],
)
def test_what_one_live_instance_holds(activation, first, second, same):
    old, new = (single(activation, version=version).definition for version in (1, 2))
    assert (old.derive_activation_id(first) == new.derive_activation_id(second)) is same


@pytest.mark.parametrize(("activation", "given"), [("always", "a"), ("always", None), ("correlation", None)])
def test_what_is_not_limited_holds_nothing(activation, given):
    assert single(activation).definition.derive_activation_id(given) is None


def told(result):
    return [each.status for each in result.children], result.variables["x"]["error"]["type"]


def dispatches(**second):
    handled = {"DispatchFailed": Sequence()}
    return Fork(
        DispatchWorkflow("single", wait=True),
        Sequence(Delay(1), DispatchWorkflow("single", wait=True, result="x", on=handled, **second)),
    )


def test_direct_execution_refuses_a_second_live_child():
    result = direct.run(Workflow("w", root=dispatches()), workflows=[single()])
    assert result.status == InstanceStatus.COMPLETED
    assert told(result) == (["completed"], "ActivationRefusedError")


def test_direct_execution_limits_by_correlation_id():
    workflows = [single("correlation")]
    result = direct.run(Workflow("w", root=dispatches()), workflows=workflows, correlation_id="a")
    assert told(result) == (["completed"], "ActivationRefusedError")
    apart = Workflow("w", root=dispatches(correlation_id="b"))
    result = direct.run(apart, workflows=workflows, correlation_id="a")
    assert [each.status for each in result.children] == ["completed", "completed"]


def test_direct_execution_lets_the_next_child_in_after_the_end():
    both = Sequence(DispatchWorkflow("single", wait=True), DispatchWorkflow("single", wait=True))
    result = direct.run(Workflow("w", root=both, output=var.x), workflows=[single()])
    assert [each.status for each in result.children] == ["completed", "completed"]


def test_direct_execution_passes_over_a_start_by_an_event_while_one_is_live():
    started = Workflow("started", activation="singleton", root=Sequence(Event("e", starts=True), Delay(60)))
    sending = Workflow("w", root=Sequence(PublishEvent("e"), Delay(1), PublishEvent("e")))
    result = direct.run(sending, workflows=[started])
    assert [each.status for each in result.children] == ["completed"]
