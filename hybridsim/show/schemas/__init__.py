"""What is in the JSON that hybridsim writes: a JSON Schema (draft 2020-12) for each document.

A document says which in its key `schema`: "hybridsim.result/1" is result.json.  The number changes
when a key is taken away or means something else; new keys come without.

A key of a plain type is one string, and an object that is the fields of a class names the class
instead of listing them (typed.py).
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.suggest import hint
from hybridsim.show.schemas.typed import filled
from hybridsim.storage.catalog import KINDS

FOLDER = Path(__file__).parent
PARTS = "parts"  # what several documents have in them
KINDS_OF_DRIVES = '"KINDS OF DRIVES"'  # stands in the files for those of the catalog
_OTHERS = re.compile(r'"\$ref": "urn:hybridsim:(\w+)')


def names() -> list[str]:
    """Return the names of the documents."""
    return sorted(path.stem for path in FOLDER.glob("*.json") if path.stem != PARTS)


def load(name: str) -> dict[str, Any]:
    """Return the schema of a document, whole: those that it refers to are among its `$defs`.

    Raises UsageError for an unknown name.
    """
    if name not in names():
        raise UsageError(f"unknown schema {name!r}: {hint(name, names())}")
    needed, result = [name], dict[str, dict[str, Any]]()
    while needed:
        each = needed.pop()
        if each not in result:
            text = (FOLDER / f"{each}.json").read_text(encoding="utf-8")
            text = text.replace(KINDS_OF_DRIVES, json.dumps(KINDS))
            result[each] = filled(json.loads(text))
            needed += _OTHERS.findall(text)
    whole = result.pop(name)
    if result:
        whole["$defs"] = whole.get("$defs", {}) | result
    return whole
