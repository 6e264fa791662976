"""JSON objects in a text that has other lines too, such as fio's messages before and after."""

from __future__ import annotations

import json
import re
from typing import Any

_BEGIN = re.compile(r"^[ \t]*(?=\{)", re.MULTILINE)


def objects(text: str) -> list[dict[str, Any]]:
    """Return the objects that begin on a line of their own, in order.

    Raises ValueError if one of them is cut off or damaged, RecursionError if it is too deep.
    """
    decoder, found, end = json.JSONDecoder(), list[dict[str, Any]](), 0
    for match in _BEGIN.finditer(text):
        if match.end() >= end:  # else it is inside of the last one
            whole, end = decoder.raw_decode(text, match.end())
            found.append(whole)
    return found
