"""The `[cache]` table of bcache, Linux's cache of extents, with the kernel's parameters.

The defaults are those of make-bcache 1.0.8 and Linux 6.1: buckets of 512 KiB, blocks of 512 bytes,
mode writethrough, a sequential cutoff of 4 MiB, congestion thresholds of 2 and 20 ms.  A cache has
at least 513 buckets; here a cache that is too small for them gets smaller buckets.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

from pydantic import Field

from hybridsim.foundation.cache_parameters import BcacheParameters as Model
from hybridsim.foundation.codes import Kernel
from hybridsim.foundation.toml.table import Size, Time
from hybridsim.foundation.units import format_size, parse_size
from hybridsim.scenario.fast_tier import AUTO, SECTOR_BYTES, AutoSize, FastTier, word

BUCKETS_MIN = 513
BUCKET_MIN, BUCKET_USUAL, BUCKET_MAX = 4096, 512 * 1024, 4 * 2**20


def _release(kernel: Kernel) -> Any:
    return kernel.name.removeprefix("LINUX_").replace("_", ".")


class BcacheTable(FastTier):
    """bcache; its keys have the names of /sys/block/bcache0/bcache where these exist."""

    page_bytes: ClassVar[int] = 4096  # unit of the cache size
    kind: Literal["bcache"]
    modes = {
        "write-through": "writethrough",
        "write-back": "writeback",
        "write-around": "writearound",
        "pass-through": "none",
    }
    bucket: AutoSize = AUTO  # auto: 512KiB or less
    block_bytes: Size = Field(SECTOR_BYTES, ge=SECTOR_BYTES, le=4096)
    mode: Literal["writethrough", "writeback", "writearound", "none"] = "writethrough"
    replacement: Literal["lru", "fifo", "random"] = word(Model.replacement)
    sequential_cutoff_bytes: Size = Field(Model.sequential_cutoff_bytes, lt=2**32)  # 0: none
    congested_read_ns: Time = Field(Model.congested_read_us * 1000, ge=0)  # 0: never congested
    congested_write_ns: Time = Field(Model.congested_write_us * 1000, ge=0)
    writeback_percent: int = Field(Model.writeback_percent, ge=0, le=40)
    writeback_delay_ns: Time = Field(Model.writeback_delay_ns, ge=0)
    # Linux whose bcache it is: 6.12 allocates while its gc runs, and does not leave a clean cache
    # bypassed
    kernel: Literal["6.1", "6.12"] = _release(Model.kernel)
    # nodes of the index that a gc looks through before it rests for 100 ms, in which kernel 6.1
    # allocates nothing: it rests earlier where other tasks wait for its processor
    gc_nodes: int = Field(Model.gc_nodes, ge=1)

    @property
    def words(self) -> str:
        """Name of the cache in reports."""
        return f"bcache, {self.mode}"

    @property
    def least_bucket(self) -> int:
        """Bucket size in bytes of the smallest cache that can be built."""
        return BUCKET_MIN if self.bucket == AUTO else parse_size(self.bucket)

    def parameters(self, pages: int, seed: int) -> Model:
        """Return the parameters of the model of a cache of so many pages."""
        bucket_bytes = self.bucket_bytes(pages)
        return self.parameters_of(
            Model,
            bucket_bytes=bucket_bytes,
            buckets=pages * self.page_bytes // bucket_bytes,
            congested_read_us=self.congested_read_ns // 1000,
            congested_write_us=self.congested_write_ns // 1000,
            kernel=Kernel[f"LINUX_{self.kernel.replace('.', '_')}"],
            seed=seed,
        )

    def pages(self, footprint_bytes: int) -> int:
        """Return the number of pages, for a trace with this footprint.

        A cache specified as a share of the footprint has at least BUCKETS_MIN buckets.
        """
        pages = super().pages(footprint_bytes)
        least = BUCKETS_MIN * self.least_bucket // self.page_bytes
        return max(pages, least) if "%" in self.size else pages

    def bucket_bytes(self, pages: int) -> int:
        """Return the bucket size in bytes of a cache of `pages` pages."""
        if self.bucket != AUTO:
            return parse_size(self.bucket)
        bucket = BUCKET_USUAL
        while bucket > BUCKET_MIN and pages * self.page_bytes // bucket < BUCKETS_MIN:
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
