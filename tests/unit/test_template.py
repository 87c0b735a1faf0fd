"""Rules of the template that no linter knows."""

import itertools
import json
import re
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from aftercommit.events import Event, event_put
from aftercommit.jsons import dumps
from tests.integration.template import load_template

RESOURCES = load_template()["Resources"]
API_POLICIES = {"ApiReadPolicy", "ApiStartPolicy", "ApiOperatePolicy", "ApiPublishPolicy"}


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
        # AWS knows no narrower resource for listing streams, nor for sending traces.
        widest = {"dynamodb:ListStreams", "xray:PutTelemetryRecords", "xray:PutTraceSegments"}
        assert resource != "*" or set(as_list(statement["Action"])) <= widest
        # All objects of the one bucket.
        assert resource in ("*", "${PayloadBucket.Arn}/*") or "*" not in resource


def test_a_writer_of_events_may_put_rows_of_events_and_nothing_else():
    [policy] = [each for name, each in of_type("AWS::IAM::ManagedPolicy").items() if name not in API_POLICIES]
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


def test_what_runs_activities_is_traced_and_may_send_traces_unless_a_parameter_says_otherwise():
    functions = of_type("AWS::Serverless::Function")
    traced = {name: each["Properties"].get("Tracing") for name, each in functions.items()}
    mode = ["HasTracing", "Active", "PassThrough"]
    assert {name: each for name, each in traced.items() if each} == {"ApiFunction": mode, "RunFunction": mode}
    policy = RESOURCES["TracingPolicy"]
    assert policy["Condition"] == "HasTracing"
    assert policy["Properties"]["Roles"] == [
        functions[name]["Properties"]["Role"].split(".")[0] for name in ("ApiFunction", "RunFunction")
    ]
    assert policy["Properties"]["PolicyDocument"]["Statement"][0]["Action"] == [
        "xray:PutTelemetryRecords",
        "xray:PutTraceSegments",
    ]


def test_lambda_takes_no_function_for_a_loop_that_sends_to_its_own_queue():
    functions = of_type("AWS::Serverless::Function")
    looping = {name for name, each in functions.items() if each["Properties"].get("RecursiveLoop") == "Allow"}
    sources = {
        name: {each["Properties"]["Queue"] for each in of.get("Events", {}).values() if each["Type"] == "SQS"}
        for name, of in ((name, each["Properties"]) for name, each in functions.items())
    }
    for name, queues in sources.items():
        role = functions[name]["Properties"]["Role"].split(".")[0]
        sends = {
            queue
            for owner, statement in statements()
            if owner == role and "sqs:SendMessage*" in as_list(statement["Action"])
            for queue in as_list(statement["Resource"])
        }
        assert (name in looping) == bool(queues & sends), name


def test_each_new_row_of_the_outbox_is_for_one_function():
    """The stream's filters share the rows out: none is told to both, or to nobody."""
    functions = of_type("AWS::Serverless::Function")
    patterns = {}
    for name, event in (("DeliverFunction", "NewItems"), ("EventsFunction", "NewEvents")):
        source = functions[name]["Properties"]["Events"][event]["Properties"]
        [each] = source["FilterCriteria"]["Filters"]
        patterns[name] = json.loads(each["Pattern"])["dynamodb"]["NewImage"]["command"]["S"]
    assert patterns == {"DeliverFunction": [{"anything-but": ["event"]}], "EventsFunction": ["event"]}


ROUTES = {
    each["Properties"]["RouteKey"]: each["Properties"]
    for each in of_type("AWS::ApiGatewayV2::Route").values()
}
PUBLIC = {"ANY /callbacks/{token}": "HasPublicCallbacks", "ANY /endpoints/{path+}": "HasPublicEndpoints"}
SCOPES = {"read", "start", "operate", "redrive", "publish"}


@pytest.mark.parametrize("route", ROUTES)
def test_every_route_asks_for_a_signature_or_for_a_token_with_a_scope(route):
    kind, authorizer, scopes = (
        ROUTES[route][name] for name in ("AuthorizationType", "AuthorizerId", "AuthorizationScopes")
    )
    if condition := PUBLIC.get(route):  # unless a parameter says otherwise
        assert (kind[:2], authorizer[:2], scopes[:2]) == (
            [condition, "NONE"],
            [condition, "AWS::NoValue"],
            [condition, "AWS::NoValue"],
        )
        kind, authorizer, scopes = kind[2], authorizer[2], scopes[2]
    assert kind == ["HasJwt", "JWT", "AWS_IAM"]
    assert authorizer == ["HasJwt", "JwtAuthorizer", "AWS::NoValue"]
    [scope] = scopes[1]
    assert scope.removeprefix("aftercommit/") in SCOPES
    if route.startswith("GET "):
        assert scope == "aftercommit/read"
    assert ("redrive" in scope) == route.endswith(("/redrive", "/replay"))


