"""What lines may say of errors, and that no call goes past the rule."""

import ast
import io
import json
import logging
from pathlib import Path

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError, ParamValidationError, ReadTimeoutError
from pynamodb.exceptions import GetError, PutError, QueryError

from aftercommit.errors import ConditionFailedError, InputRefusedError, LeaseHeldError, MalformedRowError
from aftercommit.log import about, add_ids, logger, reason_of, tell_failure
from tests.lines import REQUIRED, WITHOUT

ROOT = Path(__file__).parents[2]
SOURCES = [
    *sorted((ROOT / "layers/runtime/aftercommit").rglob("*.py")),
    *sorted((ROOT / "functions").rglob("*.py")),
]
SECRET = "s3cr3t-4711"
# Everything by which a line is written.
_TELLING = {"tell_item", "tell_failure", "tell_withdrawn", "drop", "_tell", "_tell_damage", "_tell_removed"}
_LEVELS = {"debug", "info", "warning", "error", "exception", "critical", "log"}


@pytest.fixture
def lines():
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(logger.registered_formatter)
    logger.addHandler(handler)
    yield lambda: [json.loads(line) for line in written.getvalue().splitlines()]
    logger._logger.removeHandler(handler)


def refused(code):
    return ClientError({"Error": {"Code": code, "Message": "why"}}, "PutItem")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (LeaseHeldError("instance i is leased"), "LeaseHeldError: instance i is leased"),
        (
            refused("AccessDenied"),
            "ClientError: An error occurred (AccessDenied) when calling the PutItem operation: why",
        ),
        (InputRefusedError(f"input.{SECRET}", "is missing"), "InputRefusedError"),
        (MalformedRowError(SECRET), "MalformedRowError"),
        (LookupError(SECRET), "LookupError"),
        (ParamValidationError(report=SECRET), "ParamValidationError"),
        (PutError("cannot put", cause=ParamValidationError(report=SECRET)), "PutError"),
    ],
)
def test_a_reason_has_the_text_only_of_errors_that_speak_of_states_and_requests(error, told):
    assert reason_of(error) == told


def test_ids_end_with_what_they_are_about_and_those_before_come_back(lines):
    with about(tenant="a", item_id="outer"):
        with about(item_id="inner", instance_id="i"):
            add_ids(more="m")
            logger.info("within")
        logger.info("after")
    logger.info("outside")
    within, after, outside = lines()
    assert (within["item_id"], within["instance_id"], within["tenant"]) == ("inner", "i", "a")
    assert (after["item_id"], after.get("instance_id"), after.get("more")) == ("outer", None, None)
    assert not {"tenant", "item_id", "instance_id", "more"} & outside.keys()


def test_an_error_takes_the_ids_of_where_it_was_raised_along(lines):
    def fail():
        with about(tenant="a", item_id="outer"), about(item_id="inner"):
            raise LookupError(SECRET)

    try:
        fail()
    except LookupError as error:
        tell_failure("failed", error, shard=1)
    [line] = lines()
    assert (line["tenant"], line["item_id"], line["shard"]) == ("a", "inner", 1)


def test_a_failure_is_told_with_types_and_frames_of_its_causes_and_without_their_texts(lines):
    def inner():
        raise LookupError(SECRET)

    try:
        try:
            inner()
        except LookupError as error:
            raise ValueError(SECRET) from error
    except ValueError as error:
        tell_failure("failed", error)
    [line] = lines()
    assert line["error_type"] == "ValueError"
    assert [each for each in line["stack"] if "/" not in each] == ["ValueError", "LookupError"]
    assert line["stack"][1].endswith(
        " test_a_failure_is_told_with_types_and_frames_of_its_causes_and_without_their_texts"
    )
    assert line["stack"][3].endswith(" inner")
    assert SECRET not in json.dumps(line)


@pytest.mark.parametrize(
    "error",
    [
        refused("ProvisionedThroughputExceededException"),
        GetError("cannot get", cause=refused("ThrottlingException")),
        QueryError("cannot query", cause=ReadTimeoutError(endpoint_url="x")),
        ConnectTimeoutError(endpoint_url="x"),
        LeaseHeldError("held"),
        ConditionFailedError(frozenset({"ack"})),
    ],
)
def test_what_heals_by_itself_or_others_were_first_at_is_a_warning(lines, capsys, error):
    tell_failure("failed", error)
    [line] = lines()
    assert (line["level"], line["reason"].partition(":")[0]) == ("WARNING", type(error).__name__)
    assert "UnexpectedErrors" not in capsys.readouterr().out


@pytest.mark.parametrize("error", [GetError("cannot get", cause=refused("AccessDenied")), LookupError()])
def test_what_nobody_expected_is_an_error_that_is_counted_and_says_where_it_was_met(lines, capsys, error):
    tell_failure("failed", error)
    [line] = lines()
    assert line["level"] == "ERROR"
    assert line["location"].startswith("test_what_nobody_expected_is_an_error")
    assert "UnexpectedErrors" in capsys.readouterr().out


def calls():
    """Return (place, names bound to errors there, call) of every call that writes a line."""
    for path in SOURCES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        caught = {
            (node.lineno, node.end_lineno): node.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ExceptHandler) and node.name
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and _tells(node.func):
                names = {name for (first, last), name in caught.items() if first <= node.lineno <= last}
                yield f"{path.relative_to(ROOT)}:{node.lineno}", names, node


def _tells(function):
    if isinstance(function, ast.Attribute):
        owner = function.value
        return isinstance(owner, ast.Name) and owner.id == "logger" and function.attr in _LEVELS
    return isinstance(function, ast.Name) and function.id in _TELLING


def texts_of_errors(names, call):
    """Return the uses of a caught error in a call that may bring its text."""
    allowed = set()
    for node in ast.walk(call):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in (
            "reason_of",
            "type",
            "tell_failure",
            "_stack_of",
        ):
            allowed |= {id(each) for each in node.args}
        if isinstance(node, ast.Attribute) and node.attr == "holder":  # an id
            allowed.add(id(node.value))
    return [
        ast.unparse(node)
        for node in ast.walk(call)
        if isinstance(node, ast.Name)
        and (node.id in names or node.id in ("error", "failed"))
        and id(node) not in allowed
    ]


def test_no_line_has_the_text_of_an_error_but_by_the_rule():
    found = [
        place
        for place, names, call in calls()
        if texts_of_errors(names, call)
        or ast.unparse(call.func) == "logger.exception"
        or any(each.arg == "exc_info" for each in call.keywords)
        or "told_of" in ast.unparse(call)
        or "failure.message" in ast.unparse(call)
    ]
    assert found == []


def test_the_search_for_texts_of_errors_finds_them():
    for source in (
        'logger.info("m", extra={"reason": str(error)})',
        'logger.info("m", extra={"reason": error.message})',
        'drop(item, f"because: {error}")',
    ):
        assert texts_of_errors(set(), ast.parse(source, mode="eval").body)
    assert not texts_of_errors(
        set(), ast.parse('logger.info("m", extra={"r": reason_of(error)})', mode="eval").body
    )


def test_for_each_line_that_is_written_it_is_said_which_ids_it_must_bear():
    told = {
        node.args[0].value
        for _, _, node in calls()
        if node.args and isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str)
    }
    assert told - REQUIRED.keys() - WITHOUT == set()
    assert (REQUIRED.keys() | WITHOUT) - told == set()
