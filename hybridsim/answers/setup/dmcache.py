"""dm-cache with LVM: commands, and the same settings read back from the kernel."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import Any

from hybridsim.answers.setup.plan import (
    EXTENT_BYTES,
    KIB,
    MIB,
    Drives,
    Need,
    Section,
    Site,
    Step,
    Volumes,
    differing,
    layout,
    rounded,
    unit,
    unit_removed,
)
from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.units import format_size

KIND = "dm-cache"
CHUNKS_MAX = 1_000_000  # LVM refuses more, unless its setting is raised
LVM_CHUNKS = 8  # LVM raises a migration threshold to that many chunks
SECTOR = 512
SECTORS_MAX = 2**32 - 1
METADATA_MIN, METADATA_FIXED, METADATA_CHUNK = 8 * MIB, 4 * MIB, 28  # LVM's estimate
ENTRY_BYTES, SENTINELS = 24, 256  # struct entry of dm-cache-policy-smq.c
HOTSPOT_MIN, BUCKETS_MIN = 1024, 16
SERVICE = "hybridsim-dm-cache"


@dataclass(frozen=True)
class Settings:
    """What is set of a dm-cache; all of it can be read back from the commands."""

    size_bytes: int  # of the data volume: whole extents of LVM
    chunk_bytes: int
    mode: str
    policy: str
    migration_threshold: int  # sectors
    drives: Drives = field(default_factory=Drives)

    @property
    def chunks(self) -> int:
        """Number of chunks."""
        return self.size_bytes // self.chunk_bytes

    @property
    def metadata_bytes(self) -> int:
        """Size of the metadata volume."""
        need = METADATA_FIXED + METADATA_CHUNK * self.chunks
        return rounded(max(METADATA_MIN, need), 1)


def settings(table: Any, pages: int, site: Site) -> Settings:
    """Return what is set for a scenario's cache; raise UsageError for what cannot be set."""
    drives = site.drives(table)
    chunk = table.page_bytes
    threshold = table.migration_threshold_bytes // SECTOR
    if threshold > SECTORS_MAX:
        raise UsageError(
            f"migration_threshold {table.migration_threshold}: LVM sets at most "
            f"{format_size(SECTORS_MAX * SECTOR)}"
        )
    return Settings(
        rounded(pages * chunk, drives.members), chunk, table.mode, table.policy, threshold, drives
    )


def ssd(one: Settings) -> Need:
    """Return the bytes that each SSD must have."""
    mirrored = 2 * EXTENT_BYTES * one.drives.is_mirrored
    total = one.size_bytes // one.drives.members + 2 * one.metadata_bytes + MIB + mirrored
    return Need(total, "data, metadata, the LVM spare of the metadata and label")


