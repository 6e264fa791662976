"""Write tables of a scenario as TOML."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def toml_of(tables: Mapping[str, Any], name: str = "") -> str:
    """Write tables as TOML; a JSON string, number, boolean or list is TOML too."""
    own = {key: each for key, each in tables.items() if not isinstance(each, Mapping)}
    lines = [f"[{name}]"] if name and own else []
    lines += [f"{key} = {json.dumps(each)}" for key, each in own.items()]
    text = "\n".join(lines) + "\n" if lines else ""
    for key, each in tables.items():
        if isinstance(each, Mapping):
            text += toml_of(each, f"{name}.{key}" if name else key)
    return text
