import pytest

from scripts.duplicator import EVERY, Duplicator


@pytest.fixture
def duplicator():
    return Duplicator(stack=None, tenant="load")  # choosing needs no stack


def record(number, event="INSERT", status="undone", tenant="load"):
    image = {"tenant": tenant, "owner_id": "parent", "item_id": f"item-{number}", "status": status}
    return {"eventName": event, "dynamodb": {"NewImage": {name: {"S": text} for name, text in image.items()}}}


def chosen(duplicator, records):
    return [each.item_id for each in duplicator.choose(records)]


def test_every_fifth_new_item_is_sent_again(duplicator):
    assert EVERY == 5
    assert chosen(duplicator, [record(number) for number in range(1, 12)]) == ["item-5", "item-10"]
    assert (duplicator.items, duplicator.late) == (11, 0)


def test_every_fifth_settled_item_is_sent_again_late(duplicator):
    records = [record(number, "MODIFY", "done") for number in range(1, 12)]
    assert chosen(duplicator, records) == ["item-5", "item-10"]
    assert (duplicator.items, duplicator.late) == (0, 2)


@pytest.mark.parametrize(
    "skipped",
    [
        record(1, "MODIFY"),
        record(1, tenant="other"),
        record(1, "MODIFY", "done", tenant="other"),
        {"eventName": "REMOVE", "dynamodb": {}},
    ],
)
def test_claims_removals_and_other_tenants_are_left_alone(duplicator, skipped):
    assert chosen(duplicator, [skipped] * 10) == []
    assert duplicator.items == 0
