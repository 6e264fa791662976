"""The machine to simulate, from a TOML file, the command line and defaults.

A file says only what differs from the default scenario.  What it says wrongly is reported all at
once, each with its line, a caret and how to mend it.
"""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError

from hybridsim import catalog, levels, scenario_preset
from hybridsim.drives import Drive, Part, Size, Time
from hybridsim.errors import ScenarioError
from hybridsim.scenario_controller import ControllerDram
from hybridsim.scenario_errors import Problem, explain, report
from hybridsim.scenario_host import Host
from hybridsim.suggest import hint
from hybridsim.toml_places import Path, Places
from hybridsim.units import format_size, human_size, parse_percent, parse_size

SECTOR_BYTES = 512
DEFAULT_DRIVES = {"backing": "hgst-ultrastar-7k8", "cache": "samsung-pm9a3-1920gb"}
DEFAULT_KINDS = {"backing": "hdd", "cache": "ssd"}
ALIASES = {"raid0": "stripe"}

# options of the command line and of `with_options`, and what they set
OPTIONS: dict[str, Path] = {
    "preset": ("preset",),
    "seed": ("seed",),
    "backing": ("backing", "kind"),
    "members": ("backing", "members"),
    "chunk": ("backing", "chunk"),
    "backing_drive": ("backing", "drive"),
    "capacity": ("backing", "capacity"),
    "layout": ("backing", "layout"),
    "stroke": ("backing", "stroke"),
    "rmw_level": ("backing", "rmw_level"),
    "failed": ("backing", "failed"),
    "scheduler": ("backing", "scheduler"),
    "window": ("backing", "window"),
    "age_limit": ("backing", "age_limit"),
    "write_cache": ("backing", "write_cache"),
    "queue_depth": ("backing", "queue_depth"),
    "cache": ("cache", "kind"),
    "cache_page": ("cache", "page"),
    "cache_size": ("cache", "size"),
    "cache_drive": ("cache", "drive"),
    "cache_members": ("cache", "members"),
    "cache_mode": ("cache", "mode"),
    "admission": ("cache", "admission"),
    "touches": ("cache", "touches"),
    "replacement": ("cache", "replacement"),
    "sequential_cutoff": ("cache", "sequential_cutoff"),
    "max_fills": ("cache", "max_fills"),
    "max_iops": ("host", "max_iops"),
    "max_bandwidth": ("host", "max_bandwidth"),
    "host_overhead": ("host", "overhead"),
    "mode": ("replay", "mode"),
    "speed": ("replay", "speed"),
    "depth": ("replay", "depth"),
}


def _size_or(*words: str) -> BeforeValidator:
    def check(text: Any) -> str:
        if isinstance(text, int) and not isinstance(text, bool):
            return format_size(parse_size(text))
        if text not in words:
            parse_size(text)
        return str(text)

    return BeforeValidator(check)


def _tuple(said: Any) -> Any:
    return tuple(said) if isinstance(said, list) else said


def _share_or_size(text: Any) -> str:
    if isinstance(text, str) and "%" in text:
        if not parse_percent(text) > 0:
            raise ValueError(f"{text!r} is nothing: a share is above 0%")
        return text
    if isinstance(text, int) and not isinstance(text, bool):
        text = format_size(parse_size(text))
    parse_size(text)
    return str(text)


