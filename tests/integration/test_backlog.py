"""What is pending, and what failed: one call for a tenant, page by page, with all that tells why."""

import base64
import json

import pytest

from aftercommit import DispatchWorkflow, Sequence, Workflow, views
from aftercommit import backlog as listing
from aftercommit.attempts import refuse
from aftercommit.backlog import list_open_stimuli, list_outbox
from aftercommit.errors import MalformedRequestError
from aftercommit.model import Failure
from aftercommit.outbox import settle
from aftercommit.paging import Page, to_cursor
from aftercommit.tables import ItemRow
from aftercommit.views import list_dispatches, list_incidents, show_instance
from tests.integration.waits import send, sleeper

CHILDREN = 7
child = Workflow("child", inputs={"secret": str}, root=Sequence())
dispatching = Workflow(
    "dispatching",
    root=Sequence(*(DispatchWorkflow("child", input={"secret": "s3cr3t"}) for _ in range(CHILDREN))),
)


@pytest.fixture
def w(world):
    world.publish(child, dispatching, sleeper, Workflow("lost", root=DispatchWorkflow("no-such")))
    return world


def begin(world, tenant="default", workflow="dispatching", **given):
    instance_id = world.dispatch(workflow, given, tenant=tenant)
    world.run(instance_id, tenant=tenant)
    return instance_id


def pending(tenant="default", limit=100, cursor=None, command=None):
    return list_outbox(tenant, status="pending", command=command, page=Page(limit, cursor))


def pages(limit, tenant="default", between=lambda: None):
    """Return the items page by page, and the cursors."""
    found, cursors = [pending(tenant, limit)], []
    while cursor := found[-1].get("cursor"):
        cursors.append(cursor)
        assert len(cursors) < 1_000
        between()
        found.append(pending(tenant, limit, cursor))
    return [[each["item_id"] for each in page["items"]] for page in found], cursors


def ids(found):
    return sorted(item_id for page in found for item_id in page)


def test_what_is_pending_is_listed_with_all_that_tells_why(w):
    owner_id = begin(w)
    item = w.items("start")[0]
    w.clock.at += 90.7
    refuse(item, Failure("OSError", "gone"))
    shown = next(each for each in pending()["items"] if each["item_id"] == item.item_id)
    assert (shown["age"], shown["attempts"], shown["sends"]) == (90, 1, 0)
    assert (shown["last_error"], shown["owner_id"], shown["command"]) == ("OSError: gone", owner_id, "start")
    assert (shown["instance_id"], shown["definition_id"]) == (item.instance_id, "child")
    assert shown["due_at"]
    assert "s3cr3t" not in json.dumps(pending())


def test_what_failed_is_listed_oldest_first_until_it_is_gone(w):
    for _ in range(3):
        w.clock.at += 100
        begin(w, workflow="lost")
        w.settle(60)
    found = list_outbox("default", status="failed", command=None, page=Page(2))
    rest = list_outbox("default", status="failed", command="start", page=Page(2, found["cursor"]))
    shown = found["items"] + rest["items"]
    assert [each["age"] for each in shown] == sorted((each["age"] for each in shown), reverse=True)
    assert len({each["item_id"] for each in shown}) == 3
    assert "cursor" not in rest
    assert all("no published workflow" in each["last_error"] and each["attempts"] == 4 for each in shown)
    assert list_outbox("default", status="failed", command="resume", page=Page())["items"] == []


def test_pending_items_are_listed_by_command_and_a_timer_says_for_when(w):
    begin(w)
    begin(w, workflow="sleeper", seconds=3_000)
    send("early")
    [timer] = pending(command="resume")["items"]
    assert timer["deliver_at"] > timer["due_at"]
    assert len(pending(command="start")["items"]) == CHILDREN
    assert [each["command"] for each in pending(command="stimulus")["items"]] == ["stimulus"]
    assert len(pending()["items"]) == CHILDREN + 2


