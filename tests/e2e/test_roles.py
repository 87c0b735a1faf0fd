"""What each function's role may do, and what it may not, by asking as that role."""

import json

import pytest
from botocore.exceptions import ClientError
from botocore.session import get_session

from aftercommit.events import Event, EventExistsError, event_put, telling
from scripts.emulator import REGION
from tests.e2e.conftest import resources_of

NAMES = {
    "api": "ApiRole",
    "run": "RunRole",
    "deliver": "DeliverRole",
    "events": "EventsRole",
    "sweep": "SweepRole",
    "publish": "PublishRole",
}


@pytest.fixture(scope="module")
def as_role(stack):
    """Return a function that makes a client with the rights of a function's role."""
    physical = resources_of(stack)
    sessions = {}
    for function, logical in NAMES.items():
        role = stack.client("iam").get_role(RoleName=physical[logical])["Role"]
        assert role["AssumeRolePolicyDocument"]["Statement"][0]["Principal"] == {
            "Service": "lambda.amazonaws.com"
        }
        # Who may take the role is not what is asked here; what it may do stays as deployed.
        document = json.dumps(
            {
                "Version": "2012-10-17",
                "Statement": [{"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}],
            }
        )
        stack.client("iam").update_assume_role_policy(RoleName=role["RoleName"], PolicyDocument=document)
        answer = stack.client("sts").assume_role(RoleArn=role["Arn"], RoleSessionName="test")
        sessions[function] = answer["Credentials"]

    return lambda function, service: client_of(stack, sessions[function], service)


def client_of(stack, credentials, service):
    return get_session().create_client(
        service,
        region_name=REGION,
        endpoint_url=stack.endpoint_url,
        aws_access_key_id=credentials["AccessKeyId"],
        aws_secret_access_key=credentials["SecretAccessKey"],
        aws_session_token=credentials["SessionToken"],
    )


def call(client, stack, action, name):
    """Make one call on a table or queue of the stack; returns the name of what was refused, or None."""
    key = {
        "OutboxTable": {"owner_key": {"S": "default#x"}, "item_id": {"S": "x"}},
        "InstancesTable": {"instance_key": {"S": "default#x"}, "row": {"S": "x"}},
        "DefinitionsTable": {"definition_key": {"S": "default#x"}, "row": {"S": "x"}},
    }.get(name)
    target = {"QueueUrl": stack.outputs[name]} if key is None else {"TableName": stack.outputs[name]}
    if action == "batch_get_item":
        target = {"RequestItems": {stack.outputs[name]: {"Keys": [key]}}}
    if action == "batch_write_item":
        target = {"RequestItems": {stack.outputs[name]: [{"DeleteRequest": {"Key": key}}]}}
    partition = next(iter(key)) if key else None
    arguments = {
        "get_item": {"Key": key},
        "delete_item": {"Key": key},
        # Writes are made under a condition that never holds: what matters is whether they may be asked for.
        "put_item": {"Item": key, "ConditionExpression": "attribute_exists(nothing)"},
        "update_item": {"Key": key, "ConditionExpression": "attribute_exists(nothing)"},
        "query": {
            "KeyConditionExpression": f"{partition} = :value",
            "ExpressionAttributeValues": {":value": {"S": "x"}},
        },
        "send_message": {"MessageBody": "{}"},
    }.get(action, {})
    try:
        getattr(client, action)(**target, **arguments)
    except ClientError as error:
        if error.response["Error"]["Code"] in ("AccessDenied", "AccessDeniedException"):
            return error.response["Error"]["Message"]
        if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
            raise
    return None


MAY = [
    ("api", "query", "DefinitionsTable"),
    ("api", "put_item", "InstancesTable"),
    ("api", "put_item", "DefinitionsTable"),
    ("api", "delete_item", "OutboxTable"),
    ("run", "get_item", "DefinitionsTable"),
    ("run", "update_item", "OutboxTable"),
    ("run", "delete_item", "InstancesTable"),
    ("run", "delete_item", "OutboxTable"),
    ("deliver", "get_item", "OutboxTable"),
    ("deliver", "update_item", "OutboxTable"),
    ("events", "batch_get_item", "OutboxTable"),
    ("events", "update_item", "OutboxTable"),
    ("events", "put_item", "OutboxTable"),
    ("events", "put_item", "InstancesTable"),
    ("sweep", "batch_get_item", "OutboxTable"),
    ("deliver", "update_item", "InstancesTable"),
    ("deliver", "get_item", "InstancesTable"),
    ("sweep", "update_item", "InstancesTable"),
    ("sweep", "batch_write_item", "OutboxTable"),
    ("sweep", "batch_write_item", "InstancesTable"),
    ("sweep", "delete_item", "InstancesTable"),
    ("publish", "put_item", "DefinitionsTable"),
    ("publish", "query", "DefinitionsTable"),
    ("publish", "query", "OutboxTable"),
    ("publish", "put_item", "OutboxTable"),
    ("publish", "delete_item", "OutboxTable"),
]

MAY_NOT = [
    ("api", "update_item", "DefinitionsTable"),
    ("api", "scan", "InstancesTable"),
    ("api", "receive_message", "CommandQueueUrl"),
    ("api", "send_message", "CommandDeadLetterQueueUrl"),
    ("run", "put_item", "DefinitionsTable"),
    ("run", "scan", "OutboxTable"),
    ("run", "purge_queue", "CommandQueueUrl"),
    ("run", "send_message", "TickQueueUrl"),
    ("deliver", "get_item", "DefinitionsTable"),
    ("deliver", "query", "DefinitionsTable"),
    ("deliver", "delete_item", "OutboxTable"),
    ("deliver", "delete_item", "InstancesTable"),
    ("deliver", "query", "InstancesTable"),
    ("deliver", "receive_message", "CommandQueueUrl"),
    ("deliver", "batch_get_item", "OutboxTable"),
    ("events", "delete_item", "OutboxTable"),
    ("events", "query", "OutboxTable"),
    ("events", "get_item", "InstancesTable"),
    ("events", "update_item", "InstancesTable"),
    ("events", "get_item", "DefinitionsTable"),
    ("events", "send_message", "CommandQueueUrl"),
    ("sweep", "delete_item", "OutboxTable"),
    ("sweep", "get_item", "DefinitionsTable"),
    ("sweep", "put_item", "DefinitionsTable"),
    ("sweep", "receive_message", "CommandQueueUrl"),
    ("publish", "get_item", "InstancesTable"),
    ("publish", "update_item", "OutboxTable"),
    ("publish", "delete_item", "DefinitionsTable"),
    ("publish", "send_message", "CommandQueueUrl"),
]


@pytest.fixture(scope="module")
def as_writer(stack):
    """Return a client with the rights that an application gets which writes events."""
    iam = stack.client("iam")
    anybody = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [anybody]})
    role = iam.create_role(RoleName="their-application", AssumeRolePolicyDocument=document)["Role"]
    iam.attach_role_policy(RoleName="their-application", PolicyArn=stack.outputs["EventWriterPolicyArn"])
    answer = stack.client("sts").assume_role(RoleArn=role["Arn"], RoleSessionName="test")
    return client_of(stack, answer["Credentials"], "dynamodb")