class Backing(Part):
    """The slow tier: an array of equal drives."""

    kind: Literal["single", "linear", "stripe", "raid1", "raid5", "raid6", "raid10"] = "raid5"
    members: int = Field(4, ge=1, le=1024)
    chunk_bytes: Size = Field(64 * 1024, alias="chunk", ge=SECTOR_BYTES)
    # of each member: "trace" = as large as the trace needs, "drive" = the drive's own
    capacity: Annotated[str, _size_or("trace", "drive")] = "trace"
    layout: Literal["near", "far", "offset"] = "near"  # of raid10, as md names them
    # md's: 0 never reads old parity, 1 where that saves reads, 2 also where it costs as many
    rmw_level: int = Field(1, ge=0, le=2)
    failed: Annotated[tuple[int, ...], BeforeValidator(_tuple)] = ()  # members that are gone
    rebuild: levels.Rebuild | None = None
    # "full": spread over the disk, whose arm crosses it all; "short": on the outer cylinders
    stroke: Literal["full", "short"] = "full"
    scheduler: Literal["ncq", "sptf", "sstf", "clook", "fcfs"] = "ncq"  # ncq: the drive's own
    window: int = Field(32, ge=1, le=1024)
    age_limit_ns: Time = Field(500_000_000, alias="age_limit")
    write_cache: Literal["drive", "off"] = "drive"
    # requests that the path to the array carries at a time, 0: any number
    queue_depth: int = Field(0, ge=0, le=65_536)
    drive: Annotated[Drive, Field(discriminator="kind")]
    controller: ControllerDram | None = None  # its DRAM; without: the host speaks to the drives

    def member_bytes(self, volume_bytes: int) -> int:
        """Return what each member holds of a volume; refuse one that is too large."""
        if self.capacity == "trace":
            chunks = max(1, -(-volume_bytes // self.chunk_bytes))
            rows = levels.rows_needed(self.kind, self.members, self.layout, chunks)
            needed = rows * self.chunk_bytes
            if self.stroke == "short" and needed > self.drive.capacity_bytes:
                raise ScenarioError(
                    f"each member must hold {human_size(needed)}, more than the drive's "
                    f'{human_size(self.drive.capacity_bytes)}: stroke = "full" lets it'
                )
            return needed
        own = self.drive.capacity_bytes if self.capacity == "drive" else parse_size(self.capacity)
        rows = own // self.chunk_bytes
        chunks = levels.chunks_held(self.kind, self.members, self.layout, rows)
        if chunks * self.chunk_bytes < volume_bytes:
            mend = 'capacity = "trace" fits it'
            if self.drive.kind == "volume":
                mend = "take larger volumes (capacity in [backing.drive]) or more members"
            raise ScenarioError(
                f"the trace touches {human_size(volume_bytes)}, the array holds "
                f"{human_size(chunks * self.chunk_bytes)}: {mend}"
            )
        return rows * self.chunk_bytes

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Refuse arrays that do not exist."""
        least = levels.KINDS[self.kind].least_members
        if self.members < least:
            yield "members", f"{self.kind} needs {least} or more members, not {self.members}"
        if self.kind == "single" and self.members != 1:
            yield (
                "members",
                f'one drive has 1 member, not {self.members}: kind = "stripe" takes more',
            )
        if self.layout != "near" and self.kind != "raid10":
            yield "layout", f'only raid10 has a layout "{self.layout}"'
        wrong = levels.wrong_losses(self.kind, self.members, self.layout, self.failed, self.rebuild)
        if wrong:
            yield "failed" if self.failed else "rebuild", wrong
        if self.chunk_bytes % SECTOR_BYTES:
            yield "chunk", f"a chunk is whole sectors of {SECTOR_BYTES} bytes"
        if self.scheduler == "fcfs" and self.window != 1:
            yield "window", 'first come, first served looks at 1 command: scheduler = "ncq" at more'
        if self.capacity not in ("trace", "drive") and parse_size(self.capacity) < self.chunk_bytes:
            yield "capacity", f"a member must hold a chunk ({format_size(self.chunk_bytes)})"
        if self.stroke == "short" and self.drive.kind != "hdd":
            yield "stroke", 'only a hard disk has outer cylinders: stroke = "full"'
        if self.controller is not None and self.chunk_bytes % self.controller.line_bytes:
            line = format_size(self.controller.line_bytes)
            yield "chunk", f"a chunk is whole lines of the controller ({line})"


class Cache(Part):
    """The fast tier and what decides about it."""

    kind: Literal["none", "page"] = "page"
    page_bytes: Size = Field(64 * 1024, alias="page", ge=SECTOR_BYTES, le=2**30)
    size: Annotated[str, BeforeValidator(_share_or_size)] = "10%"  # bytes or share of footprint
    members: int = Field(1, ge=1, le=64)  # equal drives, striped
    chunk_bytes: Size = Field(64 * 1024, alias="chunk", ge=SECTOR_BYTES)
    mode: Literal["read-only", "write-through"] = "write-through"
    admission: Literal["learned", "always", "touches"] = "learned"
    touches: int = Field(2, ge=1, le=255)  # with admission "touches": cached from this access on
    replacement: Literal["lru"] = "lru"
    sequential_cutoff_bytes: Size = Field(2**20, alias="sequential_cutoff")  # 0: never bypass
    max_fills: int = Field(8, ge=1, le=65_536)
    drive: Annotated[Drive, Field(discriminator="kind")]

    @property
    def endurance_bytes(self) -> int | None:
        """What may be written to all drives together in their life, where that is known."""
        rated: int | None = getattr(self.drive, "endurance_bytes", None)
        return None if rated is None else self.members * rated

    def pages(self, footprint_bytes: int) -> int:
        """Return how many pages the cache has, for a trace that touches so many bytes.

        A share is not held against the drive's capacity: it asks how much SSD, not which.
        """
        if self.kind == "none":
            return 0
        if "%" in self.size:
            return max(1, int(parse_percent(self.size) * footprint_bytes / self.page_bytes))
        return parse_size(self.size) // self.page_bytes

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Refuse caches that hold no page or more than their drive."""
        if self.page_bytes % SECTOR_BYTES:
            yield "page", f"a page is whole sectors of {SECTOR_BYTES} bytes"
        if self.chunk_bytes % SECTOR_BYTES:
            yield "chunk", f"a chunk is whole sectors of {SECTOR_BYTES} bytes"
        if "%" not in self.size:
            size_bytes = parse_size(self.size)
            if size_bytes < self.page_bytes:
                yield "size", f'less than one page ({format_size(self.page_bytes)}): kind = "none"?'
            if size_bytes > self.members * self.drive.capacity_bytes:
                holds = format_size(self.members * self.drive.capacity_bytes)
                who = "drive holds" if self.members == 1 else "drives hold"
                yield "size", f"{self.size} is more than the {who} ({holds})"


class Replay(Part):
    """When the requests of the trace are issued."""

    # "auto": open; think where the recorded arrivals are more than machine and cache can serve
    mode: Literal["auto", "open", "closed", "think"] = "auto"
    speed: float = Field(1.0, ge=1e-3, le=1e6, allow_inf_nan=False)  # 2 = twice as fast as recorded
    depth: int = Field(32, ge=1, le=65_536)  # with mode "closed": requests outstanding


class Price(Part):
    """What storage costs, on a day, in a currency."""

    date: str
    hdd_per_gb: float = Field(ge=0, allow_inf_nan=False)
    ssd_per_gb: float = Field(ge=0, allow_inf_nan=False)
    currency: str = Field(min_length=1, max_length=8)


class Machine(Part):
    """All that a scenario says."""

    preset: str = ""  # the system of the catalog that it begins from
    seed: int = Field(1, ge=0, lt=2**63)
    backing: Backing
    cache: Cache
    host: Host = Field(default_factory=lambda: Host.model_validate({}))
    replay: Replay = Field(default_factory=lambda: Replay.model_validate({}))
    price: Price | None = None


@dataclass(frozen=True)
class Scenario:
    """A checked machine: plain numbers and words, none of which can change."""

    seed: int
    backing: Backing
    cache: Cache
    host: Host
    replay: Replay
    price: Price | None
    origin: Origin = field(compare=False, repr=False)

    @classmethod
    def default(cls) -> Scenario:
        """Return the machine that is simulated where nothing is said."""
        return _resolve(Origin())

    @classmethod
    def load(cls, path: str | FilePath) -> Scenario:
        """Read a scenario file."""
        try:
            text = FilePath(path).read_text(encoding="utf-8")
        except OSError as error:
            raise ScenarioError(f"cannot read {path}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise ScenarioError(f"{path} is not UTF-8 text (byte {error.start})") from error
        return cls.loads(text, str(path))

    @classmethod
    def loads(cls, text: str, name: str = "scenario") -> Scenario:
        """Read a scenario from text; `name` is what errors call it."""
        return _resolve(Origin.read(text.replace("\r\n", "\n"), name))

    def with_options(self, **options: Any) -> Scenario:
        """Return the scenario with options of the command line over it; None changes nothing."""
        unknown = [option for option in options if option not in OPTIONS]
        if unknown:
            raise TypeError(f"no option {unknown[0]!r}: {hint(unknown[0], OPTIONS)}")
        given = {option: value for option, value in options.items() if value is not None}
        return _resolve(self.origin.over(given))

    @property
    def options(self) -> list[str]:
        """Return the options of the command line that were set over the file."""
        said: dict[str, Any] = dict(self.origin.said)
        words = []
        for path, name in self.origin.options.items():
            value: Any = said
            for key in path:
                value = value[key]
            words.append(f"{name} {value}")
        return words

    def to_toml(self) -> str:
        """Return the scenario as TOML: every value, and where it came from."""
        from hybridsim.scenario_text import to_toml

        return to_toml(self)


@dataclass(frozen=True)
class Origin:
    """What was said and where: a file, options over it."""

    name: str = ""
    text: str = ""
    said: Mapping[str, Any] = field(default_factory=dict)
    places: Places = field(default_factory=lambda: Places(""))
    options: Mapping[Path, str] = field(default_factory=dict)  # path: option that set it

    @classmethod
    def read(cls, text: str, name: str) -> Origin:
        """Parse a file's text."""
        try:
            said = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, ValueError) as error:
            raise ScenarioError(report([Problem.of_syntax(str(error), text, name)])) from error
        except RecursionError as error:
            raise ScenarioError(f"{name}: brackets are nested too deep") from error
        return cls(name, text, said, Places(text))

    def over(self, options: Mapping[str, Any]) -> Origin:
        """Return this with options set over what the file says."""
        said = copy.deepcopy(dict(self.said))
        for option, value in options.items():
            *tables, key = OPTIONS[option]
            table: Any = said
            for name in tables:
                table = table.setdefault(name, {})
            table[key] = value
        named = {OPTIONS[option]: "--" + option.replace("_", "-") for option in options}
        return Origin(self.name, self.text, said, self.places, {**self.options, **named})

    def option(self, path: Path) -> str | None:
        """Return the option that set this path, or the table it lies in."""
        return next(
            (name for said, name in self.options.items() if path[: len(said)] == said), None
        )

    def says(self, path: Path) -> bool:
        """Tell whether the file gives this value, and no option replaced it."""
        return path in self.places.values and self.option(path) is None

    def problem(self, path: Path, message: str, of: Literal["key", "value"] = "value") -> Problem:
        """Return a problem with the place of its path."""
        option = self.option(path)
        if option is not None:
            return Problem(message, place=option)
        if not self.text:
            return Problem(message, place=".".join(map(str, path)))
        line, column = self.places.line_column(path, of)
        return Problem.at(message, self.text, self.name, line, column)


def _resolve(origin: Origin) -> Scenario:
    """Fill in drives and defaults, check everything, and report all that is wrong."""
    problems: list[Problem] = []
    said = copy.deepcopy(dict(origin.said))
    try:
        said = scenario_preset.under(said)
    except ScenarioError as error:
        problems.append(origin.problem(("preset",), str(error)))
        said["preset"] = ""
    for section in DEFAULT_DRIVES:
        table = said.setdefault(section, {})
        if isinstance(table, dict):
            table["drive"] = _drive(origin, section, table.get("drive"), problems)
    if isinstance(said["backing"], dict):
        _complete(said["backing"])
    try:
        machine = Machine.model_validate(said)
    except ValidationError as error:
        problems += explain(error, origin)
        machine = None
    if problems or machine is None:
        raise ScenarioError(report(problems))
    parts = (machine.backing, machine.cache, machine.host, machine.replay, machine.price)
    return Scenario(machine.seed, *parts, origin)


def _drive(origin: Origin, section: str, said: Any, problems: list[Problem]) -> Any:
    """Return a drive's values: of the catalog, with those said over them."""
    path: Path = (section, "drive")
    if isinstance(said, dict) and "like" not in said:
        return {"kind": DEFAULT_KINDS[section], **said}
    own = said if isinstance(said, dict) else {}
    if isinstance(said, dict):
        path = (*path, "like")
    name = own["like"] if own else DEFAULT_DRIVES[section] if said is None else said
    try:
        if not isinstance(name, str):
            raise ScenarioError(f"a drive is a name of the catalog or a table, not {name!r}")
        entry = catalog.load(name)
    except ScenarioError as error:
        problems.append(origin.problem(path, str(error)))
        entry = catalog.load(DEFAULT_DRIVES[section])
        name = entry.key
    rows = {key: row.value for key, row in entry.rows.items()}
    return {"kind": entry.kind, "name": entry.name, **rows, **own, "like": name}


def _complete(backing: dict[str, Any]) -> None:
    """Fill in what has no default of its own: it follows from the kind or the drive."""
    drive = backing["drive"] if isinstance(backing["drive"], dict) else {}
    is_volume = drive.get("kind") == "volume"
    kind = backing.setdefault("kind", "single" if is_volume else "raid5")
    if isinstance(kind, str) and kind in ALIASES:
        backing["kind"] = kind = ALIASES[kind]
    known = levels.KINDS.get(kind) if isinstance(kind, str) else None
    backing.setdefault("members", known.usual_members if known else 4)
    if is_volume:
        backing.setdefault("capacity", "drive")  # its size is bought, and decides its rates
    if backing.get("scheduler") == "fcfs":
        backing.setdefault("window", 1)
    if drive.get("kind") == "hdd":
        for key in ("window", "age_limit"):
            if key in drive:
                backing.setdefault(key, drive[key])
