"""The `[cache]` table of bcache, Linux's cache of extents, with the kernel's parameters.

The defaults are those of make-bcache 1.0.8 and Linux 6.1: buckets of 512 KiB, blocks of 512 bytes,
mode writethrough, a sequential cutoff of 4 MiB, congestion thresholds of 2 and 20 ms.  A cache has
at least 513 buckets; here a cache that is too small for them gets smaller buckets.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from hybridsim.foundation.units import format_size, parse_percent, parse_size
from hybridsim.scenario.fast_tier import SECTOR_BYTES, FastTier, share_or_size
from hybridsim.storage.drives import Size, Time

PAGE_BYTES = 4096  # unit of the cache size
BUCKETS_MIN = 513
BUCKET_MIN, BUCKET_USUAL, BUCKET_MAX = 4096, 512 * 1024, 4 * 2**20
OTHER_WORDS = {
    "write-through": "writethrough",
    "write-back": "writeback",
    "write-around": "writearound",
    "pass-through": "none",
}
AUTO = "auto"


def _auto_or_size(text: Any) -> str:
    return AUTO if text == AUTO else share_or_size(text)


def _mode(text: Any) -> Any:
    return OTHER_WORDS.get(text, text) if isinstance(text, str) else text


class BcacheTable(FastTier):
    """bcache; its keys have the names of /sys/block/bcache0/bcache where these exist."""

    kind: Literal["bcache"]
    bucket: Annotated[str, BeforeValidator(_auto_or_size)] = AUTO  # auto: 512KiB or less
    block_bytes: Size = Field(SECTOR_BYTES, alias="block", ge=SECTOR_BYTES, le=4096)
    mode: Annotated[
        Literal["writethrough", "writeback", "writearound", "none"], BeforeValidator(_mode)
    ] = "writethrough"
    replacement: Literal["lru", "fifo", "random"] = "lru"
    sequential_cutoff_bytes: Size = Field(4 * 2**20, alias="sequential_cutoff", lt=2**32)  # 0: none
    congested_read_ns: Time = Field(2_000_000, alias="congested_read", ge=0)  # 0: never congested
    congested_write_ns: Time = Field(20_000_000, alias="congested_write", ge=0)
    writeback_percent: int = Field(10, ge=0, le=40)
    writeback_delay_ns: Time = Field(30 * 10**9, alias="writeback_delay", ge=0)
    # Linux whose bcache it is: 6.12 allocates while its gc runs, and does not leave a clean cache
    # bypassed
    kernel: Literal["6.1", "6.12"] = "6.1"

    @property
    def page_bytes(self) -> int:
        """Unit of the cache size, in bytes."""
        return PAGE_BYTES

    @property
    def write_policy(self) -> str:
        """Write policy, in the terms common to all kinds of cache."""
        return next(word for word, own in OTHER_WORDS.items() if own == self.mode)

    @property
    def words(self) -> str:
        """Name of the cache in reports."""
        return f"bcache, {self.mode}"

    @property
    def least_bucket(self) -> int:
        """Bucket size in bytes of the smallest cache that can be built."""
        return BUCKET_MIN if self.bucket == AUTO else parse_size(self.bucket)

    def pages(self, footprint_bytes: int) -> int:
        """Return the number of pages, for a trace with this footprint.

        A cache specified as a share of the footprint has at least BUCKETS_MIN buckets.
        """
        if "%" not in self.size:
            return parse_size(self.size) // PAGE_BYTES
        share = int(parse_percent(self.size) * footprint_bytes / PAGE_BYTES)
        return max(share, BUCKETS_MIN * self.least_bucket // PAGE_BYTES)

    def bucket_bytes(self, pages: int) -> int:
        """Return the bucket size in bytes of a cache of `pages` pages."""
        if self.bucket != AUTO:
            return parse_size(self.bucket)
        bucket = BUCKET_USUAL
        while bucket > BUCKET_MIN and pages * PAGE_BYTES // bucket < BUCKETS_MIN:
            bucket //= 2
        return bucket

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield (key, message) for each value that make-bcache or the kernel refuses."""
        minimum = self.least_bucket
        if not BUCKET_MIN <= minimum <= BUCKET_MAX or minimum & (minimum - 1):
            yield "bucket", "a bcache bucket must be a power of two from 4 KiB to 4 MiB"
        elif "%" not in self.size and parse_size(self.size) < BUCKETS_MIN * minimum:
            smallest = f"{BUCKETS_MIN} buckets of {format_size(minimum)}"
            yield "size", f"{self.size} is too small: bcache needs at least {smallest}"
        else:
            yield from self.wrong_size(minimum, "bucket")
        if self.block_bytes & (self.block_bytes - 1):
            yield "block", "a bcache block must be a power of two from 512 bytes to 4 KiB"
        yield from self.wrong_chunk()