def ram(one: Settings) -> Need:
    """Return the RAM that smq takes."""
    blocks = one.chunks
    hotspot = max(blocks // 4, HOTSPOT_MIN)
    entries = blocks + hotspot + SENTINELS
    buckets = (max(each // 4, BUCKETS_MIN) for each in (blocks, hotspot))
    tables = sum(4 << (each - 1).bit_length() for each in buckets)
    bits = (3 * blocks + 2 * hotspot) // 8
    return Need(
        ENTRY_BYTES * entries + tables + bits,
        "smq: 24 B for each chunk and each of the hotspot blocks, hash tables, bit maps "
        "(dm-cache-policy-smq.c of Linux 6.1)",
    )


def sections(one: Settings, site: Site) -> list[Section]:
    """Return the commands."""
    names = Volumes.of(site)
    main, name = names.main, names.mapped
    versions = "uname -r\nlvm version\ncache_check -V\nmodprobe -n dm-cache-smq"
    mirror = " --type raid1 -m 1" if one.drives.is_mirrored else ""
    many = raised = ""
    if one.chunks > CHUNKS_MAX:
        many = f" --config allocation/cache_pool_max_chunks={one.chunks}"
        raised = f": more than LVM's limit of {CHUNKS_MAX:,}, so it is raised"
    by_lvm = max(one.migration_threshold, LVM_CHUNKS * one.chunk_bytes // SECTOR)
    steps = [
        *names.made(site),
        Step(
            f"lvcreate -n {names.fast} -L {one.size_bytes // KIB}k{layout(one.drives)} "
            f"{names.group} {shlex.join(site.fast)}",
            "The volume for cached data.",
        ),
        Step(
            f"lvcreate -n {names.metadata} -L {one.metadata_bytes // KIB}k{mirror} "
            f"{names.group} {shlex.join(site.fast)}",
            f"Its metadata: {METADATA_CHUNK} B a chunk and {METADATA_FIXED // MIB} MiB.",
        ),
        Step(
            f"lvconvert --yes --type cache-pool --chunksize {one.chunk_bytes // KIB}k "
            f"--poolmetadata {names.group}/{names.metadata}{many} {names.group}/{names.fast}",
            f"{one.chunks:,} chunks{raised}. Only the volumes of the cache lose their content.",
        ),
        Step(
            f"lvconvert --yes --type cache --cachepool {names.group}/{names.fast} "
            f"--cachemode {one.mode} --cachepolicy {one.policy} "
            f"--cachesettings migration_threshold={by_lvm} {main}",
            "Attach it. The volume may be in use.",
        ),
    ]
    undo = []
    if by_lvm > one.migration_threshold:
        message = f"dmsetup message {name} 0 migration_threshold {one.migration_threshold}"
        steps.append(unit(SERVICE, f"migration threshold of {main}", f"/usr/sbin/{message}"))
        undo.append(unit_removed(SERVICE))
    return [
        site.check(ssd(one), ram(one), versions),
        Section("install", "Build the cache", tuple(steps)),
        Section("verify", "Read the state back", (
            Step(
                f"dmsetup table {name}",
                expect=f"cache METADATA DATA ORIGIN {one.chunk_bytes // SECTOR} 2 metadata2 "
                f"{one.mode} smq ...",
            ),
            Step(
                f"dmsetup status --noflush {name}",
                expect=f"... {one.chunk_bytes // SECTOR} USED/{one.chunks} ... "
                f"migration_threshold {one.migration_threshold} {one.policy} ...; before the last "
                "feature list: demotions promotions DIRTY",
            ),
            Step(
                "lvs -a -o lv_name,lv_size,chunk_size,cache_mode,cache_policy,"
                "kernel_cache_settings,cache_dirty_blocks,cache_read_hits,cache_read_misses "
                f"{names.group}"
            ),
        )),
        site.monitor(
            f"dmsetup table {name}\ndmsetup status --noflush {name}", names.node,
            "lvs --noheadings --separator , -o lv_full_name,cache_total_blocks,"
            "cache_used_blocks,cache_dirty_blocks,cache_read_hits,cache_read_misses,"
            f"cache_write_hits,cache_write_misses {main}",
            "Watch it, or let a collector of metrics run this: read hits / (hits + misses) "
            "falling means that the load has outgrown the cache; dirty blocks near the "
            "used ones mean that writes are no longer put off; used blocks grow until it "
            "is full.",
        ),
        Section("remove", "Go back: the data stay on the volume", (
            Step(
                f"lvconvert --yes --uncache {main}",
                "Write dirty chunks back, then remove the cache. The volume may be in use. "
                f"(lvconvert --splitcache {main} keeps the volume of the cache for later.)",
            ),
            *undo,
            *names.unmade(site),
        )),
    ]  # fmt: skip


def notes(one: Settings, site: Site) -> list[str]:
    """Return what else is to be known of a dm-cache."""
    if one.mode == "writeback" and one.migration_threshold * SECTOR < one.chunk_bytes:
        return [
            "The migration threshold is below one chunk: the kernel never writes dirty chunks back "
            "when idle. LVM raises it to 8 chunks; leave it at that."
        ]
    return []


def differences(one: Settings, shown: str) -> list[str]:
    """Return where `dmsetup table` and `dmsetup status`, in this order, differ from settings."""
    lines = [line.split() for line in shown.splitlines() if " cache " in line]
    if len(lines) != 2:
        return [f"{len(lines)} lines of dmsetup, not one of table and one of status"]
    table, status = ([word for word in line if not word.endswith(":")] for line in lines)
    features = int(table[7])
    here = status.index("migration_threshold") + 1 if "migration_threshold" in status else -1
    mode = next((word for word in table[8 : 8 + features] if word != "metadata2"), "writeback")
    return differing([
        ("chunk sectors", one.chunk_bytes // SECTOR, table[6]),
        ("mode", one.mode, mode),
        ("policy", one.policy, table[8 + features]),
        ("chunks", one.chunks, status[6].partition("/")[2]),
        ("migration_threshold", one.migration_threshold, status[here]),
    ])  # fmt: skip