def test_tokens_without_an_audience_are_refused_before_anything_is_deployed():
    rule = load_template()["Rules"]["TokensAreForAnAudience"]
    assert rule["RuleCondition"] == [["JwtIssuer", ""]]
    [assertion] = rule["Assertions"]
    assert assertion["Assert"] == [["JwtAudience", ""]]


POLICY_OF = {
    "read": "ApiReadPolicy",
    "start": "ApiStartPolicy",
    "operate": "ApiOperatePolicy",
    "redrive": "ApiOperatePolicy",
    "publish": "ApiPublishPolicy",
}
METHODS = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")  # what ANY stands for


def patterns_of(name):
    [statement] = RESOURCES[name]["Properties"]["PolicyDocument"]["Statement"]
    assert (statement["Effect"], statement["Action"]) == ("Allow", "execute-api:Invoke")
    return [each.partition("/$default/")[2] for each in statement["Resource"]]


def words_of_routes():
    """Return the words that routes are made of: as ids, they look like another route."""
    paths = [route.split(" ")[1] for route in ROUTES]
    return {word for path in paths for word in path.split("/") if word and "{" not in word}


def calls_of(route):
    """Return what IAM is asked about: each method of a route, with ids that look like parts of others."""
    method, path = route.split(" ")
    words = sorted({"x", *words_of_routes()})
    names = re.findall(r"\{[^}]+\}", path)
    deep = ("callbacks/x", "workflows/x/publish", "x/redrive", "x/y/dispatch")
    for ids in itertools.product(*(((*words, *deep) if "+" in name else words) for name in names)):
        called = path
        for name, value in zip(names, ids, strict=True):
            called = called.replace(name, value, 1)
        for each in METHODS if method == "ANY" else [method]:
            yield each + called


@pytest.mark.parametrize("route", ROUTES)
def test_each_route_is_permitted_by_the_one_policy_of_its_scope_whatever_the_ids(route):
    scopes = ROUTES[route]["AuthorizationScopes"]
    [scope] = (scopes[2] if route in PUBLIC else scopes)[1]
    expected = {POLICY_OF[scope.removeprefix("aftercommit/")]}
    for called in calls_of(route):
        # As in IAM, * stands for slashes, too.
        found = {name for name in API_POLICIES for each in patterns_of(name) if fnmatchcase(called, each)}
        assert found == expected, called


def test_the_policies_of_the_api_are_short_enough_for_iam():
    for name in API_POLICIES:
        longest = dumps(RESOURCES[name]["Properties"]["PolicyDocument"])
        for variable, length in (
            ("AWS::Partition", 10),
            ("AWS::Region", 14),
            ("AWS::AccountId", 12),
            ("Api", 10),
        ):
            longest = longest.replace(f"${{{variable}}}", "x" * length)
        assert len(longest) < 6_144, name


