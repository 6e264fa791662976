"""zonemode=zbd: zones that are written from their beginning to their end."""

from __future__ import annotations

from dataclasses import replace

from hybridsim.foundation.units import human_size
from hybridsim.workloads.fio import options
from hybridsim.workloads.fio.pattern import READ, WRITE, Distribution, Pattern
from hybridsim.workloads.fio.reader import Reader

DEVICE_ZONE_BYTES = 256 << 20  # of a device that fio would ask for the size of its zones
OPTION = "zonemode"


def zoned(reader: Reader, pattern: Pattern) -> Pattern:
    """Return the pattern with zonemode=zbd applied; refuse what depends on the device's state."""
    if reader.read(OPTION, str, "none") != "zbd":
        return pattern
    is_device = all(name.startswith("/dev/") for name in pattern.file_names)
    zone = reader.read("zonesize", options.size, 0)
    if not zone and not is_device:
        reader.refuse(OPTION, "zonemode=zbd of a file needs a zonesize, as in fio")
    zone = zone or DEVICE_ZONE_BYTES
    for name in ("zoneskip", "zonerange"):
        if reader.read(name, options.size, 0):
            reader.refuse(name, f"{name} with zonemode=zbd is not supported: remove it")
    if pattern.directions == (READ,):
        if reader.flag("read_beyond_wp"):
            return pattern
        if not is_device:
            reader.refuse(
                OPTION,
                "zonemode=zbd: fio itself reads nothing from a file whose zones nobody has "
                "written; use read_beyond_wp=1",
            )
        elif pattern.is_random:
            reader.refuse(
                OPTION, "zonemode=zbd with random reads is supported only with read_beyond_wp=1"
            )
        return pattern
    sizes = pattern.sizes[WRITE]
    is_plain = pattern.directions == (WRITE,) and sizes.minimum == sizes.maximum
    is_plain = is_plain and sizes.unit == sizes.minimum and not pattern.hole_bytes
    is_plain = is_plain and pattern.distribution == Distribution.RANDOM and pattern.every == 1
    if not is_plain or pattern.random_percent != (100,) * 3 or pattern.files > 1:
        reader.refuse(
            OPTION,
            "zonemode=zbd is supported for reads, and for writes (rw=write, randwrite) of one "
            "size to one file",
        )
        return pattern
    parts = (pattern.offset_bytes, pattern.file_bytes, pattern.total_bytes)
    if not pattern.file_bytes or zone % sizes.minimum or any(part % zone for part in parts):
        reader.refuse(
            OPTION,
            f"zonemode=zbd: size and offset must be multiples of a zone ({human_size(zone)}), and "
            "a zone must be a multiple of bs",
        )
        return pattern
    zones = pattern.file_bytes // zone
    for name in ("max_open_zones", "job_max_open_zones"):
        if pattern.is_random and 0 < reader.number(name, 0) < zones:
            reader.refuse(
                name,
                f"{name} with fewer than all {zones} zones: which zone fio writes instead of a "
                "closed one is not simulated; remove it",
            )
    syncs = [name for name in ("fsync", "fdatasync") if reader.number(name, 0)]
    if syncs and pattern.depth > 1:
        reader.refuse(
            syncs[0],
            f"{syncs[0]} with zonemode=zbd and iodepth={pattern.depth}: fio waits for all requests "
            "before it resets a zone, which changes the order of syncs; use iodepth=1",
        )
    if pattern.is_verified and (pattern.is_endless or (pattern.is_random and pattern.is_unmapped)):
        reader.refuse(
            "verify",
            "verify with zonemode=zbd and time_based or norandommap: what fio does when a zone is "
            "full, which it may not reset then, is not simulated",
        )
    return replace(pattern, written_zone_bytes=zone)


class Users:
    """The processes that write zones: they share the write pointers."""

    def __init__(self) -> None:
        self._writers: dict[str, int] = {}  # by file: the group of its last process

    def add(self, reader: Reader, pattern: Pattern, group: int) -> None:
        """Add a process; refuse it if its write pointers depend on another one's writes."""
        if not pattern.written_zone_bytes:
            return
        for name in pattern.file_names:
            before = self._writers.get(name, -1)
            # With verify fio resets all zones before a pass.
            if before == group or (before >= 0 and not pattern.is_verified):
                reader.refuse(
                    OPTION,
                    f"zonemode=zbd: several processes write {name}: where a write goes depends on "
                    "the time of the others' writes",
                )
            self._writers[name] = group
