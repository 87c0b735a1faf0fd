"""Bad input over the API: always refused with its paths, in bounded time, and nothing is stored."""

import json
import time

import pytest

from aftercommit.limits import (
    BODY_BYTES_MAX,
    DEFINITION_BYTES_MAX,
    EXPRESSIONS_WORK_MAX,
    FAULTS_MAX,
    INPUT_BYTES_MAX,
    PATH_CHARACTERS_MAX,
)
from tests.unit.catalogue import LEAF, wrong_nodes

SECONDS_MAX = 10  # far below the API's own limit of 29, on a slow machine
ANSWER_BYTES_MAX = 6 * 1024 * 1024  # Lambda's
PATH = "/workflows/mine"
WRONG = [*wrong_nodes()]


def sequence(*activities):
    return {"type": "Sequence", "activities": list(activities)}


def nested(levels, inner=LEAF):
    for _ in range(levels):
        inner = sequence(inner)
    return inner


def refused(api, world, path, body, *, method="PUT", headers=None):
    """Return (status, error) of a call that must be refused in time, and store nothing."""
    before = world.everything()
    started = time.process_time()
    status, answer = api.call(method, path, body, headers=headers)
    assert time.process_time() - started < SECONDS_MAX
    assert 400 <= status < 500
    assert len(json.dumps(answer)) < ANSWER_BYTES_MAX
    assert set(answer["error"]) <= {"code", "message", "field", "faults"}
    assert world.everything() == before
    return status, answer["error"]


def faults_of(error):
    return {each["path"]: each["message"] for each in error["faults"]}


# --- drafts ---


