"""Which SSDs to buy for a cache: whole drives, from a price list, and how long they last.

The drives of a cache are striped, and mirrored if there are twice as many.  Each must hold its part
of the cache, and what is left unpartitioned to relieve the SSD (`spare`).  Life is the rated
endurance over what the cache writes while the load runs, `duty` of each day.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

from hybridsim.answers.outcome import DAYS_PER_YEAR
from hybridsim.foundation.documents import Document
from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.units import parse_size

DAY_NS = 86_400 * 10**9
LASTING_YEARS = 5.0  # a usual time of service
COLUMNS = ("name", "capacity", "price", "endurance")
FORMAT = f"a line of names, {','.join(COLUMNS)}, then one drive a line: PM893,960GB,140,1752TB"


@dataclass(frozen=True)
class Offer(Document):
    """A drive that can be bought."""

    name: str
    capacity_bytes: int
    price: float | None  # None: unknown
    endurance_bytes: int | None  # rated bytes written; None: unknown


@dataclass(frozen=True)
class Bought(Offer):
    """So many drives of an offer."""

    number: int
    is_mirrored: bool
    cost: float | None  # of all drives
    years: float | None  # None: endurance or write rate unknown


@dataclass(frozen=True)
class Buying(Document):
    """The cheapest drives that fit, and if these wear out too soon the cheapest that last."""

    need_bytes: int  # on each SSD, spare included
    spare: float
    duty: float  # share of the day in which the load runs
    written_per_day: float | None  # by the cache to each SSD, if the load ran all day
    currency: str
    fits: Bought | None  # None: no drive is large enough
    lasts: Bought | None  # None: `fits` does, or none does


def price_list(text: str, name: str) -> list[Offer]:
    """Parse a price list; raise UsageError, with the line, for an invalid one."""
    rows = list(csv.reader(io.StringIO(text)))
    heads = [each.strip().casefold() for each in rows[0]] if rows else []
    if not {"name", "capacity", "price"} <= set(heads):
        raise UsageError(f"{name}: not a price list: it has {FORMAT}")
    result = []
    for number, row in enumerate(rows[1:], 2):
        cells = dict(zip(heads, (each.strip() for each in row)))
        if not any(cells.values()):
            continue
        try:
            endurance = cells.get("endurance")
            one = Offer(
                cells["name"], parse_size(cells["capacity"]), float(cells["price"]),
                parse_size(endurance) if endurance else None,
            )  # fmt: skip
            if not one.capacity_bytes or not 0 <= (one.price or 0.0) < float("inf"):
                raise ValueError("the capacity must be above 0, the price a number from 0 up")
        except (KeyError, ValueError) as error:
            raise UsageError(f"{name}:{number}: {error}; the file has {FORMAT}") from None
        result.append(one)
    if not result:
        raise UsageError(f"{name}: no drives below the line of names; it has {FORMAT}")
    return result


def choose(
    offers: Sequence[Offer], need_bytes: int, number: int, is_mirrored: bool,
    written_per_day: float | None, currency: str, duty: float = 1.0, spare: float = 0.0,
) -> Buying:  # fmt: skip
    """Return what to buy of these offers.

    `need_bytes` and `written_per_day` are of each SSD.  Without prices, the smallest is cheapest.
    """
    whole = round(need_bytes / (1 - spare))
    bought = [
        Bought(
            **vars(each),
            number=number,
            is_mirrored=is_mirrored,
            cost=None if each.price is None else number * each.price,
            years=years(each, written_per_day, duty),
        )
        for each in offers
        if each.capacity_bytes >= whole
    ]
    bought.sort(key=lambda each: (each.cost or 0.0, each.capacity_bytes, each.name))
    fits = bought[0] if bought else None
    lasts = None
    if fits is not None and fits.years is not None and fits.years < LASTING_YEARS:
        lasts = next((each for each in bought if (each.years or 0.0) >= LASTING_YEARS), None)
    return Buying(whole, spare, duty, written_per_day, currency, fits, lasts)


def years(offer: Offer, written_per_day: float | None, duty: float) -> float | None:
    """Return the life of a drive at a rate of writes that lasts `duty` of each day."""
    if not offer.endurance_bytes or not written_per_day or not duty:
        return None
    return offer.endurance_bytes / (written_per_day * duty) / DAYS_PER_YEAR
