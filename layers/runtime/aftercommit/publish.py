"""Publish the workflows that the deployed code defines, for all tenants of the deployment."""

import importlib

from aftercommit.definition import read_definition
from aftercommit.definitions import publish
from aftercommit.functions import registered_names
from aftercommit.log import logger
from aftercommit.tables import SHARED_TENANT
from aftercommit.workflow import Workflow


def load_workflows(module_name: str) -> list[Workflow]:
    """Import a workflows module, and return the workflows it holds, by id and version.

    The import also registers its activity functions. Raises ImportError, or DefinitionRefusedError naming
    what is wrong with a tree.
    """
    module = importlib.import_module(module_name)
    found = {(each.id, each.version): each for each in vars(module).values() if isinstance(each, Workflow)}
    return [found[key] for key in sorted(found)]


def publish_workflows(module_name: str) -> list[str]:
    """Publish every workflow of a module; returns `id version` of those that changed something.

    All are checked before the first is published. Raises ConflictError for a changed tree under a version
    that is published already.
    """
    workflows = load_workflows(module_name)
    known = registered_names()
    definitions = [read_definition(each.data, known=known) for each in workflows]
    changed = [f"{each.definition_id} {each.version}" for each in definitions if publish(SHARED_TENANT, each)]
    logger.info("published", extra={"changed": changed, "found": len(definitions)})
    return changed
