"""Definitions as data: drafts with all their faults at once, published as versions that never change."""

import pytest

from aftercommit import Event, Sequence, Step
from aftercommit.definition_views import show_workflow
from aftercommit.definitions import find_pointer, store, stored_versions
from aftercommit.errors import DefinitionRefusedError, NotFoundError
from aftercommit.publish import publish_draft, put_draft
from aftercommit.tables import DefinitionRow
from tests.integration.faults import Crash
from tests.integration.waits import send

FIRST = {"root": Sequence(Event("go"), Step("act", name="first")).to_json()}
SECOND = {"root": Sequence(Event("go"), Step("act", name="second")).to_json()}


def put_and_publish(data, tenant="default"):
    put_draft(tenant, "w", dict(data))
    return publish_draft(tenant, "w")


def test_a_faulty_draft_is_refused_with_all_its_faults_and_their_paths(world):
    faulty = {
        "id": "other",
        "root": {
            "type": "Sequence",
            "activities": [
                {"type": "Stp"},
                {"type": "Step", "activity": "no_such_function"},
                {"type": "SetVariable", "variable": "x", "value": "{% 1 + %}"},
            ],
        },
    }
    with pytest.raises(DefinitionRefusedError) as caught:
        put_draft("default", "w", dict(faulty))
    assert caught.value.faults[0][0] == "id"
    with pytest.raises(DefinitionRefusedError) as caught:
        put_draft("default", "w", {"root": faulty["root"]})
    told = " ".join(path for path, _ in caught.value.faults)
    for number in range(3):
        assert f"root.activities[{number}]" in told
    assert list(DefinitionRow.scan()) == []


def test_a_refused_draft_leaves_the_one_before(world):
    put_draft("default", "w", dict(FIRST))
    with pytest.raises(DefinitionRefusedError):
        put_draft("default", "w", {"root": {"type": "Stp"}})
    assert publish_draft("default", "w") == 1


def test_drafts_become_versions_one_and_two_and_the_same_tree_nothing_new(world):
    assert put_and_publish(FIRST) == 1
    assert put_and_publish(FIRST) == 1
    assert put_and_publish(SECOND) == 2
    assert put_and_publish(SECOND) == 2
    assert sorted(stored_versions("default", "w")) == [1, 2]
    shown = show_workflow("default", "w", None)
    assert (shown["published_version"], shown["versions"]) == (2, [1, 2])


def test_an_earlier_tree_is_published_as_the_version_that_it_was(world):
    put_and_publish(FIRST)
    put_and_publish(SECOND)
    assert put_and_publish(FIRST) == 1
    assert find_pointer("default", "w") == 1


def test_what_is_only_a_draft_cannot_be_started_or_published_by_another_tenant(world):
    put_draft("a", "w", dict(FIRST))
    with pytest.raises(NotFoundError):
        world.dispatch("w", tenant="a")
    with pytest.raises(NotFoundError):
        publish_draft("b", "w")


def test_i10_a_running_instance_finishes_on_its_version(world):
    put_and_publish(FIRST)
    instance_id = world.dispatch("w")
    world.run(instance_id)
    put_and_publish(SECOND)
    send("go")
    world.settle(seconds=60)
    assert world.show(instance_id)["version"] == 1
    journal = str([row.journal for row in world.revisions(instance_id)])
    assert world.show(instance_id)["status"] == "completed"
    assert "first" not in journal or "second" not in journal


def test_of_two_drafts_published_at_once_each_gets_a_number_of_its_own(world, monkeypatch):
    put_draft("default", "w", dict(FIRST))
    taken = []

    def store_late(owner, definition):
        if not taken:
            taken.append(1)
            put_draft("default", "w", dict(SECOND))
            publish_draft("default", "w")
        return store(owner, definition)

    monkeypatch.setattr("aftercommit.publish.store", store_late)
    assert publish_draft("default", "w") == 2
    assert len(set(stored_versions("default", "w").values())) == 2


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("match", ["version#", "published"])
def test_a_publisher_that_dies_is_followed_by_one_that_makes_no_second_version(world, faults, moment, match):
    put_draft("default", "w", dict(FIRST))
    getattr(faults, moment)("PutItem", Crash(), match=match)
    with pytest.raises(Crash):
        publish_draft("default", "w")
    assert publish_draft("default", "w") == 1
    assert (find_pointer("default", "w"), list(stored_versions("default", "w"))) == (1, [1])


def test_another_tenants_definitions_are_not_there(world):
    put_and_publish(FIRST, "a")
    with pytest.raises(NotFoundError):
        show_workflow("b", "w", None)
    with pytest.raises(NotFoundError):
        world.dispatch("w", tenant="b")
