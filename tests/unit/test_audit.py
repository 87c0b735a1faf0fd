from dataclasses import replace

import pytest

from scripts.audit import Dispatch, Effect, Instance, Item, Kind, audit, judge, summary_line

SHIP = Dispatch("item-ship", "ship", "ship-order", "done")
RECEIPT = Dispatch("item-receipt", "receipt", "send-receipt", "done")
POSTED = {"o": "parent"}

PARENT = Instance(
    "parent",
    "place-order",
    "o",
    "completed",
    done=frozenset({("charge_card", "e1")}),
    dispatches=(RECEIPT, SHIP),
)
SHIPMENT = Instance(
    "ship", "ship-order", "o", "completed", parent_id="parent", done=frozenset({("hand_over", "e2")})
)
MAILING = Instance(
    "receipt", "send-receipt", "o", "completed", parent_id="parent", done=frozenset({("mail_receipt", "e3")})
)
CHARGED = Effect("o", "charge_card", "e1", "parent")
SHIPPED = Effect("o", "hand_over", "e2", "ship")
MAILED = Effect("o", "mail_receipt", "e3", "receipt")

ITEMS = (
    Item("item-ship", "parent", "start", "ship-order", "done"),
    Item("item-receipt", "parent", "start", "send-receipt", "done"),
    Item("item-told", "ship", "resume", None, "done"),
)
INSTANCES = (PARENT, SHIPMENT, MAILING)
EFFECTS = (CHARGED, SHIPPED, MAILED)


def kinds(instances=INSTANCES, effects=EFFECTS, posted=POSTED, items=(), expected=None, owed=None):
    return [each.kind for each in audit(posted, instances, effects, items, expected=expected, owed=owed)]


def test_an_order_whose_effects_and_instances_agree_has_no_violation():
    assert kinds() == []


def test_a_refused_payment_without_effects_and_children_has_no_violation():
    refused = Instance("parent", "place-order", "o", "faulted", "PaymentRefused")
    assert kinds([refused], [], expected={"o": "faulted: PaymentRefused"}) == []


def test_a_faulted_shipment_that_its_parent_has_heard_of_is_no_violation():
    instances = [
        replace(PARENT, status="faulted", error_type="ShippingFailed"),
        replace(SHIPMENT, status="faulted", error_type="ValueError", done=frozenset()),
        MAILING,
    ]
    assert kinds(instances, [CHARGED, MAILED]) == []


@pytest.mark.parametrize(
    ("why", "instances", "effects"),
    [
        (
            "an effect of an execution that never committed",
            INSTANCES,
            (*EFFECTS, replace(SHIPPED, activity="x")),
        ),
        ("an effect of an unknown instance", INSTANCES, (*EFFECTS, Effect("o", "x", "e9", "nobody"))),
        ("an effect for another order", INSTANCES, (CHARGED, SHIPPED, replace(MAILED, order_id="p"))),
        (
            "a child of an unknown parent",
            (*INSTANCES, Instance("c", "x", "o", "completed", parent_id="?")),
            EFFECTS,
        ),
        (
            "a child that its parent never dispatched",
            (*INSTANCES, Instance("c", "x", "o", "completed", parent_id="parent")),
            EFFECTS,
        ),
        ("an instance that nobody has posted", (*INSTANCES, Instance("r", "x", "o", "completed")), EFFECTS),
        (
            "a child that serves another order",
            (PARENT, SHIPMENT, replace(MAILING, order_id="p")),
            EFFECTS[:2],
        ),
    ],
)
def test_what_no_commit_accounts_for_is_a_ghost(why, instances, effects):
    assert Kind.GHOST in kinds(instances, effects), why


@pytest.mark.parametrize(
    ("why", "instances", "effects"),
    [
        ("an order without its instance", (), ()),
        ("an order that has not ended", (replace(PARENT, status="suspended"), SHIPMENT, MAILING), EFFECTS),
        ("a child that has not ended", (PARENT, SHIPMENT, replace(MAILING, status="running")), EFFECTS),
        ("a dispatch without its child", (PARENT, SHIPMENT), (CHARGED, SHIPPED)),
        (
            "a dispatch that is still undone",
            (replace(PARENT, dispatches=(RECEIPT, replace(SHIP, status="undone"))), SHIPMENT, MAILING),
            EFFECTS,
        ),
        (
            "a dispatch without its outbox item",
            (
                replace(PARENT, dispatches=(RECEIPT, SHIP, Dispatch("i", "ship", None, None))),
                SHIPMENT,
                MAILING,
            ),
            EFFECTS,
        ),
        (
            "a payment without a dispatch of its shipment",
            (replace(PARENT, dispatches=(RECEIPT,)), MAILING),
            (CHARGED, MAILED),
        ),
        ("a committed execution without its effect", INSTANCES, (CHARGED, SHIPPED)),
        (
            "an ending that the parent has not heard of",
            (PARENT, replace(SHIPMENT, status="faulted"), MAILING),
            EFFECTS,
        ),
    ],
)
def test_what_a_commit_decided_and_nobody_has_is_lost(why, instances, effects):
    assert Kind.LOST in kinds(instances, effects), why


