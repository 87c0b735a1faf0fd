"""Publish the workflows that the deployed code defines, for all tenants of the deployment."""

import importlib

from aftercommit.definition import read_definition
from aftercommit.definitions import point_to, store
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

    All are checked and stored before any becomes the published version, which is each id's highest. Raises
    ConflictError for a changed tree under a version that is stored already.
    """
    workflows = load_workflows(module_name)
    known = registered_names()  # only now: it is the import that registers them
    definitions = [read_definition(each.data, known=known) for each in workflows]
    changed = {(each.definition_id, each.version) for each in definitions if store(SHARED_TENANT, each)}
    highest = {each.definition_id: each for each in definitions}  # in order of version
    changed |= {
        (each.definition_id, each.version) for each in highest.values() if point_to(SHARED_TENANT, each)
    }
    told = [f"{definition_id} {version}" for definition_id, version in sorted(changed)]
    logger.info("published", extra={"changed": told, "found": len(definitions)})
    return told
