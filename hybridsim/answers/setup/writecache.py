"""dm-writecache with LVM: commands, and the same settings read back from the kernel."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hybridsim.answers.setup.plan import (
    KIB,
    MIB,
    Drives,
    Need,
    Section,
    Site,
    Step,
    Volumes,
    differing,
    rounded,
    whole,
)
from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.units import format_size, format_time, parse_percent

KIND = "dm-writecache"
BLOCKS = (512, 4096)  # that LVM can set
HEADER_BYTES, ENTRY_BYTES = 64, 16  # of the kernel's metadata on the SSD
RAM_BYTES = 72 + ENTRY_BYTES  # struct wc_entry, and the metadata once more
MS = 1_000_000
PAUSE_MS, AUTOCOMMIT_MS = 3000, 1000  # the kernel's defaults
LVM_WITH_PAUSE = (2, 3, 31)  # 2.03.16 lacks it; those between were not looked at


@dataclass(frozen=True)
class Settings:
    """What is set of a dm-writecache; all of it can be read back from the commands."""

    size_bytes: int  # of the volume, metadata included: whole extents of LVM
    block_bytes: int
    high_watermark: int  # percent
    low_watermark: int
    autocommit_blocks: int
    pause_writeback_ms: int
    autocommit_time_ms: int = AUTOCOMMIT_MS
    drives: Drives = field(default_factory=Drives)

    @property
    def blocks(self) -> int:
        """Number of blocks that the kernel makes of the volume (its calculate_memory_size)."""
        blocks = self.size_bytes // (self.block_bytes + ENTRY_BYTES)
        while _taken(blocks, self.block_bytes) > self.size_bytes:
            blocks -= 1
        return blocks


def _taken(blocks: int, block_bytes: int) -> int:
    metadata = HEADER_BYTES + ENTRY_BYTES * blocks
    return -(-metadata // block_bytes) * block_bytes + blocks * block_bytes


def settings(table: Any, pages: int, site: Site) -> Settings:
    """Return what is set for a scenario's cache; raise UsageError for what cannot be set."""
    drives = site.drives(table)
    block = table.page_bytes
    if block not in BLOCKS:
        raise UsageError(f"cache.block of {format_size(block)}: LVM sets 512B or 4KiB only")
    marks = []
    for name in ("high_watermark", "low_watermark"):
        share = parse_percent(getattr(table, name)) * 100
        if share.denominator != 1:
            raise UsageError(f"{name} {getattr(table, name)}: LVM sets whole percent only")
        marks.append(int(share))
    pause = whole(table.pause_writeback_ns, MS, "pause_writeback", "whole milliseconds")
    if pause != PAUSE_MS and site.system.lvm < LVM_WITH_PAUSE:
        raise UsageError(
            f"pause_writeback {format_time(table.pause_writeback_ns)}: LVM 2.03.31 sets it, the "
            f"older one of {site.system.title} may not: simulate the kernel's 3s, or use Debian 13"
        )
    size = rounded(_taken(pages, block), 1)
    commit = whole(table.autocommit_time_ns, MS, "autocommit_time", "whole milliseconds")
    blocks = table.autocommit_blocks
    return Settings(size, block, marks[0], marks[1], blocks, pause, commit, drives)


def ssd(one: Settings) -> Need:
    """Return the bytes that each SSD must have."""
    total = one.drives.on_each(one.size_bytes) + MIB
    return Need(total, "blocks, their metadata and the LVM label")


def ram(one: Settings) -> Need:
    """Return the RAM that the kernel takes."""
    return Need(
        RAM_BYTES * one.blocks,
        f"{RAM_BYTES} B a block: struct wc_entry and the metadata (dm-writecache.c of Linux 6.1; "
        "lvmcache(7): slightly over 2 GiB for 100 GiB in blocks of 4 KiB)",
    )


