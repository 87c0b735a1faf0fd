"""Rules of the template that no linter knows."""

import json
from fnmatch import fnmatchcase

import pytest

from aftercommit.events import Event, event_put
from tests.integration.template import load_template

RESOURCES = load_template()["Resources"]


def of_type(kind):
    return {name: each for name, each in RESOURCES.items() if each["Type"] == kind}


def statements():
    for name, role in of_type("AWS::IAM::Role").items():
        for policy in role["Properties"]["Policies"]:
            for statement in policy["PolicyDocument"]["Statement"]:
                yield name, statement
    for name, policy in of_type("AWS::IAM::Policy").items():
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
            yield name, statement


def as_list(value):
    return value if isinstance(value, list) else [value]


def test_every_function_has_a_role_of_its_own_and_nobody_elses():
    roles = [each["Properties"]["Role"] for each in of_type("AWS::Serverless::Function").values()]
    assert len(roles) == len(set(roles)) == len(of_type("AWS::IAM::Role"))


@pytest.mark.parametrize(("name", "statement"), list(statements()))
def test_no_role_may_do_everything_or_act_on_everything(name, statement):
    assert statement["Effect"] == "Allow"
    for action in as_list(statement["Action"]):
        # One pattern is allowed: a message may be sent alone or in a batch.
        assert "*" not in action or action == "sqs:SendMessage*"
    for resource in as_list(statement["Resource"]):
        # AWS knows no narrower resource for listing streams.
        assert resource != "*" or statement["Action"] == "dynamodb:ListStreams"
        assert resource == "*" or "*" not in resource


def test_a_writer_of_events_may_put_rows_of_events_and_nothing_else():
    [policy] = of_type("AWS::IAM::ManagedPolicy").values()
    [statement] = policy["Properties"]["PolicyDocument"]["Statement"]
    assert statement["Action"] == "dynamodb:PutItem"
    assert statement["Resource"] == "OutboxTable.Arn"
    [pattern] = statement["Condition"]["ForAllValues:StringLike"]["dynamodb:LeadingKeys"]
    event = event_put(Event("n", {}, tenant="acme"), table="t")["Put"]["Item"]
    assert fnmatchcase(event["owner_key"]["S"], pattern)
    assert not fnmatchcase("acme#01KXE0000000000000000000AA", pattern)


def test_only_the_function_of_events_may_tell_sinks_and_only_those_that_are_deployed():
    policies = of_type("AWS::IAM::Policy")
    of_events = {
        name: each for name, each in policies.items() if each["Properties"]["Roles"] == ["EventsRole"]
    }
    assert len(of_events) == 5
    assert all("Condition" in each for each in of_events.values())


def test_each_new_row_of_the_outbox_is_for_one_function():
    """The stream's filters share the rows out: none is told to both, or to nobody."""
    functions = of_type("AWS::Serverless::Function")
    patterns = {}
    for name, event in (("DeliverFunction", "NewItems"), ("EventsFunction", "NewEvents")):
        source = functions[name]["Properties"]["Events"][event]["Properties"]
        [each] = source["FilterCriteria"]["Filters"]
        patterns[name] = json.loads(each["Pattern"])["dynamodb"]["NewImage"]["command"]["S"]
    assert patterns == {"DeliverFunction": [{"anything-but": ["event"]}], "EventsFunction": ["event"]}


def test_every_route_asks_for_a_signature():
    routes = of_type("AWS::ApiGatewayV2::Route")
    assert len(routes) >= 11
    assert {each["Properties"]["AuthorizationType"] for each in routes.values()} == {"AWS_IAM"}


@pytest.mark.parametrize(("name", "table"), list(of_type("AWS::DynamoDB::Table").items()))
def test_tables_are_backed_up_encrypted_and_paid_by_use(name, table):
    properties = table["Properties"]
    assert properties["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert properties["SSESpecification"] == {"SSEEnabled": True}
    assert properties["BillingMode"] == "PAY_PER_REQUEST"


@pytest.mark.parametrize(("name", "queue"), list(of_type("AWS::SQS::Queue").items()))
def test_queues_are_encrypted(name, queue):
    assert queue["Properties"]["SqsManagedSseEnabled"] is True


def test_every_function_logs_into_a_group_that_forgets():
    groups = of_type("AWS::Logs::LogGroup")
    for function in of_type("AWS::Serverless::Function").values():
        group = groups[function["Properties"]["LoggingConfig"]["LogGroup"]]
        assert group["Properties"]["RetentionInDays"] == "LogRetentionDays"
