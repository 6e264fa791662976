"""From a scenario to the machine that it describes."""

from __future__ import annotations

from typing import Any

from hybridsim.caches import PageCache
from hybridsim.codes import Level, Mode, Replay
from hybridsim.devices import HDD, SSD
from hybridsim.devices.hdd_geometry import geometry
from hybridsim.devices.ssd_timing import timing
from hybridsim.drives import HardDisk
from hybridsim.events import FAST, SLOW
from hybridsim.levels import KINDS, SPREADS
from hybridsim.machine import Machine
from hybridsim.policies import LRU, Learned, Touches
from hybridsim.raid import Tier
from hybridsim.scenario import Backing, Cache, Scenario
from hybridsim.source import Source

MODES = {"read-only": Mode.READ_ONLY, "write-through": Mode.WRITE_THROUGH}
REPLAYS = {"open": Replay.OPEN, "closed": Replay.CLOSED, "think": Replay.THINK}
IDS = 1 << 14  # pages that there is room for at first


def machine(scenario: Scenario, mode: str, volume_bytes: int, pages: int) -> Machine:
    """Build the machine for a volume of that size, with a cache of `pages` pages (0: none).

    `mode` is open, closed or think; a scenario may leave it to be found out.
    """
    return Machine.new(
        Source.new(int(REPLAYS[mode]), scenario.replay.depth),
        cache(scenario.cache, pages),
        slow_tier(scenario.backing, volume_bytes),
        fast_tier(scenario.cache, pages),
    )


def cache(said: Cache, pages: int) -> PageCache:
    """Build an empty cache."""
    return PageCache.new(
        page_bytes=said.page_bytes,
        pages=pages,
        mode=int(MODES[said.mode]),
        cutoff_bytes=said.sequential_cutoff_bytes,
        fills_max=said.max_fills,
        admission=admission(said, pages),
        replacement=LRU.new(IDS),
        ids=IDS,
    )


def admission(said: Cache, pages: int) -> Any:
    """Build the admission policy."""
    if said.admission == "learned":
        return Learned.new(IDS, pages)
    return Touches.new(IDS, pages, 1 if said.admission == "always" else said.touches)


def slow_tier(said: Backing, volume_bytes: int) -> Tier:
    """Build the idle array below the cache."""
    member_bytes = said.member_bytes(volume_bytes)
    device = bank(said.drive, said.members, member_bytes, said.window, said.age_limit_ns)
    new = said.rebuild
    return Tier.new(
        SLOW,
        int(KINDS[said.kind].level),
        said.members,
        said.chunk_bytes,
        device,
        spread=int(SPREADS[said.layout]),
        rmw_level=said.rmw_level,
        rotates=isinstance(said.drive, HardDisk),
        failed=said.failed,
        rebuild=(new.member, new.min_bytes_per_s, new.max_bytes_per_s) if new else None,
        queue_depth=said.queue_depth,
    )


def fast_tier(said: Cache, pages: int) -> Tier:
    """Build the idle cache device, one drive at least as large as the cache."""
    needed = max(pages, 1) * said.page_bytes
    device = bank(said.drive, 1, max(needed, said.drive.capacity_bytes), 1, 0)
    return Tier.new(FAST, int(Level.STRIPE), 1, said.page_bytes, device)


def bank(drive: Any, members: int, capacity_bytes: int, window: int, age_limit_ns: int) -> Any:
    """Build idle drives of one model."""
    if isinstance(drive, HardDisk):
        parameters = geometry(drive, capacity_bytes)._asdict()
        parameters |= {"window": window, "age_limit_ns": age_limit_ns}
        return HDD.new(members, parameters)
    return SSD.new(members, timing(drive)._asdict() | {"capacity_bytes": capacity_bytes})
