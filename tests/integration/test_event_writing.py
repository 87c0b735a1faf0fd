"""The put of an event, in transactions of its writer: winner, loser, and the row past its time."""

import pytest
from botocore.exceptions import ClientError
from pynamodb.attributes import UnicodeAttribute
from pynamodb.connection import Connection
from pynamodb.exceptions import TransactWriteError
from pynamodb.models import Model
from pynamodb.transactions import TransactWrite

from aftercommit import aws
from aftercommit.events import Event, EventExistsError, add_event, event_put, telling
from aftercommit.settings import settings
from tests.integration.events import Listener, order, row, run, save
from tests.integration.world import raw_rows


@pytest.fixture
def orders(world):
    aws.client("dynamodb").create_table(
        TableName="orders",
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": "order_id", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "order_id", "KeyType": "HASH"}],
    )
    return "orders"


class Order(Model):
    class Meta:
        table_name = "orders"
        region = "us-east-1"

    order_id = UnicodeAttribute(hash_key=True)


def save_order(name, event, *, absent=True):
    """Store an order and its event through PynamoDB."""
    condition = Order.order_id.does_not_exist() if absent else None
    with telling(), TransactWrite(connection=Connection(region="us-east-1")) as transaction:
        transaction.save(Order(name), condition=condition)
        return add_event(transaction, event, table=settings().outbox_table)


def stored(table):
    return len(raw_rows(table))


def test_order_and_event_are_stored_together(orders):
    assert save_order("o-1", Event("order/placed", {"n": 1}, id="e-1")) == "e-1"
    assert (stored(orders), stored(settings().outbox_table)) == (1, 1)


def test_an_event_whose_transaction_fails_for_another_reason_is_not_stored(orders):
    save_order("o-1", order("e-1"))
    with pytest.raises(TransactWriteError):
        save_order("o-1", order("e-2"))
    assert (stored(orders), stored(settings().outbox_table)) == (1, 1)


def test_an_id_that_was_announced_fails_the_whole_transaction_and_says_so(orders):
    save_order("o-1", order("e-1"))
    before = raw_rows(settings().outbox_table)
    with pytest.raises(EventExistsError) as caught:
        save_order("o-2", Event("order/other", {}, id="e-1"))
    assert caught.value.event_id == "e-1"
    assert isinstance(caught.value.__cause__, TransactWriteError)
    assert stored(orders) == 1
    assert raw_rows(settings().outbox_table) == before


def test_of_boto3_it_says_so_too(orders):
    save(order("e-1"))
    put = {"Put": {"TableName": orders, "Item": {"order_id": {"S": "o-1"}}}}
    again = event_put(order("e-1"), table=settings().outbox_table)
    with pytest.raises(EventExistsError) as caught, telling():
        aws.client("dynamodb").transact_write_items(TransactItems=[put, again])
    assert caught.value.event_id == "e-1"
    assert isinstance(caught.value.__cause__, ClientError)
    assert stored(orders) == 0


def test_another_tenant_may_use_the_same_id(world):
    save(order("e-1"))
    save(order("e-1", tenant="acme"))
    assert stored(settings().outbox_table) == 2


def test_errors_of_other_kinds_pass_as_they_are():
    with pytest.raises(ZeroDivisionError), telling():
        raise ZeroDivisionError


def test_a_row_past_its_time_that_was_not_removed_yet_gives_way(world, set_environment):
    set_environment(EVENT_RETENTION_DAYS="1")
    save(order("e-1"))
    listener = Listener()
    run(listener)
    world.clock.at += 86_399  # the row is kept, second for second, for its day
    with pytest.raises(EventExistsError):
        save(order("e-1"))
    world.clock.at += 2
    save(order("e-1"))
    assert row("e-1").status == "undone"
    run(listener)
    assert listener.requests == [["e-1"], ["e-1"]]


def test_a_row_that_was_never_sent_never_gives_way(world):
    save(order("e-1"))
    world.clock.at += 365 * 86_400
    with pytest.raises(EventExistsError):
        save(order("e-1"))


def test_through_pynamodb_the_same_row_is_stored_as_through_boto3(world, orders):
    event = Event("order/placed", {"n": 1.5}, id="e-1", version="1")
    save_order("o-1", event)
    [through_pynamodb] = raw_rows(settings().outbox_table)
    assert through_pynamodb == event_put(event, table="t")["Put"]["Item"]


def test_an_activity_of_the_runtime_stores_the_same_kind_of_row(world):
    from aftercommit import PublishEvent, Workflow  # noqa: PLC0415

    world.publish(Workflow("w", root=PublishEvent("order/placed", input={"n": 1}, sinks=["queue"])))
    world.run(world.dispatch("w"))
    [published] = [each for each in raw_rows(settings().outbox_table) if each["command"] == {"S": "event"}]
    written = event_put(Event("order/placed", {}), table="t")["Put"]["Item"]
    assert published.keys() == written.keys()
    assert published["owner_key"]["S"].startswith("default#event#")
    assert int(published["due_shard"]["N"]) >= 1000