def test_the_oldest_of_a_page_comes_first_also_if_it_is_due_last(w):
    begin(w)
    first = w.items("start")[0]
    w.clock.at += 10
    begin(w)
    w.set_raw(
        ItemRow,
        {"owner_key": first.owner_key, "item_id": first.item_id},
        due_at={"S": "2099-01-01T00:00:00.000Z"},
        created_at={"S": "2020-01-01T00:00:00.000Z"},
    )
    assert pending()["items"][0]["item_id"] == first.item_id


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 8])
def test_r04_pages_show_each_item_once_though_many_are_due_at_one_instant(w, limit):
    begin(w)
    begin(w, "other")
    w.clock.at += 1
    begin(w)
    found, _ = pages(limit)
    assert ids(found) == sorted(item.item_id for item in w.items("start") if item.tenant == "default")
    assert all(len(page) <= limit for page in found)


def test_r04_pages_skip_nothing_when_what_was_listed_goes_meanwhile(w):
    begin(w)
    w.clock.at += 1
    begin(w)
    expected = {item.item_id for item in w.items("start")}
    gone = []

    def settle_one():
        item = next(item for item in w.items("start") if item.status == "undone")
        settle(item)
        gone.append(item.item_id)

    found, _ = pages(3, between=settle_one)
    assert expected - set(ids(found)) <= set(gone)


def test_i11_a_page_ends_after_so_many_rows_of_others_and_its_cursor_names_none_of_them(w, monkeypatch):
    monkeypatch.setattr(listing, "_EXAMINED_MAX", 3)
    others = [begin(w, f"other-{number}") for number in range(3)]
    begin(w)
    found, cursors = pages(100)
    assert ids(found) == sorted(item.item_id for item in w.items("start") if item.tenant == "default")
    assert [] in found  # a page of others only goes on all the same
    told = " ".join(base64.urlsafe_b64decode(each).decode() for each in cursors)
    assert "other" not in told
    assert not any(owner in told for owner in others)
    assert not any(item.item_id in told for item in w.items("start"))


def test_i11_a_page_and_a_cursor_of_another_tenant_lead_to_ones_own_items_only(w):
    begin(w)
    cursor = pending(limit=3)["cursor"]
    assert pending("other")["items"] == []
    assert pending("other", cursor=cursor)["items"] == []


def test_an_item_that_was_settled_since_the_index_was_written_is_left_out(w):
    begin(w)
    item = w.items("start")[0]
    w.set_raw(
        ItemRow, {"owner_key": item.owner_key, "item_id": item.item_id}, status={"S": "done"}
    )  # still in the index
    assert item.item_id not in {each["item_id"] for each in pending()["items"]}


@pytest.mark.parametrize("status", ["pending", "failed"])
def test_c14_an_item_that_cannot_be_read_hides_no_other(w, status):
    begin(w)
    item = w.items("start")[0]
    damage = {"attempts": {"S": "x"}, "body": {"N": "1"}}
    w.set_raw(ItemRow, {"owner_key": item.owner_key, "item_id": item.item_id}, **damage)
    if status == "failed":
        w.settle(60)
    found = list_outbox("default", status=status, command=None, page=Page())["items"]
    shown = next(each for each in found if each["item_id"] == item.item_id)
    assert (shown["definition_id"], shown["attempts"]) == ("child", 0)
    assert len(found) == (CHILDREN if status == "pending" else 1)


def test_open_stimuli_are_paged_across_shards_and_tenants(w):
    for number in range(5):
        w.clock.at += 0.01
        send("paid", {"order": str(number)})
        send("paid", {"order": str(number)}, tenant="other")
    found = list_open_stimuli("default", Page(2))
    seen = list(found["stimuli"])
    while cursor := found.get("cursor"):
        found = list_open_stimuli("default", Page(2, cursor))
        seen += found["stimuli"]
    assert len({each["stimulus_id"] for each in seen}) == len(seen) == 5


@pytest.fixture
def behind_dead_letters(w):
    """A failed dispatch behind five older dead letters; returns its item id."""
    for number in range(5):
        w.clock.at += 1
        send("paid", {"order": str(number)})
    w.settle(1_000)
    begin(w, workflow="lost")
    w.settle(60)
    return next(row.item_id for row in w.items("start"))


