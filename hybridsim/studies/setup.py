"""How a simulated cache is built: of a scenario, or of the JSON of replay, advise or size.

Which SSDs to buy for it: whole drives, from a price list.  The drives of a cache are striped, and
mirrored if there are twice as many.  Each must hold its part of the cache, and what is left
unpartitioned to relieve the SSD (`spare`).  Life is the rated endurance over what the cache writes
while the load runs, `duty` of each day.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from pydantic import TypeAdapter

from hybridsim.answers.advice.alternatives import GB, pricing
from hybridsim.answers.check.promise import Promise
from hybridsim.answers.outcome import DAYS_PER_YEAR
from hybridsim.answers.setup import plan
from hybridsim.answers.setup.plan import Plan, Site, placeholders
from hybridsim.foundation.documents import Document, headed
from hybridsim.foundation.errors import HybridsimError, ScenarioError, UsageError
from hybridsim.foundation.printable import printable
from hybridsim.foundation.reading import whole_text
from hybridsim.foundation.units import parse_size
from hybridsim.scenario import Scenario

SCHEMA = "hybridsim.setup/1"
SIZE = "hybridsim.size/"
READ = ("hybridsim.result/", "hybridsim.advice/", SIZE)
DAY_NS = 86_400 * 10**9
LASTING_YEARS = 5.0  # a usual time of service
COLUMNS = ("name", "capacity", "price", "endurance")
FORMAT = f"a line of names, {','.join(COLUMNS)}, then one drive a line: PM893,960GB,140,1752TB"


@dataclass(frozen=True)
class Dirty:
    """Dirty data of the replay, and how long their flush takes; None: not in the document."""

    end_bytes: int
    p99_bytes: int | None = None
    flush_bytes_per_s: float | None = None
    flush_ns: int | None = None  # of those at the end
    flush_p99_ns: int | None = None  # of the p99


@dataclass(frozen=True)
class Saved:
    """What a saved document says of its cache."""

    scenario: Scenario
    pages: int
    dirty: Dirty | None
    answer: str  # yes, no, unsure
    trace: str
    promise: Promise | None  # None: the document has no course of the figures
    written_per_day: float | None  # to all SSDs together; None: not in the document


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


@dataclass(frozen=True)
class Setup:
    """A plan, and what it was made of."""

    plan: Plan
    file: str | None
    saved: Saved | None
    buying: Buying

    def to_dict(self) -> dict[str, Any]:
        """Return all of it for JSON."""
        one, saved = self.plan, self.saved
        return headed(
            SCHEMA,
            inputs={
                "file": self.file,
                "answer": saved and saved.answer,
                "slow": one.site.slow,
                "fast": one.site.fast,
                "distribution": one.site.distribution,
            },
            kind=one.kind,
            mode=one.mode,
            summary=one.words,
            settings=one.settings,
            ssd=one.ssd,
            ram=one.ram,
            dirty=saved and saved.dirty,
            promise=saved and saved.promise,
            buy=self.buying,
            destroyed=one.destroyed,
            warnings=one.warnings,
            sections=[vars(each) | {"script": each.script()} for each in one.sections],
        )


def setup(
    scenario: Scenario | None, file: str | None, site: Site, prices: str | None = None,
    duty_ns: int = DAY_NS, spare: float = 0.0,
) -> Setup:  # fmt: skip
    """Return how the cache of a scenario, or of a saved document, is built.

    Without SSDs in `site`, placeholders are printed.  `prices` is the file of a price list; without
    one, the simulated drive is priced.  The load runs `duty_ns` of each day; `spare` is the share
    of each SSD that is left unpartitioned.  Raises UsageError for what cannot be built,
    or a file that is neither a result nor advice.
    """
    saved = read(file) if file else None
    machine = saved.scenario if saved else scenario or Scenario.default()
    if not site.fast:
        site = replace(site, fast=placeholders(machine.cache.members))
    if not 0 < duty_ns <= DAY_NS:
        raise UsageError("--duty: the time that the load runs each day is above 0, at most 24h")
    if not 0 <= spare < 1:
        raise UsageError("--spare: specify a share of the SSD below 100%: 20%")
    one = plan(machine, saved.pages if saved else None, site)
    drives, tier, price = one.settings.drives, machine.cache, pricing(machine).price
    rating = tier.endurance_bytes
    own = Offer(
        tier.drive.name, tier.drive.capacity_bytes,
        tier.drive.capacity_bytes / GB * price.ssd_per_gb if tier.drive.kind == "ssd" else None,
        rating // tier.members if rating else None,
    )  # fmt: skip
    offers = price_list(whole_text(prices, UsageError), prices) if prices else [own]
    written = saved.written_per_day if saved else None
    buying = choose(
        offers, one.ssd.size_bytes, drives.number, drives.is_mirrored,
        written / drives.members if written else None, price.currency, duty_ns / DAY_NS, spare,
    )  # fmt: skip
    return Setup(one, file, saved, buying)


def read(file: str) -> Saved:
    """Return the cache of a document that `replay`, `advise` or `size` wrote with --json."""
    shown = printable(file)
    wrong = (
        f"{shown} is not the JSON of hybridsim replay, hybridsim advise or hybridsim size (--json "
        "FILE); without one, specify --cache, --cache-mode and --cache-size"
    )
    with saved_document(file, wrong) as document:
        if not str(document["schema"]).startswith(READ):
            raise UsageError(f"{wrong}: its schema is {printable(document['schema'])}")
        about, trace = document["inputs"]["scenario"], document["inputs"]["trace"]
        text, size_bytes, pages = str(about["toml"]), 0, 0
        if str(document["schema"]).startswith(SIZE):
            size_bytes, answer, dirty = _size(document, shown), "yes", None
        else:
            pages = int(about["cache_pages"])
            answer = document["answer"] if "answer" in document else document["verdict"]["answer"]
            dirty = _dirty(document)
        name = str(trace["name"])
    scenario = saved_scenario(text, file, size_bytes)
    pages = scenario.cache.pages(0) if size_bytes else pages
    return Saved(
        scenario, pages, dirty, str(answer), name, _promise(document, scenario),
        _written(document, scenario),
    )  # fmt: skip


@contextmanager
def saved_document(file: str, wrong: str) -> Iterator[dict[str, Any]]:
    """Give the document in a file of JSON; UsageError says what is `wrong` if it lacks anything."""
    try:
        yield json.loads(whole_text(file, UsageError))
    except HybridsimError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise UsageError(wrong) from None


def saved_scenario(text: str, file: str, size_bytes: int = 0) -> Scenario:
    """Return the scenario of a saved document, with a cache of this size if one is given."""
    try:
        scenario = Scenario.loads(text, f"{file} (its scenario)")
        return scenario.with_values({"cache.size": str(size_bytes)}) if size_bytes else scenario
    except ScenarioError as error:
        raise UsageError(f"{error}\nwritten by another version? Repeat the replay") from None


def _written(document: dict[str, Any], scenario: Scenario) -> float | None:
    """Return the bytes a day that a cache writes to its SSDs; None: not in the document."""
    try:
        if "wear" in document:
            return float(document["wear"]["bytes_per_day"])
        row = document["recommended"] if "recommended" in document else document["answer"]
        rate = row["drive_writes_per_day"] if "drive_writes_per_day" in row else row["dwpd"]
        return float(rate) * scenario.cache.members * scenario.cache.drive.capacity_bytes
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _size(document: dict[str, Any], shown: str) -> int:
    """Return the smallest size that meets the requirements, in bytes."""
    if document["answer"] is None:
        why = "the disks alone meet the requirements" if document["needs_no_ssd"] else (
            "no size meets the requirements"
        )  # fmt: skip
        raise UsageError(f"{shown}: {why}, so there is no cache to build")
    return int(document["answer"]["size_bytes"])


def _promise(document: dict[str, Any], scenario: Scenario) -> Promise | None:
    """Return the figures that `hybridsim check` compares with; None if there are none."""
    try:
        return Promise.of_result(document, scenario.cache.page_bytes)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        return None


def _dirty(document: dict[str, Any]) -> Dirty | None:
    """Return what a document says of dirty data."""
    row = document.get("recommended", document)
    if found := row.get("dirty"):
        return TypeAdapter(Dirty).validate_python(found)
    end_bytes = row.get("dirty_bytes")  # all that an earlier version has
    return Dirty(int(end_bytes)) if end_bytes else None


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
