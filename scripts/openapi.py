"""Write the description of the HTTP API to docs/openapi.json."""

import json
from pathlib import Path

from aftercommit.openapi import describe_api

PATH = Path(__file__).parents[1] / "docs" / "openapi.json"


def text_of_description() -> str:
    """Return the description as it is checked in."""
    return json.dumps(describe_api(), indent=2) + "\n"


if __name__ == "__main__":
    PATH.write_text(text_of_description(), encoding="utf-8")
