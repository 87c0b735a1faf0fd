"""Schedules: which time comes next, across daylight saving, gaps and missed ones."""

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercommit.schedules import find_cron_fault, find_time_zone_fault, next_of


def at(text):
    return datetime.fromisoformat(text).timestamp()


def cron(expression, time_zone="UTC"):
    return {"cron": expression, "time_zone": time_zone}


@pytest.mark.parametrize(
    ("schedule", "after", "expected"),
    [
        (cron("0 9 * * *"), "2026-11-30T08:59:59+00:00", "2026-11-30T09:00:00+00:00"),
        (cron("0 9 * * *"), "2026-11-30T09:00:00+00:00", "2026-12-01T09:00:00+00:00"),
        (cron("0 9 * * *"), "2026-11-30T08:59:59.999+00:00", "2026-11-30T09:00:00+00:00"),
        (cron("*/5 * * * * *"), "2026-11-30T09:00:01+00:00", "2026-11-30T09:00:05+00:00"),
        (cron("0 9 * * *", "Asia/Tokyo"), "2026-11-30T09:00:00+00:00", "2026-12-01T00:00:00+00:00"),
    ],
)
def test_c31_a_cron_time_is_the_first_one_after_an_instant(schedule, after, expected):
    assert next_of(schedule, at(after)) == at(expected)


def test_a_time_that_daylight_saving_skips_comes_right_after_the_gap():
    berlin = cron("30 2 * * *", "Europe/Berlin")
    first = next_of(berlin, at("2026-03-28T12:00:00+00:00"))
    assert first == at("2026-03-29T01:00:00+00:00")  # 03:00 there
    assert next_of(berlin, first) == at("2026-03-30T00:30:00+00:00")


def test_a_time_that_daylight_saving_repeats_comes_once():
    berlin = cron("30 2 * * *", "Europe/Berlin")
    first = next_of(berlin, at("2026-10-24T12:00:00+00:00"))
    assert first == at("2026-10-25T00:30:00+00:00")  # 02:30 in summer
    assert next_of(berlin, first) == at("2026-10-26T01:30:00+00:00")


@pytest.mark.parametrize(
    "expression", ["61 * * * *", "* * * *", "", "@daily", "0 0 31 2 *", "a b c d e", "* * * * * * *"]
)
def test_c31_what_cron_would_not_read_is_told(expression):
    assert find_cron_fault(expression)


@pytest.mark.parametrize("expression", ["0 0 29 2 *", "*/10 8-18 * * MON-FRI", "0 0 L * *", "0 30 6 * * *"])
def test_c31_a_good_cron_expression_has_no_fault(expression):
    assert find_cron_fault(expression) is None


@pytest.mark.parametrize("name", ["Berlin", "", "../etc/passwd", "/etc/localtime", "Europe", "\0"])
def test_an_unknown_time_zone_is_told(name):
    assert find_time_zone_fault(name)


def test_a_time_zone_by_its_name_has_no_fault():
    assert find_time_zone_fault("America/New_York") is None


def test_an_interval_begins_when_it_is_published_and_keeps_its_rhythm():
    every = {"every_seconds": 60}
    assert next_of(every, 1_000) == 1_060
    assert next_of(every, 1_060.4, last=1_060) == 1_120


def test_an_instant_comes_once_even_if_it_is_past():
    once = {"at": "2020-01-01T00:00:00Z"}
    past = at("2020-01-01T00:00:00+00:00")
    assert next_of(once, past + 1e6) == past
    assert next_of(once, past + 1e6, last=past) is None


@given(
    interval=st.integers(1, 10_000),
    last=st.integers(0, 10**9),
    late=st.floats(0, 10**6, allow_nan=False),
)
def test_missed_times_of_an_interval_collapse_into_one(interval, last, late):
    following = next_of({"every_seconds": interval}, last + late, last=last)
    assert last + late < following <= last + late + interval
    assert (following - last) % interval == 0
