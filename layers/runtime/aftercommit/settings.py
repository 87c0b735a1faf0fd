"""The settings of a deployment: environment variables, read once and checked with clear errors."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache

from aftercommit.errors import SettingError
from aftercommit.limits import (
    BODY_BYTES_MAX,
    ENDED_DAYS_MAX,
    LARGE_BODY_BYTES_MAX,
    TOKEN_DAYS,
)


@dataclass(frozen=True)
class Settings:
    """Each field is read from the environment variable of its name in upper case; times in seconds."""

    definitions_table: str
    instances_table: str
    outbox_table: str
    bookmarks_table: str
    triggers_table: str
    command_queue_url: str
    command_dead_letter_queue_url: str = ""
    tick_queue_url: str = ""
    workflows_module: str = "workflows"
    tenant_claim: str = "tenant"
    channels: dict[str, str] = field(default_factory=dict)  # queue by name, beside the default queue
    due_shards: int = 8
    eager_delivery: bool = True
    eager_head_start_seconds: int = 10
    ack_timeout_seconds: int = 60
    ack_timeout_max_seconds: int = 3600
    start_attempts_max: int = 4
    start_delay_seconds: int = 1
    start_jitter_seconds: int = 1
    sweep_interval_seconds: int = 10
    sweep_batch: int = 100
    leases_max: int = 5
    dispatch_depth_max: int = 32
    stimulus_open_seconds: int = 600
    stimulus_attempts_max: int = 3
    dead_letter_days: int = 7
    callback_token_days: int = TOKEN_DAYS
    done_retention_days: int = 1
    ended_instance_days: int = 0  # 0: for ever
    event_batch: int = 100
    event_claim_seconds: int = 60
    event_send_timeout_seconds: int = 20
    event_delay_seconds: int = 5
    event_delay_max_seconds: int = 300
    event_retention_days: int = 1
    event_stimuli: bool = True
    event_bus_arn: str = ""
    event_source: str = "aftercommit"
    event_queue_arn: str = ""
    event_webhook_url: str = ""
    event_webhook_secret: str = ""
    event_webhook_parameter: str = ""
    events_function: str = ""
    http_private_addresses: bool = False
    payload_bucket: str = ""
    large_payloads: bool = False
    tracing: bool = False


_CHANNEL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
# Where zero makes sense; everywhere else a number is at least 1.
_MAY_BE_ZERO = {"start_delay_seconds", "start_jitter_seconds", "ended_instance_days"}


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Read settings from environment variables; raises SettingError naming the first unusable one."""
    values: dict[str, object] = {}
    for each in fields(Settings):
        name = each.name.upper()
        text = environment.get(name)
        if text is not None:
            values[each.name] = _read(each.name, each.type, text)
        elif each.default is each.default_factory:  # both MISSING: a field without default
            raise SettingError(f"{name} is not set", field=name)
    settings = Settings(**values)  # type: ignore[arg-type]
    _check_together(settings)
    return settings


def _check_together(settings: Settings) -> None:
    if settings.ack_timeout_max_seconds < settings.ack_timeout_seconds:
        raise SettingError("must be at least ACK_TIMEOUT_SECONDS", field="ACK_TIMEOUT_MAX_SECONDS")
    # What is left of a claim after a send is what the clocks of two deliverers may differ by.
    if settings.event_claim_seconds < 2 * settings.event_send_timeout_seconds:
        raise SettingError("must be at least twice EVENT_SEND_TIMEOUT_SECONDS", field="EVENT_CLAIM_SECONDS")
    if settings.event_delay_max_seconds < settings.event_delay_seconds:
        raise SettingError("must be at least EVENT_DELAY_SECONDS", field="EVENT_DELAY_MAX_SECONDS")
    if settings.large_payloads and not settings.payload_bucket:
        raise SettingError("needs PAYLOAD_BUCKET", field="LARGE_PAYLOADS")
    if settings.ended_instance_days > ENDED_DAYS_MAX:  # far more, and no ending could write its time
        raise SettingError(f"must be at most {ENDED_DAYS_MAX}", field="ENDED_INSTANCE_DAYS")
    if settings.event_webhook_secret and settings.event_webhook_parameter:
        told = "a key has one place, and EVENT_WEBHOOK_SECRET is set, too"
        raise SettingError(told, field="EVENT_WEBHOOK_PARAMETER")


def _read(name: str, kind: object, text: str) -> object:
    if kind is bool:
        if text not in ("true", "false"):
            raise SettingError(f"must be true or false, not {text!r}", field=name.upper())
        return text == "true"
    if kind is int:
        least = 0 if name in _MAY_BE_ZERO else 1
        if not text.isdecimal() or int(text) < least:
            raise SettingError(f"must be a whole number from {least}, not {text!r}", field=name.upper())
        return int(text)
    return text if kind is str else _read_queues(name.upper(), text)


def _read_queues(name: str, text: str) -> dict[str, str]:
    """Read `name=queue address, ...`."""
    queues: dict[str, str] = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        channel, _, url = part.partition("=")
        if not _CHANNEL_NAME.fullmatch(channel) or not url:
            raise SettingError(f"expected name=queue address, not {part!r}", field=name)
        if channel in queues:
            raise SettingError(f"names {channel!r} twice", field=name)
        queues[channel] = url
    return queues


def body_bytes_max() -> int:
    """Return how large the body of a request may be in this deployment."""
    return LARGE_BODY_BYTES_MAX if settings().large_payloads else BODY_BYTES_MAX


@cache
def settings() -> Settings:
    """Return the settings of this process; call `settings.cache_clear()` after changing the environment."""
    return read_settings(os.environ)
