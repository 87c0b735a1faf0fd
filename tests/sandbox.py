"""Functions, loaded as in a fresh sandbox of Lambda's."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

FUNCTIONS = Path(__file__).parents[1] / "functions"


def load_app(function: str) -> ModuleType:
    """Load a function's `app`, its folder on the path meanwhile, and none of its modules loaded before."""
    folder = FUNCTIONS / function
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None) or "").startswith(f"{folder}/"):
            del sys.modules[name]
    spec = spec_from_file_location(f"function_{function}", folder / "app.py")
    if spec is None or spec.loader is None:
        raise FileNotFoundError(folder)
    app = module_from_spec(spec)
    sys.path.insert(0, str(folder))
    try:
        spec.loader.exec_module(app)
    finally:
        sys.path.remove(str(folder))
    return app
