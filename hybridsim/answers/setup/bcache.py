"""bcache: commands, and the same settings read back from the kernel."""

from __future__ import annotations

import re
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
    differing,
    empty,
    unit,
    unit_removed,
    whole,
)

KIND = "bcache"
PAGE = 4096
US, SECOND = 1000, 10**9
BUCKET_BYTES, KEY_BYTES = 12, 24  # struct bucket, and a key of one pointer
POLICIES = ("lru", "fifo")  # that make-bcache can set; sysfs has random too
NAME = "hybridsim-bcache"
SCRIPT = f"/usr/local/sbin/{NAME}"


@dataclass(frozen=True)
class Settings:
    """What is set of a bcache; all of it can be read back from the commands."""

    size_bytes: int  # whole buckets
    bucket_bytes: int
    block_bytes: int
    mode: str
    replacement: str
    sequential_cutoff: int  # bytes
    congested_read_us: int
    congested_write_us: int
    writeback_percent: int
    writeback_delay_s: int
    drives: Drives = field(default_factory=Drives)


# Path below the folder `bcache` of the slow device in sysfs, and the setting that it holds.
SYSFS = {
    "cache_mode": "mode",
    "sequential_cutoff": "sequential_cutoff",
    "writeback_percent": "writeback_percent",
    "writeback_delay": "writeback_delay_s",
    "cache/congested_read_threshold_us": "congested_read_us",
    "cache/congested_write_threshold_us": "congested_write_us",
    "cache/cache0/cache_replacement_policy": "replacement",
}
# Other files that show the state of the cache, below the same folder.
SHOWN = (
    "cache/cache_available_percent", "cache/cache0/priority_stats", "cache/bucket_size",
    "cache/block_size", "cache/cache0/nbuckets",
)  # fmt: skip


def settings(table: Any, pages: int, site: Site) -> Settings:
    """Return what is set for a scenario's cache; raise UsageError for what cannot be set."""
    bucket = table.bucket_bytes(pages)
    return Settings(
        pages * PAGE // bucket * bucket, bucket, table.block_bytes, table.mode, table.replacement,
        table.sequential_cutoff_bytes,
        # The kernel, and the simulation, count whole microseconds.
        table.congested_read_ns // US, table.congested_write_ns // US,
        table.writeback_percent,
        whole(table.writeback_delay_ns, SECOND, "bcache's writeback_delay", "whole seconds"),
        site.drives(table),
    )  # fmt: skip


def ssd(one: Settings) -> Need:
    """Return the bytes that each SSD must have."""
    total = one.drives.on_each(one.size_bytes) + 2 * MIB
    return Need(total, "the partition, and 2 MiB for the partition table")


