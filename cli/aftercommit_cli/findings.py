"""What the answers of AWS and of the API mean for a stack's health. Nothing here calls anything."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from aftercommit_cli.output import duration

OK = "ok"
WARNING = "warning"
FAILED = "failed"

# A command waits this long only if nobody takes it, or too few do.
_QUEUE_AGE_SECONDS_MAX = 300
# Signatures are refused from 5 minutes of difference on; ages that this machine shows are wrong before.
_CLOCK_SECONDS_WARNING = 5
_CLOCK_SECONDS_FAILED = 240

Json = dict[str, Any]


@dataclass(frozen=True)
class Finding:
    """What one check has found, and what to do about it."""

    check: str
    level: str
    found: str
    advice: str = ""

    def to_json(self) -> Json:
        """Return it as `--json` prints it."""
        return {"check": self.check, "level": self.level, "found": self.found, "advice": self.advice}


def judge_stack(stack: Json) -> Finding:
    """Judge a stack by its status."""
    status = stack["StackStatus"]
    if status in ("CREATE_COMPLETE", "UPDATE_COMPLETE", "IMPORT_COMPLETE"):
        return Finding("stack", OK, status)
    if status == "UPDATE_ROLLBACK_COMPLETE":
        advice = "The last deploy was taken back; the stack's events in CloudFormation say why."
        return Finding("stack", WARNING, status, advice)
    if status.endswith("_IN_PROGRESS"):
        return Finding("stack", WARNING, status, "A deploy is under way: look again when it is done.")
    return Finding("stack", FAILED, status, "See the stack's events in CloudFormation, and deploy again.")


def judge_clock(seconds: float) -> Finding:
    """Judge how far this machine's clock is from the API's."""
    found = (
        f"{abs(seconds):.0f} s {'ahead of' if seconds > 0 else 'behind'} the API"
        if abs(seconds) >= 1
        else "right"
    )
    advice = "Set this machine's clock: signatures are refused from five minutes of difference on."
    if abs(seconds) >= _CLOCK_SECONDS_FAILED:
        return Finding("clock", FAILED, found, advice)
    if abs(seconds) >= _CLOCK_SECONDS_WARNING:
        return Finding("clock", WARNING, found, advice)
    return Finding("clock", OK, found)


def judge_workflows(answer: Json) -> Finding:
    """Judge whether there is anything to start."""
    count = len(answer["workflows"])
    if count:
        return Finding("workflows", OK, f"{count} published")
    advice = "Does WorkflowsModule name your package, and does its __init__.py import your workflows?"
    return Finding("workflows", WARNING, "none published for this tenant", advice)


def judge_function(name: str, configuration: Json, errors: float | None, throttles: float | None) -> Finding:
    """Judge a function by its state and by what failed in the last hour (None: not known)."""
    check = f"function {name}"
    if configuration.get("State") not in (None, "Active", "Inactive"):
        reason = configuration.get("StateReason") or ""
        return Finding(check, FAILED, f"{configuration['State']} {reason}".strip(), "Deploy again.")
    if configuration.get("LastUpdateStatus") == "Failed":
        reason = configuration.get("LastUpdateStatusReason") or ""
        return Finding(check, FAILED, f"its last update failed {reason}".strip(), "Deploy again.")
    if throttles:
        found = f"throttled {throttles:.0f} times in the last hour"
        return Finding(check, WARNING, found, "Raise the account's limit of concurrent executions.")
    if errors:
        found = f"{errors:.0f} errors in the last hour"
        function = configuration.get("FunctionName", name)
        group = configuration.get("LoggingConfig", {}).get("LogGroup") or f"/aws/lambda/{function}"
        return Finding(check, WARNING, found, f"aws logs tail {group} --since 1h")
    return Finding(check, OK, "active" if errors is None else "active, no errors in the last hour")


def judge_queue(name: str, attributes: Mapping[str, str], age: float | None, *, dead: bool) -> Finding:
    """Judge a queue by what is in it; one for `dead` messages should be empty."""
    check = f"queue {name}"
    waiting, in_flight, delayed = (
        int(attributes.get(f"ApproximateNumberOfMessages{kind}", 0)) for kind in ("", "NotVisible", "Delayed")
    )
    if dead:
        if not waiting + in_flight:
            return Finding(check, OK, "empty")
        advice = (
            "Read the messages' bodies and the functions' logs, remove the cause, then send them back"
            " (aws sqs start-message-move-task) or purge: what they point to is swept in any case."
        )
        return Finding(check, FAILED, f"{waiting + in_flight} messages set aside", advice)
    found = f"{waiting} waiting, {in_flight} in work, {delayed} delayed"
    if waiting and age is not None and age > _QUEUE_AGE_SECONDS_MAX:
        advice = "Nobody takes them, or too few do: see the function's errors and throttles, and its mapping."
        return Finding(check, WARNING, f"{found}, the oldest for {duration(age)}", advice)
    return Finding(check, OK, found)


def judge_mapping(name: str, mapping: Json, *, eager: bool) -> Finding:
    """Judge an event source mapping; without eager delivery that of the stream is meant to be off."""
    check = f"mapping {name}"
    state, result = mapping.get("State", "unknown"), mapping.get("LastProcessingResult") or ""
    is_stream = ":dynamodb:" in mapping.get("EventSourceArn", "")
    if state in ("Disabled", "Disabling"):
        if is_stream and not eager:
            return Finding(check, OK, "off, as EagerDelivery says: the sweep delivers")
        advice = f"aws lambda update-event-source-mapping --enabled --uuid {mapping.get('UUID', name)}"
        return Finding(check, FAILED, state, advice)
    if result.startswith("PROBLEM"):
        return Finding(check, FAILED, f"{state}, {result}", "See the function's role, and its logs.")
    if state != "Enabled":
        return Finding(check, WARNING, state, "Look again in a minute.")
    return Finding(check, OK, "enabled")


def judge_schedule(name: str, schedule: Json) -> Finding:
    """Judge the schedule of the sweep."""
    state = str(schedule.get("State", "unknown"))
    if state.startswith("ENABLED"):
        return Finding(f"schedule {name}", OK, f"enabled, {schedule.get('ScheduleExpression', '')}")
    command = f"aws events enable-rule --name {schedule.get('Name', name)}"
    advice = f"Enable it ({command}): without it nothing is swept."
    return Finding(f"schedule {name}", FAILED, state, advice)


def judge_alarms(alarms: Mapping[str, Json]) -> Iterator[Finding]:
    """Judge alarms by their states, one finding for each that is on, or one for all; and whom they tell."""
    on = {name: alarm for name, alarm in alarms.items() if alarm["StateValue"] == "ALARM"}
    for name, alarm in on.items():
        found = alarm.get("AlarmDescription") or alarm.get("StateReason") or "on"
        yield Finding(f"alarm {name}", FAILED, found, f"docs/operating.md says what to do: {name}.")
    if not on:
        yield Finding("alarms", OK, f"none of {len(alarms)} is on" if alarms else "none in this stack")
    # A parameter without a value can stand as one empty name.
    if alarms and not any(
        any(each.get("AlarmActions", [])) and each.get("ActionsEnabled", True) for each in alarms.values()
    ):
        advice = "Deploy with AlarmActionArns: the ARN of an SNS topic that your operators subscribe to."
        yield Finding("alarm actions", WARNING, "alarms tell nobody", advice)


def judge_waiting(check: str, rows: list[Json], more: object, advice: str) -> Finding:
    """Judge what waits for an operator."""
    if not rows:
        return Finding(check, OK, "none")
    return Finding(check, WARNING, f"{len(rows)}{' or more' if more else ''}", advice)
