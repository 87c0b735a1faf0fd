"""Log lines with ids, never with inputs; and the metrics that go with what operators must see."""

import os

from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import MetricUnit, single_metric

__all__ = ["Logger", "count", "gauge", "logger"]

logger = Logger()
_NAMESPACE = os.environ.get("POWERTOOLS_METRICS_NAMESPACE", "Aftercommit")


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
