"""The example of docs/events.md is an application that works: order and event are stored, and it is told."""

import re

import pytest

from aftercommit import aws
from aftercommit.events import EventExistsError
from aftercommit.settings import settings
from tests.integration.events import Listener, run
from tests.integration.handlers import ROOT
from tests.integration.world import raw_rows


@pytest.fixture
def place(world, environment):
    environment.setenv("AFTERCOMMIT_OUTBOX_TABLE", "")  # so that what the page sets goes with this test
    aws.client("dynamodb").create_table(
        TableName="orders",
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": "order_id", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "order_id", "KeyType": "HASH"}],
    )
    blocks = re.findall(
        r"```python\n(.*?)```", (ROOT / "docs/events.md").read_text(encoding="utf-8"), re.DOTALL
    )
    [example] = [each for each in blocks if "add_event" in each]
    assert len([line for line in example.splitlines() if line.strip()]) <= 20
    names = {"__name__": "example"}
    exec(example, names)  # noqa: S102 - it is our own
    environment.setenv("AFTERCOMMIT_OUTBOX_TABLE", settings().outbox_table)  # in place of the page's own
    return names["place"]


def test_the_order_and_its_event_are_stored_and_the_event_is_told(place):
    place("o-1", 4200)
    listener = Listener()
    assert run(listener) == 1
    assert listener.requests == [["placed-o-1"]]


def test_placing_an_order_again_changes_nothing_and_says_so(place):
    place("o-1", 4200)
    before = raw_rows("orders"), raw_rows(settings().outbox_table)
    with pytest.raises(EventExistsError):
        place("o-1", 9900)
    assert (raw_rows("orders"), raw_rows(settings().outbox_table)) == before
