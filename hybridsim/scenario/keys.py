"""The keys of each table of a scenario, for error messages."""

from __future__ import annotations

from typing import Any

from hybridsim.foundation.toml.places import Path


def known_keys(path: Path) -> list[str]:
    """Return the valid keys of the table that contains the path."""
    from hybridsim.scenario.backing import Backing
    from hybridsim.scenario.caches import CACHE_TABLES
    from hybridsim.scenario.controller import ControllerDram
    from hybridsim.scenario.event import Event
    from hybridsim.scenario.host import Host
    from hybridsim.scenario.levels import Rebuild
    from hybridsim.scenario.machine import DEFAULT_KINDS, Machine, Price, Replay
    from hybridsim.storage.drives import DRIVES

    models: dict[Path, list[Any]] = {
        (): [Machine],
        ("backing",): [Backing],
        ("cache",): [*CACHE_TABLES],
        ("host",): [Host],
        ("event",): [Event],
        ("replay",): [Replay],
        ("price",): [Price],
        ("backing", "rebuild"): [Rebuild],
        ("backing", "controller"): [ControllerDram],
    }
    if path[:1] == ("event",):
        path = ("event", path[-1])  # without the number of the event
    for section, usual in DEFAULT_KINDS.items():  # keys of the usual kind are suggested first
        models[section, "drive"] = [DRIVES[usual], *DRIVES.values()]
    known = {
        fact.alias or name: None
        for model in models.get(path[:-1], [])
        for name, fact in model.model_fields.items()
    }
    return list(known)


def path_in_text(loc: Path) -> Path:
    """Return the path without the kind that pydantic inserts for a cache or a drive."""
    from hybridsim.scenario.caches import CACHE_KINDS
    from hybridsim.storage.drives import DRIVES

    if len(loc) > 1 and loc[0] == "cache" and loc[1] in CACHE_KINDS:
        loc = (loc[0], *loc[2:])
    if len(loc) > 2 and loc[1] == "drive" and loc[2] in DRIVES:
        return (*loc[:2], *loc[3:])
    return loc