@pytest.mark.parametrize("first", range(0, len(WRONG), FAULTS_MAX // 4))
def test_wrong_types_in_the_properties_of_all_activity_types_are_told_all_at_once(api, world, first):
    some = WRONG[first : first + FAULTS_MAX // 4]
    root = sequence(*(node for _, _, node in some))
    status, error = refused(api, world, PATH, {"root": root})
    assert (status, error["code"]) == (422, "definition_refused")
    paths = faults_of(error)
    for index, (kind, name, node) in enumerate(some):
        place = f"root.activities[{index}].{name}"
        assert any(path.startswith(place) for path in paths), (kind, node)


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({"root": sequence({"type": "Finish", "output": "x" * BODY_BYTES_MAX})}, 413, "body"),
        ({"root": sequence({"type": "Finish", "output": "x" * DEFINITION_BYTES_MAX})}, 422, "definition"),
        ({"root": nested(101)}, 422, "root" + ".activities[0]" * 100),
        ("[" * 100_000, 400, "body"),
        ('{"root": ' + '{"type":"Sequence","activities":[' * 5_000, 400, "body"),
        ("{", 400, "body"),
        ("", 422, "root"),
        ("null", 400, "body"),
        ("[]", 400, "body"),
        ('"text"', 400, "body"),
        ('{"root": NaN}', 400, "body"),
        ("\ud7ff\x00", 400, "body"),
        ({"root": None}, 422, "root"),
        ({"root": []}, 422, "root"),
        ({"root": LEAF, "more": 1}, 400, "more"),
        ({"root": LEAF, "id": "another"}, 422, "id"),
        ({"root": LEAF, "version": "1"}, 422, "version"),
        ({"root": LEAF, "inputs": [1]}, 422, "inputs"),
        ({"root": LEAF, "inputs": {"a": {"type": "nothing"}}}, 422, "inputs.a.type"),
        ({"root": LEAF, "output": "{% ( %}"}, 422, "output"),
        ({"root": LEAF, "options": {"commit": []}}, 422, "options.commit"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_draft_that_is_none_is_refused_naming_the_part(api, world, body, status, field):
    answered, error = refused(api, world, PATH, body)
    assert (answered, error["field"]) == (status, field)


@pytest.mark.parametrize("levels", [1_000, 3_000])
def test_a_tree_nested_without_end_is_refused(api, world, levels):
    text = (
        '{"root":' + '{"type":"Sequence","activities":[' * levels + '{"type":"Finish"}' + "]}" * levels + "}"
    )
    refused(api, world, PATH, text)


def test_of_ten_thousand_faulty_activities_the_first_faults_are_told_and_that_there_are_more(api, world):
    _, error = refused(api, world, PATH, {"root": sequence(*[{"type": "Nothing"}] * 10_000)})
    paths = faults_of(error)
    assert len(paths) == FAULTS_MAX + 1
    assert paths["definition"] == f"has more faults than these {FAULTS_MAX}"


def test_ten_thousand_good_activities_are_a_draft_like_any_other(api, world):
    started = time.process_time()
    assert api.call("PUT", PATH, {"root": sequence(*[LEAF] * 10_000)})[0] == 200
    assert time.process_time() - started < SECONDS_MAX


def test_a_path_too_long_to_be_told_with_each_fault_is_refused_once(api, world):
    root = {"type": "Switch", "value": 1, "cases": {"k" * 100_000: sequence(*[1] * 50_000)}}
    _, error = refused(api, world, PATH, {"root": root})
    [(path, message)] = faults_of(error).items()
    assert path.startswith("root.cases.kkk")
    assert len(path) == PATH_CHARACTERS_MAX
    assert str(PATH_CHARACTERS_MAX) in message


def test_faults_below_a_long_name_are_told_in_bounded_space(api, world):
    output = {"k" * 100_000: ["{% ( %}"] * 20_000}
    _, error = refused(api, world, PATH, {"root": LEAF, "output": output})
    assert all(len(each["path"]) <= PATH_CHARACTERS_MAX for each in error["faults"])


def test_long_expressions_are_refused_before_they_are_parsed(api, world):
    long = [f"{{% {number} + {'.'.join('a' * 1_900)} %}}" for number in range(80)]
    _, error = refused(api, world, PATH, {"root": LEAF, "output": long})
    assert str(EXPRESSIONS_WORK_MAX) in faults_of(error)["definition"]


# --- stimuli and completions ---

DEEP = '{"a":' * 150 + "1" + "}" * 150


@pytest.mark.parametrize("path", ["/stimuli", "/events/paid"])
@pytest.mark.parametrize(
    "body",
    [
        {"payload": {"a": "x" * INPUT_BYTES_MAX}},
        {"payload": {"a": "x" * BODY_BYTES_MAX}},
        {"input": ["x" * 1_000] * 300},
        {"payload": {"k" * 200_000: [1] * 100_000}},
        {"payload": [{"a": 1}]},
        {"payload": "a"},
        {"payload": True},
        {"correlation_id": {"a": 1}},
        {"correlation_id": "x" * 201},
        {"instance_id": 7},
        {"instance_id": ""},
        {"inputs": 1},
        '{"payload": {"a": Infinity}}',
        '{"payload": {"a": 1e999}}',
        '{"payload": {"a": ' + "9" * 5_000 + "}}",
        '{"payload": {"\\udc00": 1}}',
        '{"input": [[["\\ud800"]]]}',
        '{"payload": ' + '{"a":' * 900 + "1" + "}" * 901,
        '{"payload": ' + '{"a":' * 90_000,
        "7",
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_bad_stimulus_is_refused(api, world, path, body):
    if isinstance(body, dict) and path == "/stimuli":
        body = {"name": "event:paid", **body}
    elif isinstance(body, str) and path == "/stimuli":
        body = body.replace("{", '{"name": "event:paid", ', 1)
    _, error = refused(api, world, path, body, method="POST")
    assert error["field"]


@pytest.mark.parametrize(
    "body",
    [
        '{"payload": {"a": ' + DEEP + "}}",
        '{"payload": {"": {"": [null, 1e308, -0.0, ' + "9" * 4_000 + "]}}}",
        '{"payload": {"\\u0000": "\\u0000\\uffff"}, "input": {"__proto__": []}}',
        '{"payload": {"a": 1, "a": 2}}',
        '{"payload": {"name": "{% inputs.a %}"}, "input": "{% $error(1) %}"}',
    ],
    ids=lambda value: value[:40],
)
def test_an_odd_stimulus_is_taken_as_it_is_and_ends_as_a_dead_letter(api, world, body):
    assert api.post("/events/odd", body)[0] == 202
    world.settle(seconds=900)
    [item] = world.items("stimulus")
    assert (item.status, world.raised) == ("failed", [])
    assert json.loads(item.body)["stimulus"]["payload"] == json.loads(body)["payload"]
    assert item.last_error.startswith("ExpiredError")


@pytest.mark.parametrize(
    ("token", "field"),
    [
        *((token, "token") for token in ("x", "e30", "W10", "WyJhIiwiYiIsImMiLCJkIl0", "%F0%9F%98%80")),
        ("A" * 5_000, "path"),
    ],
)
def test_a_token_that_is_none_is_not_found(api, world, token, field):
    status, error = refused(api, world, f"/tasks/{token}/complete", {}, method="POST")
    assert (status, error["field"]) == (404, field)
