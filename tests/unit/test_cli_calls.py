"""How the command line reaches a stack: address, signature, token, errors and exit codes."""

import json
import socket

import pytest

from aftercommit_cli import api as api_module

STACKS = """<DescribeStacksResponse xmlns="http://cloudformation.amazonaws.com/doc/2010-05-15/">
<DescribeStacksResult><Stacks><member><StackName>shop</StackName><StackStatus>CREATE_COMPLETE</StackStatus>
<CreationTime>2026-01-01T00:00:00Z</CreationTime><Outputs>{outputs}</Outputs></member></Stacks>
</DescribeStacksResult></DescribeStacksResponse>"""
OUTPUT = "<member><OutputKey>ApiUrl</OutputKey><OutputValue>{}</OutputValue></member>"
NO_STACK = b"""<ErrorResponse xmlns="http://cloudformation.amazonaws.com/doc/2010-05-15/"><Error><Type>Sender</Type>
<Code>ValidationError</Code><Message>Stack with id shop does not exist</Message></Error></ErrorResponse>"""


@pytest.fixture
def stacks(played, run):
    """Let the played API answer as CloudFormation, too."""
    run.environment["AWS_ENDPOINT_URL_CLOUDFORMATION"] = played.url
    played.play("POST", "/", (200, STACKS.format(outputs=OUTPUT.format(f"{played.url}/base")).encode()))
    played.play("GET", "/base/workflows", "workflows")
    played.play("GET", "/workflows", "workflows")
    return played


def free_address():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


# --- which stack ---


def test_a_stack_is_found_by_its_outputs(stacks, run):
    result = run("workflows", "--stack", "shop")
    assert result.exit_code == 0, result.output
    assert [each.path for each in stacks.asked] == ["/", "/base/workflows"]
    assert "StackName=shop" in stacks.asked[0].text


def test_a_stack_on_the_command_line_wins_over_an_address_in_the_environment(stacks, run):
    run("--stack", "shop", "workflows", AFTERCOMMIT_API_URL=free_address())
    assert stacks.asked[-1].path == "/base/workflows"


def test_an_address_on_the_command_line_wins_over_all(stacks, run):
    run("workflows", "--api-url", f"{stacks.url}/", "--stack", "shop", AFTERCOMMIT_API_URL=free_address())
    assert [each.path for each in stacks.asked] == ["/workflows"]


def test_a_stack_in_the_environment_is_used_where_nothing_else_is_said(stacks, run):
    assert run("workflows", AFTERCOMMIT_API_URL=None, AFTERCOMMIT_STACK="shop").exit_code == 0
    assert stacks.asked[-1].path == "/base/workflows"


def test_without_a_stack_the_command_says_how_to_name_one(run):
    result = run("workflows", AFTERCOMMIT_API_URL=None)
    assert result.exit_code == 2
    assert "--stack" in result.stderr
    assert "AFTERCOMMIT_API_URL" in result.stderr


def test_a_stack_that_does_not_exist_is_named(stacks, run):
    stacks.play("POST", "/", (400, NO_STACK))
    result = run("workflows", "--stack", "shop")
    assert result.exit_code == 1
    assert "Stack with id shop does not exist (ValidationError)" in result.stderr


def test_a_stack_of_something_else_is_refused(stacks, run):
    stacks.play("POST", "/", (200, STACKS.format(outputs="").encode()))
    result = run("workflows", "--stack", "shop")
    assert result.exit_code == 2
    assert "no output ApiUrl" in result.stderr


def test_an_address_without_a_scheme_is_refused(run):
    result = run("workflows", "--api-url", "example.com")
    assert result.exit_code == 2
    assert "https://" in result.stderr


# --- as whom ---


def test_a_request_is_signed_for_the_api_in_the_region(played, run):
    played.play("GET", "/workflows", "workflows")
    assert run("workflows").exit_code == 0
    [asked] = played.asked
    assert asked.headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=testing/")
    assert "/eu-west-1/execute-api/aws4_request" in asked.headers["authorization"]
    assert "x-amz-date" in asked.headers
    assert "x-tenant-id" not in asked.headers


