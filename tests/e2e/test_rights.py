"""What each function's role grants, compared with what the function has used while all these tests ran.

The last of all (conftest.LAST). The emulator enforces the roles, and notes each answer that it gives. A grant
is an action (or a pattern) on a resource; one that no call has used is a right too many, unless it stands
under NOT_SEEN_HERE with its reason.
"""

from fnmatch import fnmatchcase

import pytest

from scripts.local_stack import EMULATOR_POLICY, FUNCTIONS
from tests.e2e.conftest import resources_of

pytestmark = pytest.mark.usefixtures("whole_session")

POLLING_A_QUEUE = "Lambda polls the queue as the role; the emulator does as itself"
POLLING_A_STREAM = "Lambda polls the stream as the role; the emulator does as itself"

# Grants that no call can use here: by function, action and resource.
NOT_SEEN_HERE = {
    **{
        (function, action, f"{function.capitalize()}FunctionLogs"): "Lambda writes the logs as the role"
        for function in FUNCTIONS
        for action in ("logs:CreateLogStream", "logs:PutLogEvents")
    },
    **{
        (function, f"sqs:{action}", queue): POLLING_A_QUEUE
        for function, queue in (("run", "CommandQueue"), ("sweep", "TickQueue"))
        for action in ("DeleteMessage", "GetQueueAttributes", "ReceiveMessage")
    },
    **{
        (function, f"dynamodb:{action}", resource): POLLING_A_STREAM
        for function in ("deliver", "events")
        for action, resource in (
            ("DescribeStream", "OutboxTable/stream"),
            ("GetRecords", "OutboxTable/stream"),
            ("GetShardIterator", "OutboxTable/stream"),
            ("ListStreams", "*"),
        )
    },
    **{
        (function, "sqs:SendMessage*", "StreamFailuresQueue"): "Lambda sends what it could not hand over"
        for function in ("deliver", "events")
    },
    **{
        (function, f"xray:{action}", "*"): "Lambda's daemon sends traces as the role; the emulator has none"
        for function in ("api", "run")
        for action in ("PutTelemetryRecords", "PutTraceSegments")
    },
    **{
        (
            function,
            "s3:ListBucket",
            "PayloadBucket",
        ): "S3 asks for it to tell a missing object from a forbidden one"
        for function in ("api", "run")
    },
    ("events", "dynamodb:PartiQLUpdate", "OutboxTable"): "the emulator asks for BatchExecuteStatement",
}

# What the activity `overreach` of the workflow beyond-rights tries, to be refused.
REFUSED = {
    ("run", "dynamodb:DeleteTable", "InstancesTable"),
    ("run", "dynamodb:Scan", "InstancesTable"),
    ("run", "sqs:PurgeQueue", "CommandQueue"),
}


def listed(rights):
    return "\n".join(f"  {' '.join(each)}" for each in sorted(rights))


@pytest.fixture(scope="module")
def resources(stack):
    """Return the physical names of the stack's resources by those of the template."""
    return resources_of(stack)


@pytest.fixture(scope="module")
def name_of(resources):
    """Return a function that gives the template's name of what an ARN speaks of; others stay as they are."""
    # A queue is known by its address, of which its ARN has the last part.
    names = {
        physical.rpartition("/")[2] if physical.startswith("http") else physical: logical
        for logical, physical in resources.items()
    }

    def name(arn):
        place = arn.split(":", 5)[-1].removesuffix(":*")
        for kind in ("table/", "function:", "log-group:"):
            place = place.removeprefix(kind)
        if place in names:
            return names[place]
        table, _, part = place.partition("/")
        part = "stream" if part.startswith("stream/") else part  # its name has an instant in it
        part = "*" if names.get(table) == "PayloadBucket" else part  # each object has a name of its own
        return f"{names[table]}/{part}" if table in names else arn

    return name


@pytest.fixture(scope="module")
def granted(stack, resources, name_of):
    """The (function, action, resource) that the deployed roles allow.

    The emulator takes a parameter that is an empty list for [""]: a policy, or a resource, without a name.
    """
    iam = stack.client("iam")

    def documents(role):
        for name in iam.list_role_policies(RoleName=role)["PolicyNames"]:
            if name != EMULATOR_POLICY:
                yield iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"]
        attached = iam.list_attached_role_policies(RoleName=role)["AttachedPolicies"]
        for arn in filter(None, [each["PolicyArn"] for each in attached]):
            version = iam.get_policy(PolicyArn=arn)["Policy"]["DefaultVersionId"]
            yield iam.get_policy_version(PolicyArn=arn, VersionId=version)["PolicyVersion"]["Document"]

    return {
        (function, action, name_of(resource))
        for function in FUNCTIONS
        for document in documents(resources[f"{function.capitalize()}Role"])
        for statement in document["Statement"]
        for action in several(statement["Action"])
        for resource in several(statement["Resource"])
        if resource
    }


def several(found):
    return [found] if isinstance(found, str) else found


@pytest.fixture(scope="module")
def answered(stack, resources, name_of):
    """What each function asked for, as (function, action, resource), by whether it was allowed.

    Only the functions themselves: the tests that take a role have sessions of another name.
    """
    sessions = {
        f"{resources[f'{function.capitalize()}Role']}/{stack.function_name(function)}": function
        for function in FUNCTIONS
    }
    found = {True: set(), False: set()}
    for each in stack.emulator.authorisations():
        session = each.principal.partition(":assumed-role/")[2]
        if session in sessions:
            found[each.allowed].add((sessions[session], each.action, name_of(each.resource)))
    return found


def test_every_right_that_is_granted_was_used(granted, answered):
    def is_used(right):
        function, action, resource = right
        return any(
            (function, resource) == (used_by, used_on) and fnmatchcase(used, action)
            for used_by, used, used_on in answered[True]
        )

    unused = {each for each in granted if not is_used(each)}
    needless = unused - NOT_SEEN_HERE.keys()
    assert not needless, f"granted, and never used:\n{listed(needless)}"
    stale = NOT_SEEN_HERE.keys() - unused
    assert not stale, f"excepted, but not granted, or used all the same:\n{listed(stale)}"


def test_nothing_that_a_function_asked_for_was_refused(answered):
    refused = answered[False]
    assert refused == REFUSED, f"refused:\n{listed(refused)}"
