"""Who may import whom: a module of the runtime imports only from lower levels, so no cycle can grow."""

import ast
from pathlib import Path

import pytest

import aftercommit

ROOT = Path(aftercommit.__file__).parent
CLI = ROOT.parents[2] / "cli"

LEVELS = [
    # facts and the outside world, one place each
    {"errors"},
    {"aws", "clock", "draws", "ids", "limits", "paths", "places"},
    {"jsons", "log", "statuses"},
    {"model", "settings"},
    # what definitions are made of
    {"schedules"},
    {"http_parts", "intentions", "sandbox", "sizes", "tokens", "traces"},
    {"api_routes", "joins"},
    {"expressions", "scopes"},
    {"keywords"},
    {"activities.activity", "schema"},
    {"events", "functions", "journal"},
    {"http_call"},
    {
        "activities.correlate",
        "activities.dispatch_workflow",
        "activities.event",
        "activities.fault",
        "activities.finish",
        "activities.flowchart",
        "activities.fork",
        "activities.http_endpoint",
        "activities.loops",
        "activities.sequence",
        "activities.set_variable",
        "activities.step",
        "activities.switch",
        "activities.timers",
        "activities.try_",
    },
    {"activities.bulk_dispatch_workflows", "activities.if_", "activities.send_http_request"},
    {"activities"},
    {"catalogue", "definition"},
    {"moves"},
    {"api_schemas", "engine", "workflow"},
    # running in process, with nothing stored and nothing sent
    {"direct.bulks", "direct.outside", "direct.result"},
    {"direct.world"},
    {"direct"},
    # what is stored and sent
    {"queue", "tables", "tries"},
    {"requests", "statements", "writes"},
    {"paging", "payloads"},
    {"bodies"},
    {"activations", "bookmarks", "definitions", "incidents", "salvage", "tallies"},
    {"instances", "outbox", "triggers"},
    {"attempts"},
    {"callbacks", "checkpoint", "occurrences", "set_aside", "sinks.sink"},
    {"event_items", "sinks.bus", "sinks.queue", "sinks.stimuli", "sinks.webhook"},
    {"sinks"},
    {"burst"},
    # verbs: peers, which meet only through tables and queue
    {"cancel", "delete", "deliver", "deliver_events", "join", "operations", "publish", "redrive"}
    | {"resume", "run", "start", "stimulate"},
    {"client", "commands", "definition_views", "sweep", "views"},
    {"backlog", "endpoints", "openapi"},
    {"api.answers", "api.routing"},
    {"api.definitions", "api.instances", "api.starts", "api.stimuli"},
    {"api"},
    {"__init__"},
]


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if len(parts) > 1 and parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted(ROOT.rglob("*.py"))}


def imports_of(source: str) -> set[str]:
    """Return the aftercommit modules that a source imports, at its top or inside functions."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            module = name.removeprefix("aftercommit.")
            if module == name:
                continue
            while module and module not in MODULES:
                module = module.rpartition(".")[0]
            found.add(module or "__init__")
    return found


def level_of(module: str) -> int:
    return next(number for number, names in enumerate(LEVELS) if module in names)


def violations(module: str, source: str) -> list[str]:
    return [
        f"{module} imports {other}, which is not on a lower level"
        for other in sorted(imports_of(source) - {module})
        if level_of(other) >= level_of(module)
    ]


def test_every_module_has_exactly_one_level():
    listed = [name for level in LEVELS for name in level]
    assert sorted(listed) == sorted(MODULES)


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_from_lower_levels_only(module):
    assert violations(module, MODULES[module].read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", sorted(CLI.rglob("*.py")), ids=lambda each: each.stem)
def test_the_command_line_imports_nothing_of_the_runtime(path):
    if "starter" not in path.parts:  # that is a user's own project
        assert imports_of(path.read_text(encoding="utf-8")) == set()


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("start", "from aftercommit.resume import resume"),  # a peer
        ("engine", "from aftercommit.tables import HeadRow"),  # above it
        ("engine", "from aftercommit import tables"),
        ("engine", "import aftercommit.tables"),
        ("model", "def late():\n    from aftercommit import engine"),
        ("run", "from aftercommit import Workflow"),
    ],
)
def test_an_import_of_a_peer_or_from_above_is_found(module, source):
    assert violations(module, source) != []
