"""The write budget of a cache as users specify it: per day or per access."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from hybridsim.foundation.units import parse_percent, parse_size

DAY_NS = 86_400 * 10**9
ACCESS = 1 << 20  # parts of an access; an interval is a whole number of them
BURST_SHARE = 4  # a burst is at most the cache's pages divided by this
DRIVE_WRITES = "DWPD"
EXAMPLES = "'500GB/day', '1 DWPD', or '5%' of the page accesses"


@dataclass(frozen=True)
class WriteBudget:
    """Allowed page fills per day or per page access."""

    fills: Fraction  # number of pages, or of whole caches if `by_cache`
    by_cache: bool  # drive writes: one fill is all pages of the cache
    by_access: bool  # per page access; else per day

    def interval(self, pages: int) -> int:
        """Return the time per page fill in ns, or in parts of an access; rounded up."""
        fills = self.fills * pages if self.by_cache else self.fills
        return ceil((ACCESS if self.by_access else DAY_NS) / fills)

    def burst(self, pages: int) -> int:
        """Return how many fills can be saved up: at most a quarter of the cache, or one day's."""
        limit = max(pages // BURST_SHARE, 1)
        return limit if self.by_access else min(limit, max(DAY_NS // self.interval(pages), 1))


def parse_write_budget(text: str, page_bytes: int, drive_bytes: int | None = None) -> WriteBudget:
    """Return the budget that a text specifies; raise ValueError if it is invalid.

    Drive writes refer to a drive of `drive_bytes`, or to the cache if that is None.
    """
    value = text.strip()
    if value.endswith("%"):
        share = parse_percent(value)
        if not 0 < share <= 1:
            raise ValueError(f"{text!r} is not a valid share: above 0% and at most 100%")
        return WriteBudget(share, by_cache=False, by_access=True)
    if value.upper().endswith(DRIVE_WRITES):
        try:
            writes = 100 * parse_percent(f"{value[: -len(DRIVE_WRITES)].strip()}%")
        except ValueError:
            raise ValueError(
                f"{text!r} is not a number of drive writes: write for example '1 DWPD'"
            ) from None
        fills = writes if drive_bytes is None else writes * drive_bytes / page_bytes
        return WriteBudget(_checked(fills, text), drive_bytes is None, by_access=False)
    size, slash, day = value.rpartition("/")
    if not slash or day.strip() not in ("day", "d"):
        raise ValueError(f"{text!r} is not a write budget: write for example {EXAMPLES}")
    fills = Fraction(parse_size(size.strip()), page_bytes)
    return WriteBudget(_checked(fills, text), by_cache=False, by_access=False)


def _checked(fills: Fraction, text: str) -> Fraction:
    """Return `fills`; raise ValueError if they are fewer than the clock can count."""
    if fills < Fraction(1, 10_000):
        raise ValueError(f"{text!r} is too small: it admits less than one page in 27 years")
    return fills
