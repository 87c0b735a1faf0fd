import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercommit import Retry, Step, activity, clock
from aftercommit.activities.step import activity_name
from aftercommit.errors import NotFoundError, ResultTooLargeError, UnknownActivityError
from aftercommit.functions import ActivityContext, descriptors, failure_of, find_function, registered_names
from aftercommit.model import Failure

FAILURE = Failure("OSError", "gone")


def context(**more):
    values = {
        "idempotency_key": "execution-1",
        "attempt": 1,
        "instance_id": "i",
        "correlation_id": "order-7",
        "tenant": "t",
        "deadline": 50.0,
    }
    return ActivityContext(**{**values, **more})


def next_at(retry, attempt=1, failure=FAILURE, execution_id="e"):
    return retry.next_attempt_at(attempt=attempt, failure=failure, at=1000.0, execution_id=execution_id)


# --- registering ---


def test_a_decorated_function_stays_what_it_was():
    @activity
    def double(number: int) -> int:
        return number * 2

    assert double(4) == 8
    assert find_function("double").call is double
    assert "double" in registered_names()
    assert not find_function("double").takes_context


def test_an_activity_without_a_policy_is_not_retried():
    @activity
    def once(): ...

    assert find_function("once").retry.attempts_max == 1


def test_a_name_a_policy_and_a_time_can_be_given():
    retry = Retry(attempts_max=7)

    @activity(name="other-name", retry=retry, timeout_seconds=90)
    def function(context): ...

    found = find_function("other-name")
    assert (found.retry, found.timeout_seconds, found.takes_context) == (retry, 90, True)
    assert Step(function).to_json() == {"type": "Step", "activity": "other-name"}


def test_two_functions_under_one_name_are_refused_naming_both():
    def first(): ...

    def second(): ...

    activity(name="taken")(first)
    activity(name="taken")(first)  # a module loaded twice registers the same function again
    with pytest.raises(ValueError, match=r"two activities are named 'taken'.*first.*second"):
        activity(name="taken")(second)


def test_an_unknown_name_and_a_plain_function_are_told():
    with pytest.raises(UnknownActivityError, match="no activity named 'never-registered'"):
        find_function("never-registered")
    with pytest.raises(TypeError, match="decorate it with @activity"):
        activity_name(lambda: None)


def test_a_descriptor_comes_from_type_hints():
    @activity(retry=Retry(attempts_max=2))
    def described(name: str, count: int = 1, *, context: ActivityContext) -> dict:
        """Describe it.

        At length.
        """

    found = next(each for each in descriptors() if each["name"] == "described")
    assert found["description"] == "Describe it."
    assert found["inputs"]["required"] == ["name"]
    assert set(found["inputs"]["properties"]) == {"name", "count"}
    assert found["output"] == {"type": "object"}
    assert found["retry"]["attempts_max"] == 2


# --- retry ---


@given(
    st.integers(1, 12),
    st.floats(0, 1),
    st.floats(0, 100),
    st.floats(1, 4),
    st.floats(0, 500),
    st.text(max_size=5),
)
def test_a_delay_lies_between_its_nominal_value_and_that_less_the_jitter(
    attempt, jitter, first, backoff, most, execution_id
):
    retry = Retry(20, first, backoff, most, jitter)
    nominal = min(first * backoff ** (attempt - 1), most)
    delay = next_at(retry, attempt, execution_id=execution_id) - 1000
    assert nominal * (1 - jitter) - 1e-6 <= delay <= nominal + 1e-6


def test_jitter_repeats_for_an_attempt_and_differs_between_executions():
    retry = Retry(5, 100, jitter=0.5)
    assert next_at(retry) == next_at(retry)
    assert len({next_at(retry, execution_id=f"e{number}") for number in range(20)}) == 20


def test_delays_double_up_to_the_longest():
    retry = Retry(10, 2, delay_max_seconds=10, jitter=0)
    assert [next_at(retry, attempt) - 1000 for attempt in (1, 2, 3, 4, 5)] == [2, 4, 8, 10, 10]


