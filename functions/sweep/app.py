"""sweep: find what was stranded. The schedule comes once a minute; delayed ticks fill the time between."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from aftercommit.log import logger, tell_failure
from aftercommit.queue import send_tick
from aftercommit.settings import settings
from aftercommit.sweep import sweep

_MINUTE_SECONDS = 60
_SPARE_SECONDS = 5


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    """Make a pass; the schedule's own also sets the ticks until the next minute."""
    if "Records" not in event:
        interval = settings().sweep_interval_seconds
        for delay in range(interval, _MINUTE_SECONDS, interval):
            _tick(delay)
    if sweep(seconds_left=context.get_remaining_time_in_millis() / 1000 - _SPARE_SECONDS):
        _tick(0)


def _tick(delay_seconds: int) -> None:
    try:
        send_tick(delay_seconds)
    except Exception as error:  # noqa: BLE001 - a pass that was not asked for is no reason to miss this one
        tell_failure("tick not sent", error)
