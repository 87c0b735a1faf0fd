"""List prices, and what the counts come to. Free tiers and discounts are left out.

us-east-1, US dollars, 2026, from the pages named. Reads of a stream by Lambda's own poller and scheduled
rules on the default event bus cost nothing.
"""

from dataclasses import dataclass

MILLION = 1_000_000

# https://aws.amazon.com/dynamodb/pricing/on-demand/ (Standard table class)
WRITE_UNIT = 0.625 / MILLION
READ_UNIT = 0.125 / MILLION
STORAGE_GB_MONTH = 0.25
BACKUP_GB_MONTH = 0.20  # point-in-time recovery
# https://aws.amazon.com/sqs/pricing/ (standard queues, first tier)
SQS_REQUEST = 0.40 / MILLION
# https://aws.amazon.com/lambda/pricing/ (arm64, first tier)
LAMBDA_REQUEST = 0.20 / MILLION
LAMBDA_GB_SECOND = 0.0000133334
# https://aws.amazon.com/api-gateway/pricing/ (HTTP API, first tier)
API_REQUEST = 1.00 / MILLION
# https://aws.amazon.com/cloudwatch/pricing/ (Standard class, ingested)
LOG_GB = 0.50

# Assumed of an invocation: this much of its own, and this much for each request it waits for. The time of
# the workflow's own activities comes on top.
INVOCATION_MS = 10
REQUEST_MS = 6
# START, END and REPORT lines of the platform.
PLATFORM_LOG_BYTES = 350

HOURS_A_MONTH = 730


@dataclass
class Invocations:
    """Invocations of one function, the requests they waited for and what they logged."""

    count: int = 0
    requests: int = 0
    log_bytes: int = 0

    def gigabyte_seconds(self, memory_megabytes: int) -> float:
        """Return what their assumed duration comes to."""
        milliseconds = self.count * INVOCATION_MS + self.requests * REQUEST_MS
        return milliseconds / 1000 * memory_megabytes / 1024

    def dollars(self, memory_megabytes: int) -> float:
        """Return what they cost."""
        return self.count * LAMBDA_REQUEST + self.gigabyte_seconds(memory_megabytes) * LAMBDA_GB_SECOND
