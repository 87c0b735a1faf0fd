"""The simulation's checks of events speak up when something of their delivery is weakened."""

from dataclasses import replace

from aftercommit import aws, deliver_events, event_items
from aftercommit.events import event_put
from aftercommit.ids import new_token
from aftercommit.sinks import stimuli
from tests.integration.test_planted_faults import first_violation
from tests.simulation import scenarios, users
from tests.simulation.faults import FaultKind
from tests.simulation.runs import Run, simulate_scenario
from tests.simulation.scenarios_of_events import QUEUE
from tests.simulation.weather import DOUBLED


def told(violations, part):
    return [each for each in violations if each.startswith("check_events") and part in each]


def test_nothing_is_found_where_nothing_is_planted():
    assert first_violation("orders", FaultKind.CRASH_AFTER, weather=DOUBLED) == []
    assert first_violation("orders-raced", FaultKind.CRASH_AFTER, weather=DOUBLED) == []
    assert first_violation("order-resumes", FaultKind.FREEZE) == []


def test_a_claim_without_its_condition_is_found(monkeypatch):
    def update(*given):
        found = real(*given)
        return replace(found, expected={"status": found.expected["status"]})

    real = event_items._update
    monkeypatch.setattr(event_items, "_update", update)
    assert told(first_violation("orders-raced", FaultKind.CRASH_AFTER, weather=DOUBLED), "claims")


def test_a_claim_that_is_too_short_for_clocks_that_differ_is_found(monkeypatch):
    shorter = replace(scenarios.BY_NAME["orders-skewed"], settings={**QUEUE, "EVENT_CLAIM_SECONDS": "40"})
    found = [simulate_scenario(shorter, Run("orders-skewed", seed))[1] for seed in range(10)]
    assert told([each for violations in found for each in violations], "though nobody died")


def test_a_record_of_what_was_never_sent_is_found(monkeypatch):
    def take(self, sink, item, answer):
        real(self, sink, item, None)

    real = deliver_events._Delivery._take
    monkeypatch.setattr(deliver_events._Delivery, "_take", take)
    assert told(first_violation("orders-refused"), "nobody heard of it")


def test_a_claim_that_is_recorded_as_done_is_found(monkeypatch):
    def claim(items):
        claimed = real(items)
        for each in claimed:
            each.sinks["queue"] = {"sent_at": "2030-03-17T17:46:40.045Z"}
        return event_items.record_events(claimed, ["queue"])

    real = event_items.claim_events
    monkeypatch.setattr(deliver_events, "claim_events", claim)
    assert told(first_violation("orders", FaultKind.CRASH_BEFORE), "nobody heard of it")


def test_an_event_beside_the_transaction_of_its_order_is_found(monkeypatch):
    def save(event, *, condition="attribute_not_exists (order_id)"):
        client = aws.client("dynamodb")
        client.put_item(**event_put(event, table="outbox")["Put"])
        item = {"order_id": {"S": event.id}, "row": {"S": "order"}, "event_id": {"S": event.id}}
        client.put_item(TableName=users.ORDERS, Item=item, ConditionExpression=condition)

    monkeypatch.setattr(users, "save", save)
    assert told(first_violation("orders"), "not stored with its order")


def test_a_stimulus_with_an_id_of_its_own_at_each_delivery_is_found(monkeypatch):
    real = stimuli.intend_stimulus
    monkeypatch.setattr(
        stimuli, "intend_stimulus", lambda unique, **more: real(f"{new_token()}-{unique}", **more)
    )
    assert told(first_violation("order-resumes", FaultKind.CRASH_BEFORE), "stimuli")
