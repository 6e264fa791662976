"""The tables of a scenario, and the keys of each."""

from __future__ import annotations

from typing import NamedTuple, get_args

from hybridsim.foundation.toml.places import Path
from hybridsim.foundation.toml.table import Part


class Table(NamedTuple):
    """A table of a scenario."""

    path: Path
    kinds: tuple[str, ...]  # of a cache or a drive; empty where there is no other table
    model: type[Part]


def tables() -> list[Table]:
    """Return all tables, in the order of a scenario; of several kinds the usual one first."""
    from hybridsim.scenario.backing import Backing
    from hybridsim.scenario.caches import CACHE_TABLES
    from hybridsim.scenario.controller import ControllerDram
    from hybridsim.scenario.event import Event
    from hybridsim.scenario.host import Host
    from hybridsim.scenario.levels import Rebuild
    from hybridsim.scenario.machine import DEFAULT_KINDS, Machine, Price, Replay
    from hybridsim.storage.drives import DRIVES
    from hybridsim.storage.drives.ssd import Flash

    caches = [
        Table(("cache",), get_args(model.model_fields["kind"].annotation), model)
        for model in CACHE_TABLES
    ]
    drives = [
        Table((section, "drive"), (kind,), DRIVES[kind])
        for section, usual in DEFAULT_KINDS.items()
        for kind in sorted(DRIVES, key=lambda kind: kind != usual)
    ]
    return [
        Table((), (), Machine),
        Table(("backing",), (), Backing),
        Table(("backing", "rebuild"), (), Rebuild),
        Table(("backing", "controller"), (), ControllerDram),
        *caches,
        *drives,
        *(Table((section, "drive", "flash"), ("ssd",), Flash) for section in DEFAULT_KINDS),
        Table(("host",), (), Host),
        Table(("replay",), (), Replay),
        Table(("price",), (), Price),
        Table(("event",), (), Event),
    ]


def known_keys(path: Path, kind: str = "") -> list[str]:
    """Return the keys of the table that contains the path: of that kind, or of all kinds."""
    table = path[:-1]
    if table[:1] == ("event",):
        table = ("event",)  # without the number of the event
    known = {
        fact.alias or name: None
        for each in tables()
        if each.path == table and (not kind or not each.kinds or kind in each.kinds)
        for name, fact in each.model.model_fields.items()
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
