"""All tables of a scenario, among them `host`, `replay` and `price`, and the keys of each.

A new kind of cache is one file with its table, and one line here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal, NamedTuple, get_args

from pydantic import Field

from hybridsim.foundation.machine_parameters import HostParameters
from hybridsim.foundation.toml.places import Path
from hybridsim.scenario.backing import Backing, ControllerDram
from hybridsim.scenario.bcache import BcacheTable
from hybridsim.scenario.cache import Cache
from hybridsim.scenario.dmcache import DmCacheTable
from hybridsim.scenario.event import Event, refused
from hybridsim.scenario.levels import Rebuild
from hybridsim.scenario.opencas import OpenCasTable
from hybridsim.scenario.writecache import WritecacheTable
from hybridsim.storage.drives import DRIVES, Part, Rate, Time
from hybridsim.storage.drives.ssd import Flash

CacheTable = (
    Cache  # fixed pages
    | BcacheTable
    | DmCacheTable
    | OpenCasTable
    | WritecacheTable
)
CACHE_TABLES = get_args(CacheTable)
CACHE_KINDS: tuple[str, ...] = tuple(
    kind for table in CACHE_TABLES for kind in get_args(table.model_fields["kind"].annotation)
)


class Host(Part):
    """Limits of the host that issues the requests: its processors, its controller, its network."""

    max_iops: int | None = Field(None, ge=1, le=10**9)
    max_bandwidth: Rate | None = None
    overhead_ns: Time = 0  # added to each request; overlaps with others
    # a controller raises one interrupt for all completions of this time; 0: one for each
    hold_ns: Time = 0
    # completions are held back once so many have come in a period
    hold_from: int = Field(HostParameters.hold_from, ge=1, le=10**6)
    hold_within_ns: Time = 0  # the period in which they must come

    @property
    def parameters(self) -> HostParameters:
        """The parameters of the model."""
        return self.parameters_of(HostParameters)


DEFAULT_KINDS = {"backing": "hdd", "cache": "ssd"}  # of drives, by section


class Replay(Part):
    """When the requests of the trace are issued (open, closed or think-time replay)."""

    # "auto": open; think if the recorded arrivals exceed what the disks alone can serve; closed for
    # a trace without times
    mode: Literal["auto", "open", "closed", "think"] = "auto"
    speed: float = Field(1.0, ge=1e-3, le=1e6, allow_inf_nan=False)  # 2 = twice as fast as recorded
    depth: int = Field(32, ge=1, le=65_536)  # with mode "closed": requests outstanding


class Price(Part):
    """Price of storage on a date, in a currency, per GB of 10^9 bytes."""

    date: str
    hdd_per_gb: float = Field(ge=0, allow_inf_nan=False)
    ssd_per_gb: float = Field(ge=0, allow_inf_nan=False)
    currency: str = Field(min_length=1, max_length=8)


class Machine(Part):
    """All tables of a scenario."""

    preset: str = ""  # name of a system of the catalog
    seed: int = Field(1, ge=0, lt=2**63)
    backing: Backing
    cache: Annotated[CacheTable, Field(discriminator="kind")]
    host: Host = Field(default_factory=lambda: Host.model_validate({}))
    replay: Replay = Field(default_factory=lambda: Replay.model_validate({}))
    price: Price | None = None
    event: list[Event] = Field(default_factory=list)

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Refuse events that cannot happen to this machine."""
        wrong = refused(self.event, self.cache, self.backing)
        if wrong:
            yield "event", wrong


class Table(NamedTuple):
    """A table of a scenario."""

    path: Path
    kinds: tuple[str, ...]  # of a cache or a drive; empty where there is no other table
    model: type[Part]


def tables() -> list[Table]:
    """Return all tables, in the order of a scenario; of several kinds the usual one first."""
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
    if len(loc) > 1 and loc[0] == "cache" and loc[1] in CACHE_KINDS:
        loc = (loc[0], *loc[2:])
    if len(loc) > 2 and loc[1] == "drive" and loc[2] in DRIVES:
        return (*loc[:2], *loc[3:])
    return loc