@pytest.mark.parametrize(
    ("why", "instances", "effects"),
    [
        (
            "two children of one kind",
            (
                replace(PARENT, dispatches=(RECEIPT, SHIP, replace(SHIP, item_id="i2", child_id="ship2"))),
                SHIPMENT,
                replace(SHIPMENT, instance_id="ship2", done=frozenset()),
                MAILING,
            ),
            EFFECTS,
        ),
        (
            "two executions of one activity",
            (PARENT, replace(SHIPMENT, done=frozenset({("hand_over", "e2"), ("hand_over", "e4")})), MAILING),
            (*EFFECTS, replace(SHIPPED, execution_id="e4")),
        ),
        (
            "one dispatch committed twice",
            (replace(PARENT, dispatches=(RECEIPT, SHIP, SHIP)), SHIPMENT, MAILING),
            EFFECTS,
        ),
        ("two instances of one order", (*INSTANCES, replace(PARENT, instance_id="other")), EFFECTS),
    ],
)
def test_what_happened_more_than_once_is_a_duplicate(why, instances, effects):
    assert Kind.DUPLICATE in kinds(instances, effects), why


def test_an_order_that_ended_otherwise_than_its_content_says_is_unexpected():
    assert kinds(expected={"o": "faulted: PaymentRefused"}) == [Kind.UNEXPECTED]


def test_the_last_line_counts_each_kind():
    violations = audit(POSTED, [PARENT, SHIPMENT], [CHARGED, SHIPPED, Effect("o", "hand_over", "e4", "ship")])
    assert summary_line(1, [PARENT], violations) == (
        "orders=1 completed=1 faulted=0 ghosts=1 lost=1 duplicates=1"
    )


# --- intentions, and what the orders themselves say ---


def test_settled_intentions_of_instances_that_exist_are_no_violation():
    assert kinds(items=ITEMS) == []


def test_an_intention_that_is_still_undone_is_lost():
    assert kinds(items=[*ITEMS[:2], replace(ITEMS[2], status="undone")]) == [Kind.LOST]


def test_an_intention_of_an_instance_that_does_not_exist_is_a_ghost():
    assert kinds(items=[*ITEMS, replace(ITEMS[2], owner_id="nobody")]) == [Kind.GHOST]


def test_a_dispatch_that_no_journal_tells_of_is_a_ghost():
    assert kinds(items=[*ITEMS, replace(ITEMS[0], item_id="another")]) == [Kind.GHOST]


def test_an_effect_that_neither_ledger_nor_rows_know_of_is_lost_by_what_the_order_holds():
    unaware = replace(MAILING, done=frozenset())
    instances, effects = [PARENT, SHIPMENT, unaware], [CHARGED, SHIPPED]
    assert kinds(instances, effects) == []
    assert kinds(instances, effects, owed={"o": {"charge_card", "mail_receipt"}}) == [Kind.LOST]


def test_what_is_missing_for_a_reason_that_was_told_is_not_told_again():
    instances, effects = [PARENT, MAILING], [CHARGED, MAILED]
    assert kinds(instances, effects, owed={"o": {"charge_card", "hand_over"}}) == [Kind.LOST]


# --- the verdict of a load run ---


def verdict(instances=INSTANCES, effects=EFFECTS, items=ITEMS, posted=POSTED):
    return judge(posted, instances, audit(posted, instances, effects, items))


def test_a_run_without_violations_has_the_exit_status_0():
    found = verdict()
    assert (found.line, found.exit_status) == ("started=1 ended=1 lost=0 duplicates=0", 0)


def test_a_run_that_has_started_nothing_has_the_exit_status_1():
    found = verdict([], [], [], {})
    assert (found.line, found.exit_status) == ("started=0 ended=0 lost=0 duplicates=0", 1)


@pytest.mark.parametrize(
    ("why", "found", "line"),
    [
        (
            "a child is lost",
            verdict((PARENT, MAILING), (CHARGED, MAILED), ITEMS[:2]),
            "started=1 ended=1 lost=1 duplicates=0",
        ),
        (
            "an order is lost",
            verdict(posted=POSTED | {"p": "gone"}),
            "started=2 ended=1 lost=1 duplicates=0",
        ),
        (
            "an order has not ended",
            verdict((replace(PARENT, status="suspended"), SHIPMENT, MAILING)),
            "started=1 ended=0 lost=1 duplicates=0",
        ),
        (
            "a child has not ended",
            verdict((PARENT, SHIPMENT, replace(MAILING, status="running"))),
            "started=1 ended=1 lost=1 duplicates=0",
        ),
        (
            "a step was done twice",
            verdict(
                (PARENT, replace(SHIPMENT, done=SHIPMENT.done | {("hand_over", "e4")}), MAILING),
                (*EFFECTS, replace(SHIPPED, execution_id="e4")),
            ),
            "started=1 ended=1 lost=0 duplicates=1",
        ),
        (
            "an order was started twice",
            verdict((*INSTANCES, replace(PARENT, instance_id="twin", done=frozenset(), dispatches=()))),
            "started=1 ended=1 lost=0 duplicates=1",
        ),
        (
            "an effect is a ghost",
            verdict(effects=(*EFFECTS, Effect("o", "refund", "e9", "nobody"))),
            "started=1 ended=1 lost=0 duplicates=0",
        ),
    ],
)
def test_a_run_in_which_something_is_wrong_has_the_exit_status_1(why, found, line):
    assert (found.line, found.exit_status) == (line, 1), why
    assert found.violations
