"""The pause between two tries of a request that DynamoDB could not serve: doubled each time, and jittered."""

from aftercommit import clock
from aftercommit.ids import derive_fraction

_PAUSE_SECONDS_FIRST = 0.05


def pause(nonce: str, number: int) -> None:
    """Wait 50 ms, doubled `number` times, and then 0.5 to 1.5 times as long.

    The jitter follows from `nonce`, a fresh one for each request: two writers that conflicted must not meet
    again in step.
    """
    clock.sleep(_PAUSE_SECONDS_FIRST * 2**number * (0.5 + derive_fraction(nonce, number)))
