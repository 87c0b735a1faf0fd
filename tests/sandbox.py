"""Functions, loaded as in a sandbox of Lambda's."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

FUNCTIONS = Path(__file__).parents[1] / "functions"


def load_app(function: str) -> ModuleType:
    """Load a function's `app`, anew each time."""
    path = FUNCTIONS / function / "app.py"
    spec = spec_from_file_location(f"function_{function}", path)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(path)
    app = module_from_spec(spec)
    spec.loader.exec_module(app)
    return app
