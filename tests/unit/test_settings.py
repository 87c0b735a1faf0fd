import dataclasses
from pathlib import Path

import pytest

from aftercommit.errors import SettingError
from aftercommit.settings import Settings, read_settings, settings

NEEDED = {
    "DEFINITIONS_TABLE": "d",
    "INSTANCES_TABLE": "i",
    "OUTBOX_TABLE": "o",
    "BOOKMARKS_TABLE": "b",
    "TRIGGERS_TABLE": "t",
    "COMMAND_QUEUE_URL": "q",
}


# What may not be as much as 7200.
LEAST = {"ended_instance_days": "3650"}
# What must be at least as long as others.
LONGEST = {
    "ACK_TIMEOUT_MAX_SECONDS": "7200",
    "EVENT_CLAIM_SECONDS": "14400",
    "EVENT_DELAY_MAX_SECONDS": "7200",
    "EVENT_SEND_TIMEOUT_SECONDS": "30",
}


def test_the_defaults_are_those_of_the_documentation():
    read = read_settings(NEEDED)
    assert (read.start_attempts_max, read.start_delay_seconds) == (4, 1)
    assert (read.ack_timeout_seconds, read.ack_timeout_max_seconds) == (60, 3600)
    assert (read.eager_delivery, read.eager_head_start_seconds) == (True, 10)
    assert (read.sweep_interval_seconds, read.sweep_batch) == (10, 100)
    assert (read.leases_max, read.dispatch_depth_max) == (5, 32)
    assert (read.event_claim_seconds, read.event_send_timeout_seconds) == (60, 20)
    assert (read.event_delay_seconds, read.event_delay_max_seconds) == (5, 300)


def test_every_setting_is_read_from_its_variable():
    for field in dataclasses.fields(Settings):
        text, value = {str: ("x", "x"), int: ("7200", 7200), bool: ("false", False)}.get(
            field.type, ("a=x, b=y", {"a": "x", "b": "y"})
        )
        if field.name in LEAST:
            text, value = LEAST[field.name], int(LEAST[field.name])
        read = read_settings({**NEEDED, **LONGEST, field.name.upper(): text})
        assert getattr(read, field.name) == value


@pytest.mark.parametrize("name", NEEDED)
def test_a_missing_table_or_queue_is_named(name):
    with pytest.raises(SettingError, match="is not set") as caught:
        read_settings({key: value for key, value in NEEDED.items() if key != name})
    assert caught.value.field == name


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("SWEEP_BATCH", "0"),
        ("SWEEP_BATCH", "-1"),
        ("SWEEP_BATCH", "ten"),
        ("SWEEP_BATCH", "1.5"),
        ("SWEEP_BATCH", ""),
        ("EAGER_DELIVERY", "yes"),
        ("EAGER_DELIVERY", "True"),
        ("ACK_TIMEOUT_MAX_SECONDS", "59"),
        ("EVENT_CLAIM_SECONDS", "39"),
        ("EVENT_DELAY_MAX_SECONDS", "4"),
        ("ENDED_INSTANCE_DAYS", "-1"),
        ("ENDED_INSTANCE_DAYS", "3651"),
        ("ENDED_INSTANCE_DAYS", "for ever"),
        ("CHANNELS", "reports"),
        ("CHANNELS", "reports="),
        ("CHANNELS", "=https://x"),
        ("CHANNELS", "a b=https://x"),
        ("CHANNELS", "a=https://x,a=https://y"),
    ],
)
def test_an_unusable_setting_is_refused_by_name(name, text):
    with pytest.raises(SettingError) as caught:
        read_settings({**NEEDED, name: text})
    assert caught.value.field == name


def test_a_webhook_key_has_one_place():
    both = {"EVENT_WEBHOOK_SECRET": "a", "EVENT_WEBHOOK_PARAMETER": "/b"}
    with pytest.raises(SettingError) as caught:
        read_settings({**NEEDED, **both})
    assert caught.value.field == "EVENT_WEBHOOK_PARAMETER"


def test_a_delay_between_starts_its_jitter_and_the_days_of_ended_instances_may_be_zero():
    assert read_settings({**NEEDED, "ENDED_INSTANCE_DAYS": "0"}).ended_instance_days == 0
    assert read_settings(NEEDED).ended_instance_days == 0
    assert read_settings({**NEEDED, "START_DELAY_SECONDS": "0"}).start_delay_seconds == 0
    assert read_settings({**NEEDED, "START_JITTER_SECONDS": "0"}).start_jitter_seconds == 0


def test_without_channels_there_is_the_default_queue_alone():
    assert read_settings(NEEDED).channels == read_settings({**NEEDED, "CHANNELS": ""}).channels == {}


def test_the_template_hands_every_setting_to_the_functions():
    template = (Path(__file__).parents[2] / "template.yaml").read_text(encoding="utf-8")
    for field in dataclasses.fields(Settings):
        assert f"        {field.name.upper()}: " in template


def test_settings_are_read_once_per_process(monkeypatch):
    for name, value in NEEDED.items():
        monkeypatch.setenv(name, value)
    settings.cache_clear()
    try:
        assert settings() is settings()
    finally:
        settings.cache_clear()
