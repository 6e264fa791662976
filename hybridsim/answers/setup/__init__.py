"""How a simulated cache is built on a real machine: commands as text, which nothing here runs.

One file a kind: `settings` of a scenario's cache, and the `sections` of commands that set them; the
tests read the same settings back from these (tests/setup_read_back.py).  With `differences` the
state that the kernel shows is held against them.  A new kind: one file, one line of KINDS.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from hybridsim.answers.setup import bcache, dmcache, opencas, writecache
from hybridsim.answers.setup.plan import Need, Plan, Site, placeholders
from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.units import human_size
from hybridsim.scenario import Scenario

KINDS: dict[str, ModuleType] = {each.KIND: each for each in (bcache, dmcache, writecache, opencas)}
NAMES = {"bcache": "bcache", "dm-cache": "dm-cache (LVM)", "dm-writecache": "dm-writecache (LVM)",
         "open-cas": "Open CAS"}  # fmt: skip


def plan(scenario: Scenario, pages: int | None, site: Site) -> Plan:
    """Return how a scenario's cache is built; `pages` is its size in a replay, None: in bytes.

    Raises UsageError for a cache that no product has, that the distribution lacks, or whose
    settings or size cannot be set.
    """
    table = scenario.cache
    kind = KINDS.get(table.kind)
    if kind is None:
        raise UsageError(
            "there is no cache to build (--cache none)" if table.kind == "none" else
            f"--cache {table.kind}: no product has this cache, so there are no commands for it: "
            f"--cache {', '.join(KINDS)}"
        )  # fmt: skip
    available(table.kind, site)
    if pages is None:
        if "%" in table.size:
            raise UsageError(
                f"a size of {table.size} depends on the trace: specify --cache-size in bytes, or "
                "the JSON of a replay or of advise"
            )
        pages = table.pages(0)
    if pages <= 0:
        raise UsageError("this cache has no pages: specify --cache-size")
    settings = kind.settings(table, pages, site)
    ssd, ram = kind.ssd(settings), kind.ram(settings)
    mode = table.write_policy
    held = pages * table.page_bytes
    words = f"{NAMES[table.kind]}, {mode}, {human_size(held)} on {settings.drives.words}"
    cautions = warnings(table.kind, mode, settings, site)
    if scenario.backing.is_one_drive and scenario.backing.writeback_throttle == "off":
        cautions.append(
            "Writeback throttling of the disk (wbt) was off in the simulation; Linux has it on, "
            "with 75 ms. To have what was simulated, write 0 to wbt_lat_usec in the folder queue "
            "of the disk in /sys/block."
        )
    return Plan(
        table.kind, mode, words, settings, site, tuple(kind.sections(settings, site)), ssd, ram,
        site.fast if table.kind == "open-cas" else site.devices, tuple(cautions),
    )  # fmt: skip


def metadata_ram(scenario: Scenario, pages: int) -> Need | None:
    """Return the RAM that the metadata of a scenario's cache take; None if no product has it."""
    kind = KINDS.get(scenario.cache.kind)
    if kind is None or not pages:
        return None
    site = Site(fast=placeholders(scenario.cache.members), distribution="debian13")
    try:
        return kind.ram(kind.settings(scenario.cache, pages, site))  # type: ignore[no-any-return]
    except UsageError:
        return None  # with settings that cannot be set


def available(kind: str, site: Site) -> None:
    """Raise UsageError, with the alternatives, if a distribution lacks a kind of cache."""
    why = site.system.lacks.get(kind, "")
    if kind == "open-cas" and not site.from_source:
        why = "no distribution packages it: its modules are built for each kernel"
    if why:
        others = [each for each in KINDS if each != kind and each not in site.system.lacks
                  and each != "open-cas"]  # fmt: skip
        own = "; --from-source prints how it is built" if kind == "open-cas" else ""
        raise UsageError(
            f"{NAMES[kind]} on {site.system.title}: {why}. Instead: --cache "
            f"{' or '.join(others)}{own}"
        )
    if site.is_volume and kind in ("bcache", "open-cas"):
        raise UsageError(
            f"--slow {site.slow}: {NAMES[kind]} takes a device: /dev/{site.slow}; an existing "
            "volume as VG/LV is for dm-cache and dm-writecache"
        )


def warnings(kind: str, mode: str, settings: Any, site: Site) -> list[str]:
    """Return what could be lost or go wrong."""
    result = []
    if kind == "bcache":
        result.append(
            f"ALL DATA ON {site.slow} ARE LOST: bcache formats the slow device too. Copy them "
            "away first, or use dm-cache, which takes an existing volume (--slow VG/LV)."
        )
    elif site.is_volume or kind == "open-cas":
        result.append(f"The data on {site.slow} stay; have a backup.")
    else:
        result.append(
            f"ALL DATA ON {site.slow} ARE LOST. Where they are on an LVM volume already: "
            "--slow VG/LV keeps them."
        )
    if mode in ("write-back", "write-only") and not settings.drives.is_mirrored:
        result.append(
            "Dirty data are on the SSD alone: if it dies, they are lost, and the file system may "
            "be too. For a mirror, specify --fast twice."
        )
    if kind == "dm-cache":
        result.append(
            "After a crash or a power failure the kernel counts every cached chunk as dirty, and "
            "writes all of them back, in write-through too: until then it cannot be removed."
        )
    if kind == "open-cas":
        kept = (
            "all else is gone, and must be read from the disks again"
            if mode in ("write-back", "write-only") else
            "it comes up empty, and must warm up again"
        )  # fmt: skip
        result.append(
            f"After a crash or a power failure Open CAS recovers only dirty data: {kept}. "
            "A stop in order keeps everything."
        )
        result.append("Open CAS must be built again for each kernel, before the reboot into it.")
    notes = getattr(KINDS[kind], "notes", None)
    return [*result, *(notes(settings, site) if notes else [])]