@pytest.mark.parametrize(("name", "table"), list(of_type("AWS::DynamoDB::Table").items()))
def test_tables_are_backed_up_encrypted_and_paid_by_use(name, table):
    properties = table["Properties"]
    assert properties["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert properties["SSESpecification"]["KMSMasterKeyId"][1] == "EncryptionKeyArn"
    assert properties["BillingMode"] == "PAY_PER_REQUEST"


@pytest.mark.parametrize(("name", "table"), list(of_type("AWS::DynamoDB::Table").items()))
def test_tables_outlive_the_stack_and_a_change_that_would_replace_them(name, table):
    if name == "LedgerTable":  # the example's, not the runtime's
        return
    # All but a table of a first deploy that failed: nothing is in it yet, and it would bar the next attempt.
    assert table["DeletionPolicy"] == "RetainExceptOnCreate"
    assert table["UpdateReplacePolicy"] == "Retain"
    assert table["Properties"]["DeletionProtectionEnabled"] == ["HasDeletionProtection", True, False]
    # A name of one's own would bar a replacement, as the old table stays.
    assert "TableName" not in table["Properties"]


@pytest.mark.parametrize(("name", "queue"), list(of_type("AWS::SQS::Queue").items()))
def test_queues_are_encrypted(name, queue):
    assert queue["Properties"]["SqsManagedSseEnabled"] == ["HasEncryptionKey", "AWS::NoValue", True]
    assert queue["Properties"]["KmsMasterKeyId"][1] == "EncryptionKeyArn"


def test_every_role_may_use_the_key_that_tables_and_queues_are_encrypted_with():
    policy = RESOURCES["EncryptionPolicy"]
    assert policy["Condition"] == "HasEncryptionKey"
    assert set(policy["Properties"]["Roles"]) == set(of_type("AWS::IAM::Role"))


def test_every_function_logs_into_a_group_that_forgets():
    groups = of_type("AWS::Logs::LogGroup")
    for function in of_type("AWS::Serverless::Function").values():
        group = groups[function["Properties"]["LoggingConfig"]["LogGroup"]]
        assert group["Properties"]["RetentionInDays"] == "LogRetentionDays"
        assert group["Properties"]["KmsKeyId"][1] == "EncryptionKeyArn"


ROOT = Path(__file__).parents[2]
ALARMS = of_type("AWS::CloudWatch::Alarm")


def test_every_alarm_has_a_section_that_says_what_to_do():
    text = (ROOT / "docs/operating.md").read_text()
    told = set(re.findall(r"\w+Alarm\b", "\n".join(re.findall(r"^### (.+)$", text, re.MULTILINE))))
    assert told == set(ALARMS)


KEPT = [name for name, each in RESOURCES.items() if each.get("DeletionPolicy") == "RetainExceptOnCreate"]


def test_what_outlives_the_stack_can_be_imported_with_what_the_page_for_operators_names():
    text = (ROOT / "docs/operating.md").read_text()
    template = (ROOT / "template.yaml").read_text()
    [told] = re.findall(r"^2\. Write `import.yaml`, (.*?)\n\n", text, re.MULTILINE | re.DOTALL)
    parts = dict.fromkeys(re.findall(r"`(\w+)`", told))
    for name in KEPT:
        block = re.search(rf"^  {name}:\n    Type: .*\n(?:    .*\n)+", template, re.MULTILINE)[0]
        needed = set(re.findall(r"!\w+ \[?([\w:.]+)", block))
        assert {name, *needed} - {"AWS::NoValue"} <= set(parts), name
    conditions = load_template()["Conditions"]
    parameters = set(load_template()["Parameters"])
    for each in parts.keys() & conditions.keys():
        assert set(re.findall(r"\w+", str(conditions[each]))) & parameters <= set(parts), each


def test_what_a_restore_leaves_out_is_set_by_hand_as_the_template_has_it():
    text = (ROOT / "docs/operating.md").read_text()
    tables = {name: RESOURCES[name]["Properties"] for name in KEPT if name != "PayloadBucket"}
    assert all(each["PointInTimeRecoverySpecification"] for each in tables.values())
    assert {name for name, each in tables.items() if "TimeToLiveSpecification" in each} == {
        "InstancesTable",
        "OutboxTable",
    }
    assert {name for name, each in tables.items() if "StreamSpecification" in each} == {"OutboxTable"}
    lived, streamed = (
        tables["OutboxTable"][each] for each in ("TimeToLiveSpecification", "StreamSpecification")
    )
    assert f"AttributeName={lived['AttributeName']} " in text
    assert f"StreamViewType={streamed['StreamViewType']} " in text


def test_alarms_can_be_left_out_and_tell_whom_the_parameter_names():
    for name, alarm in ALARMS.items():
        assert alarm["Condition"] in ("HasAlarms", "HasEagerAlarms"), name
        assert "AlarmActionArns" in str(alarm["Properties"]["AlarmActions"]), name


def test_the_access_log_names_no_paths_as_they_may_hold_tokens():
    [stage] = of_type("AWS::ApiGatewayV2::Stage").values()
    logged = set(re.findall(r"\$context\.([A-Za-z.]+)", stage["Properties"]["AccessLogSettings"]["Format"]))
    assert "routeKey" in logged
    assert "path" not in logged


def test_the_access_log_tells_the_caller_of_signed_requests_and_of_those_with_a_token():
    [stage] = of_type("AWS::ApiGatewayV2::Stage").values()
    logged = stage["Properties"]["AccessLogSettings"]["Format"]
    assert {"$context.identity.userArn", "$context.authorizer.claims.sub"} <= set(
        re.findall(r"\$context[\w.]+", logged)
    )
