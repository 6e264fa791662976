"""Presets: complete systems of the catalog that a scenario can start from.

`preset = "digitalocean-volume"` takes all values of that file in `catalog/system`; the scenario's
own values override them.
"""

from __future__ import annotations

import copy
import tomllib
from functools import cache
from typing import Any

from hybridsim.foundation.errors import ScenarioError
from hybridsim.foundation.suggest import hint
from hybridsim.storage.catalog import FOLDER, systems

names = systems  # of all presets


@cache
def text(name: str) -> str:
    """Return a preset's file; raise ScenarioError, with a suggestion, if there is none."""
    if name not in names():
        raise ScenarioError(f"unknown preset {name!r}: {hint(name, names())}")
    return (FOLDER / "system" / f"{name}.toml").read_text(encoding="utf-8")


def load(name: object) -> dict[str, Any]:
    """Return the values of a preset."""
    if not isinstance(name, str):
        raise ScenarioError(f"preset must be a name in quotes, not {name!r}: {hint('', names())}")
    return tomllib.loads(text(name))


def under(specified: dict[str, Any]) -> dict[str, Any]:
    """Return the specified values over those of their preset, if they name one."""
    name = specified.get("preset", "")
    return specified if name == "" else overlaid(load(name), specified)


def specifies(name: str, path: tuple[str | int, ...]) -> bool:
    """Return whether a preset has a value at this path."""
    value: Any = load(name)
    for key in path:
        if not isinstance(value, dict) or key not in value:
            return False
        value = value[key]
    return True


def overlaid(preset: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Return the preset with a scenario's own values over it, table by table.

    Single values of a drive's table change the preset's drive; a name or a `like` replaces it.
    """
    result = copy.deepcopy(preset)
    for key, value in own.items():
        below = result.get(key)
        if isinstance(value, dict) and key == "drive":
            keeps = "like" not in value and "kind" not in value
            below = {"like": below} if isinstance(below, str) else below
            result[key] = {**below, **value} if keeps and isinstance(below, dict) else value
        elif isinstance(value, dict) and isinstance(below, dict):
            result[key] = overlaid(below, value)
        else:
            result[key] = value
    return result
