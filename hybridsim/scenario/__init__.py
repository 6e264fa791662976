"""The machine to simulate, from a TOML file, the command line and defaults.

A file lists only what differs from the default scenario.  All errors in it are reported together,
each with its line, a caret and the correction.

    origin      the specified values and their places; of any key, set over the file
    machine     the tables, each of which validates itself; the catalog's values and defaults
    backing     the arrays, their capacity and the losses they survive
    cache, bcache, dmcache, opencas, writecache
                tables
    fast_tier   what the tables of all kinds of cache share
    event       what happens to the machine during the load
    building    the machine that is simulated
    key_help    what each key takes and means, for `hybridsim explain` and the site
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any, Unpack

from hybridsim.foundation.errors import ScenarioError
from hybridsim.foundation.in_notebooks import table_html, with_keywords
from hybridsim.foundation.reading import whole_text
from hybridsim.foundation.suggest import hint
from hybridsim.foundation.toml.places import Path
from hybridsim.foundation.toml.problems import cleaned
from hybridsim.foundation.toml.table import Part
from hybridsim.scenario.backing import Backing
from hybridsim.scenario.cache import Cache
from hybridsim.scenario.event import Event
from hybridsim.scenario.machine import CacheTable, Host, Price, Replay, in_preset, resolved
from hybridsim.scenario.options import OPTIONS, Options
from hybridsim.scenario.origin import SET, Origin, written
from hybridsim.storage import catalog
from hybridsim.storage.drives import HardDisk

COMMENT_COLUMN = 40
# Of an identity: prices change no result.
TABLES = ("backing", "cache", "host", "replay")
DISKS = ("backing", "host", "replay")
CATALOG = "catalog"  # prefix of the source of values from `like`

__all__ = ["OPTIONS", "Backing", "Cache", "Host", "Price", "Replay", "Scenario"]


@dataclass(frozen=True)
class Scenario:
    """A validated, immutable machine: plain numbers and words."""

    seed: int
    backing: Backing
    cache: CacheTable
    host: Host
    replay: Replay
    price: Price | None
    events: tuple[Event, ...]
    origin: Origin = field(compare=False, repr=False)

    @classmethod
    def _of(cls, origin: Origin) -> Scenario:
        machine = resolved(origin)
        parts = (machine.backing, machine.cache, machine.host, machine.replay, machine.price)
        return cls(machine.seed, *parts, tuple(machine.event), origin)

    @classmethod
    def default(cls) -> Scenario:
        """Return the machine that is simulated when nothing is specified."""
        return cls._of(Origin())

    @classmethod
    def load(cls, path: str | FilePath) -> Scenario:
        """Read a scenario file."""
        return cls.loads(whole_text(path, ScenarioError), str(path))

    @classmethod
    def loads(cls, text: str, name: str = "scenario") -> Scenario:
        """Read a scenario from text; errors refer to it as `name`."""
        return cls._of(Origin.read(cleaned(text), name))

    @with_keywords(Options)
    def with_options(self, **options: Unpack[Options]) -> Scenario:
        """Return the scenario with command-line options applied; None leaves a value as it is.

        Raises TypeError for an unknown option, ScenarioError for a wrong value.

        >>> site = Scenario.default().with_options(cache="bcache", cache_size="64MiB")
        >>> site.cache.kind, site.backing.members
        ('bcache', 4)
        """
        unknown = [option for option in options if option not in OPTIONS]
        if unknown:
            raise TypeError(f"no option {unknown[0]!r}: {hint(unknown[0], OPTIONS)}")
        specified = {option: value for option, value in options.items() if value is not None}
        return self._of(self.origin.over(specified))

    def with_events(self, tables: list[dict[str, Any]]) -> Scenario:
        """Return the scenario with these events instead of its own; see scenario/event.py."""
        path: Path = ("event",)
        return self._of(self.origin.with_values({path: tables}, {path: "--event"}))

    def with_values(self, values: Mapping[str, Any]) -> Scenario:
        """Return the scenario with values of any keys set: {"cache.size": "16GiB"}.

        `cache.policy` stands for admission and replacement; see scenario/origin.py.
        """
        return self._of(self.origin.with_keys(values))

    @property
    def options(self) -> list[str]:
        """Return the command-line options that were set over the file."""
        return [option for _, option in self.options_by_path()]

    def options_by_path(self) -> Iterator[tuple[Path, str]]:
        """Yield the options that were set over the file, each with the path of its key."""
        for path, name in self.origin.options.items():
            value: Any = self.origin.specified
            for key in path:
                value = value[key]
            texts = [f"{name}={written(value)}" if name.startswith(SET) else f"{name} {value}"]
            if path == ("event",):
                texts = [f"{name} {event.text}" for event in self.events]
            for text in texts:
                yield path, text

    @property
    def words(self) -> tuple[str, str]:
        """The array and the cache in words."""
        disks = f"{self.backing.members} x {self.backing.drive.name}, {self.backing.kind}"
        if self.cache.kind == "none":
            return disks, "none"
        return disks, f"{self.cache.kind} {self.cache.words}, {self.cache.size} on {self.ssds}"

    @property
    def ssds(self) -> str:
        """The drives of the cache in words."""
        name, members = self.cache.drive.name, self.cache.members
        return str(name) if members == 1 else f"{members} x {name}"

    def __repr__(self) -> str:
        disks, cache = self.words
        return f"<Scenario {disks}; cache: {cache}>"

    def _repr_html_(self) -> str:
        disks, cache = self.words
        rows = [("disks", disks), ("cache", cache), ("requests", f"mode {self.replay.mode}")]
        rows += [("options", " ".join(self.options))] if self.options else []
        return table_html("Scenario", rows)

    def to_toml(self) -> str:
        """Return the scenario as TOML: each value, with its source in a comment.

        The text reads back as the same scenario.  Values that a drive has from the catalog are
        commented out below its `like`: to change a value, remove the comment sign; to change the
        drive, change `like`.
        """
        preset = self.origin.specified.get("preset")
        lines = [_line(self, ("preset",), preset)] if preset else []
        lines.append(_line(self, ("seed",), self.seed))
        for name in (*TABLES, "price"):
            part: Part | None = getattr(self, name)
            if part is not None:
                lines += _table(self, (name,), part.model_dump(by_alias=True, exclude_none=True))
        for number, event in enumerate(self.events):
            lines += ["", "[[event]]"]
            values = event.model_dump(by_alias=True, exclude_defaults=True)
            lines += [_line(self, ("event", number, key), value) for key, value in values.items()]
        return "\n".join(lines) + "\n"


def _table(scenario: Scenario, path: Path, values: dict[str, Any]) -> Iterator[str]:
    """Yield a table; its own values precede its subtables, as TOML requires."""
    yield ""
    yield f"[{'.'.join(map(str, path))}]"
    for key, value in values.items():
        is_own = key == "like" and not value  # a drive that is not in the catalog
        if not isinstance(value, dict) and not is_own:
            yield _line(scenario, (*path, key), value)
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _table(scenario, (*path, key), value)


def _line(scenario: Scenario, path: Path, value: str | int | float) -> str:
    # a JSON string, number or boolean is also valid TOML once DEL is escaped
    written = f"{path[-1]} = " + json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    source = _source(scenario, path)
    if source.startswith(CATALOG):
        written = f"# {written}"
    return f"{written:<{COMMENT_COLUMN}}  # {source}"


def _source(scenario: Scenario, path: Path) -> str:
    """Return the source of a value."""
    origin = scenario.origin
    if path in origin.options or path[:1] in origin.options:
        return origin.options.get(path) or origin.options[path[:1]]
    if origin.specifies(path):
        return f"{origin.name}:{origin.places.line_column(path)[0]}"
    preset = origin.specified.get("preset")
    if preset and in_preset(preset, path):
        return f"preset {preset}"
    if path[1:2] == ("drive",) and len(path) > 2:
        return _source_in_drive(scenario, path)
    if path in (("backing", "window"), ("backing", "age_limit")) and _follows(scenario, path):
        return "the drive's"
    return "default"


def _follows(scenario: Scenario, path: Path) -> bool:
    """Return whether the array's queue has the value of its drive."""
    array, drive = scenario.backing, scenario.backing.drive
    name = "window" if path[-1] == "window" else "age_limit_ns"
    return isinstance(drive, HardDisk) and bool(getattr(array, name) == getattr(drive, name))


def _source_in_drive(scenario: Scenario, path: Path) -> str:
    drive = scenario.backing.drive if path[0] == "backing" else scenario.cache.drive
    if not drive.like:
        return "default"
    if path[-1] == "like":  # short form `drive = "name"`, or the default
        return _source(scenario, path[:2])
    row = catalog.load(drive.like).rows.get(str(path[-1]))
    if row is None:
        return CATALOG if path[-1] in ("kind", "name") else "default"
    return f"{CATALOG}, {row.mark}" + (f": {row.source}" if row.source else "")


def identity(scenario: Scenario, tables: tuple[str, ...] = TABLES) -> str:
    """Return the seed and all values of these tables as JSON: equal for the same machine."""
    values: dict[str, Any] = {
        name: getattr(scenario, name).model_dump(mode="json", by_alias=True) for name in tables
    }
    if scenario.events:
        values["event"] = [each.text for each in scenario.events]
    return json.dumps({"seed": scenario.seed, **values}, sort_keys=True)
