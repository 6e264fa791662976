"""The table `cache`: the fast tier and what decides about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from hybridsim.caches.policies import ADMISSION, REPLACEMENT
from hybridsim.caches.policies.write_budget import WriteBudget, parse_write_budget
from hybridsim.foundation.suggest import hint
from hybridsim.foundation.units import parse_percent
from hybridsim.scenario.fast_tier import SECTOR_BYTES, FastTier
from hybridsim.storage.drives import Rate, Size, Time

GRANULES_MAX = 64  # of a page
MERGE_PAGES_MAX = 256


def _chance(text: Any) -> str:
    if not 0 < parse_percent(str(text)) <= 1:
        raise ValueError(f"{text!r} is no probability: above 0% and at most 100%")
    return str(text)


def _name_of(family: Mapping[str, Any]) -> BeforeValidator:
    """Take a name of a family of policies."""

    def check(name: Any) -> Any:
        if not isinstance(name, str) or name not in family:
            raise ValueError(f"no policy {str(name)[:40]!r}: {hint(str(name), family)}")
        return name

    return BeforeValidator(check)


def _share(text: Any) -> str:
    if not isinstance(text, str) or not 0 <= parse_percent(text) <= 1:
        raise ValueError(f"{text!r} is no share: from '0%' to '100%'")
    return text


Share = Annotated[str, BeforeValidator(_share)]


class Cache(FastTier):
    """The fast tier and what decides about it.

    Of write-back: cleaning above 10% is bcache's writeback_percent, 50% and 45% are dm-writecache's
    high and low watermark, 1 s is what dm-cache takes for idle; how many cleans at once, and of how
    many bytes, are assumptions.
    """

    kind: Literal["none", "page"] = "page"
    page_bytes: Size = Field(64 * 1024, alias="page", ge=SECTOR_BYTES, le=2**30)
    mode: Literal["read-only", "write-around", "write-through", "write-back"] = "write-through"
    admission: Annotated[str, _name_of(ADMISSION)] = "learned"
    touches: int = Field(2, ge=1, le=255)  # with admission "touches": cached from this access on
    probability: Annotated[str, BeforeValidator(_chance)] = "10%"  # with "probabilistic"
    request_max_bytes: Size = Field(64 * 1024, alias="request_max")  # with "request-size"
    replacement: Annotated[str, _name_of(REPLACEMENT)] = "learned"  # "lru" with another admission
    write_price: float = Field(0.5, ge=0, le=1000)  # of a fill of 64 KiB, in reads; "learned"
    write_budget: str | None = None  # of fills: "500GB/day", "1 DWPD", "5%" of page accesses
    sequential_cutoff_bytes: Size = Field(2**20, alias="sequential_cutoff")  # 0: never bypass
    max_fills: int = Field(8, ge=1, le=65_536)
    fill: Literal["re-read", "piggyback"] = "re-read"  # piggyback: the read that missed is longer
    fill_when: Literal["background", "foreground"] = "background"  # foreground: requests wait
    fill_piece_bytes: Size = Field(0, alias="fill_piece")  # read of the disks at once; 0: all
    fill_rate: Rate | None = None  # bytes a second that fills may take
    sub_page: bool = False  # fill what was read of a page, not all of it
    discards: bool = False  # tell the SSD of pages that are dropped
    dirty_high: Share = "50%"  # in write-back: of the cache; above it writes go to the disks
    dirty_low: Share = "45%"  # until no more than this is dirty
    clean_above: Share = "10%"  # cleaning goes on beside the load
    clean_idle_ns: Time = Field(1_000_000_000, alias="clean_idle")  # with no request: cleans all
    clean_order: Literal["oldest", "elevator"] = "elevator"
    clean_merge_bytes: Size = Field(512 * 1024, alias="clean_merge")  # most of one write
    max_cleans: int = Field(8, ge=1, le=64)
    clean_rate: Rate | None = None  # bytes a second that are cleaned
    preload_idle_ns: Time = Field(20_000_000, alias="preload_idle", ge=100_000)  # after requests
    preload_chunk_bytes: Size = Field(2**20, alias="preload_chunk", le=2**28)  # most of one read
    preload_gap_bytes: Size = Field(256 * 1024, alias="preload_gap")  # that is read over
    preload_reads: int = Field(4, ge=1, le=64)  # at once
    preload_rate: Rate = 50_000_000  # bytes a second beside the load; faster in idle time

    @property
    def words(self) -> str:
        """How a report calls the cache."""
        return f"{self.mode}, {self.admission}"

    @property
    def write_policy(self) -> str:
        """What a write does, in the words that all kinds of cache share."""
        return self.mode

    @property
    def granule_bytes(self) -> int:
        """How much of a page can be there without the rest."""
        if not self.sub_page and self.mode != "write-back":
            return self.page_bytes
        return -(-self.page_bytes // GRANULES_MAX // SECTOR_BYTES) * SECTOR_BYTES

    @property
    def merge_pages(self) -> int:
        """How many pages at most are cleaned by one write."""
        return min(max(1, self.clean_merge_bytes // self.page_bytes), MERGE_PAGES_MAX)

    @property
    def policy_parameters(self) -> dict[str, Any]:
        """Return what policies may want to know, by the names that they have for it."""
        return {
            "touches": self.touches,
            "probability_per_million": int(parse_percent(self.probability) * 1_000_000),
            "request_max_bytes": self.request_max_bytes,
            "write_price_per_thousand": round(self.write_price * 1000),
            "write_budget": self.budget,
        }

    @property
    def budget(self) -> WriteBudget | None:
        """Return what may be let in; raise ValueError if what is said makes no sense."""
        if self.write_budget is None:
            return None
        drives_bytes = self.members * self.drive.capacity_bytes
        return parse_write_budget(self.write_budget, self.page_bytes, drives_bytes)

    def pages(self, footprint_bytes: int) -> int:
        """Return how many pages the cache has, for a trace that touches so many bytes."""
        if self.kind == "none":
            return 0
        return self.pieces(self.page_bytes, footprint_bytes)

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Refuse caches that hold no page or more than their drive."""
        if self.page_bytes % SECTOR_BYTES:
            yield "page", f"a page is whole sectors of {SECTOR_BYTES} bytes"
        if self.fill_piece_bytes % SECTOR_BYTES:
            yield "fill_piece", f"a piece is whole sectors of {SECTOR_BYTES} bytes"
        yield from self.wrong_chunk()
        try:
            _ = self.budget
        except ValueError as error:
            yield "write_budget", str(error)
        if parse_percent(self.dirty_low) >= parse_percent(self.dirty_high):
            yield "dirty_low", f"dirty_low must be below dirty_high ({self.dirty_high})"
        elif parse_percent(self.clean_above) > parse_percent(self.dirty_low):
            text = f"under load nothing would be cleaned down to dirty_low ({self.dirty_low})"
            yield "clean_above", text
        yield from self.wrong_size(self.page_bytes, "page")
