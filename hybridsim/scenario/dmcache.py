"""The `[cache]` table of a dm-cache: Linux's cache of fixed blocks, set as LVM sets it.

What LVM chooses where nothing is said (its lib/config/defaults.h and lib/metadata/cache_manip.c):
chunks of 64 KiB, of the next power of two where there would be more than 1,000,000 of them; mode
writethrough; and a migration threshold of 8 chunks, but at least 2048 sectors.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from hybridsim.foundation.units import format_size, parse_size
from hybridsim.scenario.fast_tier import FastTier, share_or_size

SMALLEST_BLOCK, LARGEST_BLOCK = 32 * 1024, 2**30
LVM_BLOCK = 64 * 1024
LVM_BLOCKS_MAX = 1_000_000
LVM_THRESHOLD = 2048 * 512
OTHER_WORDS = {
    "write-through": "writethrough",
    "write-back": "writeback",
    "pass-through": "passthrough",
}
AUTO = "auto"


def _auto_or_size(text: Any) -> str:
    return AUTO if text == AUTO else share_or_size(text)


def _mode(text: Any) -> Any:
    return OTHER_WORDS.get(text, text) if isinstance(text, str) else text


class DmCacheTable(FastTier):
    """A dm-cache with the policy smq."""

    kind: Literal["dm-cache"]
    block: Annotated[str, BeforeValidator(_auto_or_size)] = AUTO  # auto: as LVM chooses
    mode: Annotated[Literal["writethrough", "writeback", "passthrough"], BeforeValidator(_mode)] = (
        "writethrough"
    )
    policy: Literal["smq"] = "smq"
    # most that idle write-back has under way; auto: as LVM chooses
    migration_threshold: Annotated[str, BeforeValidator(_auto_or_size)] = AUTO

    @property
    def page_bytes(self) -> int:
        """The size of a block."""
        if self.block != AUTO:
            return parse_size(self.block)
        block = LVM_BLOCK
        while "%" not in self.size and parse_size(self.size) // block > LVM_BLOCKS_MAX:
            block *= 2
        return block

    @property
    def threshold_bytes(self) -> int:
        """How much may be copied at a time for another write-back to begin."""
        if self.migration_threshold != AUTO:
            return parse_size(self.migration_threshold)
        return max(LVM_THRESHOLD, 8 * self.page_bytes)

    @property
    def write_policy(self) -> str:
        """What a write does, in the words that all kinds of cache share."""
        return next(word for word, own in OTHER_WORDS.items() if own == self.mode)

    @property
    def words(self) -> str:
        """How a report calls the cache."""
        return f"dm-cache {self.policy}, {format_size(self.page_bytes)} blocks, {self.mode}"

    def pages(self, footprint_bytes: int) -> int:
        """Return how many blocks the cache has, for a trace that touches so many bytes."""
        return self.pieces(self.page_bytes, footprint_bytes)

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Refuse what the kernel refuses."""
        if self.page_bytes % SMALLEST_BLOCK or not 0 < self.page_bytes <= LARGEST_BLOCK:
            yield "block", "a block of dm-cache is a multiple of 32 KiB, at most 1 GiB"
        else:
            yield from self.wrong_size(self.page_bytes, "block")
        yield from self.wrong_chunk()
