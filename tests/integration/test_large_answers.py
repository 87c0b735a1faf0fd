"""Answers stay within what Lambda passes on, and views outlive what goes between two reads."""

import json

import pytest

from aftercommit import Step, Workflow, clock
from aftercommit.definition_views import list_workflows
from aftercommit.incidents import incident_put
from aftercommit.limits import MESSAGE_CHARACTERS_MAX, PAGE_MAX
from aftercommit.model import Failure, Incident
from aftercommit.paging import Page
from aftercommit.tables import DefinitionRow, RevisionRow, key_of, revision_name
from aftercommit.writes import commit

ANSWER_BYTES_MAX = 6 * 1024 * 1024  # Lambda's
REVISIONS = 60
acting = Workflow("acting", root=Step("act", name="one"))


@pytest.fixture
def instance_id(world):
    world.publish(acting)
    found = world.dispatch("acting")
    world.run(found)
    return found


def lengthen(instance_id):
    """Give an instance many revisions, each nearly as large as a row can be."""
    first = RevisionRow.get(key_of("default", instance_id), revision_name(1))
    [line] = json.loads(first.journal)[:1]
    line["error"] = {"type": "Error", "message": "x" * MESSAGE_CHARACTERS_MAX}
    journal = json.dumps([line] * (350 * 1024 // len(json.dumps(line))))
    for number in range(1_001, 1_001 + REVISIONS):
        first.row, first.revision, first.journal = revision_name(number), number, journal
        first.save()


def test_a_long_journal_comes_in_pages_that_fit_an_answer(api, instance_id):
    lengthen(instance_id)
    numbers, cursor = [], None
    while True:
        query = {"limit": str(PAGE_MAX), **({"cursor": cursor} if cursor else {})}
        answer = api.raw("GET", f"/instances/{instance_id}/journal", query=query)
        assert answer["statusCode"] == 200
        assert len(json.dumps(answer).encode()) < ANSWER_BYTES_MAX
        page = json.loads(answer["body"])
        numbers += [each["revision"] for each in page["revisions"]]
        if not (cursor := page.get("cursor")):
            break
    assert numbers == sorted(set(numbers))
    assert numbers[-REVISIONS:] == [*range(1_001, 1_001 + REVISIONS)]


def test_an_instance_is_shown_with_its_first_incidents(api, instance_id):
    for number in range(PAGE_MAX + 1):
        incident = Incident(f"i-{number}", Failure("Error", "x" * MESSAGE_CHARACTERS_MAX))
        commit([incident_put("default", instance_id, incident, clock.now())])
    assert len(api.get(f"/instances/{instance_id}")[1]["incidents"]) == PAGE_MAX


def test_a_workflow_that_is_retracted_while_all_are_listed_is_left_out(world):
    world.publish(acting)
    # As the index of published versions shows a pointer for a moment after it is gone.
    gone = DefinitionRow.get(key_of("*", "acting"), "published")
    gone.definition_key, gone.definition_id, gone.row = key_of("*", "gone"), "gone", "old"
    gone.save()
    assert [each["id"] for each in list_workflows("default", Page())["workflows"]] == ["acting"]
