"""Hard disks from the parameter files of DiskSim 4.0, without a look at any trace (DESIGN 2.6.1).

    python -m hybridsim.storage.drives.disksim cheetah9LP.diskspecs [--bus-sector 0.0955]

prints the rows of a catalog file.  The layout (`.model`) and the seek times (`.seek`) that the file
names are read from the same folder.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from hybridsim.foundation.errors import HybridsimError, ScenarioError

SECTOR_BYTES = 512
SOURCE = "parameter file of DiskSim 4.0"
TO_TRACK, TO_NEXT_TRACK = 1, 4  # of "Buffer continuous read"
READ_AHEAD_TO = {TO_TRACK: "track", TO_NEXT_TRACK: "next track"}
FIRST_SEEKS = 10  # an equation of seek times begins after the table of the first ten
Value = str | int | bool | list[list[float]]
NAME = re.compile(r"disksim_disk\s+(\S+)\s*\{")
ZONE = re.compile(r"dm_layout_g1_zone\s*\{")


class _File(NamedTuple):
    """The text of a parameter file without its comments."""

    path: Path
    text: str

    @classmethod
    def read(cls, path: Path) -> _File:
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise ScenarioError(f"{path}: cannot be read: {error.strerror}") from None
        return cls(path, re.sub(r"#[^\n]*", "", text))

    def part(self, begin: int, end: int) -> _File:
        return self._replace(text=self.text[begin:end])

    def word(self, key: str) -> str:
        """Return the value of a key; raise ScenarioError if there is none."""
        match = re.search(re.escape(key) + r"\s*=\s*([^,\n\]}]+)", self.text)
        if match is None:
            raise ScenarioError(f"{self.path}: no value of {key!r}")
        return match[1].strip()

    def number(self, key: str, default: float | None = None) -> float:
        """Return a value as a number; a key that is not there has the default."""
        if default is not None and re.search(re.escape(key) + r"\s*=", self.text) is None:
            return default
        try:
            return float(self.word(key))
        except ValueError:
            raise ScenarioError(f"{self.path}: {key!r} is not a number") from None

    def numbers(self, key: str) -> list[float]:
        """Return a list of numbers."""
        match = re.search(re.escape(key) + r"\s*=\s*\[([^\]]*)\]", self.text)
        if match is None:
            raise ScenarioError(f"{self.path}: no list of {key!r}")
        try:
            return [float(each) for each in match[1].replace(",", " ").split()]
        except ValueError:
            raise ScenarioError(f"{self.path}: {key!r} is not a list of numbers") from None


def drive(path: Path, bus_sector_ms: float = 0.0) -> dict[str, Value]:
    """Return the values of a hard disk, by the keys of a scenario's drive.

    `bus_sector_ms` is the time of a sector on the bus ("Read block transfer time" of the
    simulation's own file).  Raises ScenarioError for a file that is not one of DiskSim's disks.
    """
    specs = _File.read(path)
    begin = NAME.search(specs.text)
    if begin is None:
        raise ScenarioError(f"{path}: not a disk of DiskSim 4.0: no 'disksim_disk NAME {{'")
    specs = specs.part(begin.end(), len(specs.text))
    source = specs.word("Model").split()
    if source[0] != "source":
        raise ScenarioError(
            f"{path}: the model must be in a file of its own ('Model = source FILE')"
        )
    model = _File.read(path.parent / source[-1])
    values: dict[str, Value] = {"kind": "hdd", "name": begin[1]}
    values |= _mechanics(model)
    values |= _overheads(specs)
    values |= _buffer(specs, model)
    sector_ms = max(specs.number("Bulk sector transfer time"), bus_sector_ms)
    if sector_ms > 0:
        values["interface"] = f"{round(SECTOR_BYTES / sector_ms * 1000)}B/s"
    return values


def _us(time_ms: float) -> str:
    return f"{round(time_ms * 1e6) / 1000:g}us"


def _mechanics(model: _File) -> dict[str, Value]:
    """Return the platters and the arm."""
    blocks = int(model.number("Block count"))
    surfaces = int(model.number("Number of data surfaces"))
    cylinders, zones = _used(list(_zones(model)), blocks, surfaces, model)
    settle_ms = model.number("Add. write settling delay")
    seeks = _within(_seeks(model), cylinders - 1)
    values: dict[str, Value] = {
        "rpm": round(model.number("Rotation speed (in rpms)")),
        "capacity": f"{blocks * SECTOR_BYTES}B",
        "cylinders": cylinders,
        "surfaces": surfaces,
        "zones": zones,
        "seek_table": seeks,
        "head_switch": _us(model.number("Head switch time")),
    }
    if settle_ms < 0:
        values["write_seek_table"] = [[far, max(0.0, ms + settle_ms)] for far, ms in seeks]
    else:
        values["write_settle"] = _us(settle_ms)
    return values


def _used(
    zones: list[list[float]], blocks: int, surfaces: int, model: _File
) -> tuple[int, list[list[float]]]:
    """Return the cylinders that the blocks fill from the first on, and their zones."""
    ends = [*(int(zone[0]) for zone in zones[1:]), int(model.number("Number of cylinders"))]
    used: list[list[float]] = []
    left = blocks
    for zone, end in zip(zones, ends, strict=True):
        per_cylinder = surfaces * int(zone[1])
        if not used or zone[1:] != used[-1][1:]:  # other tracks than in the zone before
            used.append(zone)
        needed = -(-left // per_cylinder)
        if needed <= end - int(zone[0]):
            return int(zone[0]) + needed, used
        left -= (end - int(zone[0])) * per_cylinder
    raise ScenarioError(f"{model.path}: the zones have fewer blocks than 'Block count'")


def _zones(model: _File) -> Iterator[list[float]]:
    starts = [each.end() for each in ZONE.finditer(model.text)]
    if not starts:
        raise ScenarioError(f"{model.path}: no zones of the layout dm_layout_g1")
    first = ("First cylinder number", "Blocks per track")
    keys = (*first, "Skew for track switch", "Skew for cylinder switch")
    for begin, end in zip(starts, [*starts[1:], len(model.text)], strict=True):
        zone = model.part(begin, end)
        yield [zone.number(key) for key in keys]


def _seeks(model: _File) -> list[list[float]]:
    """Return [cylinders, ms]: a table of measured times, or points of DiskSim's equation."""
    if model.word("Seek type") == "extracted":
        table = _File.read(model.path.parent / model.word("Full seek curve"))
        points = re.findall(r"^\s*(\d+)\s*,\s*([\d.]+)", table.text, re.MULTILINE)
        if not points:
            raise ScenarioError(f"{table.path}: no lines 'cylinders, ms'")
        return [[float(far), float(ms)] for far, ms in points]
    if model.word("Seek type") != "hplplus10":
        raise ScenarioError(
            f"{model.path}: seek type {model.word('Seek type')!r} is not supported: "
            "extracted or hplplus10"
        )
    first = model.numbers("First ten seek times")[:FIRST_SEEKS]
    split, a, b, c, e = model.numbers("HPL seek equation values")[:5]
    last = int(model.number("Number of cylinders")) - 1
    beyond = sorted({*range(FIRST_SEEKS + 1, int(split), 10), int(split), last})
    near = [[float(far), ms] for far, ms in enumerate(first, 1)]
    return near + [[float(d), a + b * d**0.5 if d < split else c + e * d] for d in beyond]


def _within(table: list[list[float]], last: int) -> list[list[float]]:
    """Return a table of seek times up to a distance, with a point between where it is cut."""
    for (near, near_ms), (far, far_ms) in pairwise(table):
        if near <= last < far:
            ms = near_ms + (far_ms - near_ms) * (last - near) / (far - near)
            cut = [[float(last), ms]] if last > near else []
            return [point for point in table if point[0] <= near] + cut
    return table


def _overheads(specs: _File) -> dict[str, Value]:
    """Return the times of the electronics, what a completion takes included."""
    every = specs.number("Per-request overhead time", 0.0)
    ends = {
        "Read": every + specs.number("Read completion overhead", 0.0),
        "Write": every + specs.number("Write completion overhead", 0.0),
    }
    scale = specs.number("Time scale for overheads", 1.0)
    keys = {
        "overhead": "Read miss over. after read",
        "hit_overhead": "Read hit over. after read",
        "write_overhead": "Write miss over. after write",
        "write_hit_overhead": "Write hit over. after write",
        "overhead_after_write": "Read miss over. after write",
        "hit_overhead_after_write": "Read hit over. after write",
        "write_overhead_after_read": "Write miss over. after read",
        "write_hit_overhead_after_read": "Write hit over. after read",
    }
    return {
        name: _us(scale * (specs.number(key) + ends[key.split()[0]])) for name, key in keys.items()
    }


def _buffer(specs: _File, model: _File) -> dict[str, Value]:
    """Return how the buffer serves reads and writes."""
    reads_on = int(specs.number("Buffer continuous read"))
    segment = int(specs.number("Segment size (in blks)")) * SECTOR_BYTES
    ahead = int(specs.number("Maximum read-ahead (blks)")) * SECTOR_BYTES
    if reads_on == TO_NEXT_TRACK:  # as far as the track goes, whatever the segment holds
        ahead = 2 * max(int(zone[1]) for zone in _zones(model)) * SECTOR_BYTES
    caches = specs.number("Enable caching in buffer") > 0
    is_any_order = specs.number("Immediate buffer read") == 1
    writes = int(specs.number("Maximum number of write segments"))
    keeps = specs.number("Read-ahead over requested") >= 0
    values: dict[str, Value] = {
        "segments": int(specs.number("Number of buffer segments")),
        "segment": f"{segment}B",
        "read_ahead": f"{ahead if caches and reads_on > 0 else 0}B",
        "read_ahead_to": READ_AHEAD_TO.get(reads_on, "buffer"),
        "read_behind": f"{segment if keeps else 0}B",
        "read_tracks": is_any_order and specs.number("Read any free blocks") == 1,
        "read_watermark": round(100 * specs.number("High (read) water mark", 0.0)),
        "write_watermark": round(100 * specs.number("Low (write) water mark", 1.0)),
        "write_cache": f"{segment if specs.number('Fast write level') > 0 else 0}B",
    }
    if specs.number("Fast write level") > 0:
        values |= {"write_cache_ranges": writes, "destage_window": writes}
    return values


def catalog_text(values: dict[str, Value]) -> str:
    """Return the values as a file of the catalog."""
    rows = [f'name = "{values["name"]}"', "", "[is]"]
    for key, value in values.items():
        if key not in ("kind", "name"):
            rows.append(f'{key:19} = [{_toml(value)}, "read", "{SOURCE}"]')
    return "\n".join(rows) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, list):
        points = [", ".join(f"{number:g}" for number in row) for row in value]
        lines = [
            ", ".join(f"[{each}]" for each in points[i : i + 6]) for i in range(0, len(points), 6)
        ]
        return "[\n    " + ",\n    ".join(lines) + ",\n]"
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)


def main() -> None:
    """Print a disk as a file of the catalog."""
    parser = argparse.ArgumentParser(description="Print a disk of DiskSim as a catalog file.")
    parser.add_argument("file", type=Path, help="NAME.diskspecs")
    parser.add_argument("--bus-sector", type=float, default=0.0, help="ms of a sector on the bus")
    options = parser.parse_args()
    try:
        print(catalog_text(drive(options.file, options.bus_sector)), end="")
    except HybridsimError as error:
        raise SystemExit(str(error)) from None


if __name__ == "__main__":
    main()
