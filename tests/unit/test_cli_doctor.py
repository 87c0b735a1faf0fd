"""The doctor: what it makes of the answers of AWS and of the API. AWS is stubbed, with its own models."""

import json
from datetime import UTC, datetime

import pytest
from botocore.session import Session
from botocore.stub import ANY, Stubber

from aftercommit_cli.findings import (
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
from tests.cli.played import recorded

QUEUE = "https://sqs.eu-west-1.amazonaws.com/123456789012/shop-commands"
DEAD_QUEUE = f"{QUEUE}-dead"
ARN = "arn:aws:sqs:eu-west-1:123456789012:shop-commands"
DEAD_ARN = f"{ARN}-dead"
UUID = "00000000-0000-4000-8000-000000000001"
TOPIC = "arn:aws:sns:eu-west-1:123456789012:operators"
CREATED = datetime(2026, 1, 1, tzinfo=UTC)
RESOURCES = [
    ("AWS::SQS::Queue", "CommandQueue", QUEUE),
    ("AWS::SQS::Queue", "CommandDeadLetterQueue", DEAD_QUEUE),
    ("AWS::Lambda::Function", "RunFunction", "shop-run"),
    ("AWS::Lambda::EventSourceMapping", "RunFunctionCommands", UUID),
    ("AWS::Events::Rule", "SweepFunctionEachMinute", "shop-sweep"),
    ("AWS::CloudWatch::Alarm", "DelayedAlarm", "shop-delayed"),
]


class Aws:
    """Stubbed clients, by service; each must be asked just what it was told to expect, in that order."""

    def __init__(self):
        session = Session()
        self.stubs = {}
        self.clients = {}
        for service in ("cloudformation", "cloudwatch", "events", "lambda", "sqs"):
            client = session.create_client(service, region_name="eu-west-1")
            self.clients[service] = client
            self.stubs[service] = Stubber(client)
            self.stubs[service].activate()

    def answer(self, service, operation, answer, **expected):
        self.stubs[service].add_response(operation, answer, expected)

    def refuse(self, service, operation, code):
        self.stubs[service].add_client_error(operation, code, "no")


def healthy(aws, played, *, resources=RESOURCES, queue=None, dead=None, mapping=None, parameters=()):
    """Let AWS and the API answer as they do for a stack that is well, but for what is given."""
    stack = {"StackName": "shop", "CreationTime": CREATED, "StackStatus": "UPDATE_COMPLETE"}
    stack["Parameters"] = [{"ParameterKey": key, "ParameterValue": value} for key, value in parameters]
    aws.answer("cloudformation", "describe_stacks", {"Stacks": [stack]}, StackName="shop")
    summaries = [
        {
            "ResourceType": kind,
            "LogicalResourceId": logical,
            "PhysicalResourceId": physical,
            "LastUpdatedTimestamp": CREATED,
            "ResourceStatus": "CREATE_COMPLETE",
        }
        for kind, logical, physical in resources
    ]
    aws.answer(
        "cloudformation", "list_stack_resources", {"StackResourceSummaries": summaries}, StackName="shop"
    )
    no_metrics = {"MetricDataResults": []}
    expected = {"MetricDataQueries": ANY, "StartTime": ANY, "EndTime": ANY}
    aws.answer("cloudwatch", "get_metric_data", no_metrics, **expected)
    running = {"State": "Active", "LastUpdateStatus": "Successful"}
    aws.answer("lambda", "get_function_configuration", running, FunctionName="shop-run")
    found = mapping or {"UUID": UUID, "State": "Enabled", "EventSourceArn": ARN}
    aws.answer("lambda", "get_event_source_mapping", found, UUID=UUID)
    aws.answer("cloudwatch", "get_metric_data", no_metrics, **expected)
    for url, arn, more in ((QUEUE, ARN, queue), (DEAD_QUEUE, DEAD_ARN, dead)):
        attributes = {"QueueArn": arn, "ApproximateNumberOfMessages": "0", **(more or {})}
        if url == QUEUE:
            attributes["RedrivePolicy"] = json.dumps({"deadLetterTargetArn": DEAD_ARN})
        aws.answer(
            "sqs", "get_queue_attributes", {"Attributes": attributes}, QueueUrl=url, AttributeNames=["All"]
        )
    aws.answer("lambda", "list_event_source_mappings", {"EventSourceMappings": []}, EventSourceArn=DEAD_ARN)
    aws.answer(
        "events",
        "describe_rule",
        {"Name": "shop-sweep", "State": "ENABLED", "ScheduleExpression": "rate(1 minute)"},
        Name="shop-sweep",
    )
    aws.answer(
        "cloudwatch",
        "describe_alarms",
        {"MetricAlarms": [{"AlarmName": "shop-delayed", "StateValue": "OK", "AlarmActions": [TOPIC]}]},
        AlarmNames=["shop-delayed"],
        AlarmTypes=["MetricAlarm", "CompositeAlarm"],
    )
    played.play("GET", "/health", "health")
    played.play("GET", "/workflows", "workflows")
    played.play("GET", "/dispatches", (200, {"dispatches": []}))
    played.play("GET", "/bookmark-queue/dead-letters", (200, {"dead_letters": []}))
    played.play("GET", "/incidents", (200, {"incidents": []}))


@pytest.fixture
def aws(monkeypatch):
    found = Aws()
    monkeypatch.setattr(Session, "create_client", lambda self, service, **_: found.clients[service])
    return found


def levels(answer):
    return {each["check"]: each["level"] for each in answer["checks"]}


def test_a_stack_that_is_well(aws, played, run):
    healthy(aws, played)
    answer = run.json("doctor", "--stack", "shop", "--api-url", played.url)
    assert levels(answer) == {
        "stack": "ok",
        "api": "ok",
        "clock": "ok",
        "workflows": "ok",
        "function RunFunction": "ok",
        "mapping RunFunctionCommands": "ok",
        "queue CommandQueue": "ok",
        "queue CommandDeadLetterQueue": "ok",
        "schedule SweepFunctionEachMinute": "ok",
        "alarms": "ok",
        "failed dispatches": "ok",
        "dead letters": "ok",
        "incidents": "ok",
    }
    for stub in aws.stubs.values():
        stub.assert_no_pending_responses()


def test_messages_that_were_set_aside_fail_and_say_what_to_do(aws, played, run):
    healthy(aws, played, dead={"ApproximateNumberOfMessages": "3"})
    result = run("doctor", "--stack", "shop", "--api-url", played.url)
    assert result.exit_code == 1
    assert "failed   queue CommandDeadLetterQueue: 3 messages set aside" in result.stdout
    assert "start-message-move-task" in result.stdout
    assert result.stdout.rstrip().endswith("13 checks: 1 failed, 0 warnings")
    assert all(len(line) <= 80 for line in result.stdout.splitlines())


def test_errors_and_waiting_messages_are_found_in_the_metrics(aws, played, run):
    healthy(aws, played, queue={"ApproximateNumberOfMessages": "7"})
    aws.stubs["cloudwatch"]._queue.clear()
    expected = {"MetricDataQueries": ANY, "StartTime": ANY, "EndTime": ANY}
    for values in ([{"Id": "m0", "Values": [1.0, 2.0]}], [{"Id": "m0", "Values": [900.0, 5.0]}]):
        aws.answer("cloudwatch", "get_metric_data", {"MetricDataResults": values}, **expected)
    aws.answer("cloudwatch", "describe_alarms", {"MetricAlarms": []}, AlarmNames=ANY, AlarmTypes=ANY)
    result = run("doctor", "--stack", "shop", "--api-url", played.url)
    assert result.exit_code == 0, result.output
    told = " ".join(result.stdout.split())
    assert "warning function RunFunction: 3 errors in the last hour" in told
    assert "warning queue CommandQueue: 7 waiting, 0 in work, 0 delayed, the oldest for 15 min" in told


def test_what_waits_for_an_operator_is_a_warning(aws, played, run):
    healthy(aws, played)
    played.play("GET", "/dispatches", "failed dispatches")
    played.play("GET", "/incidents", "incidents")
    answer = run.json("doctor", "--stack", "shop", "--api-url", played.url)
    assert levels(answer)["failed dispatches"] == "warning"
    assert levels(answer)["incidents"] == "warning"


def test_what_waits_behind_an_empty_page_is_found(aws, played, run):
    healthy(aws, played)
    failed = recorded("failed dispatches")
    played.play("GET", "/dispatches", (200, {"dispatches": [], "cursor": "next"}), (200, failed))
    letters = {**recorded("dead letters"), "cursor": "next"}
    played.play("GET", "/bookmark-queue/dead-letters", (200, letters), (200, {"dead_letters": []}))
    answer = run.json("doctor", "--stack", "shop", "--api-url", played.url)
    found = {each["check"]: (each["level"], each["found"]) for each in answer["checks"]}
    assert found["failed dispatches"] == ("warning", "1")
    assert found["dead letters"] == ("warning", "2")
    cursors = [each.query.get("cursor") for each in played.asked if each.path == "/dispatches"]
    assert cursors == [None, "next"]


def test_a_dispatch_that_was_told_to_its_owner_does_not_wait_for_an_operator(aws, played, run):
    healthy(aws, played)
    [failed] = recorded("failed dispatches")["dispatches"]
    played.play("GET", "/dispatches", (200, {"dispatches": [{**failed, "wait": True}]}))
    answer = run.json("doctor", "--stack", "shop", "--api-url", played.url)
    assert levels(answer)["failed dispatches"] == "ok"


def test_an_api_that_does_not_answer_fails_and_hides_nothing_else(aws, played, run):
    healthy(aws, played)
    played.play("GET", "/health", (503, {"message": "Service Unavailable"}))
    result = run("doctor", "--stack", "shop", "--api-url", played.url, "--json")
    assert result.exit_code == 1
    found = levels(json.loads(result.stdout))
    assert found["api"] == "failed"
    assert found["queue CommandQueue"] == "ok"


def test_what_may_not_be_read_is_a_warning_that_names_the_permission(aws, played, run):
    healthy(aws, played)
    aws.stubs["sqs"]._queue.clear()
    aws.refuse("sqs", "get_queue_attributes", "AccessDenied")
    aws.refuse("sqs", "get_queue_attributes", "AccessDenied")
    answer = run.json("doctor", "--stack", "shop", "--api-url", played.url)
    assert levels(answer)["queue CommandQueue"] == "warning"
    [advice] = [each["advice"] for each in answer["checks"] if each["check"] == "queue CommandQueue"]
    assert "GetQueueAttributes" in advice


def test_a_queue_that_is_gone_fails(aws, played, run):
    healthy(aws, played)
    aws.stubs["sqs"]._queue.clear()
    for _ in range(2):
        aws.refuse("sqs", "get_queue_attributes", "AWS.SimpleQueueService.NonExistentQueue")
    result = run("doctor", "--stack", "shop", "--api-url", played.url, "--json")
    assert result.exit_code == 1
    assert levels(json.loads(result.stdout))["queue CommandQueue"] == "failed"


def test_a_stack_without_schedule_and_mappings_fails(aws, played, run):
    healthy(aws, played, resources=RESOURCES[:3])
    aws.stubs["lambda"]._queue.rotate(-1)  # no mapping is asked for
    result = run("doctor", "--stack", "shop", "--api-url", played.url, "--json")
    found = levels(json.loads(result.stdout))
    assert (found["schedule"], found["mappings"], found["alarms"]) == ("failed", "failed", "ok")


def test_a_stream_mapping_that_is_off_by_parameter_is_well(aws, played, run):
    stream = "arn:aws:dynamodb:eu-west-1:123456789012:table/outbox/stream/1"
    off = {"UUID": UUID, "State": "Disabled", "EventSourceArn": stream}
    healthy(aws, played, mapping=off, parameters=[("EagerDelivery", "false")])
    answer = run.json("doctor", "--stack", "shop", "--api-url", played.url)
    assert levels(answer)["mapping RunFunctionCommands"] == "ok"


def test_a_stack_that_cannot_be_read_is_an_error_and_no_finding(aws, played, run):
    aws.refuse("cloudformation", "describe_stacks", "ValidationError")
    result = run("doctor", "--stack", "shop", "--api-url", played.url)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert "stack shop" in result.stderr


def test_a_doctor_without_a_stack_asks_for_one(run):
    result = run("doctor")
    assert result.exit_code == 2
    assert "--stack" in result.stderr


# --- judgements ---


@pytest.mark.parametrize(
    ("status", "level"),
    [
        ("CREATE_COMPLETE", "ok"),
        ("UPDATE_COMPLETE", "ok"),
        ("UPDATE_ROLLBACK_COMPLETE", "warning"),
        ("UPDATE_IN_PROGRESS", "warning"),
        ("ROLLBACK_COMPLETE", "failed"),
        ("DELETE_FAILED", "failed"),
    ],
)
def test_a_stack_is_judged_by_its_status(status, level):
    assert judge_stack({"StackStatus": status}).level == level


@pytest.mark.parametrize(
    ("seconds", "level"), [(0, "ok"), (-3, "ok"), (10, "warning"), (-10, "warning"), (300, "failed")]
)
def test_a_clock_is_judged_by_its_difference(seconds, level):
    found = judge_clock(seconds)
    assert found.level == level
    assert ("behind" in found.found) == (seconds < 0)


@pytest.mark.parametrize(
    ("configuration", "errors", "throttles", "level"),
    [
        ({"State": "Active"}, 0, 0, "ok"),
        ({"State": "Inactive"}, None, None, "ok"),
        ({"State": "Active"}, 2, 0, "warning"),
        ({"State": "Active"}, 0, 1, "warning"),
        ({"State": "Failed"}, None, None, "failed"),
        ({"State": "Active", "LastUpdateStatus": "Failed"}, None, None, "failed"),
    ],
)
def test_a_function_is_judged_by_state_and_errors(configuration, errors, throttles, level):
    assert judge_function("run", configuration, errors, throttles).level == level


@pytest.mark.parametrize(
    ("waiting", "age", "dead", "level"),
    [
        ("0", None, False, "ok"),
        ("9", 10, False, "ok"),
        ("9", 900, False, "warning"),
        ("9", None, False, "ok"),
        ("0", None, True, "ok"),
        ("1", None, True, "failed"),
    ],
)
def test_a_queue_is_judged_by_what_is_in_it(waiting, age, dead, level):
    attributes = {"ApproximateNumberOfMessages": waiting}
    assert judge_queue("q", attributes, age, dead=dead).level == level


STREAM = "arn:aws:dynamodb:eu-west-1:1:table/t/stream/1"


@pytest.mark.parametrize(
    ("mapping", "eager", "level"),
    [
        ({"State": "Enabled"}, True, "ok"),
        ({"State": "Enabled", "LastProcessingResult": "OK"}, True, "ok"),
        ({"State": "Enabled", "LastProcessingResult": "PROBLEM: access"}, True, "failed"),
        ({"State": "Enabling"}, True, "warning"),
        ({"State": "Disabled", "EventSourceArn": STREAM}, True, "failed"),
        ({"State": "Disabled", "EventSourceArn": STREAM}, False, "ok"),
        ({"State": "Disabled", "EventSourceArn": ARN}, False, "failed"),
    ],
)
def test_a_mapping_is_judged_by_its_state(mapping, eager, level):
    assert judge_mapping("m", mapping, eager=eager).level == level


def test_each_alarm_that_is_on_fails_and_says_where_to_read_on():
    quiet = {
        "Quiet": {"StateValue": "OK", "AlarmActions": [TOPIC]},
        "Unsure": {"StateValue": "INSUFFICIENT_DATA"},
    }
    [found] = judge_alarms(quiet)
    assert (found.level, found.found) == ("ok", "none of 2 is on")
    [found] = judge_alarms({**quiet, "Loud": {"StateValue": "ALARM", "AlarmDescription": "why"}})
    assert (found.check, found.level, found.found) == ("alarm Loud", "failed", "why")
    assert "Loud" in found.advice
    [found] = judge_alarms({})
    assert (found.level, found.found) == ("ok", "none in this stack")


@pytest.mark.parametrize(
    "more",
    [{}, {"AlarmActions": []}, {"AlarmActions": [""]}, {"AlarmActions": [TOPIC], "ActionsEnabled": False}],
)
def test_alarms_that_tell_nobody_are_a_warning_that_names_the_parameter(more):
    quiet, silent = judge_alarms({"Quiet": {"StateValue": "OK", **more}})
    assert (quiet.level, silent.check, silent.level) == ("ok", "alarm actions", "warning")
    assert "AlarmActionArns" in silent.advice


def test_a_schedule_and_lists_are_judged():
    assert judge_schedule("s", {"State": "ENABLED", "ScheduleExpression": "rate(1 minute)"}).level == "ok"
    assert judge_schedule("s", {"State": "DISABLED", "Name": "rule"}).level == "failed"
    assert judge_workflows({"workflows": []}).level == "warning"
    assert judge_waiting("dead letters", [{}], None, "do").found == "1"
    assert judge_waiting("dead letters", [{}] * 100, "cursor", "do").found == "100 or more"