def sections(one: Settings, site: Site) -> list[Section]:
    """Return the commands."""
    names = Volumes.of(site)
    main, name = names.main, names.mapped
    tuned = (
        f"block_size={one.block_bytes} high_watermark={one.high_watermark} "
        f"low_watermark={one.low_watermark} autocommit_blocks={one.autocommit_blocks}"
    )
    if one.pause_writeback_ms != PAUSE_MS:
        tuned += f" pause_writeback={one.pause_writeback_ms}"
    if one.autocommit_time_ms != AUTOCOMMIT_MS:
        tuned += f" autocommit_time={one.autocommit_time_ms}"
    # LVM refuses a volume that is striped or mirrored as a writecache: md does it.
    combined, fast = site.array(one.drives)
    steps = names.made(site, combined, fast)
    steps += [
        Step(
            f"lvcreate -an -Wn -Zn -n {names.fast} -L {one.size_bytes // KIB}k "
            f"{names.group} {fast}",
            "The volume of the cache, inactive as lvconvert wants it.",
        ),
        Step(
            f"lvconvert --yes --type writecache --cachevol {names.fast} "
            f"--cachesettings '{tuned}' {main}",
            "Attach it. The volume may be in use.",
        ),
    ]
    return [
        site.check(ssd(one), ram(one), "uname -r\nlvm version\nmodprobe -n dm-writecache", *[Step(
            f"xfs_info /dev/{site.slow} | grep sectsz || blkid -p /dev/{site.slow}",
            "A file system with sectors of 512 B cannot be mounted on blocks of 4 KiB.",
            "sectsz=4096, for XFS",
        )] * (site.is_volume and one.block_bytes != min(BLOCKS))),
        Section("install", "Build the cache", tuple(steps)),
        Section("verify", "Read the state back", (
            Step(
                f"dmsetup table {name}",
                expect=f"writecache s ORIGIN SSD {one.block_bytes} N high_watermark "
                f"{one.high_watermark} low_watermark {one.low_watermark} autocommit_blocks "
                f"{one.autocommit_blocks} ...",
            ),
            Step(
                f"dmsetup status --noflush {name}",
                expect=f"writecache ERRORS {one.blocks} FREE UNDER-WRITE-BACK ...",
            ),
            Step(
                "lvs -a -o lv_name,lv_size,writecache_block_size,kernel_cache_settings,"
                "writecache_total_blocks,writecache_free_blocks,writecache_writeback_blocks "
                f"{names.group}"
            ),
        )),
        site.monitor(
            f"dmsetup table {name}\ndmsetup status --noflush {name}", names.node,
            "lvs --noheadings --separator , -o lv_full_name,writecache_total_blocks,"
            f"writecache_free_blocks,writecache_writeback_blocks,writecache_error {main}",
            "Watch it, or let a collector of metrics run this: free blocks that stay near "
            f"{100 - one.high_watermark} percent or below mean that writes come faster "
            "than the slow device takes them; at 0 they wait for it.",
        ),
        Section("remove", "Go back: the data stay on the volume", (
            Step(
                f"lvchange --yes --cachesettings cleaner=1 {main}",
                "Write all blocks back while the volume is in use; lvs shows what is left.",
            ),
            Step(
                f"lvconvert --yes --uncache {main}",
                "Wait for the rest, then remove the cache.",
            ),
            *names.unmade(site, fast),
            *site.array_removed(one.drives),
        )),
    ]  # fmt: skip


def differences(one: Settings, shown: str) -> list[str]:
    """Return where `dmsetup table` and `dmsetup status`, in this order, differ from settings."""
    lines = [line.split() for line in shown.splitlines() if " writecache " in line]
    if len(lines) != 2:
        return [f"{len(lines)} lines of dmsetup, not one of table and one of status"]
    table, status = ([word for word in line if not word.endswith(":")] for line in lines)
    options = table[8:]
    found: dict[str, object] = {
        "autocommit_time": AUTOCOMMIT_MS, "pause_writeback": PAUSE_MS,
        **dict(zip(options[::2], options[1::2])), "block": table[6], "blocks": status[4],
    }  # fmt: skip
    expected = {
        "block": one.block_bytes, "high_watermark": one.high_watermark,
        "low_watermark": one.low_watermark, "autocommit_blocks": one.autocommit_blocks,
        "autocommit_time": one.autocommit_time_ms, "pause_writeback": one.pause_writeback_ms,
        "blocks": one.blocks,
    }  # fmt: skip
    return differing((name, value, found.get(name)) for name, value in expected.items())
