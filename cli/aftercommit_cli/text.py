"""Text from anywhere, made safe to print."""

import json
from typing import Any


def plain(value: Any) -> str:
    """Return a value as text without what steers a terminal: names and errors come from anywhere."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return "".join(
        each if each.isprintable() or each in "\n\t" else "\N{REPLACEMENT CHARACTER}" for each in text
    )