def test_a_writer_of_events_may_put_them_in_a_transaction(as_writer, stack):
    put = event_put(Event("roles/written", {}, id="roles-1"), table=stack.outputs["OutboxTable"])
    as_writer.transact_write_items(TransactItems=[put])
    with pytest.raises(EventExistsError), telling():
        as_writer.transact_write_items(TransactItems=[put])


# That it may put rows of events only is a condition on keys, which the emulator does not look at.
@pytest.mark.parametrize(
    ("action", "name"),
    [
        ("get_item", "OutboxTable"),
        ("query", "OutboxTable"),
        ("scan", "OutboxTable"),
        ("update_item", "OutboxTable"),
        ("delete_item", "OutboxTable"),
        ("batch_get_item", "OutboxTable"),
        ("put_item", "InstancesTable"),
        ("get_item", "DefinitionsTable"),
    ],
)
def test_a_writer_of_events_may_do_nothing_else(as_writer, stack, action, name):
    told = call(as_writer, stack, action, name)
    assert told is not None, "it was allowed"


def service_of(name):
    return "sqs" if name.endswith("Url") else "dynamodb"


@pytest.mark.parametrize(("function", "action", "name"), MAY)
def test_a_function_may_do_what_it_does(as_role, stack, function, action, name):
    assert call(as_role(function, service_of(name)), stack, action, name) is None


@pytest.mark.parametrize(("function", "action", "name"), MAY_NOT)
def test_a_function_may_do_nothing_else(as_role, stack, function, action, name):
    told = call(as_role(function, service_of(name)), stack, action, name)
    assert told is not None, "it was allowed"
    assert action.replace("_", "") in told.lower()


def test_an_activity_has_no_more_rights_than_its_function(api):
    shown = api.await_end(api.dispatch("beyond-rights", order_id="rights-1"))
    assert shown["status"] == "completed"
    assert len(shown["output"]["answers"]) == 3
    for answer in shown["output"]["answers"]:
        name, _, told = answer.partition(": ")
        assert "AccessDenied" in told, answer
        assert name in told, answer
