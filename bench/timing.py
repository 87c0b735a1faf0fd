"""What is timed rather than counted: the engine without I/O, and the import of each function."""

import os
import subprocess
import sys
from statistics import median
from time import process_time

from aftercommit import Sequence, Step, Workflow, inputs, var
from aftercommit.definition import read_definition
from aftercommit.engine import advance
from aftercommit.model import Finish, Start, State
from bench.workflows import pick
from bench.world import ROOT

ENGINE_STEPS = 200
ENGINE_ROUNDS = 15
IMPORT_ROUNDS = 7
FUNCTIONS = ("api", "run", "deliver", "events", "sweep", "publish")
_AT = 1_800_000_000.0

# Steps as usual ones are: an input from the instance, one from an earlier step, and a result.
ENGINE_WORKFLOW = Workflow(
    "engine",
    version=1,
    inputs={"order_id": str},
    root=Sequence(
        Step(pick, order_id=inputs.order_id, result="picked"),
        *(
            Step(pick, inputs={"order_id": inputs.order_id, "before": var.picked.reference}, result="picked")
            for _ in range(ENGINE_STEPS - 1)
        ),
    ),
)


def time_engine() -> float:
    """Return the median microseconds per step."""
    definition = read_definition(ENGINE_WORKFLOW.data, version=1)
    rounds = []
    for _ in range(ENGINE_ROUNDS):
        state = State("instance", {"order_id": "order-2026-000123"})
        started = process_time()
        advance(definition, state, Start(), _AT)
        while state.ready:
            result = {"status": "ok", "reference": "reference-of-order-2026-000123"}
            advance(definition, state, Finish(state.ready[0], result), _AT)
        rounds.append((process_time() - started) / ENGINE_STEPS * 1e6)
        if not state.status.ended:
            raise RuntimeError("the measured instance did not end")
    return median(rounds)


_IMPORT = """
import sys, time
started = time.process_time()
import app
print((time.process_time() - started) * 1000)
"""


def time_imports() -> dict[str, float]:
    """Return the median milliseconds in which each function's handler module is imported, bytecode warm."""
    return {name: median(_time_import(name) for _ in range(IMPORT_ROUNDS)) for name in FUNCTIONS}


def _time_import(function: str) -> float:
    paths = (f"functions/{function}", "layers/runtime", "layers/workflows")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(str(ROOT / each) for each in paths),
        "DEFINITIONS_TABLE": "definitions",
        "INSTANCES_TABLE": "instances",
        "OUTBOX_TABLE": "outbox",
        "BOOKMARKS_TABLE": "bookmarks",
        "TRIGGERS_TABLE": "triggers",
        "COMMAND_QUEUE_URL": "https://queue",
        "WORKFLOWS_MODULE": "workflows",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    done = subprocess.run(
        [sys.executable, "-c", _IMPORT], env=environment, capture_output=True, text=True, check=True
    )
    return float(done.stdout)
