import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercommit.errors import MalformedMessageError
from aftercommit.queue import Message, read_message

TEXTS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)


@given(TEXTS, TEXTS, TEXTS, st.integers(0, 50))
def test_a_message_reads_back_as_it_was_sent(tenant, owner_id, item_id, postponed):
    for message in (
        Message(tenant, owner_id=owner_id, item_id=item_id, postponed=postponed),
        Message(tenant, instance_id=owner_id, postponed=postponed),
    ):
        assert read_message(message.to_text()) == message


def test_a_message_carries_keys_only_and_nothing_at_its_default():
    text = Message("t", owner_id="o", item_id="i").to_text()
    assert json.loads(text) == {"tenant": "t", "owner_id": "o", "item_id": "i"}


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("", None),
        ("{", None),
        ("[]", None),
        ("null", None),
        ('"text"', None),
        ("{}", "tenant"),
        ('{"tenant": ""}', "tenant"),
        ('{"tenant": 5}', "tenant"),
        ('{"tenant": "t"}', None),
        ('{"tenant": "t", "owner_id": "o"}', None),
        ('{"tenant": "t", "item_id": "o"}', None),
        ('{"tenant": "t", "owner_id": "o", "item_id": ""}', "item_id"),
        ('{"tenant": "t", "owner_id": "o", "item_id": null}', "item_id"),
        ('{"tenant": "t", "owner_id": "o", "item_id": "i", "instance_id": "x"}', None),
        ('{"tenant": "t", "instance_id": "i", "postponed": "1"}', "postponed"),
        ('{"tenant": "t", "instance_id": "i", "postponed": true}', "postponed"),
        ('{"tenant": "t", "instance_id": "i", "input": {}}', "input"),
    ],
)
def test_a_message_of_another_form_is_refused_naming_the_part(text, field):
    with pytest.raises(MalformedMessageError) as caught:
        read_message(text)
    assert caught.value.field == field
    assert caught.value.message
