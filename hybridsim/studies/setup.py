"""How a simulated cache is built: of a scenario, or of the JSON of replay, advise or size."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import Any

from hybridsim.answers.advice.alternatives import GB, pricing
from hybridsim.answers.check.promise import Promise
from hybridsim.answers.setup import Plan, Site, placeholders, plan
from hybridsim.answers.setup.buying import DAY_NS, Buying, Offer, choose, price_list
from hybridsim.foundation.documents import headed
from hybridsim.foundation.errors import HybridsimError, ScenarioError, UsageError
from hybridsim.foundation.printable import printable
from hybridsim.foundation.reading import whole_text
from hybridsim.scenario import Scenario

SCHEMA = "hybridsim.setup/1"
SIZE = "hybridsim.size/"
READ = ("hybridsim.result/", "hybridsim.advice/", SIZE)


@dataclass(frozen=True)
class Dirty:
    """Dirty data of the replay, and how long their flush takes; None: not in the document."""

    end_bytes: int
    p99_bytes: int | None = None
    flush_bytes_per_s: float | None = None
    flush_ns: int | None = None  # of those at the end
    flush_p99_ns: int | None = None  # of the p99

    def flush_of_ns(self, size_bytes: int) -> int | None:
        """Return how long a flush of so many bytes takes, in nanoseconds."""
        rate = self.flush_bytes_per_s
        return round(size_bytes * 1e9 / rate) if rate else None


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
class Setup:
    """A plan, and what it was made of."""

    plan: Plan
    file: str | None
    saved: Saved | None
    buying: Buying

    def to_dict(self) -> dict[str, Any]:
        """Return all of it for JSON."""
        one = self.plan
        dirty = self.saved and self.saved.dirty
        promise = self.saved.promise if self.saved else None
        return {
            **headed(SCHEMA),
            "inputs": {
                "file": self.file,
                "answer": self.saved and self.saved.answer,
                "slow": one.site.slow,
                "fast": list(one.site.fast),
                "distribution": one.site.distribution,
            },
            "kind": one.kind,
            "mode": one.mode,
            "summary": one.words,
            "settings": asdict(one.settings),
            "ssd": asdict(one.ssd),
            "ram": asdict(one.ram),
            "dirty": None if dirty is None else asdict(dirty),
            "promise": promise.to_dict() if promise is not None else None,
            "buy": self.buying.to_dict(),
            "destroyed": list(one.destroyed),
            "warnings": list(one.warnings),
            "sections": [
                {
                    "name": each.name,
                    "title": each.title,
                    "steps": [asdict(step) for step in each.steps],
                    "script": each.script(),
                }
                for each in one.sections
            ],
        }


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
    try:
        document = json.loads(whole_text(file, UsageError))
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
    except HybridsimError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise UsageError(wrong) from None
    try:
        scenario = Scenario.loads(text, f"{file} (its scenario)")
        if size_bytes:
            scenario = scenario.with_values({"cache.size": str(size_bytes)})
            pages = scenario.cache.pages(0)
    except ScenarioError as error:
        raise UsageError(f"{error}\nwritten by another version? Repeat the replay") from None
    return Saved(
        scenario, pages, dirty, str(answer), name, _promise(document, scenario),
        _written(document, scenario),
    )  # fmt: skip


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
    if "recommended" in document:
        row = document["recommended"]
        found = row.get("dirty")
        end = row.get("dirty_bytes") or 0
    else:
        found, end = document.get("dirty"), 0
    if found:
        rate = found["flush_bytes_per_s"]
        if rate is None:
            return Dirty(int(found["end_bytes"]), int(found["p99_bytes"]))
        return Dirty(
            int(found["end_bytes"]), int(found["p99_bytes"]), float(rate),
            int(found["flush_ns"]), int(found["flush_p99_ns"]),
        )  # fmt: skip
    return Dirty(int(end)) if end else None
