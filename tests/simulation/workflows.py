"""All workflows that the scenarios run; their effects are named after the place in which they happen.

Add one to the `workflows_of_...` that has its subject, as a name of that module.
"""

from typing import Any

from aftercommit import Workflow
from tests.simulation import (
    workflows_of_activations,
    workflows_of_bulks,
    workflows_of_calls,
    workflows_of_disturbances,
    workflows_of_events,
    workflows_of_http,
    workflows_of_instances,
)

_MODULES = (
    workflows_of_instances,
    workflows_of_events,
    workflows_of_bulks,
    workflows_of_activations,
    workflows_of_http,
    workflows_of_calls,
    workflows_of_disturbances,
)
BY_NAME = {
    name: each for module in _MODULES for name, each in vars(module).items() if isinstance(each, Workflow)
}
# Of several versions, the first: what else there is, scenarios publish themselves.
_BY_ID = {each.id: each for each in reversed(BY_NAME.values())}


def collect(definition_ids: set[str]) -> list[Workflow]:
    """Return the workflows of these ids and all that they dispatch, in the order of their ids."""
    found: dict[str, Workflow] = {}
    missing = sorted(definition_ids)
    while missing:
        workflow = _BY_ID.get(missing.pop())
        if workflow is not None and workflow.id not in found:
            found[workflow.id] = workflow
            missing += _named_in(workflow.data)
    return [found[definition_id] for definition_id in sorted(found)]


def _named_in(data: Any) -> list[str]:
    if isinstance(data, dict):
        named = [data["workflow"]] if isinstance(data.get("workflow"), str) else []
        return named + [name for each in data.values() for name in _named_in(each)]
    return [name for each in data for name in _named_in(each)] if isinstance(data, list) else []
