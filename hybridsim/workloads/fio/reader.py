"""The options of one job: typed access; sizes, shares of files, latencies, the choice of blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from hybridsim.foundation.units import human_size
from hybridsim.workloads.fio import options
from hybridsim.workloads.fio.options import Reader, option, read_options
from hybridsim.workloads.fio.pattern import READ, WRITE, Distribution, Pattern, Service, Sizes

Split = tuple[tuple[int, int], ...]  # (bytes, percent)


def sizes_of(reader: Reader, is_random: bool) -> tuple[Sizes, Sizes, Sizes]:
    """Return the sizes of reads, writes and trims."""
    exact = reader.three("bs", options.size, 4096)
    ranges = reader.read("bsrange", _ranges, [(size, size) for size in exact])
    unsplit: list[Split] = [(), (), ()]
    splits = reader.read("bssplit", _splits, unsplit)
    order = list(reader.specified)  # as in fio, the later one sets the limits of the sizes
    is_range_later = "bssplit" in order and "bsrange" in order[order.index("bssplit") :]
    units = reader.three("ba", options.size, 0)
    sizes = []
    for (minimum, maximum), split, unit in zip(ranges, splits, units):
        if split and not is_range_later:
            minimum, maximum = min(size for size, _ in split), max(size for size, _ in split)
        if (
            split
            and minimum > 0
            and minimum < min(min(size - size % minimum, maximum) for size, _ in split)
        ):
            reader.refuse(
                f"bsrange after bssplit: no size of bssplit is the minimum, {minimum} bytes: near "
                "the end of a file fio itself draws sizes without end",
            )
        if minimum <= 0 or maximum < minimum:
            name = "bsrange" if "bsrange" in reader.specified else "bs"
            problem = "the minimum must be at least 1 byte and not above the maximum"
            reader.refuse(f"{name}: {problem}")
        sizes.append(Sizes(minimum, maximum, split, unit if unit and is_random else minimum))
    return sizes[0], sizes[1], sizes[2]


def _ranges(text: str) -> list[tuple[int, int]]:
    ranges = []
    for part in options.each_direction(text):
        minimum, dash, maximum = part.partition("-" if "-" in part else ":")
        if not dash:
            raise ValueError(f"{part!r} is not a range; expected for example 4k-64k")
        least, most = sorted((options.size(minimum), options.size(maximum)))
        ranges.append((least, most))
    return ranges


def _splits(text: str) -> list[Split]:
    splits: list[Split] = []
    for part in options.each_direction(text):
        pairs = [pair.partition("/") for pair in part.split(":") if pair]
        shares = [(options.size(size), int(share) if share else -1) for size, _, share in pairs]
        shares = [(size, min(share, 100) if share else -1) for size, share in shares]
        rest = 100 - sum(share for _, share in shares if share >= 0)
        empty = sum(share < 0 for _, share in shares)
        if rest < 0 and empty:
            raise ValueError(f"{part!r}: the shares must not add up to more than 100")
        filled = [(size, share if share >= 0 else rest // empty) for size, share in shares]
        splits.append(tuple(sorted(filled, key=lambda pair: pair[1])))
    return splits


OF_FILE = ("size", "offset", "offset_increment")


@dataclass(frozen=True)
class Shares:
    """Percent of a file; 0 if not specified in percent."""

    size: int = option(lambda it: it.amount("size")[1])
    offset: int = option(lambda it: it.amount("offset")[1])
    moved: int = option(lambda it: it.amount("io_size")[1])  # of the size
    # Of an offset in percent; 0: the block.
    align_bytes: int = option(lambda it: it.read("offset_align", options.size, 0))

    def further(self, percent: int) -> Shares:
        """Return a copy whose offset is `percent` larger."""
        return replace(self, offset=self.offset + percent) if percent else self

    def part_of(self, file_bytes: int, rest_bytes: int, block_bytes: int) -> int:
        """Return how much of the rest of a file, behind its offset, a size in percent takes."""
        if self.size in (0, 100):
            return rest_bytes
        taken = min(file_bytes * self.size // 100, rest_bytes)
        return taken - taken % block_bytes

    def of(self, pattern: Pattern, file_bytes: int) -> Pattern:
        """Return a pattern without a size, fitted to its files, each of `file_bytes`.

        The ends are block-aligned.
        """
        block = pattern.block_bytes
        begin, align = pattern.offset_bytes, self.align_bytes or block
        if self.offset:
            begin = -(-(begin + file_bytes * self.offset // 100) // align) * align
        size = self.part_of(file_bytes, file_bytes - begin, block)
        total = (size * self.moved // 100 if self.moved else size) * pattern.files
        pattern = replace(pattern, offset_bytes=begin, file_bytes=size, total_bytes=total)
        return pattern if pattern.has_io_size else replace(pattern, pass_bytes=total)


def shares_of(reader: Reader, has_size: bool) -> Shares:
    """Return the options in percent.

    size may be a share of filesize; but for io_size all others need a file without size=.
    """
    percents = {name: reader.amount(name)[1] for name in (*OF_FILE, "io_size")}
    has_share = percents["size"] > 0 and "filesize" in reader.specified
    for name, percent in percents.items():
        if not (percent and has_size) or (has_share and name in ("size", "io_size")):
            continue
        if name != "io_size" or "filesize" in reader.specified:
            reader.refuse(f"{name} in percent is a share of a file without size=: use bytes")
    return Shares(**read_options(Shares, reader))


MICROSECOND = 10**3
ALL = 10**6


def goal_of(reader: Reader) -> dict[str, Any]:
    """Return the latency options of a job, as parameters of the machine."""
    target_ns = reader.time("latency_target", MICROSECOND)
    found = {
        "target_ns": target_ns,
        "window_ns": reader.time("latency_window", MICROSECOND),
        "share": reader.read("latency_percentile", _share, ALL),
        "keeps_on": reader.flag("latency_run"),
    }
    limits = reader.three("max_latency", lambda text: options.time_ns(text, MICROSECOND), 0)
    for name in ("latency_window", "latency_percentile", "latency_run"):
        if name in reader.specified and not target_ns:
            reader.refuse(f"{name} has no effect without latency_target")
    return found | dict(zip(("limit_read_ns", "limit_write_ns", "limit_trim_ns"), limits))


def _share(text: str) -> int:
    percent = float(text.split(":")[0])
    if not 0 <= percent <= 100:
        raise ValueError(f"{text}: a percentage must be 0 to 100")
    return round(percent * ALL / 100)


SERVICES = {each.name.lower(): each for each in Service} | {"gauss": Service.NORMAL}
RANKED = {name: Distribution[name.upper()] for name in ("zipf", "pareto", "normal")}
SHAPES = {"zipf": "1.1", "pareto": "0.2", "normal": "0", "gauss": "0"}  # if none is specified


def served(reader: Reader) -> dict[str, Any]:
    """Return file_service_type: the order of files, its number of requests, and its shape."""

    def parse(text: str) -> dict[str, Any]:
        kind, _, rest = text.partition(":")
        if kind not in SERVICES:
            raise ValueError(f"{text}: unknown service type; use {', '.join(SERVICES)}")
        if kind not in SHAPES:
            requests = max(1, options.plain(rest or "1"))
            return {"service": SERVICES[kind], "service_requests": requests}
        shape = options.decimal(rest.partition(":")[0] or SHAPES[kind])
        if ":" in rest:
            raise ValueError(f"{text}: a center is supported only in random_distribution")
        _check(kind, shape)
        return {"service": SERVICES[kind], "service_shape": shape}

    return reader.read("file_service_type", parse, {})


def _check(kind: str, shape: float) -> None:
    """Refuse the shapes that fio refuses."""
    if kind == "zipf" and shape == 1:
        raise ValueError("zipf:1 is not defined; use zipf:0.999 or zipf:1.001")
    if kind == "pareto" and not 0 < shape < 1:
        raise ValueError(f"pareto:{shape:g}: must be more than 0 and less than 1")
    if kind in ("normal", "gauss") and not 0 <= shape < 100:
        raise ValueError(f"{kind}:{shape:g}: the deviation must be 0 to 99 percent")


def distributed(reader: Reader) -> dict[str, Any]:
    """Return random_distribution: its kind, and its shape and center or its zones."""

    def parse(text: str) -> dict[str, Any]:
        kind, _, rest = text.partition(":")
        if kind == "random":
            return {}
        if kind in RANKED:
            shape, _, center = (rest or SHAPES[kind]).partition(":")
            number, middle = options.decimal(shape), options.decimal(center or "0")
            _check(kind, number)
            if not 0 <= middle <= 1:
                raise ValueError(f"{text}: the center must be 0 to 1")
            found = middle if center else None
            return {"distribution": RANKED[kind], "shape": number, "center": found}
        if kind not in ("zoned", "zoned_abs"):
            names = "random, zipf, pareto, normal, zoned or zoned_abs"
            raise ValueError(f"{text}: unknown distribution; use {names}")
        is_percent = kind == "zoned"
        if "," in rest:
            raise ValueError(
                f"{text}: zones by direction: fio 3.33 itself refuses them, whatever its manual "
                "says; use one list of zones"
            )
        zones = _zones(rest, is_percent)
        which = Distribution.ZONED if is_percent else Distribution.ZONED_ABS
        return {"distribution": which, "zones": zones}

    return reader.read("random_distribution", parse, {})


def _filled(percents: Sequence[str]) -> list[int]:
    """Return the percents; empty ones share the remainder equally."""
    # As in fio, digits after a point are cut off, and a share of 0 is one that is left out.
    specified = [int(options.decimal(each or "0")) or None for each in percents]
    rest = max(0, 100 - sum(each or 0 for each in specified))
    if specified == [None]:
        return [0]  # as in fio: the one zone is its first block
    return [rest // specified.count(None) if each is None else each for each in specified]


def _zones(text: str, is_percent: bool) -> tuple[tuple[int, int], ...]:
    parts = [part.split("/") for part in text.split(":") if part]
    parts = [[*part, ""][:2] for part in parts]
    if not parts:
        raise ValueError(f"{text!r} is not a list of zones; expected for example 60/10:40/90")
    if is_percent:
        sizes = _filled([size for _, size in parts])
        zones = [(options.size(share), size) for (share, _), size in zip(parts, sizes)]
    else:
        zones = [(options.plain(share), options.size(size)) for share, size in parts]
    if sum(share for share, _ in zones) != 100:
        raise ValueError(f"{text!r}: the shares of accesses must add up to 100")
    if is_percent and sum(size for _, size in zones) > 100:
        raise ValueError(f"{text!r}: the zones cover more than 100 percent of the file")
    return tuple(zones)


DEVICE_ZONE_BYTES = 256 << 20  # of a device that fio would ask for the size of its zones


def zoned(reader: Reader, pattern: Pattern) -> Pattern:
    """Return the pattern with zonemode=zbd applied; refuse what depends on the device's state."""
    if reader.read("zonemode", str, "none") != "zbd":
        return pattern
    is_device = all(name.startswith("/dev/") for name in pattern.file_names)
    zone = reader.read("zonesize", options.size, 0)
    if not zone and not is_device:
        reader.refuse("zonemode=zbd of a file needs a zonesize, as in fio")
    zone = zone or DEVICE_ZONE_BYTES
    for name in ("zoneskip", "zonerange"):
        if reader.read(name, options.size, 0):
            reader.refuse(f"{name} with zonemode=zbd is not supported: remove it")
    if pattern.directions == (READ,):
        if reader.flag("read_beyond_wp"):
            return pattern
        if not is_device:
            reader.refuse(
                "zonemode=zbd: fio itself reads nothing from a file whose zones nobody has "
                "written; use read_beyond_wp=1",
            )
        elif pattern.is_random:
            reader.refuse("zonemode=zbd with random reads is supported only with read_beyond_wp=1")
        return pattern
    sizes = pattern.sizes[WRITE]
    is_plain = pattern.directions == (WRITE,) and sizes.minimum == sizes.maximum
    is_plain = is_plain and sizes.unit == sizes.minimum and not pattern.hole_bytes
    is_plain = is_plain and pattern.distribution == Distribution.RANDOM and pattern.every == 1
    if not is_plain or pattern.random_percent != (100,) * 3 or pattern.files > 1:
        reader.refuse(
            "zonemode=zbd is supported for reads, and for writes (rw=write, randwrite) of one "
            "size to one file",
        )
        return pattern
    parts = (pattern.offset_bytes, pattern.file_bytes, pattern.total_bytes)
    if not pattern.file_bytes or zone % sizes.minimum or any(part % zone for part in parts):
        reader.refuse(
            f"zonemode=zbd: size and offset must be multiples of a zone ({human_size(zone)}), and "
            "a zone must be a multiple of bs",
        )
        return pattern
    zones = pattern.file_bytes // zone
    for name in ("max_open_zones", "job_max_open_zones"):
        if pattern.is_random and 0 < reader.number(name, 0) < zones:
            reader.refuse(
                f"{name} with fewer than all {zones} zones: which zone fio writes instead of a "
                "closed one is not simulated; remove it",
            )
    syncs = [name for name in ("fsync", "fdatasync") if reader.number(name, 0)]
    if syncs and pattern.depth > 1:
        reader.refuse(
            f"{syncs[0]} with zonemode=zbd and iodepth={pattern.depth}: fio waits for all requests "
            "before it resets a zone, which changes the order of syncs; use iodepth=1",
        )
    if pattern.is_verified and (pattern.is_endless or (pattern.is_random and pattern.is_unmapped)):
        reader.refuse(
            "verify with zonemode=zbd and time_based or norandommap: what fio does when a zone is "
            "full, which it may not reset then, is not simulated",
        )
    return replace(pattern, written_zone_bytes=zone)


def check_writers(reader: Reader, pattern: Pattern, group: int, writers: dict[str, int]) -> None:
    """Refuse a process that writes zones if its write pointers depend on another one's writes.

    `writers` has by file the group of the last process that wrote its zones.
    """
    for name in pattern.file_names if pattern.written_zone_bytes else ():
        before = writers.get(name, -1)
        # With verify fio resets all zones before a pass.
        if before == group or (before >= 0 and not pattern.is_verified):
            reader.refuse(
                f"zonemode=zbd: several processes write {name}: where a write goes depends on "
                "the time of the others' writes",
            )
        writers[name] = group
