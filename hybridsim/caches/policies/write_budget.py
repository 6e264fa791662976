"""How much may be written to fill a cache, as people say it: by the day, or by the access."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from hybridsim.foundation.units import parse_percent, parse_size

DAY_NS = 86_400 * 10**9
ACCESS = 1 << 20  # parts, of which an interval is a whole number
BURST_SHARE = 4  # of the cache's pages that may be let in at once, at most
DRIVE_WRITES = "DWPD"
EXAMPLES = "'500GB/day', '1 DWPD', or '5%' of the page accesses"


@dataclass(frozen=True)
class WriteBudget:
    """Fills of pages that are allowed, for each day or each access of a page."""

    fills: Fraction  # of pages, or of caches
    by_cache: bool  # drive writes: a fill is one of all pages
    by_access: bool  # else by day

    def interval(self, pages: int) -> int:
        """Return what brings one page: in ns, or in parts of an access; rounded up."""
        fills = self.fills * pages if self.by_cache else self.fills
        return ceil((ACCESS if self.by_access else DAY_NS) / fills)

    def burst(self, pages: int) -> int:
        """Return how many pages can be saved up: at most a quarter of the cache, or a day's."""
        most = max(pages // BURST_SHARE, 1)
        return most if self.by_access else min(most, max(DAY_NS // self.interval(pages), 1))


def parse_write_budget(text: str, page_bytes: int, drive_bytes: int | None = None) -> WriteBudget:
    """Return what a text says for pages of a size; raise ValueError if it says nothing.

    Drive writes are of a drive of so many bytes, or of the cache.
    """
    said = text.strip()
    if said.endswith("%"):
        share = parse_percent(said)
        if not 0 < share <= 1:
            raise ValueError(f"{text!r} is no share: above 0% and at most 100%")
        return WriteBudget(share, by_cache=False, by_access=True)
    if said.upper().endswith(DRIVE_WRITES):
        try:
            writes = 100 * parse_percent(f"{said[: -len(DRIVE_WRITES)].strip()}%")
        except ValueError:
            raise ValueError(
                f"{text!r} is no number of drive writes: for instance '1 DWPD'"
            ) from None
        fills = writes if drive_bytes is None else writes * drive_bytes / page_bytes
        return WriteBudget(_some(fills, text), drive_bytes is None, by_access=False)
    size, slash, day = said.rpartition("/")
    if not slash or day.strip() not in ("day", "d"):
        raise ValueError(f"{text!r} is no write budget: write for instance {EXAMPLES}")
    fills = Fraction(parse_size(size.strip()), page_bytes)
    return WriteBudget(_some(fills, text), by_cache=False, by_access=False)


def _some(fills: Fraction, text: str) -> Fraction:
    """Return so many fills if that is some, and no fewer than the clock can count."""
    if fills < Fraction(1, 10_000):
        raise ValueError(f"{text!r} is nothing: it lets in less than a page in 27 years")
    return fills
