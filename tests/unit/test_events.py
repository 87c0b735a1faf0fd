"""Events as their writers meet them: what is refused when they are added, and what importing them takes."""

import subprocess
import sys
from decimal import Decimal

import pytest
from pynamodb.connection import Connection
from pynamodb.transactions import TransactWrite

from aftercommit.events import Event, EventRefusedError, add_event, event_put, read_event
from aftercommit.limits import EVENT_BYTES_MAX

TABLE = "outbox"


def put(event):
    return event_put(event, table=TABLE)["Put"]["Item"]


REFUSED = [
    (Event("", {}), "name"),
    (Event(5, {}), "name"),
    (Event("inngest/function.failed", {}), "name"),
    (Event("aftercommit/x", {}), "name"),
    (Event("aws.x", {}), "name"),
    (Event("n" * 256, {}), "name"),
    (Event("n", {}, id="i" * 256), "id"),
    (Event("n", {}, version="v" * 256), "version"),
    (Event("n", {}, version=""), "version"),
    (Event("n", {}, tenant="Acme"), "tenant"),
    (Event("n", {}, tenant="a#b"), "tenant"),
    (Event("n", {}, correlation_id="c" * 201), "correlation_id"),
    (Event("n", []), "data"),
    (Event("n", None), "data"),
    (Event("n", "text"), "data"),
    (Event("n", {"x": {1, 2}}), "data"),
    (Event("n", {"x": Decimal(1)}), "data"),
    (Event("n", {"x": float("nan")}), "data.x"),
    (Event("n", {"x": ["\ud800"]}), "data.x[0]"),
    (Event("n", {}, user=5), "user"),
    (Event("n", {}, payload=[]), "payload"),
    (Event("n", {}, sessions={"a": 1}), "sessions"),
    (Event("n", {}, sessions={str(number): "s" for number in range(6)}), "sessions"),
    (Event("n", {}, timestamp="now"), "timestamp"),
    (Event("n", {}, timestamp=-1), "timestamp"),
    (Event("n", {}, timestamp=True), "timestamp"),
    (Event("n", {}, timestamp=1_796_075_123_000), "timestamp"),
    (Event("n", {"x": "y" * EVENT_BYTES_MAX}), "data"),
    (Event("n", {"x": "é" * (EVENT_BYTES_MAX // 2)}), "data"),
]


@pytest.mark.parametrize(("event", "field"), REFUSED, ids=lambda each: each if isinstance(each, str) else "")
def test_an_event_that_cannot_be_told_is_refused_where_it_is_added_naming_the_field(event, field):
    with pytest.raises(EventRefusedError) as caught:
        put(event)
    assert caught.value.field == field
    transaction = TransactWrite(connection=Connection(region="us-east-1"))
    with pytest.raises(EventRefusedError):
        add_event(transaction, event, table=TABLE)
    assert not transaction._put_items


def test_the_longest_texts_are_taken():
    item = put(Event("n" * 255, {}, id="i" * 255, version="v" * 255))
    assert read_event(item)["v"] == "v" * 255


def test_an_event_says_what_was_given_and_nothing_else():
    event = Event(
        "order/placed",
        {"order": 1},
        id="o-1",
        user={"id": "u"},
        version="2",
        timestamp=1_796_075_123.5,
        sessions={"ticket": "t"},
        payload={"order": 1},
        correlation_id="c",
    )
    assert read_event(put(event)) == {
        "id": "o-1",
        "name": "order/placed",
        "data": {"order": 1},
        "user": {"id": "u"},
        "v": "2",
        "ts": 1_796_075_123_500,
        "meta": {"sessions": {"ticket": "t"}},
    }
    assert set(read_event(put(Event("n", {})))) == {"id", "name", "data", "ts"}


def test_data_is_stored_as_it_was_when_the_event_was_added():
    data = {"items": [1]}
    item = put(Event("n", data))
    data["items"].append(2)
    assert read_event(item)["data"] == {"items": [1]}


def test_an_event_without_an_id_gets_one_that_sorts_by_time_and_stays_its_own():
    first, second = Event("n", {}), Event("n", {})
    assert len(first.id) == len(second.id) == 26
    assert first.id != second.id
    assert put(first)["item_id"] == put(first)["item_id"] == {"S": first.id}


def test_each_event_has_a_partition_of_its_own_per_tenant():
    keys = {put(Event("n", {}, id=name))["owner_key"]["S"] for name in "abc"}
    assert len(keys) == 3
    assert put(Event("n", {}, id="a", tenant="acme"))["owner_key"]["S"].startswith("acme#event#")


def test_the_table_comes_from_the_argument_or_the_environment(monkeypatch):
    monkeypatch.delenv("AFTERCOMMIT_OUTBOX_TABLE", raising=False)
    with pytest.raises(EventRefusedError, match="AFTERCOMMIT_OUTBOX_TABLE"):
        event_put(Event("n", {}))
    monkeypatch.setenv("AFTERCOMMIT_OUTBOX_TABLE", "theirs")
    assert event_put(Event("n", {}))["Put"]["TableName"] == "theirs"
    assert event_put(Event("n", {}), table="ours")["Put"]["TableName"] == "ours"


# --- the transaction's own limits ---


def test_the_hundred_and_first_action_of_a_transaction_is_refused():
    entries = [event_put(Event("n", {}), table=TABLE) for _ in range(99)]
    entries.append(event_put(Event("n", {}), table=TABLE, actions=entries))
    with pytest.raises(EventRefusedError, match="100 actions"):
        event_put(Event("n", {}), table=TABLE, actions=entries)
    transaction = TransactWrite(connection=Connection(region="us-east-1"))
    for _ in range(100):
        add_event(transaction, Event("n", {}), table=TABLE)
    with pytest.raises(EventRefusedError, match="100 actions"):
        add_event(transaction, Event("n", {}), table=TABLE)


def test_what_makes_a_transaction_larger_than_4_mb_is_refused():
    large = {"x": "y" * 240_000}
    entries = [event_put(Event("n", large), table=TABLE) for _ in range(17)]
    with pytest.raises(EventRefusedError, match="bytes"):
        event_put(Event("n", large), table=TABLE, actions=entries)
    transaction = TransactWrite(connection=Connection(region="us-east-1"))
    for _ in range(17):
        add_event(transaction, Event("n", large), table=TABLE)
    with pytest.raises(EventRefusedError, match="bytes"):
        add_event(transaction, Event("n", large), table=TABLE)


def test_one_id_twice_in_a_transaction_is_refused():
    entries = [event_put(Event("n", {}, id="same"), table=TABLE)]
    with pytest.raises(EventRefusedError) as caught:
        event_put(Event("n", {}, id="same"), table=TABLE, actions=entries)
    assert caught.value.field == "id"
    event_put(Event("n", {}, id="same", tenant="other"), table=TABLE, actions=entries)


# --- what it takes ---


def test_writing_events_needs_no_packages_and_no_settings():
    script = """
import sys
from aftercommit.events import Event, event_put
event_put(Event("n", {"x": 1}), table="t")
slow = {"aws_lambda_powertools", "boto3", "botocore", "cronsim", "http", "jsonata", "pynamodb", "ulid"}
print(sorted(slow & {name.partition(".")[0] for name in sys.modules}))
"""
    environment = {"PYTHONPATH": ":".join(sys.path)}
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment
    )
    assert ran.stdout.strip() == "[]"
