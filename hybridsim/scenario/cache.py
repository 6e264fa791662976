"""The table `cache`: the fast tier and the page cache on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from hybridsim.caches.policies import ADMISSION, REPLACEMENT
from hybridsim.caches.policies.write_budget import WriteBudget, parse_write_budget
from hybridsim.foundation.cache_parameters import (
    ADMISSION_PARAMETERS,
    WRITE_PRICE,
    BudgetParameters,
)
from hybridsim.foundation.cache_parameters import CacheParameters as Model
from hybridsim.foundation.suggest import hint
from hybridsim.foundation.toml.table import Rate, Share, Size, Time, percentage
from hybridsim.foundation.units import parse_percent
from hybridsim.scenario.fast_tier import SECTOR_BYTES, FastTier, word

GRANULES_MAX = 64  # of a page
MERGE_PAGES_MAX = 256
ELEVATOR = 128  # oldest dirty pages, cleaned in order of address


Chance = Annotated[str, percentage("a probability: above 0%, at most 100%", is_above_0=True)]


def _name_of(family: Mapping[str, Any]) -> BeforeValidator:
    """Return a validator that accepts the name of a policy of this family."""

    def check(name: Any) -> Any:
        if not isinstance(name, str) or name not in family:
            raise ValueError(f"no policy {str(name)[:40]!r}: {hint(str(name), family)}")
        return name

    return BeforeValidator(check)


class Cache(FastTier):
    """A cache of fixed-size pages, and the drives that hold it.

    Sources of the write-back defaults: clean_above of 10% is bcache's writeback_percent, dirty_high
    and dirty_low of 50% and 45% are dm-writecache's high and low watermark, clean_idle of 1 s is
    dm-cache's idle period; the size and the number of concurrent cleans are assumed.
    """

    kind: Literal["none", "page"] = "page"
    page_bytes: Size = Field(64 * 1024, ge=SECTOR_BYTES, le=2**30)
    mode: Literal["read-only", "write-around", "write-through", "write-back"] = "write-through"
    admission: Annotated[str, _name_of(ADMISSION)] = "learned"
    touches: int = Field(2, ge=1, le=255)  # with admission "touches": admitted at this access
    probability: Chance = "10%"  # with "probabilistic"
    request_max_bytes: Size = 64 * 1024  # with "request-size"
    replacement: Annotated[str, _name_of(REPLACEMENT)] = "learned"  # "lru" with another admission
    # cost of a 64 KiB fill in reads, of the disks and the SSD's wear; "learned"
    write_price: float = Field(WRITE_PRICE, ge=0, le=1000)
    write_budget: str | None = None  # limit of fills: "500GB/day", "1 DWPD", "5%" of page accesses
    sequential_cutoff_bytes: Size = 2**20  # 0: never bypass
    max_fills: int = Field(8, ge=1, le=65_536)
    fill: Literal["re-read", "piggyback"] = word(Model.fill)  # piggyback: the missing read grows
    fill_when: Literal["background", "foreground"] = word(Model.fill_when)  # foreground: they wait
    fill_piece_bytes: Size = Model.fill_piece_bytes  # size of a disk read; 0: the page
    fill_rate: Rate | None = None  # maximum, bytes per second
    sub_page: bool = Model.sub_page  # fill only the part of a page that was read
    discards: bool = Model.discards  # send the SSD a discard for evicted pages
    dirty_high: Share = "50%"  # of the cache; above it, writes bypass it
    dirty_low: Share = "45%"  # writes are cached again at this share
    clean_above: Share = "10%"  # above it, pages are cleaned during load
    clean_idle_ns: Time = Model.clean_idle_ns  # idle: clean all
    clean_order: Literal["oldest", "elevator"] = "elevator"
    clean_merge_bytes: Size = 512 * 1024  # maximum of one write
    max_cleans: int = Field(Model.max_cleans, ge=1, le=64)
    clean_rate: Rate | None = None  # maximum, bytes per second
    preload_idle_ns: Time = Field(Model.preload_idle_ns, ge=100_000)  # idle period
    preload_chunk_bytes: Size = Field(Model.preload_chunk_bytes, le=2**28)  # maximum
    preload_gap_bytes: Size = Model.preload_gap_bytes  # largest gap that is read too
    preload_reads: int = Field(Model.preload_reads, ge=1, le=64)  # concurrent reads
    preload_rate: Rate = Model.preload_rate  # bytes per second under load; faster when idle

    @property
    def words(self) -> str:
        """Name of the cache in reports."""
        return f"{self.mode}, {self.policy}"

    @property
    def policy(self) -> str:
        """Admission and replacement, as the short key `cache.policy` names them."""
        admission, replacement = self.admission, self.replacement
        if admission == replacement:
            return admission
        if admission == "always" and replacement not in ADMISSION:
            return replacement
        if replacement == "lru" and admission not in REPLACEMENT:
            return admission
        return f"{admission}+{replacement}"

    @property
    def granule_bytes(self) -> int:
        """Smallest part of a page that can be valid by itself, in bytes."""
        if not self.sub_page and self.mode != "write-back":
            return self.page_bytes
        return -(-self.page_bytes // GRANULES_MAX // SECTOR_BYTES) * SECTOR_BYTES

    @property
    def clean_merge_pages(self) -> int:
        """Maximum number of pages that one write cleans."""
        return min(max(1, self.clean_merge_bytes // self.page_bytes), MERGE_PAGES_MAX)

    @property
    def policy_parameters(self) -> dict[str, Any]:
        """Return the parameters of all policies, by the names that the policies use."""
        return {
            "touches": self.touches,
            "probability_per_million": int(parse_percent(self.probability) * 1_000_000),
            "request_max_bytes": self.request_max_bytes,
            "write_price_per_thousand": round(self.write_price * 1000),
            "write_budget": self.budget,
        }

    def parameters(self, pages: int, seed: int) -> Model:
        """Return the parameters of the model of a cache of so many pages."""
        given = self.policy_parameters | {"seed": seed}
        values = [given[name] for name in ADMISSION_PARAMETERS.get(self.admission, ())]
        high = max(1, int(parse_percent(self.dirty_high) * pages))
        budget = self.budget
        return self.parameters_of(
            Model,
            pages=pages,
            admission=(self.admission, *values),
            dirty_high=high,
            dirty_low=min(int(parse_percent(self.dirty_low) * pages), high - 1),
            clean_above=min(int(parse_percent(self.clean_above) * pages), high - 1),
            clean_window=ELEVATOR if self.clean_order == "elevator" else 1,
            budget=budget
            and BudgetParameters(budget.interval(pages), budget.burst(pages), budget.by_access),
        )

    @property
    def budget(self) -> WriteBudget | None:
        """Return the limit of fills, or None; raise ValueError if it is invalid."""
        if self.write_budget is None:
            return None
        drives_bytes = self.members * self.drive.capacity_bytes
        return parse_write_budget(self.write_budget, self.page_bytes, drives_bytes)

    def pages(self, footprint_bytes: int) -> int:
        """Return the number of pages, for a trace with this footprint."""
        return 0 if self.kind == "none" else super().pages(footprint_bytes)

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield (key, message) for each invalid combination of values."""
        if self.page_bytes % SECTOR_BYTES:
            yield "page", f"a page must be a multiple of {SECTOR_BYTES} bytes"
        if self.fill_piece_bytes % SECTOR_BYTES:
            yield "fill_piece", f"a fill piece must be a multiple of {SECTOR_BYTES} bytes"
        yield from self.wrong_chunk()
        try:
            _ = self.budget
        except ValueError as error:
            yield "write_budget", str(error)
        if parse_percent(self.dirty_low) >= parse_percent(self.dirty_high):
            yield "dirty_low", f"dirty_low must be below dirty_high ({self.dirty_high})"
        elif parse_percent(self.clean_above) > parse_percent(self.dirty_low):
            text = f"must not be above dirty_low ({self.dirty_low}): cleaning would never reach it"
            yield "clean_above", text
        yield from self.wrong_size(self.page_bytes, "page")
