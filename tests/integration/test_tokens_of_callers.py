"""Callers who bear a token act for the tenant that it names, and for no other."""

import pytest

from aftercommit import HttpEndpoint, Sequence, Step, Workflow
from tests.integration.world import behaviours

quiet = Workflow("quiet", root=Sequence())
calling = Workflow(
    "calling",
    root=Sequence(Step("act", name="tell"), HttpEndpoint(name="done", result="x")),
    output={"ok": True},
)
ACME = {"sub": "ada", "tenant": "acme"}


@pytest.fixture
def w(world, api):
    world.publish(quiet, calling)
    return world


def dispatch(api, **more):
    return api.post("/workflows/quiet/dispatch", {}, **more)


def test_the_tenant_is_that_of_the_claim(w, api):
    status, body = dispatch(api, claims=ACME)
    assert status == 202
    assert w.head(body["instance_id"], "acme").tenant == "acme"
    assert api.get(f"/instances/{body['instance_id']}", claims=ACME)[0] == 200
    assert api.get(f"/instances/{body['instance_id']}", claims={"tenant": "other"})[0] == 404


def test_a_header_that_names_the_same_tenant_is_well_and_another_one_is_forbidden(w, api):
    assert dispatch(api, claims=ACME, headers={"X-Tenant-Id": "acme"})[0] == 202
    status, body = dispatch(api, claims=ACME, headers={"X-Tenant-Id": "other"})
    assert (status, body["error"]["code"], body["error"]["field"]) == (403, "forbidden", "X-Tenant-Id")
    assert {head.tenant for head in w.heads()} == {"acme"}


@pytest.mark.parametrize(
    "claims", [{}, {"tenant": ""}, {"tenant": "ACME"}, {"tenant": "*"}, {"tenant": ["acme"]}]
)
def test_a_token_that_names_no_tenant_is_good_for_none(w, api, claims):
    status, body = dispatch(api, claims=claims, headers={"X-Tenant-Id": "acme"})
    assert (status, body["error"]["code"], body["error"]["field"]) == (403, "forbidden", "Authorization")
    assert w.heads() == []


def test_another_claim_can_be_chosen(w, api, set_environment):
    set_environment(TENANT_CLAIM="org_id")
    assert dispatch(api, claims={"org_id": "acme", "tenant": "other"})[0] == 202
    assert [head.tenant for head in w.heads()] == ["acme"]


def callback_path(w):
    """Return the callback address of an instance of acme."""
    given = []
    behaviours["tell"] = lambda context, _: given.append(context.callback_path("done"))
    w.run(w.dispatch("calling", tenant="acme"), tenant="acme")
    return given[0]


@pytest.mark.parametrize(
    "named",
    [{}, {"headers": {"X-Tenant-Id": "acme"}}, {"claims": ACME}],
    ids=["nobody", "by header", "by token"],
)
def test_a_callback_address_is_good_for_whoever_has_it(w, api, named):
    assert api.post(callback_path(w), {}, **named)[0] == 202
    w.settle()
    assert [head.status for head in w.heads()] == ["completed"]


@pytest.mark.parametrize(
    "named", [{"headers": {"X-Tenant-Id": "other"}}, {"claims": {"tenant": "other"}}], ids=["header", "token"]
)
def test_a_callback_address_of_one_tenant_is_unknown_to_another(w, api, named):
    assert api.post(callback_path(w), {}, **named)[0] == 404
    w.settle()
    assert [head.status for head in w.heads()] == ["suspended"]