def test_after_very_many_attempts_the_delay_is_the_longest():
    retry = Retry(10**6, 2.0, 10.0, delay_max_seconds=7.0, jitter=0)
    assert next_at(retry, 5000) == 1007


def test_the_last_attempt_has_none_after_it():
    assert next_at(Retry(3), 2) is not None
    assert next_at(Retry(3), 3) is None
    assert next_at(Retry(3), 4) is None


def test_an_error_named_as_non_retryable_is_not_tried_again():
    retry = Retry(5, non_retryable=("CardRefusedError",))
    assert next_at(retry, failure=Failure("CardRefusedError", "no")) is None
    assert next_at(retry, failure=Failure("OtherError", "no")) is not None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("attempts_max", 0),
        ("attempts_max", "3"),
        ("attempts_max", True),
        ("first_delay_seconds", -1),
        ("backoff", 0.5),
        ("delay_max_seconds", -1),
        ("delay_max_seconds", None),
        ("jitter", -0.1),
        ("jitter", 1.1),
        ("backoff", math.nan),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused_by_field(name, value):
    with pytest.raises(ValueError, match=name):
        Retry(**{name: value})


def test_a_policy_round_trips_through_json():
    retry = Retry(7, 0.5, 3, 60, 0.2, ("A", "B"))
    assert Retry.from_json(retry.to_json()) == retry
    assert Retry.from_json({}) == Retry()
    with pytest.raises(TypeError, match="attempt"):
        Retry.from_json({"attempt": 1})


# --- the context ---


def test_dispatches_of_an_activity_have_the_same_ids_on_every_attempt():
    first, second = context(), context(attempt=2)
    ids = [first.dispatch("child", {"n": 1}), first.dispatch("child", {"n": 1})]
    assert ids == [second.dispatch("child", {"n": 1}), second.dispatch("child", {"n": 2})]
    assert ids[0] != ids[1]
    assert [each.item_id for each in first.intentions] == [each.item_id for each in second.intentions]


def test_dispatches_of_two_executions_differ():
    assert context().dispatch("child") != context(idempotency_key="execution-2").dispatch("child")


def test_a_dispatch_hands_down_correlation_and_depth_and_waits_for_nobody():
    given_context = context(depth=3)
    given_context.dispatch("child", {"a": 1}, version=2, channel="slow")
    given_context.dispatch("child", correlation_id="other")
    first, second = (each.body for each in given_context.intentions)
    assert first["correlation_id"] == "order-7"
    assert second["correlation_id"] == "other"
    assert (first["depth"], first["version"], first["channel"], first["input"]) == (4, 2, "slow", {"a": 1})
    assert "bookmark_id" not in first


def test_a_channel_that_the_deployment_lacks_is_refused_at_the_call():
    given_context = context(channels=frozenset({"reports"}))
    given_context.dispatch("child", channel="reports")
    with pytest.raises(ValueError, match="no channel 'slow'"):
        given_context.dispatch("child", channel="slow")
    assert len(given_context.intentions) == 1


def test_a_dispatch_that_goes_with_its_parent_says_so():
    given_context = context()
    given_context.dispatch("child", cancel_with_parent=True)
    given_context.dispatch("child")
    along, alone = (each.body for each in given_context.intentions)
    assert along["cancel_with_parent"] is True
    assert "cancel_with_parent" not in alone


def test_remaining_time_counts_down(monkeypatch):
    monkeypatch.setattr(clock, "now", lambda: 47.5)
    assert context().remaining_seconds() == 2.5


# --- failures ---


def test_a_failure_names_the_class_and_bounds_the_message():
    assert failure_of(KeyError("x")) == Failure("KeyError", "'x'")
    assert failure_of(ValueError()) == Failure("ValueError", "ValueError")
    assert failure_of(ResultTooLargeError("big")) == Failure("ResultTooLargeError", "big")
    assert failure_of(NotFoundError("no such", field="id")).message == "no such"
    assert len(failure_of(ValueError("x" * 5000)).message) == 1000


def test_a_message_that_nothing_could_store_is_told_with_a_mark():
    assert failure_of(ValueError("half \ud800")).message == "half ?"