def test_region_and_profile_may_be_named(played, run, tmp_path):
    played.play("GET", "/workflows", "workflows")
    credentials = tmp_path / "credentials"
    credentials.write_text("[ops]\naws_access_key_id = OPS\naws_secret_access_key = s\n")
    given = {"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None}
    options = ("--region", "us-west-2", "--profile", "ops")
    result = run("workflows", *options, AWS_SHARED_CREDENTIALS_FILE=str(credentials), **given)
    assert result.exit_code == 0, result.output
    assert "Credential=OPS/" in played.asked[0].headers["authorization"]
    assert "/us-west-2/" in played.asked[0].headers["authorization"]


def test_a_profile_that_does_not_exist_is_named(run):
    result = run("workflows", "--profile", "nobody")
    assert result.exit_code == 2
    assert "nobody" in result.stderr


def test_without_credentials_nothing_is_sent(played, run):
    result = run("workflows", AWS_ACCESS_KEY_ID=None, AWS_SECRET_ACCESS_KEY=None)
    assert result.exit_code == 2
    assert "no AWS credentials" in result.stderr
    assert played.asked == []


def test_without_a_region_nothing_is_sent(played, run):
    result = run("workflows", AWS_DEFAULT_REGION=None)
    assert result.exit_code == 2
    assert "--region" in result.stderr
    assert played.asked == []


@pytest.mark.parametrize("how", ["option", "environment"])
def test_a_token_takes_the_place_of_a_signature_and_needs_no_credentials(played, run, how):
    played.play("GET", "/workflows", "workflows")
    arguments = ["workflows", "--token", "t0k3n"] if how == "option" else ["workflows"]
    environment = {"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None, "AWS_DEFAULT_REGION": None}
    if how == "environment":
        environment["AFTERCOMMIT_TOKEN"] = "t0k3n"
    assert run(*arguments, **environment).exit_code == 0
    assert played.asked[0].headers["authorization"] == "Bearer t0k3n"


def test_the_tenant_is_sent_and_signed(played, run):
    played.play("GET", "/workflows", "workflows")
    assert run("--tenant", "acme", "workflows").exit_code == 0
    assert played.asked[0].headers["x-tenant-id"] == "acme"
    assert "x-tenant-id" in played.asked[0].headers["authorization"]
    run("workflows", "--tenant", "own", AFTERCOMMIT_TENANT="acme")
    assert played.asked[1].headers["x-tenant-id"] == "own"


def test_an_option_after_the_command_wins_over_one_before_it(played, run):
    played.play("GET", "/workflows", "workflows")
    run("--tenant", "before", "workflows", "--tenant", "after")
    assert played.asked[0].headers["x-tenant-id"] == "after"


# --- what can go wrong ---


def test_a_refusal_is_told_with_its_field_and_code(played, run):
    played.play("POST", "/workflows/w/dispatch", "input refused")
    result = run("start", "w")
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: input.amount: must be a whole number")
    assert "(input_refused)" in result.stderr
    assert result.stdout == ""


def test_a_refusal_is_the_answer_of_the_api_where_json_is_asked_for(played, run):
    played.play("GET", "/instances/nobody", "not found")
    result = run("get", "nobody", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stderr)["error"]["field"] == "id"
    assert result.stdout == ""


def test_every_fault_of_a_definition_is_told(played, run):
    faults = [{"path": "root.x", "message": "unknown"}, {"path": "root.y", "message": "missing"}]
    error = {"code": "definition_refused", "message": "...", "faults": faults}
    played.play("GET", "/workflows/w", (422, {"error": error}))
    result = run("workflows", "w")
    assert "root.x: unknown" in result.stderr
    assert "root.y: missing" in result.stderr


def test_a_refusal_of_the_gateway_asks_for_the_credentials(played, run):
    played.play("GET", "/workflows", (403, {"message": "Forbidden"}))
    result = run("workflows")
    assert result.exit_code == 1
    assert "403" in result.stderr
    assert "Forbidden" in result.stderr
    assert "credentials" in result.stderr


def test_an_address_where_nothing_answers_is_not_reached(run):
    result = run("workflows", "--api-url", free_address())
    assert result.exit_code == 3
    assert result.stderr.startswith("Error: cannot reach http://127.0.0.1:")


@pytest.mark.parametrize("answer", [(200, b"<html>"), (200, b"[]"), (302, {}), (502, b"")])
def test_what_does_not_answer_as_the_api_does_is_not_it(played, run, answer):
    played.play("GET", "/workflows", answer)
    result = run("workflows")
    assert result.exit_code == 3
    assert "is it the right address?" in result.stderr


def test_a_gateway_without_a_function_is_told_and_not_asked_again(played, run):
    played.play("POST", "/workflows/w/dispatch", (503, {"message": "Service Unavailable"}))
    result = run("start", "w")
    assert result.exit_code == 3
    assert "Service Unavailable" in result.stderr
    assert len(played.asked) == 1


BUSY = (503, {"error": {"code": "try_later", "message": "the database is busy; send the same request again"}})


@pytest.mark.parametrize("busy", [BUSY, (429, {"message": "Too Many Requests"})])
def test_what_could_not_be_done_just_now_is_asked_again_under_the_same_key(played, run, busy):
    played.play("POST", "/workflows/w/dispatch", busy, "dispatched")
    assert run("start", "w").exit_code == 0
    keys = [each.headers["idempotency-key"] for each in played.asked]
    assert len(keys) == 2
    assert len(set(keys)) == 1


def test_what_stays_busy_is_given_up(played, run, monkeypatch):
    monkeypatch.setattr(api_module, "PAUSES_SECONDS", (0.01, 0.01))
    played.play("GET", "/workflows", BUSY)
    result = run("workflows")
    assert result.exit_code == 1
    assert "(try_later)" in result.stderr
    assert len(played.asked) == 3


def test_an_unexpected_failure_is_one_line(played, run):
    played.play("GET", "/workflows", (200, {}))
    result = run("workflows")
    assert result.exit_code == 1
    assert "unexpected: KeyError" in result.stderr
    assert "AFTERCOMMIT_DEBUG" in result.stderr
    shown = run("workflows", AFTERCOMMIT_DEBUG="1")
    assert isinstance(shown.exception, KeyError)


def test_what_steers_a_terminal_is_not_printed(played, run):
    played.play("GET", "/instances/x", (404, {"error": {"code": "c", "message": "\x1b[31mred\x07"}}))
    assert "\x1b" not in run("get", "x").stderr
    workflow = {"id": "a\x1b]0;title\x07", "version": 1, "published_at": "2026-01-01T00:00:00.000Z"}
    played.play("GET", "/workflows", (200, {"workflows": [workflow]}))
    result = run("workflows")
    assert result.exit_code == 0
    assert "\x1b" not in result.stdout


def test_ids_with_any_characters_stay_one_part_of_the_path(played, run):
    run("get", "a/b c?d")
    assert played.asked[0].path == "/instances/a%2Fb%20c%3Fd"


@pytest.mark.parametrize("arguments", [["nothing"], ["start"], ["list", "--limit", "0"], ["get", "a", "b"]])
def test_wrong_usage_has_its_exit_code(run, arguments):
    assert run(*arguments).exit_code == 2
