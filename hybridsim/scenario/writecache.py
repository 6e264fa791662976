"""The `[cache]` table of a dm-writecache: Linux's cache of writes, set as the kernel sets it."""

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
    """A dm-writecache on an SSD."""

    kind: Literal["dm-writecache"]
    page_bytes: Size = Field(LARGEST_BLOCK, alias="block")
    high_watermark: Share = "50%"  # used: write-back begins
    low_watermark: Share = "45%"  # and ends
    # how long the disks must have had no write that found no room, for write-back to begin
    pause_writeback_ns: Time = Field(3_000_000_000, alias="pause_writeback")
    autocommit_blocks: int = Field(65_536, ge=1)

    @property
    def write_policy(self) -> str:
        """What a write does, in the words that all kinds of cache share."""
        return "write-back"

    @property
    def words(self) -> str:
        """How a report calls the cache."""
        return f"dm-writecache, {format_size(self.page_bytes)} blocks"

    def pages(self, footprint_bytes: int) -> int:
        """Return how many blocks the cache has, for a trace that touches so many bytes."""
        return self.pieces(self.page_bytes, footprint_bytes)

    def watermarks(self, blocks: int) -> tuple[int, int]:
        """Return the watermarks in blocks: high, low."""
        shares = (self.high_watermark, self.low_watermark)
        high, low = (int(parse_percent(share) * blocks) for share in shares)
        return high, low

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Refuse what the kernel refuses."""
        if self.page_bytes & (self.page_bytes - 1) or not 512 <= self.page_bytes <= LARGEST_BLOCK:
            yield "block", "a block of dm-writecache is a power of two from 512 B to 4 KiB"
        else:
            yield from self.wrong_size(self.page_bytes, "block")
        if parse_percent(self.low_watermark) > parse_percent(self.high_watermark):
            yield "low_watermark", f"above the high watermark ({self.high_watermark})"
        yield from self.wrong_chunk()
