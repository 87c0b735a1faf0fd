"""Fresh tables and queues for each test, made from what template.yaml declares."""

import itertools

import pytest
from moto import mock_aws

from aftercommit import aws, clock
from aftercommit.definitions import load_definition
from aftercommit.log import logger
from aftercommit.publish import publish_workflows
from aftercommit.settings import settings
from tests.integration import template
from tests.integration.faults import Faults
from tests.integration.handlers import Api, Lines
from tests.integration.payload_flows import BUCKET, child, one, parent
from tests.integration.world import DrivenClock, World, behaviours, effects
from tests.partiql import teach

TABLES = template.tables()
QUEUES = template.queues()
KEYS = {each["TableName"]: [part["AttributeName"] for part in each["KeySchema"]] for each in TABLES.values()}


@pytest.fixture
def environment(monkeypatch):
    """Stand in for the environment of the functions; tests may set more before they use settings."""
    for name in ("ENDPOINT_URL", "PROFILE", "SESSION_TOKEN"):
        monkeypatch.delenv(f"AWS_{name}", raising=False)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", "Aftercommit")
    monkeypatch.setenv("DUE_SHARDS", "2")  # a sweep asks each shard twice, and moto is slow
    with mock_aws():
        for variable, arguments in TABLES.items():
            aws.client("dynamodb").create_table(**arguments)
            monkeypatch.setenv(variable, arguments["TableName"])
        for variable, name in QUEUES.items():
            monkeypatch.setenv(variable, aws.client("sqs").create_queue(QueueName=name)["QueueUrl"])
        stop = teach(aws.client("dynamodb"), lambda name: KEYS[name])
        _forget()
        yield monkeypatch
        stop()
    _forget()


def _forget():
    settings.cache_clear()
    load_definition.cache_clear()


@pytest.fixture
def driven_clock(monkeypatch):
    driven = DrivenClock()
    monkeypatch.setattr(clock, "clock", driven)
    return driven


@pytest.fixture
def world(environment, driven_clock):
    """The world under test."""
    behaviours.clear()
    effects.clear()
    found = World(driven_clock)
    stop = found.listen()
    yield found
    stop()


@pytest.fixture
def set_environment(environment):
    """Set environment variables of the functions."""

    def set_all(**values):
        for name, value in values.items():
            environment.setenv(name, value)
        settings.cache_clear()

    return set_all


@pytest.fixture
def faults(environment):
    found = Faults()
    yield found
    found.close()


@pytest.fixture
def log_lines():
    """Return the list that takes every line the runtime logs."""
    found = Lines()
    logger.addHandler(found)
    yield found.lines
    logger._logger.removeHandler(found)


@pytest.fixture
def example(world):
    """Publish the example workflows, as a deploy does."""
    publish_workflows("workflows")
    return world


@pytest.fixture
def api(example):
    return Api()


@pytest.fixture
def stored(world, set_environment, faults):
    """The world with a bucket, and large payloads on."""
    aws.client("s3").create_bucket(Bucket=BUCKET)
    set_environment(PAYLOAD_BUCKET=BUCKET, LARGE_PAYLOADS="true")
    faults.watch("s3")
    world.publish(child, parent, one)
    return world


@pytest.fixture
def derived_ids(monkeypatch):
    """Let random ids be the same each time: keys are made of them."""
    numbers = itertools.count()
    monkeypatch.setattr("ulid.ULID", lambda: f"01KXE{next(numbers):021}")
