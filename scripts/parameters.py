"""Prints the template parameters of a build or a deploy, as `sam` takes them.

Those of what is built for, those of ENV over them, an environment of samconfig.toml, and Key=Value words over
both. Parameters on sam's command line put those of the file out of use altogether, so they are merged here.
"""

import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Named each time, so that what is deployed is what was built: of a parameter that is not named, `sam build`
# takes the template's default, and `sam deploy` what the stack had before.
BUILT_FOR = (
    f"PythonRuntime=python{sys.version_info.major}.{sys.version_info.minor}",
    "Architecture=arm64",
)


def merge(environment: str, given: list[str]) -> list[str]:
    """Return the parameters of an environment with those given; raises ValueError for what cannot be used."""
    with (ROOT / "samconfig.toml").open("rb") as file:
        known = {name: value for name, value in tomllib.load(file).items() if isinstance(value, dict)}
    if environment not in known:
        raise ValueError(f"ENV must be one of {', '.join(sorted(known))}, not {environment!r}")
    merged: dict[str, str] = {}
    kept = known[environment]["deploy"]["parameters"].get("parameter_overrides", [])
    for word in [*BUILT_FOR, *kept, *given]:
        name, equals, value = word.partition("=")
        if not name or not equals:
            raise ValueError(f"PARAMETERS must be like 'Key=Value Key=Value', not {word!r}")
        merged[name] = value
    return [f"{name}={value}" for name, value in merged.items()]


if __name__ == "__main__":
    try:
        print(" ".join(merge(sys.argv[1], sys.argv[2:])))
    except ValueError as fault:
        sys.exit(str(fault))
