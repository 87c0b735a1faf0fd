"""The doctor: asks AWS and the API about a deployed stack, thing by thing; no failure hides the rest."""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from aftercommit_cli.account import explain
from aftercommit_cli.call import Call
from aftercommit_cli.errors import ProblemError
from aftercommit_cli.findings import (
    FAILED,
    OK,
    WARNING,
    Finding,
    Json,
    judge_alarms,
    judge_clock,
    judge_function,
    judge_mapping,
    judge_queue,
    judge_schedule,
    judge_stack,
    judge_waiting,
    judge_workflows,
)

_NOT_ALLOWED = {"AccessDenied", "AccessDeniedException", "AuthorizationError", "UnauthorizedOperation"}
_ALARMS_PER_CALL = 100
_METRICS_PER_CALL = 500
_ROWS_MAX = 100  # counted of what waits for an operator

# Namespace, metric, dimension and its value, statistic, period.
_Wanted = tuple[str, str, str, str, str, int]
# By metric and the dimension's value.
_Values = dict[tuple[str, str], float]


class Doctor:
    """Examines the stack of a call."""

    def __init__(self, call: Call, stack: str) -> None:
        self._call = call
        self._stack = stack
        self._resources: dict[str, list[tuple[str, str]]] = {}
        self._eager = True

    def examine(self) -> Iterator[Finding]:
        """Yield what is found, check by check; raises ProblemError if the stack itself cannot be read."""
        yield from self._stack_itself()
        for check, examine in (
            ("api", self._api),
            ("workflows", self._workflows),
            ("functions", self._functions),
            ("mappings", self._mappings),
            ("queues", self._queues),
            ("schedule", self._schedules),
            ("alarms", self._alarms),
            ("failed dispatches", self._failed_dispatches),
            ("dead letters", self._dead_letters),
            ("incidents", self._incidents),
        ):
            yield from _guarded(check, examine)

    # --- AWS ---

    def _aws(self, service: str) -> Any:
        return self._call.account.client(service)

    def _stack_itself(self) -> Iterator[Finding]:
        client = self._aws("cloudformation")
        try:
            [stack] = client.describe_stacks(StackName=self._stack)["Stacks"]
            for page in client.get_paginator("list_stack_resources").paginate(StackName=self._stack):
                for each in page["StackResourceSummaries"]:
                    if each.get("PhysicalResourceId"):
                        names = (each["LogicalResourceId"], each["PhysicalResourceId"])
                        self._resources.setdefault(each["ResourceType"], []).append(names)
        except (ClientError, BotoCoreError) as error:
            raise explain(error, f"stack {self._stack}") from error
        parameters = {
            each["ParameterKey"]: each.get("ParameterValue") for each in stack.get("Parameters", [])
        }
        self._eager = parameters.get("EagerDelivery") != "false"
        yield judge_stack(stack)

    def _of(self, *types: str) -> list[tuple[str, str]]:
        return [names for kind in types for names in self._resources.get(kind, [])]

    def _functions(self) -> Iterator[Finding]:
        found = self._of("AWS::Lambda::Function")
        wanted = [
            ("AWS/Lambda", metric, "FunctionName", name, "Sum", 3600)
            for _, name in found
            for metric in ("Errors", "Throttles")
        ]
        values = self._metrics(wanted)
        if values is None:
            yield Finding("metrics", WARNING, "cannot be read", "Allow cloudwatch:GetMetricData.")
        for logical_id, name in found:
            yield from _guarded(f"function {logical_id}", self._function, logical_id, name, values or {})

    def _function(self, logical_id: str, name: str, values: _Values) -> Iterator[Finding]:
        configuration = self._aws("lambda").get_function_configuration(FunctionName=name)
        errors, throttles = (values.get((metric, name)) for metric in ("Errors", "Throttles"))
        yield judge_function(logical_id, configuration, errors, throttles)

    def _mappings(self) -> Iterator[Finding]:
        found = self._of("AWS::Lambda::EventSourceMapping")
        if not found:
            yield Finding("mappings", FAILED, "none in this stack", "Is it one of Aftercommit? Deploy again.")
        for logical_id, uuid in found:
            yield from _guarded(f"mapping {logical_id}", self._mapping, logical_id, uuid)

    def _mapping(self, logical_id: str, uuid: str) -> Iterator[Finding]:
        mapping = self._aws("lambda").get_event_source_mapping(UUID=uuid)
        yield judge_mapping(logical_id, mapping, eager=self._eager)

    def _queues(self) -> Iterator[Finding]:
        found = self._of("AWS::SQS::Queue")
        names = {url: url.rpartition("/")[2] for _, url in found}
        metric = "ApproximateAgeOfOldestMessage"
        ages = self._metrics(
            [("AWS/SQS", metric, "QueueName", name, "Maximum", 300) for name in names.values()]
        )
        for logical_id, url in found:
            age = (ages or {}).get((metric, names[url]))
            yield from _guarded(f"queue {logical_id}", self._queue, logical_id, url, age)

    def _queue(self, logical_id: str, url: str, age: float | None) -> Iterator[Finding]:
        answer = self._aws("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["All"])
        attributes = answer["Attributes"]
        works = "RedrivePolicy" in attributes or self._is_read(attributes["QueueArn"])
        yield judge_queue(logical_id, attributes, age, dead=not works)

    def _is_read(self, queue_arn: str) -> bool:
        """Whether a function takes this queue's messages: where nobody does, they were set aside."""
        answer = self._aws("lambda").list_event_source_mappings(EventSourceArn=queue_arn)
        return bool(answer["EventSourceMappings"])

    def _schedules(self) -> Iterator[Finding]:
        rules, schedules = self._of("AWS::Events::Rule"), self._of("AWS::Scheduler::Schedule")
        if not rules and not schedules:
            yield Finding(
                "schedule", FAILED, "none in this stack", "Without it nothing is swept: deploy again."
            )
        for logical_id, name in rules:
            # The id of a rule on another bus than the default is BUS|RULE.
            bus, _, rule = name.rpartition("|")
            more = {"EventBusName": bus} if bus else {}
            yield judge_schedule(logical_id, self._aws("events").describe_rule(Name=rule, **more))
        for logical_id, name in schedules:
            yield judge_schedule(logical_id, self._aws("scheduler").get_schedule(Name=name))

    def _alarms(self) -> Iterator[Finding]:
        found = self._of("AWS::CloudWatch::Alarm", "AWS::CloudWatch::CompositeAlarm")
        logical_ids = {name: logical_id for logical_id, name in found}
        names = list(logical_ids)
        alarms: dict[str, Json] = {}
        for start in range(0, len(names), _ALARMS_PER_CALL):
            answer = self._aws("cloudwatch").describe_alarms(
                AlarmNames=names[start : start + _ALARMS_PER_CALL],
                AlarmTypes=["MetricAlarm", "CompositeAlarm"],
            )
            for alarm in (*answer.get("MetricAlarms", []), *answer.get("CompositeAlarms", [])):
                alarms[logical_ids[alarm["AlarmName"]]] = alarm
        yield from judge_alarms(alarms)

    def _metrics(self, wanted: list[_Wanted]) -> _Values | None:
        """Return the latest values by metric and resource, as far as measured; None if unreadable."""
        now = datetime.now(UTC)
        found: _Values = {}
        for start in range(0, len(wanted), _METRICS_PER_CALL):
            some = wanted[start : start + _METRICS_PER_CALL]
            queries = [
                {
                    "Id": f"m{number}",
                    "MetricStat": {
                        "Metric": {
                            "Namespace": namespace,
                            "MetricName": metric,
                            "Dimensions": [{"Name": dimension, "Value": name}],
                        },
                        "Period": period,
                        "Stat": statistic,
                    },
                }
                for number, (namespace, metric, dimension, name, statistic, period) in enumerate(some)
            ]
            try:
                answer = self._aws("cloudwatch").get_metric_data(
                    MetricDataQueries=queries, StartTime=now - timedelta(hours=1), EndTime=now
                )
            except (ClientError, BotoCoreError):
                return None
            for result in answer["MetricDataResults"]:
                _, metric, _, name, statistic, _ = some[int(result["Id"][1:])]
                if values := result.get("Values"):  # the latest first
                    found[metric, name] = sum(values) if statistic == "Sum" else values[0]
        return found

    # --- the API ---

    def _api(self) -> Iterator[Finding]:
        before = time.time()
        answer = self._call.api.call("GET", ("health",))
        after = time.time()
        yield Finding("api", OK, f"answers, in {(after - before) * 1000:.0f} ms")
        if answer.date:
            # The header has whole seconds, and was written at some time during the call.
            theirs = parsedate_to_datetime(answer.date).timestamp()
            least, most = before - theirs - 1, after - theirs
            yield judge_clock(least if least > 0 else min(0, most))

    def _workflows(self) -> Iterator[Finding]:
        yield judge_workflows(self._call.api.page("workflows", "workflows", limit=None))

    def _failed_dispatches(self) -> Iterator[Finding]:
        answer = self._call.api.page("dispatches", "dispatches", limit=_ROWS_MAX, status="failed")
        # One that was set aside and told to the owner that waited is no more than its incident, found below.
        rows = [row for row in answer["dispatches"] if not row.get("wait")]
        advice = "aftercommit dispatches; remove the cause, then: aftercommit redrive --all"
        yield judge_waiting("failed dispatches", rows, answer.get("cursor"), advice)

    def _dead_letters(self) -> Iterator[Finding]:
        answer = self._call.api.page("dead_letters", "bookmark-queue", "dead-letters", limit=_ROWS_MAX)
        advice = "aftercommit dead-letters; if they are still wanted: aftercommit replay --all"
        yield judge_waiting("dead letters", answer["dead_letters"], answer.get("cursor"), advice)

    def _incidents(self) -> Iterator[Finding]:
        answer = self._call.api.page("incidents", "incidents", limit=_ROWS_MAX)
        advice = "aftercommit incidents"
        yield judge_waiting("incidents", answer["incidents"], answer.get("cursor"), advice)


def _guarded(check: str, examine: Callable[..., Iterator[Finding]], *about: Any) -> Iterator[Finding]:
    """Yield a check's findings; what keeps it from being made is a finding, too."""
    try:
        yield from examine(*about)
    except ClientError as error:
        code = error.response.get("Error", {}).get("Code", "")
        if code in _NOT_ALLOWED:
            advice = f"Allow {error.operation_name} to whoever examines the stack."
            yield Finding(check, WARNING, "not checked: not allowed", advice)
        else:
            yield Finding(check, FAILED, explain(error, error.operation_name).message)
    except BotoCoreError as error:
        yield Finding(check, FAILED, explain(error).message)
    except ProblemError as error:
        yield Finding(check, FAILED, error.message)
