"""The `[cache]` table of dm-writecache, Linux's write cache, with the kernel's parameters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from hybridsim.foundation.units import format_size, parse_percent
from hybridsim.scenario.controller import Share
from hybridsim.scenario.fast_tier import FastTier
from hybridsim.storage.drives import Size, Time

LARGEST_BLOCK = 4096  # a page of memory


class WritecacheTable(FastTier):
    """dm-writecache on an SSD."""

    kind: Literal["dm-writecache"]
    page_bytes: Size = Field(LARGEST_BLOCK, alias="block")
    high_watermark: Share = "50%"  # of used blocks: write-back starts
    low_watermark: Share = "45%"  # write-back stops
    # write-back also starts after this time without a write that found the cache full
    pause_writeback_ns: Time = Field(3_000_000_000, alias="pause_writeback")
    autocommit_blocks: int = Field(65_536, ge=1)

    @property
    def write_policy(self) -> str:
        """Write policy, in the terms common to all kinds of cache."""
        return "write-back"

    @property
    def words(self) -> str:
        """Name of the cache in reports."""
        return f"dm-writecache, {format_size(self.page_bytes)} blocks"

    def pages(self, footprint_bytes: int) -> int:
        """Return the number of blocks, for a trace with this footprint."""
        return self.pieces(self.page_bytes, footprint_bytes)

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
