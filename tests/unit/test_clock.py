import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from aftercommit import clock

INSTANTS = st.floats(0, 4_102_444_800, allow_nan=False)


@given(INSTANTS)
@example(1_700_000_000.123)
def test_text_stands_for_the_millisecond_of_its_instant(at):
    read = clock.from_text(clock.to_text(at))
    assert at - 0.001_01 < read < at + 0.000_01


@given(st.integers(0, 4_102_444_800_000))
def test_text_reads_back_and_writes_as_the_same_text(milliseconds):
    text = clock.to_text(milliseconds / 1000)
    assert clock.to_text(clock.from_text(text)) == text
    assert round(clock.from_text(text) * 1000) == milliseconds


@given(INSTANTS, INSTANTS)
def test_texts_sort_by_time(one, other):
    earlier, later = sorted((one, other))
    assert clock.to_text(earlier) <= clock.to_text(later)


def test_the_form_of_an_instant():
    assert clock.to_text(1_796_075_123.123) == "2026-11-30T21:45:23.123Z"
    assert clock.to_text(0) == "1970-01-01T00:00:00.000Z"


def test_time_can_be_driven(monkeypatch):
    class Driven(clock.Clock):
        at = 100.0

        def now(self):
            return self.at

        def sleep(self, seconds):
            self.at += seconds

    monkeypatch.setattr(clock, "clock", Driven())
    clock.sleep(2.5)
    assert clock.now() == 102.5


def test_the_system_clock_goes_on():
    before = clock.now()
    clock.sleep(0)
    assert clock.now() >= before > 1_700_000_000


def test_an_instant_of_another_form_is_refused():
    with pytest.raises(ValueError, match="Invalid isoformat"):
        clock.from_text("yesterday")
