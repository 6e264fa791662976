"""What makes two scenarios the same machine: every resolved value, wherever it was said."""

from __future__ import annotations

import json
from typing import Any

from hybridsim.scenario import Scenario

TABLES = ("backing", "cache", "host", "replay")  # prices change no result
DISKS = ("backing", "host", "replay")


def identity(scenario: Scenario, tables: tuple[str, ...] = TABLES) -> str:
    """Return the seed and all values of these tables as a text, the same for the same values."""
    values: dict[str, Any] = {
        name: getattr(scenario, name).model_dump(mode="json", by_alias=True) for name in tables
    }
    return json.dumps({"seed": scenario.seed, **values}, sort_keys=True)
