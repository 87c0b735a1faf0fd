import pytest

from aftercommit import clock
from aftercommit.ids import new_token
from aftercommit.tries import pause


@pytest.fixture
def pauses(monkeypatch):
    slept = []
    monkeypatch.setattr(clock.clock, "sleep", slept.append)
    return slept


def test_a_pause_is_doubled_each_time_and_jittered_around_that(pauses):
    for nonce in (new_token() for _ in range(50)):
        for number in range(6):
            pause(nonce, number)
    for number in range(6):
        middle = 0.05 * 2**number
        assert all(middle / 2 <= seconds < middle * 3 / 2 for seconds in pauses[number::6])


def test_two_that_conflicted_do_not_come_back_at_once(pauses):
    for nonce in ("one", "other"):
        pause(nonce, 1)
    assert len(set(pauses)) == 2
