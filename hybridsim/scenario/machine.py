"""All tables of a scenario, among them `host`, `replay` and `price`, and the keys of each.

A new kind of cache is one file with its table, and one line here.

What a scenario does not specify is filled in: drives of the catalog, presets, defaults.  A preset
is a complete system of the catalog: `preset = "digitalocean-volume"` takes all values of that file
in `catalog/system`; the scenario's own values override them.
"""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, get_args

from pydantic import Field, ValidationError

from hybridsim.foundation.errors import ScenarioError
from hybridsim.foundation.machine_parameters import HostParameters
from hybridsim.foundation.suggest import hint
from hybridsim.foundation.toml.places import Path
from hybridsim.foundation.toml.problems import Problem, explain, report
from hybridsim.foundation.toml.table import Part, Rate, Time
from hybridsim.scenario.backing import KINDS, Backing, ControllerDram, Rebuild
from hybridsim.scenario.bcache import BcacheTable
from hybridsim.scenario.cache import Cache
from hybridsim.scenario.dmcache import DmCacheTable
from hybridsim.scenario.event import Event, refused
from hybridsim.scenario.opencas import OpenCasTable
from hybridsim.scenario.origin import DEFAULT_DRIVES, Origin
from hybridsim.scenario.writecache import WritecacheTable
from hybridsim.storage import catalog
from hybridsim.storage.drives import DRIVES
from hybridsim.storage.drives.ssd import Flash

CacheTable = (
    Cache  # fixed pages
    | BcacheTable
    | DmCacheTable
    | OpenCasTable
    | WritecacheTable
)
ALIASES = {"raid0": "stripe"}
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


def tables_of(path: Path, kind: str = "") -> list[type[Part]]:
    """Return the table that contains the path: of that kind, or of all kinds."""
    of = ("event",) if path[0] == "event" and len(path) > 1 else path[:-1]  # without its number
    return [
        each.model
        for each in tables()
        if each.path == of and (not kind or not each.kinds or kind in each.kinds)
    ]


def path_in_text(loc: Path) -> Path:
    """Return the path without the kind that pydantic inserts for a cache or a drive."""
    if len(loc) > 1 and loc[0] == "cache" and loc[1] in CACHE_KINDS:
        loc = (loc[0], *loc[2:])
    if len(loc) > 2 and loc[1] == "drive" and loc[2] in DRIVES:
        return (*loc[:2], *loc[3:])
    return loc


def resolved(origin: Origin) -> Machine:
    """Fill in drives and defaults and validate; raise ScenarioError with all problems."""
    problems: list[Problem] = []
    tables = copy.deepcopy(dict(origin.specified))
    try:
        if (name := tables.get("preset", "")) != "":
            tables = overlaid(preset(name), tables)
    except ScenarioError as error:
        problems.append(origin.problem(("preset",), str(error)))
        tables["preset"] = ""
    for section in DEFAULT_DRIVES:
        table = tables.setdefault(section, {})
        if isinstance(table, dict):
            specified = table.get("drive", DEFAULT_DRIVES[section])
            table["drive"] = _drive(origin, section, specified, problems)
    if isinstance(tables["cache"], dict):
        tables["cache"].setdefault("kind", "page")
        if tables["cache"].get("admission", "learned") != "learned":
            tables["cache"].setdefault("replacement", "lru")  # "learned" is both policies
    if isinstance(tables["backing"], dict):
        _complete(tables["backing"])
    try:
        machine = Machine.model_validate(tables)
    except ValidationError as error:
        problems += explain(error, origin, tables_of, path_in_text)
        machine = None
    if problems or machine is None:
        raise ScenarioError(report(problems))
    return machine


def _drive(origin: Origin, section: str, specified: Any, problems: list[Problem]) -> Any:
    """Return a drive's values: those of the catalog, with the specified ones over them."""
    path: Path = (section, "drive", "like") if isinstance(specified, dict) else (section, "drive")
    own = specified if isinstance(specified, dict) else {"like": specified}
    if "like" not in own:
        return {"kind": DEFAULT_KINDS[section], **own}
    name = own["like"]
    try:
        if not isinstance(name, str):
            raise ScenarioError(f"a drive must be a name of the catalog or a table, not {name!r}")
        entry = catalog.load(name)
    except ScenarioError as error:
        problems.append(origin.problem(path, str(error)))
        entry = catalog.load(DEFAULT_DRIVES[section])
        name = entry.key
    rows = {key: row.value for key, row in entry.rows.items()}
    drive = {"kind": entry.kind, "name": entry.name, **rows, **own, "like": name}
    if drive["kind"] != entry.kind:
        message = f"{name} of the catalog is of kind {entry.kind!r}: leave out `kind`, or `like`"
        problems.append(origin.problem((section, "drive", "kind"), message))
        drive["kind"] = entry.kind
    return drive


def _complete(backing: dict[str, Any]) -> None:
    """Fill in the defaults that depend on the kind of array or on the drive."""
    drive = backing["drive"] if isinstance(backing["drive"], dict) else {}
    is_volume = drive.get("kind") == "volume"
    kind = backing.setdefault("kind", "single" if is_volume else "raid5")
    if isinstance(kind, str) and kind in ALIASES:
        backing["kind"] = kind = ALIASES[kind]
    known = KINDS.get(kind) if isinstance(kind, str) else None
    backing.setdefault("members", known.usual_members if known else 4)
    if is_volume:
        backing.setdefault("capacity", "drive")  # a volume's rates depend on its size
    if backing.get("scheduler") == "fcfs":
        backing.setdefault("window", 1)
    if drive.get("kind") == "hdd":
        for key in ("window", "age_limit"):
            if key in drive:
                backing.setdefault(key, drive[key])


@cache
def preset_text(name: str) -> str:
    """Return a preset's file; raise ScenarioError, with a suggestion, if there is none."""
    known = catalog.systems()
    if name not in known:
        raise ScenarioError(f"unknown preset {name!r}: {hint(name, known)}")
    return (catalog.FOLDER / catalog.SYSTEM / f"{name}.toml").read_text(encoding="utf-8")


def preset(name: object) -> dict[str, Any]:
    """Return the values of a preset."""
    if not isinstance(name, str):
        known = hint("", catalog.systems())
        raise ScenarioError(f"preset must be a name in quotes, not {name!r}: {known}")
    return tomllib.loads(preset_text(name))


def in_preset(name: str, path: tuple[str | int, ...]) -> bool:
    """Return whether a preset has a value at this path."""
    value: Any = preset(name)
    for key in path:
        if not isinstance(value, dict) or key not in value:
            return False
        value = value[key]
    return True


def overlaid(below: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Return a preset with a scenario's own values over it, table by table.

    Single values of a drive's table change the preset's drive; a name or a `like` replaces it.
    """
    result = copy.deepcopy(below)
    for key, value in own.items():
        old = result.get(key)
        if isinstance(value, dict) and key == "drive":
            keeps = "like" not in value and "kind" not in value
            old = {"like": old} if isinstance(old, str) else old
            result[key] = {**old, **value} if keeps and isinstance(old, dict) else value
        elif isinstance(value, dict) and isinstance(old, dict):
            result[key] = overlaid(old, value)
        else:
            result[key] = value
    return result
