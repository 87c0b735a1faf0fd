"""Log lines with ids, never with inputs; and the metrics that go with what operators must see."""

import os

from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import MetricUnit, single_metric

logger = Logger()
_NAMESPACE = os.environ.get("POWERTOOLS_METRICS_NAMESPACE", "Aftercommit")


def gauge(metric: str, seconds: float) -> None:
    """Tell CloudWatch how long something has taken, or has been waiting."""
    with single_metric(name=metric, unit=MetricUnit.Seconds, value=round(seconds, 3), namespace=_NAMESPACE):
        pass


def count(metric: str, number: int = 1) -> None:
    """Count something in CloudWatch, at once: what happened is told even if the invocation dies next."""
    if number:
        with single_metric(name=metric, unit=MetricUnit.Count, value=number, namespace=_NAMESPACE):
            pass