def test_a_page_of_failed_dispatches_is_filled_from_behind_other_things_that_failed(behind_dead_letters):
    found = list_dispatches("default", owner_id=None, status="failed", page=Page(1))
    assert ([each["item_id"] for each in found["dispatches"]], "cursor" in found) == (
        [behind_dead_letters],
        False,
    )
    first = list_outbox("default", status="failed", command=None, page=Page(5))
    rest = list_outbox("default", status="failed", command=None, page=Page(5, first["cursor"]))
    assert len(first["items"]) == 5
    assert [each["item_id"] for each in rest["items"]] == [behind_dead_letters]


def test_a_page_for_which_much_was_read_ends_early_and_its_cursor_goes_on(behind_dead_letters, monkeypatch):
    monkeypatch.setattr(views, "_READ_MAX", 2)
    pages = [list_dispatches("default", owner_id=None, status="failed", page=Page(1))]
    while cursor := pages[-1].get("cursor"):
        pages.append(list_dispatches("default", owner_id=None, status="failed", page=Page(1, cursor)))
    assert [len(each["dispatches"]) for each in pages] == [0, 0, 1]
    assert pages[-1]["dispatches"][0]["item_id"] == behind_dead_letters


def test_incidents_of_one_instance_are_paged_and_an_instance_says_that_there_are_more(w, monkeypatch):
    failing = Workflow("failing", root=Sequence(*(DispatchWorkflow("no-such") for _ in range(5))))
    w.publish(failing)
    owner_id = begin(w, workflow="failing")
    begin(w, workflow="lost")
    w.settle(60)
    seen, cursor = [], None
    while cursor or not seen:
        found = list_incidents("default", Page(2, cursor), instance_id=owner_id)
        seen += found["incidents"]
        cursor = found.get("cursor")
    assert {each["instance_id"] for each in seen} == {owner_id}
    assert len({each["item_id"] for each in seen}) == len(seen) == 5
    with pytest.raises(MalformedRequestError):  # the cursor of another list
        list_incidents("default", Page(2, to_cursor(["place-order"])), instance_id=owner_id)
    assert list_incidents("other", Page(), instance_id=owner_id) == {"incidents": []}
    assert "more" not in show_instance("default", owner_id)
    monkeypatch.setattr(views, "PAGE_MAX", 4)
    shown = show_instance("default", owner_id)
    assert shown["more"] == ["incidents", "dispatches"]
    assert (len(shown["incidents"]), len(shown["dispatches"])) == (4, 4)


def test_incidents_tell_their_age_and_their_dispatch(w):
    owner_id = begin(w, workflow="lost")
    w.settle(60)
    w.clock.at += 3_600
    [incident] = list_incidents("default", Page())["incidents"]
    assert (incident["instance_id"], incident["item_id"]) == (owner_id, w.item("start").item_id)
    assert incident["age"] >= 3_600


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"status": None}, "status"),
        ({"status": "done"}, "status"),
        ({"command": "dance"}, "command"),
        ({"page": Page(5, "nonsense")}, "cursor"),
        ({"page": Page(5, base64.urlsafe_b64encode(b'["a","b","c"]').decode())}, "cursor"),
        ({"page": Page(5, base64.urlsafe_b64encode('["a","²","c"]'.encode()).decode())}, "cursor"),
        ({"page": Page(5, base64.urlsafe_b64encode(b'["a","1"]').decode())}, "cursor"),
    ],
)
def test_what_makes_no_sense_is_refused_naming_it(w, values, field):
    asked = {"status": "pending", "command": None, "page": Page()} | values
    with pytest.raises(MalformedRequestError) as caught:
        list_outbox("default", **asked)
    assert caught.value.field == field


def test_a_cursor_of_a_shard_that_is_no_more_shows_what_is_there(w, set_environment):
    begin(w)
    cursor = base64.urlsafe_b64encode(b'["2000-01-01T00:00:00.000Z","99","x"]').decode()
    assert len(pending(cursor=cursor)["items"]) == CHILDREN
