"""Log lines with ids, never with inputs; and the metrics that go with what operators must see.

What a line may say of an error is decided here alone: `reason_of` for what was to be expected, `tell_failure`
for what was not. The row that an error is about keeps its whole text.
"""

import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import MetricUnit, single_metric

from aftercommit import aws
from aftercommit.errors import OvertakenError, TryLaterError

__all__ = ["Logger", "about", "add_ids", "count", "gauge", "ids_of", "logger", "reason_of", "tell_failure"]

logger = Logger()
_NAMESPACE = os.environ.get("POWERTOOLS_METRICS_NAMESPACE", "Aftercommit")
_ROW_IDS = (
    "tenant",
    "owner_id",
    "item_id",
    "command",
    "instance_id",
    "definition_id",
    "correlation_id",
    "parent_instance_id",
)
_ERROR_IDS = "aftercommit_ids"  # of an error: the ids that the lines bore where it was raised
_AWS_PACKAGES = {"boto3", "botocore", "pynamodb"}
_FRAMES_MAX = 30
_CAUSES_MAX = 5


def ids_of(row: object) -> dict[str, Any]:
    """Return the ids that an item or a head holds, by the names that lines have for them."""
    found = ((name, getattr(row, name, None)) for name in _ROW_IDS)
    return {name: value for name, value in found if value is not None}


@contextmanager
def about(**ids: Any) -> Iterator[None]:
    """Have every line within bear these ids, and none that are added within outlive it.

    An error that leaves it takes them along, for whoever tells of it outside.
    """
    before = logger.thread_safe_get_current_keys()
    logger.thread_safe_append_keys(**ids)
    try:
        yield
    except Exception as error:
        vars(error)[_ERROR_IDS] = {**ids, **vars(error).get(_ERROR_IDS, {})}
        raise
    finally:
        logger.thread_safe_clear_keys()
        logger.thread_safe_append_keys(**before)


def add_ids(**ids: Any) -> None:
    """Have every line from here on bear these ids, as long as what they are added in lasts; see `about`."""
    logger.thread_safe_append_keys(**ids)


def reason_of(error: BaseException) -> str:
    """Say why something failed, without what anybody has given as input, neither values nor names.

    Errors that tell of states and requests (try later, someone else was first, AWS's own) bring their text;
    of any other it is the type alone.
    """
    name = type(error).__name__
    told = isinstance(error, TryLaterError | OvertakenError)
    from_aws = type(error).__module__.partition(".")[0] in _AWS_PACKAGES
    # This one repeats the values that it was given.
    faulty = "ParamValidationError" in (name, type(getattr(error, "cause", None)).__name__)
    return f"{name}: {error}" if told or (from_aws and not faulty) else name


def tell_failure(message: str, error: Exception, **more: Any) -> None:
    """Log that something failed which nobody expected to, and count it.

    The line has the ids of where it was raised, its reason, the types of the error and its causes, and their
    frames: never their texts. What heals by itself, or somebody else was first at, is no more than a warning.
    """
    told = {"reason": reason_of(error), **vars(error).get(_ERROR_IDS, {}), **more}
    if isinstance(error, TryLaterError | OvertakenError) or aws.is_passing(error):
        logger.warning(message, extra=told, stacklevel=3)
        return
    told |= {"error_type": type(error).__name__, "stack": _stack_of(error)}
    logger.error(message, extra=told, stacklevel=3)
    count("UnexpectedErrors")


def _stack_of(error: BaseException) -> list[str]:
    """Return the type of an error and where it was raised, innermost first; then the same of its causes."""
    told: list[str] = []
    cause: BaseException | None = error
    for _ in range(_CAUSES_MAX):
        if cause is None:
            break
        told.append(type(cause).__name__)
        frames = traceback.extract_tb(cause.__traceback__, limit=-_FRAMES_MAX)
        told += [f"{each.filename}:{each.lineno} {each.name}" for each in reversed(frames)]
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    return told


def count(metric: str, number: int = 1) -> None:
    """Count something in CloudWatch, at once: what happened is told even if the invocation dies next."""
    if number:
        _put(metric, MetricUnit.Count, number)


def gauge(metric: str, seconds: float) -> None:
    """Tell for how long something has been waiting; also zero, as silence would look like a failure."""
    _put(metric, MetricUnit.Seconds, seconds)


def _put(metric: str, unit: MetricUnit, value: float) -> None:
    with single_metric(name=metric, unit=unit, value=value, namespace=_NAMESPACE) as put:
        # No dimensions: with the function's name for one, each function would have a metric of its own, and
        # what alarms and dashboard name would be another, without data.
        put.service = ""
