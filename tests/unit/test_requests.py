import base64
import json

import pytest

from aftercommit.errors import MalformedRequestError, TooLargeError
from aftercommit.limits import BODY_BYTES_MAX, IDEMPOTENCY_KEY_CHARACTERS_MAX
from aftercommit.requests import find_number, read_body, read_idempotency_key, read_tenant

KNOWN = {"input": "object", "correlation_id": "text", "instance_id": "text"}


def read(text, *, base64_encoded=False):
    return read_body(text, base64_encoded=base64_encoded, known=KNOWN)


@pytest.mark.parametrize("text", [None, "", "{}", '{"correlation_id": null}'])
def test_an_absent_body_is_an_empty_object(text):
    assert read(text) == {}


def test_a_body_may_come_as_base64():
    text = base64.b64encode('{"correlation_id": "é"}'.encode()).decode()
    assert read(text, base64_encoded=True) == {"correlation_id": "é"}


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("{", "body"),
        ("not json", "body"),
        ("[]", "body"),
        ("5", "body"),
        ("NaN", "body"),
        ("\ud800", "body"),
        ('{"input": {"a": NaN}}', "body"),
        ('{"input": {"a": -Infinity}}', "body"),
        ("[" * 100_000, "body"),
        ('{"input": []}', "input"),
        ('{"input": "text"}', "input"),
        ('{"correlation_id": 5}', "correlation_id"),
        ('{"correlation_id": ""}', "correlation_id"),
        ('{"correlation_id": "%s"}' % ("x" * 201), "correlation_id"),
        ('{"correlation_id": "\\ud800"}', "correlation_id"),
        ('{"colour": "red"}', "colour"),
    ],
)
def test_a_bad_body_is_refused_naming_the_member(text, field):
    with pytest.raises(MalformedRequestError) as caught:
        read(text)
    assert caught.value.field == field
    assert caught.value.status == 400


@pytest.mark.parametrize("text", ["%%%%%", "abc", base64.b64encode(b"\xff\xfe").decode()])
def test_a_body_that_is_no_base64_of_text_is_refused(text):
    with pytest.raises(MalformedRequestError) as caught:
        read(text, base64_encoded=True)
    assert caught.value.field == "body"


@pytest.mark.parametrize("character", ["x", "é"])
def test_a_body_over_the_limit_is_refused_with_it(character):
    text = json.dumps({"input": {"a": character * BODY_BYTES_MAX}}, ensure_ascii=False)
    with pytest.raises(TooLargeError, match=f"{BODY_BYTES_MAX} bytes .LargePayloads=true") as caught:
        read(text)
    assert caught.value.status == 413


def test_a_tenant_comes_from_its_header_in_any_case():
    assert read_tenant({}, None) == "default"
    assert read_tenant({"X-Tenant-Id": "acme-1"}, None) == "acme-1"
    assert read_tenant({"x-tenant-id": "acme-1"}, None) == "acme-1"


@pytest.mark.parametrize("tenant", ["", "Acme", "a b", "a#b", "*", "x" * 65, "ä", "a\n", "a,b"])
def test_a_bad_tenant_is_refused(tenant):
    with pytest.raises(MalformedRequestError) as caught:
        read_tenant({"X-Tenant-Id": tenant}, None)
    assert caught.value.field == "X-Tenant-Id"


@pytest.mark.parametrize("key", ["k", "x" * IDEMPOTENCY_KEY_CHARACTERS_MAX, "é 😀"])
def test_an_idempotency_key_is_any_text_of_some_length(key):
    assert read_idempotency_key({"Idempotency-Key": key}) == key
    assert read_idempotency_key({}) is None


@pytest.mark.parametrize("key", ["", "x" * (IDEMPOTENCY_KEY_CHARACTERS_MAX + 1), "\ud800"])
def test_an_idempotency_key_that_is_empty_or_too_long_is_refused(key):
    with pytest.raises(MalformedRequestError) as caught:
        read_idempotency_key({"idempotency-key": key})
    assert caught.value.field == "Idempotency-Key"


@pytest.mark.parametrize(("text", "number"), [("1", 1), ("007", 7), ("100", 100)])
def test_a_number_within_the_bounds_is_read(text, number):
    assert find_number(text, 1, 100) == number


@pytest.mark.parametrize("text", ["", "0", "101", "0001", "-1", "1.0", "1e1", " 1", "²", "٣", "9" * 5_000])
def test_a_number_that_is_none_or_out_of_bounds_is_not(text):
    assert find_number(text, 1, 100) is None