def ram(one: Settings) -> Need:
    """Return the RAM that buckets and index take if every extent is a page."""
    buckets = one.size_bytes // one.bucket_bytes
    return Need(
        BUCKET_BYTES * buckets + KEY_BYTES * (one.size_bytes // PAGE),
        "12 B a bucket, and 24 B for each cached extent, here all of 4 KiB: fewer if they are "
        "longer, and index nodes leave RAM when it is short (bcache.h of Linux 6.1)",
    )


def sections(one: Settings, site: Site) -> list[Section]:
    """Return the commands."""
    cutting, fast = site.cut(one.drives, one.size_bytes)
    folder = f'/sys/class/block/$(basename "$(readlink -f {site.slow})")/bcache'
    replacement = ""
    if one.replacement in POLICIES:
        replacement = f" --cache_replacement_policy={one.replacement}"
    writes = "\n".join(f'echo {getattr(one, name)} > "$B/{path}"' for path, name in SYSFS.items())
    versions = "uname -r\nmodprobe -n bcache\ncommand -v make-bcache bcache-super-show"
    return [
        site.check(ssd(one), ram(one), versions, Step(
            f"blockdev --getss {site.slow} {site.fast[0]}",
            "The block of bcache must not be smaller than the sector of a device.",
            f"{one.block_bytes} or less",
        )),
        Section("install", "Build the cache", (
            empty(site.devices),
            *cutting,
            Step(
                f"make-bcache --bucket {one.bucket_bytes // KIB}k --block {one.block_bytes}"
                f"{replacement} -C {fast} -B {site.slow}",
                f"Format both. THIS DESTROYS ALL DATA ON {site.slow}: bcache writes its "
                "superblock there; a file system moves by 8 KiB, so the old one is lost.",
            ),
            Step(
                "modprobe bcache\nudevadm settle\n"
                f"for device in {fast} {site.slow}; do\n"
                '  test -e "/sys/class/block/$(basename "$(readlink -f "$device")")/bcache" ||\n'
                '    echo "$device" > /sys/fs/bcache/register\n'
                "done",
                "Start it, unless udev did.",
            ),
            Step(
                f"cat > {SCRIPT} <<'END'\n#!/bin/sh\n"
                "# Settings of bcache that the kernel forgets at each start.\n"
                f"B={folder}\n"
                'n=0; until [ -e "$B/cache/cache0" ] || [ $n -ge 60 ]; do '
                "sleep 1; n=$((n + 1)); done\n"
                f"set -e\n{writes}\nEND\nchmod 755 {SCRIPT}",
                "The settings, as a script.",
            ),
            unit(NAME, f"settings of bcache on {site.slow}", SCRIPT),
            Step(
                f"ls -d /dev/$(basename \"$(readlink -f {folder}/dev)\")",
                "The cached device: make the file system on it.",
                "/dev/bcache0, or another number",
            ),
        )),
        Section("verify", "Read the state back", (
            Step(
                f"B={folder}\ngrep -H . \"$B/state\" \"$B/dirty_data\" "
                + " ".join(f'"$B/{path}"' for path in (
                    *SYSFS, "cache/bucket_size", "cache/block_size", "cache/cache0/nbuckets")),
                expect=f"state clean or dirty; [{one.mode}], [{one.replacement}], "
                f"{one.size_bytes // one.bucket_bytes} buckets of {human(one.bucket_bytes)}",
            ),
            Step(
                f"B={folder}\ngrep -H . \"$B\"/stats_total/*",
                "Counters: of reads only, every 13.6 s, and wrong above 4,800 reads a second.",
            ),
        )),
        site.monitor(
            f'B={folder}\ngrep -H . "$B/state" "$B/dirty_data" "$B"/stats_total/* '
            + " ".join(f'"$B/{path}"' for path in (*SYSFS, *SHOWN)),
            '"$B/dev"',
            f'B={folder}\ngrep -H . "$B/dirty_data" "$B/stats_hour/cache_hit_ratio" '
            '"$B/stats_hour/bypassed" "$B/cache/cache_available_percent"',
            "Watch it, or let a collector of metrics read these files: a falling hit ratio "
            "means that the load has outgrown the cache; many bytes bypassed, that its "
            "requests count as sequential; below 60 percent available, that writes are "
            "no longer put off.",
        ),
        Section("remove", "Go back: the data stay on the bcache device, without a cache", (
            Step(
                f"B={folder}\nS=$(readlink -f \"$B/cache\")\necho 1 > \"$B/detach\"\n"
                'while [ -e "$B/cache" ]; do cat "$B/dirty_data"; sleep 10; done\n'
                'echo 1 > "$S/stop"\nwhile [ -e "$S" ]; do sleep 1; done',
                "Write dirty data back at full speed, then detach. The device may be in use.",
            ),
            Step(f"wipefs -a {fast}"),
            *site.partition_removed(one.drives),
            unit_removed(NAME, SCRIPT),
        )),
    ]  # fmt: skip


def notes(one: Settings, site: Site) -> list[str]:
    """Return what else is to be known of a bcache."""
    return [
        f"Without its cache the bcache device stays; the data on {site.slow} begin at 8 KiB, so "
        "to do without bcache map it with dmsetup, linear from sector 16, or copy the data."
    ]


def human(size_bytes: int) -> str:
    """Return a size as bcache's sysfs writes it (bch_hprint of Linux 6.1): 512.0k, 0.9M."""
    rank, value, rest = -1, size_bytes, 0
    while rank < 0 or value >= 1000:
        value, rest = divmod(value, KIB)
        rank += 1
    return f"{value}.{rest * 10 // KIB}{'kMGTPE'[rank]}"


def differences(one: Settings, shown: str) -> list[str]:
    """Return where the lines of `verify`, path:value, differ from settings."""
    found = {}
    for line in shown.splitlines():
        path, colon, text = line.partition(":")
        if colon and "/bcache/" in path:
            chosen = re.search(r"\[(\w+)\]", text)
            found[path.partition("/bcache/")[2]] = chosen[1] if chosen else text
    expected: dict[str, object] = {path: getattr(one, name) for path, name in SYSFS.items()}
    expected |= {
        "sequential_cutoff": human(one.sequential_cutoff),
        "cache/bucket_size": human(one.bucket_bytes), "cache/block_size": human(one.block_bytes),
        "cache/cache0/nbuckets": one.size_bytes // one.bucket_bytes,
    }  # fmt: skip
    return differing(
        (path if path in SYSFS else path.rpartition("/")[2], value, found.get(path))
        for path, value in expected.items()
    )
