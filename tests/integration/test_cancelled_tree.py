"""A tree of a thousand instances that is cancelled at its root, in the simulated world."""

from aftercommit.cancel import cancel
from tests.simulation.calls import TENANT, Start
from tests.simulation.disturbances import ask
from tests.simulation.runs import Run, simulate_scenario
from tests.simulation.scenario import Scenario

INSTANCES = 1 + 10 + 100 + 900


def heads(world):
    rows = world.dynamodb.tables["instances"].rows
    return [row for (_, name), row in rows.items() if name == "head"]


def test_c33_a_tree_of_a_thousand_is_cancelled_within_minutes_and_none_is_left():
    cancelled_at = []

    def cancel_when_all_wait(world):
        def act():
            waiting = [row for row in heads(world) if row["status"] == {"S": "suspended"}]
            if len(waiting) < INSTANCES:
                return False
            cancelled_at.append(world.at)
            return cancel(TENANT, "parent", "enough")

        ask(world, act, after=5)

    tree = Scenario(
        "tree", (Start("tree-0"),), {"parent": "cancelled"}, drops=True, disturb=cancel_when_all_wait
    )
    world, violations = simulate_scenario(tree, Run("tree"))
    assert violations == []
    assert [row["status"]["S"] for row in heads(world)] == ["cancelled"] * INSTANCES
    assert world.at - cancelled_at[0] < 180  # with six workers, at 4 ms a request
