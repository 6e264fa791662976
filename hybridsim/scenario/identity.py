"""Identity of a machine: two scenarios with the same resolved values are the same machine."""

from __future__ import annotations

import json
from typing import Any

from hybridsim.scenario import Scenario

TABLES = ("backing", "cache", "host", "replay")  # prices change no result
DISKS = ("backing", "host", "replay")


def identity(scenario: Scenario, tables: tuple[str, ...] = TABLES) -> str:
    """Return the seed and all values of these tables as JSON; equal values give equal texts."""
    values: dict[str, Any] = {
        name: getattr(scenario, name).model_dump(mode="json", by_alias=True) for name in tables
    }
    if scenario.events:
        values["event"] = [each.text for each in scenario.events]
    return json.dumps({"seed": scenario.seed, **values}, sort_keys=True)
