"""Printed commands of `hybridsim setup`, read back: the settings that they set.

KINDS has by kind of cache what reads the commands of its section `install`, and what returns the
keys of a scenario that simulates settings.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

from hybridsim.answers.setup import bcache, dmcache, opencas, writecache
from hybridsim.answers.setup.plan import KIB, Drives
from hybridsim.foundation.units import format_size, format_time

NUMBERS = set(bcache.SYSFS.values()) - {"mode", "replacement"}


def commands(script: str) -> Iterator[list[str]]:
    """Yield the words of each command of a script; comments and the ends of files are left out."""
    end = None
    for line in script.splitlines():
        if end is not None:
            end = None if line == end else end
            if end is None or line.startswith("["):
                continue
        match = re.search(r"<<'(\w+)'$", line)
        if match:
            end = match[1]
        words = shlex.split(line, comments=True)
        if words:
            yield words


def value(words: Sequence[str], *names: str) -> str | None:
    """Return the value of an option: of `--name value`, or `--name=value`."""
    for position, word in enumerate(words):
        if word in names and position + 1 < len(words):
            return words[position + 1]
        name, equals, text = word.partition("=")
        if equals and name in names:
            return text
    return None


def needed(words: Sequence[str], *names: str) -> str:
    """Return the value of an option; raise ValueError if it is missing."""
    result = value(words, *names)
    if result is None:
        raise ValueError(f"{shlex.join(words)}: {names[0]} is missing")
    return result


def drives_in(script: str) -> Drives:
    """Return the SSDs of a script that makes an array with mdadm."""
    for words in commands(script):
        if words[0] == "mdadm" and "--create" in words:
            level, number = int(needed(words, "--level")), int(needed(words, "--raid-devices"))
            is_mirrored = level in (1, 10)
            members = number // (1 + is_mirrored)
            chunk = value(words, "--chunk")
            stripe = int(chunk.removesuffix("K")) * KIB if chunk else 0
            return Drives(members, stripe, is_mirrored)
    return Drives()


def partition_bytes(script: str) -> int:
    """Return the size of the partition that a script makes."""
    match = re.search(r"size=(\d+)KiB", script)
    if not match:
        raise ValueError("the script makes no partition")
    return int(match[1]) * KIB


def layout_in(words: Sequence[str]) -> Drives:
    """Return the SSDs of an lvcreate."""
    kind = value(words, "--type") or "linear"
    members = int(value(words, "-i") or 1)
    stripe = int(needed(words, "-I").removesuffix("k")) * KIB if members > 1 else 0
    return Drives(members, stripe, kind in ("raid1", "raid10"))


def bcache_keys(one: bcache.Settings) -> dict[str, Any]:
    """Return the keys of a scenario that simulates these settings."""
    return {
        "cache.kind": bcache.KIND,
        "cache.size": format_size(one.size_bytes),
        "cache.bucket": format_size(one.bucket_bytes),
        "cache.block": format_size(one.block_bytes),
        "cache.mode": one.mode,
        "cache.replacement": one.replacement,
        "cache.sequential_cutoff": format_size(one.sequential_cutoff),
        "cache.congested_read": format_time(one.congested_read_us * bcache.US),
        "cache.congested_write": format_time(one.congested_write_us * bcache.US),
        "cache.writeback_percent": one.writeback_percent,
        "cache.writeback_delay": format_time(one.writeback_delay_s * bcache.SECOND),
    }


def bcache_parsed(script: str) -> bcache.Settings:
    """Return the settings that the commands of `install` set; raise ValueError for others."""
    bucket = block = 0
    found: dict[str, str] = {}
    for words in commands(script):
        if words[0] == "make-bcache":
            bucket = int(needed(words, "--bucket").removesuffix("k")) * KIB
            block = int(needed(words, "--block"))
    for text, path in re.findall(r'^echo (\S+) > "\$B/([\w/]+)"$', script, re.M):
        if path in bcache.SYSFS:
            found[bcache.SYSFS[path]] = text
    if not bucket or set(found) != set(bcache.SYSFS.values()):
        raise ValueError("these are not the commands of a bcache")
    values: dict[str, Any] = {
        name: int(text) if name in NUMBERS else text for name, text in found.items()
    }
    return bcache.Settings(
        partition_bytes(script), bucket, block, drives=drives_in(script), **values
    )  # fmt: skip


def dmcache_keys(one: dmcache.Settings) -> dict[str, Any]:
    """Return the keys of a scenario that simulates these settings."""
    return {
        "cache.kind": dmcache.KIND,
        "cache.size": format_size(one.size_bytes),
        "cache.block": format_size(one.chunk_bytes),
        "cache.mode": one.mode,
        "cache.migration_threshold": format_size(one.migration_threshold * dmcache.SECTOR),
    }


def dmcache_parsed(script: str) -> dmcache.Settings:
    """Return the settings that the commands of `install` set; raise ValueError for others."""
    size = chunk = threshold = None
    mode = policy = ""
    drives = Drives()
    for words in commands(script):
        kind = value(words, "--type")
        if words[0] == "lvcreate" and size is None and "-L" in words:
            size, drives = int(needed(words, "-L").removesuffix("k")) * KIB, layout_in(words)
        elif words[0] == "lvconvert" and kind == "cache-pool":
            chunk = int(needed(words, "--chunksize").removesuffix("k")) * KIB
        elif words[0] == "lvconvert" and kind == "cache":
            mode, policy = needed(words, "--cachemode"), needed(words, "--cachepolicy")
            threshold = int(needed(words, "--cachesettings").partition("=")[2])
        elif "message" in words and "migration_threshold" in words:
            threshold = int(words[-1])
    if size is None or chunk is None or threshold is None:
        raise ValueError("these are not the commands of a dm-cache")
    return dmcache.Settings(size, chunk, mode, policy, threshold, drives)


def writecache_keys(one: writecache.Settings) -> dict[str, Any]:
    """Return the keys of a scenario that simulates these settings."""
    return {
        "cache.kind": writecache.KIND,
        "cache.size": format_size(one.blocks * one.block_bytes),
        "cache.block": format_size(one.block_bytes),
        "cache.high_watermark": f"{one.high_watermark}%",
        "cache.low_watermark": f"{one.low_watermark}%",
        "cache.autocommit_blocks": one.autocommit_blocks,
        "cache.autocommit_time": format_time(one.autocommit_time_ms * writecache.MS),
        "cache.pause_writeback": format_time(one.pause_writeback_ms * writecache.MS),
    }


def writecache_parsed(script: str) -> writecache.Settings:
    """Return the settings that the commands of `install` set; raise ValueError for others."""
    size = None
    tuned: dict[str, int] = {}
    for words in commands(script):
        if words[0] == "lvcreate" and "-an" in words:
            size = int(needed(words, "-L").removesuffix("k")) * KIB
        elif words[0] == "lvconvert" and value(words, "--type") == "writecache":
            pairs = (each.partition("=") for each in needed(words, "--cachesettings").split())
            tuned = {name: int(number) for name, _, number in pairs}
    if size is None or not tuned:
        raise ValueError("these are not the commands of a dm-writecache")
    return writecache.Settings(
        size, tuned["block_size"], tuned["high_watermark"], tuned["low_watermark"],
        tuned["autocommit_blocks"], tuned.get("pause_writeback", writecache.PAUSE_MS),
        tuned.get("autocommit_time", writecache.AUTOCOMMIT_MS), drives_in(script),
    )  # fmt: skip


def opencas_keys(one: opencas.Settings) -> dict[str, Any]:
    """Return the keys of a scenario that simulates these settings."""
    unit = opencas.SECOND if one.cleaning == opencas.ALRU else opencas.MS
    result = {
        "cache.kind": opencas.KIND,
        "cache.size": format_size(one.lines * one.line_bytes),
        "cache.line": format_size(one.line_bytes),
        "cache.mode": one.mode,
        "cache.promotion": one.promotion,
        "cache.insertion_threshold": one.insertion_threshold,
        "cache.trigger_threshold": one.trigger_percent and f"{one.trigger_percent}%",
        "cache.sequential_cutoff_policy": one.cutoff_policy,
        "cache.sequential_cutoff": format_size(one.cutoff_bytes),
        "cache.cleaning": one.cleaning,
        "cache.wake_up": one.wake_up and format_time(one.wake_up * unit),
        "cache.flush_max_buffers": one.flush_max_buffers,
        "cache.staleness_time": one.staleness_s and format_time(one.staleness_s * opencas.SECOND),
        "cache.activity_threshold": one.activity_ms and format_time(one.activity_ms * opencas.MS),
    }
    if one.trigger_percent == 0:
        result["cache.trigger_threshold"] = "0%"
    if one.activity_ms == 0:
        result["cache.activity_threshold"] = "0ms"
    return {name: each for name, each in result.items() if each is not None}


def opencas_parsed(script: str) -> opencas.Settings:
    """Return the settings that the commands of `install` set; raise ValueError for others."""
    found: dict[str, list[str]] = {}
    for words in commands(script):
        if words[0] == "casadm":
            found["start" if "-S" in words else value(words, "-n") or "add"] = words
    if not {"start", "seq-cutoff", "promotion", "cleaning"} <= set(found):
        raise ValueError("these are not the commands of Open CAS")

    def number(name: str, option: str) -> int | None:
        return int(needed(found[name], option)) if name in found else None

    cleaning = needed(found["cleaning"], "-p")
    tuned = f"cleaning-{cleaning}"
    return opencas.Settings(
        partition_bytes(script), int(needed(found["start"], "-x")) * KIB,
        needed(found["start"], "-c"), needed(found["seq-cutoff"], "-p"),
        int(needed(found["seq-cutoff"], "-t")) * KIB, needed(found["promotion"], "-p"),
        number("promotion-nhit", "-t"), number("promotion-nhit", "-o"), cleaning,
        number(tuned, "-w"), number(tuned, "-b"),
        number(tuned, "-s") if cleaning == opencas.ALRU else None,
        number(tuned, "-t") if cleaning == opencas.ALRU else None, drives_in(script),
    )  # fmt: skip


KINDS = {
    "bcache": (bcache_parsed, bcache_keys),
    "dm-cache": (dmcache_parsed, dmcache_keys),
    "dm-writecache": (writecache_parsed, writecache_keys),
    "open-cas": (opencas_parsed, opencas_keys),
}
