"""Prints the template parameters of a deploy, as `sam` takes them: those of ENV, then Key=Value words.

ENV is an environment of samconfig.toml. Parameters on sam's command line put those of the file out of use
altogether, so they are merged here; a key that comes again counts.
"""

import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def merge(environment: str, given: list[str]) -> list[str]:
    """Return the parameters of an environment with those given; raises ValueError for what cannot be used."""
    with (ROOT / "samconfig.toml").open("rb") as file:
        known = {name: value for name, value in tomllib.load(file).items() if isinstance(value, dict)}
    if environment not in known:
        raise ValueError(f"ENV must be one of {', '.join(sorted(known))}, not {environment!r}")
    merged: dict[str, str] = {}
    for word in [*known[environment]["deploy"]["parameters"].get("parameter_overrides", []), *given]:
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
