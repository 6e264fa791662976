"""The parameters of the models of caches, one class a kind, for engine and reference.

A key of the table `[cache]` has one name everywhere, and its unit at its end: `fill_piece` is
`fill_piece_bytes` in the table (scenario/), here, in the engine and in the reference.  What is
computed from a key has the unit that it is computed in: `trigger_threshold` is
`trigger_threshold_lines`.  The table states the range and what the key is for; its default is the
one here, unless the key means something else until the size of the cache is known.
"""

from dataclasses import dataclass, field, fields
from typing import Any

from hybridsim.foundation.codes import (
    BcacheMode,
    CasMode,
    Cleaning,
    Cutoff,
    DmMode,
    Fill,
    FillWhen,
    Kernel,
    Mode,
    Promotion,
    Reuse,
)


def _plain(value: Any) -> Any:
    """Convert NumPy numbers and arrays to Python ones, whose integers never overflow."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


def plain_values(of: Any) -> dict[str, Any]:
    """Return the fields of a dataclass by name, with Python numbers for NumPy ones."""
    return {each.name: _plain(getattr(of, each.name)) for each in fields(of)}


class Plain:
    """A dataclass that accepts NumPy numbers and stores Python ones."""

    def __post_init__(self) -> None:
        vars(self).update(plain_values(self))


@dataclass
class BudgetParameters(Plain):
    """The rate of fills that a write budget allows (2.4.4)."""

    interval: int  # ns, or parts of an access
    burst: int
    counts_accesses: bool


# Of a fill of 64 KiB by the learned policy, in disk reads: the disks' part (reuse.py), and wear.
WRITE_PRICE = 0.8
# By admission policy: what its constructors are given, of the table's `policy_parameters`.
ADMISSION_PARAMETERS = {
    "learned": ("write_price_per_thousand",),
    "touches": ("touches",),
    "probabilistic": ("probability_per_million", "seed"),
    "request-size": ("request_max_bytes",),
}


@dataclass
class CacheParameters(Plain):
    """The page cache and its policies (2.3, 2.4); pages = 0: no cache.

    granule_bytes = 0: one granule per page; a rate of 0: no limit.
    """

    page_bytes: int
    pages: int
    mode: Mode
    sequential_cutoff_bytes: int
    max_fills: int
    admission: tuple[Any, ...]  # name, and the values of ADMISSION_PARAMETERS: ("touches", n)
    replacement: str = "lru"  # the default of the table with another admission than "learned"
    granule_bytes: int = 0
    fill: Fill = Fill.RE_READ
    fill_when: FillWhen = FillWhen.BACKGROUND
    fill_piece_bytes: int = 0
    fill_rate: int = 0
    sub_page: bool = False
    discards: bool = False
    dirty_high: int = 1  # pages; this and the following up to clean_rate: write-back only
    dirty_low: int = 0
    clean_above: int = 0
    clean_idle_ns: int = 10**9
    max_cleans: int = 8
    clean_merge_pages: int = 1
    clean_window: int = 1
    clean_rate: int = 0
    kept: list[tuple[int, int]] = field(default_factory=list)  # (page, bit mask of valid granules)
    preload: list[int] = field(default_factory=list)  # pages
    preload_idle_ns: int = 20_000_000  # also the polling interval while the disks are busy
    preload_gap_bytes: int = 256 * 1024
    preload_chunk_bytes: int = 2**20
    preload_reads: int = 4
    preload_rate: int = 50_000_000
    budget: BudgetParameters | None = None


@dataclass
class DmCacheParameters(Plain):
    """dm-cache (2.14)."""

    block_bytes: int
    blocks: int
    mode: DmMode
    migration_threshold_bytes: int
    worker_delay_ns: int = 20_000  # 10 to 50 us: an estimate
    part_bytes: int = 512 * 1024  # no key; kcopyd_subjob_size_kb


@dataclass
class OpenCasParameters(Plain):
    """Open CAS (2.13)."""

    line_bytes: int
    lines: int
    mode: CasMode
    promotion: Promotion = Promotion.ALWAYS
    insertion_threshold: int = 3
    trigger_threshold_lines: int = 0
    sequential_cutoff_policy: Cutoff = Cutoff.FULL
    sequential_cutoff_bytes: int = 2**20
    margin_lines: int = 512  # no key; free lines below which the cutoff "full" starts
    cleaning: Cleaning = Cleaning.ALRU
    wake_up_ns: int = 20 * 10**9
    staleness_time_ns: int = 120 * 10**9
    activity_threshold_ns: int = 10 * 10**9
    flush_max_buffers: int = 100
    stats_interval_ns: int = 0
    stats_start_ns: int = 0
    queues: int = 4
    backfills_max: int = 65_536  # no key, as the next
    backfills_resume: int = 60_000


@dataclass
class WritecacheParameters(Plain):
    """dm-writecache (2.15)."""

    block_bytes: int
    blocks: int
    high_watermark_blocks: int
    low_watermark_blocks: int
    pause_writeback_ns: int = 3 * 10**9
    pass_time_ns: int = 200_000
    autocommit_blocks: int = 65_536
    autocommit_time_ns: int = 10**9


@dataclass
class BcacheParameters(Plain):
    """bcache (2.12)."""

    bucket_bytes: int
    buckets: int
    block_bytes: int
    mode: BcacheMode
    replacement: Reuse = Reuse.LRU
    sequential_cutoff_bytes: int = 4 << 20
    congested_read_us: int = 2000
    congested_write_us: int = 20_000
    writeback_percent: int = 10
    writeback_delay_ns: int = 30 * 10**9
    open_buckets: int = 128  # no key
    seed: int = 1
    kernel: Kernel = Kernel.LINUX_6_1
    gc_nodes: int = 100
