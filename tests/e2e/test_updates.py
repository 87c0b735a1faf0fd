"""A stack that is deployed again: without eager delivery, and with a tree that was changed in place.

These come late (conftest.LAST), as they leave the stack otherwise than they found it.
"""

import pytest

from aftercommit.clock import from_text
from scripts.local_build import BuildError, built
from scripts.local_stack import STACK_NAME, deploy
from tests.e2e.conftest import PARAMETERS, WORKFLOWS_DIR, await_that, edit_build

MINUTE_SECONDS = 60


@pytest.fixture(scope="module")
def lean(stack):
    with built(WORKFLOWS_DIR) as (folder, fresh):
        assert not fresh, "the build that the stack was deployed from"
        yield folder / "lean"


def test_without_eager_delivery_the_sweep_alone_delivers(api, stack, lean):
    deploy(lean, stack.emulator.port, {**PARAMETERS, "EagerDelivery": "false"})
    delivered = len(stack.logs("deliver", "delivered"))
    waits = []
    for number in range(2):
        instance_id = api.dispatch("two-generations", order_id=f"lazy-{number}")
        shown = api.await_end(instance_id)
        assert shown["status"] == "completed"
        [start] = shown["dispatches"]
        waits.append(from_text(start["settled_at"]) - from_text(start["created_at"]))
    assert len(stack.logs("deliver", "delivered")) == delivered
    assert await_that(lambda: stack.logs("sweep", "swept items"))
    # Well before the schedule's next minute: by the ticks between. Busy machines are allowed some passes.
    assert min(waits) < MINUTE_SECONDS / 2


def test_a_changed_tree_under_an_old_version_fails_the_deploy_and_the_old_one_still_answers(api, stack, lean):
    before = api.get("/workflows/noted").json()
    text = (lean / "WorkflowsLayer/python/e2e_workflows/steps.py").read_text()
    renamed = text.replace('output={"noted": var.noted}', 'output={"renamed": var.noted}', 1)
    assert renamed != text
    changed = edit_build(lean, "e2e-changed", {"steps": renamed})

    with pytest.raises(BuildError, match=r"(?s)noted.*another.*tree|another.*tree.*noted"):
        deploy(changed, stack.emulator.port, {**PARAMETERS, "EagerDelivery": "false"})

    [shown] = stack.client("cloudformation").describe_stacks(StackName=STACK_NAME)["Stacks"]
    assert shown["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    assert api.get("/workflows/noted").json() == before
    ended = api.await_end(api.dispatch("noted", order_id="after-rollback", name="n"))
    assert ended["output"] == {"noted": "n"}
