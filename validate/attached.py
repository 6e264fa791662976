"""Read the settings of an existing cache: bcache, dm-cache, dm-writecache, LVM's, Open CAS."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from validate import mapped, opencas
from validate.collecting import Subject
from validate.devices import Device, chosen, find, of_number
from validate.errors import UnsafeError
from validate.experiment import WRITECACHE, Cache
from validate.sizes import SECTOR, size_of
from validate.system import System


@dataclass(frozen=True)
class Attached:
    """An existing cache, and its devices."""

    cache: Cache
    subject: Subject
    cached: Device
    origin: Device
    fast: Device


def look(path: str, system: System, programs: str = "") -> Attached:
    """Return the cache at a path; raise UnsafeError if the device is not a cache.

    `programs` is the folder of Open CAS's, "" if they are installed.
    """
    device = find(path, system)
    if opencas.EXPORTED.fullmatch(device.name):
        return _open_cas(device, programs, system)
    if (device.folder / "bcache").exists():
        return _bcache(device, system)
    if (device.folder / "dm").is_dir():
        return _mapped(device, system)
    raise UnsafeError(
        f"{path}: is not a cache: name /dev/bcacheN, /dev/casN-M, or the /dev/mapper/... of a "
        "dm-cache, dm-writecache or cached logical volume; to measure a bare device, use build "
        'with kind = "none"'
    )


# dm-cache and dm-writecache.


def _mapped(device: Device, system: System) -> Attached:
    """Read the dm table and status; raise UnsafeError if its target is not that of a cache."""
    name = system.read(device.folder / "dm/name")
    lines = mapped.table(name)
    kinds = [line.split()[2] for line in lines]
    if kinds == ["cache"]:
        return _dm_cache(device, name, lines[0].split(), system)
    if kinds == ["writecache"]:
        return _writecache(device, name, lines[0].split(), system)
    raise UnsafeError(
        f"{device.path}: its target is {', '.join(kinds)}, neither cache nor writecache: name the "
        "device of the cache itself (dmsetup ls --target cache; dmsetup ls --target writecache)"
    )


def _writecache(device: Device, name: str, words: list[str], system: System) -> Attached:
    """Read a table of START LENGTH writecache s|p ORIGIN CACHE BLOCK NUMBER OPTIONS."""
    if words[3] != "s":
        raise UnsafeError(f"{device.path}: is a dm-writecache on persistent memory, not on an SSD")
    origin, data = (of_number(number, system) for number in words[4:6])
    options = dict(zip(words[8::2], words[9::2]))
    given = {key: int(options[word]) for word, key in WRITECACHE.items() if word in options}
    cache = Cache("dm-writecache", "writeback", data.size_bytes, block_bytes=int(words[6]))
    cache = replace(cache, **given)  # type: ignore[arg-type]
    numbers = {"cached": device.number, "origin": origin.number, "data": data.number}
    subject = Subject(system, "dm-writecache", numbers, mapped=name)
    return Attached(cache, subject, device, bottom(origin, system), bottom(data, system))


def _dm_cache(device: Device, name: str, words: list[str], system: System) -> Attached:
    metadata, data, origin = (of_number(number, system) for number in words[3:6])
    block, features = int(words[6]) * SECTOR, int(words[7])
    named = words[8 : 8 + features]
    policy, count = words[8 + features], int(words[9 + features])
    arguments = words[10 + features : 10 + features + count]
    options = dict(zip(arguments[::2], arguments[1::2]))
    shown = _options(mapped.status(name)[0])
    threshold = options.get("migration_threshold", shown.get("migration_threshold"))
    modes = [word for word in named if word in ("writethrough", "writeback", "passthrough")]
    cache = Cache(
        "dm-cache", modes[0] if modes else "writeback", data.size_bytes // block * block,
        block_bytes=block, metadata_bytes=metadata.size_bytes, policy=policy,
        migration_threshold_sectors=int(threshold) if threshold else None,
    )  # fmt: skip
    numbers = {"cached": device.number, "origin": origin.number, "data": data.number}
    subject = Subject(system, "dm-cache", numbers, mapped=name)
    return Attached(cache, subject, device, bottom(origin, system), bottom(data, system))


def _options(status: str) -> dict[str, str]:
    """Return the core options of a status line."""
    words = status.split()
    features = int(words[14])
    count = int(words[15 + features])
    named = words[16 + features : 16 + features + count]
    return dict(zip(named[::2], named[1::2]))


def bottom(device: Device, system: System) -> Device:
    """Return the disk or array below a mapped device that has one device below it."""
    while (device.folder / "dm").is_dir():
        slaves = device.folder / "slaves"
        names = sorted(slaves.iterdir()) if slaves.is_dir() else []
        if len(names) != 1:
            break
        device = of_number(system.read(names[0] / "dev"), system)
    return device


# Open CAS.


def _open_cas(device: Device, programs: str, system: System) -> Attached:
    """Read what casadm shows; raise UnsafeError if it does not list the device."""
    casadm = opencas.program(programs)
    system.need(casadm)
    listed = opencas.cores(casadm, system)
    core = next((each for each in listed if each.exported == device.node), None)
    if core is None:
        raise UnsafeError(f"{device.path}: casadm lists no such core: `casadm -L` lists all")
    origin, data = find(core.origin, system), find(core.cache, system)
    mode, line_bytes, policy = opencas.main_settings(opencas.shown(casadm, core, system))
    cache = Cache(
        "open-cas", mode, data.size_bytes, block_bytes=line_bytes, policy=policy, programs=programs
    )
    numbers = {"cached": device.number, "origin": origin.number, "data": data.number}
    subject = Subject(system, "open-cas", numbers, statistics=opencas.statistics(casadm, core))
    return Attached(cache, subject, device, bottom(origin, system), bottom(data, system))


# bcache.


def _bcache(device: Device, system: System) -> Attached:
    backing = (device.folder / "bcache").resolve()
    there = (backing / "cache").resolve()
    state = system.read(backing / "state", "no cache")
    if not (backing / "cache").exists() or state == "no cache":
        raise UnsafeError(f"{device.path}: bcache runs without a cache ({state}): attach one first")
    origin = of_number(system.read(backing.parent / "dev"), system)
    data = of_number(system.read((there / "cache0").resolve().parent / "dev"), system)
    read = {name: system.read(backing / name, "") for name in ("cache_mode", "sequential_cutoff",
            "writeback_percent", "writeback_delay")}  # fmt: skip
    bucket = bcache_size(system.read(there / "bucket_size"))
    buckets = int(system.read(there / "cache0/nbuckets"))
    cache = Cache(
        "bcache", chosen(read["cache_mode"]), bucket * buckets, bucket_bytes=bucket,
        policy=chosen(system.read(there / "cache0/cache_replacement_policy", "[lru]")),
        sequential_cutoff_bytes=bcache_size(read["sequential_cutoff"]),
        congested_read_us=int(system.read(there / "congested_read_threshold_us")),
        congested_write_us=int(system.read(there / "congested_write_threshold_us")),
        writeback_percent=int(read["writeback_percent"]),
        writeback_delay_s=int(read["writeback_delay"]),
    )  # fmt: skip
    numbers = {"cached": device.number, "origin": origin.number, "data": data.number}
    subject = Subject(system, "bcache", numbers, backing=Path(backing))
    return Attached(cache, subject, device, origin, bottom(data, system))


def bcache_size(text: str) -> int:
    """Return the bytes of a size in bcache's format: 512.0k, 4.0M, 0."""
    return size_of(text)
