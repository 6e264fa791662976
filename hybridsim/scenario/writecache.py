"""The `[cache]` table of dm-writecache, Linux's write cache, with the kernel's parameters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from hybridsim.foundation.cache_parameters import WritecacheParameters as Model
from hybridsim.foundation.toml.table import Share, Size, Time
from hybridsim.foundation.units import format_size, parse_percent
from hybridsim.scenario.fast_tier import FastTier

LARGEST_BLOCK = 4096  # a page of memory


class WritecacheTable(FastTier):
    """dm-writecache on an SSD."""

    kind: Literal["dm-writecache"]
    page_bytes: Size = Field(LARGEST_BLOCK, alias="block")
    high_watermark: Share = "50%"  # of used blocks: write-back starts
    low_watermark: Share = "45%"  # write-back stops
    # write-back also starts after this time without a write that found the cache full
    pause_writeback_ns: Time = Model.pause_writeback_ns
    pass_time_ns: Time = Model.pass_time_ns  # of the CPU, for 64 blocks to write back
    autocommit_blocks: int = Field(Model.autocommit_blocks, ge=1)
    autocommit_time_ns: Time = Model.autocommit_time_ns  # as the oldest write waits for a commit

    @property
    def words(self) -> str:
        """Name of the cache in reports."""
        return f"dm-writecache, {format_size(self.page_bytes)} blocks"

    def parameters(self, blocks: int, seed: int) -> Model:
        """Return the parameters of the model of a cache of so many blocks."""
        high, low = self.watermarks(blocks)
        return self.parameters_of(
            Model,
            block_bytes=self.page_bytes,
            blocks=blocks,
            high_watermark_blocks=high,
            low_watermark_blocks=low,
        )

    def watermarks(self, blocks: int) -> tuple[int, int]:
        """Return the watermarks in blocks: high, low."""
        shares = (self.high_watermark, self.low_watermark)
        high, low = (int(parse_percent(share) * blocks) for share in shares)
        return high, low

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield (key, message) for each value that the kernel refuses."""
        if self.page_bytes & (self.page_bytes - 1) or not 512 <= self.page_bytes <= LARGEST_BLOCK:
            yield "block", "a dm-writecache block must be a power of two from 512 B to 4 KiB"
        else:
            yield from self.wrong_size(self.page_bytes, "block")
        if parse_percent(self.low_watermark) > parse_percent(self.high_watermark):
            yield "low_watermark", f"must not be above the high watermark ({self.high_watermark})"
        yield from self.wrong_chunk()
