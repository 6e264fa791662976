"""The `[cache]` table of dm-cache, Linux's cache of fixed blocks, with LVM's parameters.

The defaults are LVM's (its lib/config/defaults.h and lib/metadata/cache_manip.c): chunks of 64 KiB,
or the smallest power of two that gives at most 1,000,000 chunks; mode writethrough; a migration
threshold of 8 chunks, but at least 2048 sectors.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from hybridsim.foundation.cache_parameters import DmCacheParameters as Model
from hybridsim.foundation.toml.table import Time
from hybridsim.foundation.units import format_size, parse_size
from hybridsim.scenario.fast_tier import AUTO, AutoSize, FastTier

SMALLEST_BLOCK, LARGEST_BLOCK = 32 * 1024, 2**30
LVM_BLOCK = 64 * 1024
LVM_BLOCKS_MAX = 1_000_000
LVM_THRESHOLD = 2048 * 512


class DmCacheTable(FastTier):
    """dm-cache with the policy smq."""

    kind: Literal["dm-cache"]
    modes = {
        "write-through": "writethrough",
        "write-back": "writeback",
        "pass-through": "passthrough",
    }
    block: AutoSize = AUTO  # auto: LVM's choice
    mode: Literal["writethrough", "writeback", "passthrough"] = "writethrough"
    policy: Literal["smq"] = "smq"
    # maximum amount under migration by idle write-back; auto: LVM's choice
    migration_threshold: AutoSize = AUTO
    # from waking a thread of the kernel to its first step
    worker_delay_ns: Time = Field(Model.worker_delay_ns, ge=0)

    @property
    def page_bytes(self) -> int:
        """Block size in bytes."""
        if self.block != AUTO:
            return parse_size(self.block)
        block = LVM_BLOCK
        while "%" not in self.size and parse_size(self.size) // block > LVM_BLOCKS_MAX:
            block *= 2
        return block

    @property
    def migration_threshold_bytes(self) -> int:
        """Maximum bytes under migration at which another write-back may start."""
        if self.migration_threshold != AUTO:
            return parse_size(self.migration_threshold)
        return max(LVM_THRESHOLD, 8 * self.page_bytes)

    @property
    def words(self) -> str:
        """Name of the cache in reports."""
        return f"dm-cache {self.policy}, {format_size(self.page_bytes)} blocks, {self.mode}"

    def parameters(self, blocks: int, seed: int) -> Model:
        """Return the parameters of the model of a cache of so many blocks."""
        return self.parameters_of(Model, block_bytes=self.page_bytes, blocks=blocks)

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield (key, message) for each value that the kernel refuses."""
        if self.page_bytes % SMALLEST_BLOCK or not 0 < self.page_bytes <= LARGEST_BLOCK:
            yield "block", "a dm-cache block must be a multiple of 32 KiB, at most 1 GiB"
        else:
            yield from self.wrong_size(self.page_bytes, "block")
        yield from self.wrong_chunk()
