"""Find the smallest SSD cache with which a machine meets requirements.

The miss-ratio curve of LRU, which takes seconds, shows the sizes at which the hit ratio changes.
Whether a size meets the requirements is decided by replays at full detail: first at sizes spread
over the curve, then between the largest size that fails and the smallest that meets them, until
these two are neighbours on the grid of sizes.  Then other settings of the answer are tried at the
size below it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from hybridsim.answers.advice.alternatives import Pricing, pricing
from hybridsim.answers.intervals import Interval
from hybridsim.answers.outcome import Outcome, Phase
from hybridsim.answers.requirements import (
    Checked,
    Requirement,
    Seen,
    check_answerable,
    parse,
    parse_all,
)
from hybridsim.answers.result import Result
from hybridsim.foundation.documents import Document, headed
from hybridsim.foundation.errors import ScenarioError, UsageError
from hybridsim.foundation.in_notebooks import DataFrame, frame_of, table_html
from hybridsim.foundation.units import human_size
from hybridsim.foundation.wording import percent
from hybridsim.scenario import Scenario
from hybridsim.studies.candidates import (
    SIZE,
    Candidate,
    Purchase,
    candidates,
    latest_warm,
    purchase,
    variants,
    warned,
)
from hybridsim.studies.mrc import Curve, miss_ratio_curve
from hybridsim.studies.replay import Several, Status
from hybridsim.studies.runs import Report
from hybridsim.traces.trace import Trace

SCHEMA = "hybridsim.size/2"
SEARCHED = 2  # kinds and modes whose sizes are searched
PAGE_BYTES = 64 * 1024  # of the curve if several kinds are searched
AT_ONCE = 3  # sizes replayed in one pass between two known ones
NAMED_MACHINES = 3  # in a line of progress
FALLEN = (0.5, 0.8, 0.95)  # shares of the curve's whole fall at the first sizes
LARGEST_MINIMUM = 41  # 1 TiB as a power of two: no kind needs as much
POINTS = 200  # of the curve in JSON
APART = 1.02  # times the misses of a smaller size: fewer more do not explain a larger latency
MEAN = parse("mean.warm<1s")  # whose value and interval each row has


@dataclass(frozen=True)
class Tried(Document):
    """The result of a replay at one size, on the same requests as all others."""

    name: str  # kind, mode and the settings that differ from the defaults, in words
    kind: str
    mode: str
    setting: str  # name of the settings that differ from the defaults; empty: none
    size_bytes: int
    hit: float | None  # since all machines are warm, as are the latencies
    mean_ns: float | None  # of reads; None also for an endless queue
    alone_ns: float | None  # mean of the same reads without the cache
    p99_ns: int | None
    whole_ns: float | None  # mean of all reads of the run
    drive_writes_per_day: float | None
    warm_ns: int | None  # None: not steady at the end
    mean: Interval | None  # of mean_ns
    checked: list[Checked]  # since all machines are warm
    own: list[Checked]  # since it is warm itself, as `replay --require` checks it

    _more = ("meets", "surely")

    @classmethod
    def of(
        cls, candidate: Candidate, size_bytes: int, result: Result,
        require: Sequence[Requirement], first: int | None = None,
    ) -> Tried:  # fmt: skip
        """Return the row of a result; `first` is the request since which all are warm."""
        seen = Seen.cached(result)
        warm, alone, whole = (result.phases[each] for each in ("warm", "none", "whole"))
        if first is not None:
            warm = from_request(result.cached, first)
            alone = from_request(result.plain, first)
        alike = seen._replace(phases={**seen.phases, "warm": warm})
        reads = warm.figures.reads
        known = not warm.saturated
        (mean,) = result.sure_of([MEAN.check(alike)], first)
        return cls(
            candidate.label,
            candidate.kind,
            candidate.mode,
            candidate.setting,
            size_bytes,
            warm.figures.hit_ratio,
            reads.mean_ns if known else None,
            None if alone.saturated else alone.figures.reads.mean_ns,
            reads.percentile(99) if known else None,
            None if whole.saturated else whole.figures.reads.mean_ns,
            seen.dwpd,
            seen.warm_ns,
            mean.interval if known else None,
            result.sure_of([each.check(alike) for each in require], first),
            result.sure_of([each.check(seen) for each in require]),
        )

    @property
    def meets(self) -> bool:
        """Whether it meets all requirements in both phases."""
        return all(each.met for each in [*self.checked, *self.own])

    @property
    def surely(self) -> bool:
        """Whether it meets them at the worse ends of their intervals too."""
        return all(each.is_sure for each in [*self.checked, *self.own])

    @property
    def decisive(self) -> list[Checked]:
        """Each requirement in the phase that decides: the one in which it is less sure.

        Where both are as sure that is the phase that all machines are compared in, as in the table.
        """
        return [
            min((one, own), key=lambda each: (each.met, each.is_sure))
            for one, own in zip(self.checked, self.own)
        ]

    @property
    def failed(self) -> list[Checked]:
        """The requirements that it does not meet."""
        return [each for each in self.decisive if not each.met]

    @property
    def unsure(self) -> list[Checked]:
        """The requirements that it does not surely meet."""
        return [each for each in self.decisive if not each.is_sure]


@dataclass(frozen=True)
class Sizing:
    """The answer, and the replays that it is based on."""

    trace: dict[str, Any]
    scenario: dict[str, Any]
    require: list[Requirement]
    alone: list[Checked]  # the disks without a cache
    curve: Curve
    tried: list[Tried]  # by size
    answer: Tried | None
    below: Tried | None  # the next smaller size, which fails or is not sure
    largest_why: str  # why no larger size was tried
    notes: list[str] = field(default_factory=list)
    bought: Purchase | None = None
    pricing: Pricing | None = None
    options: list[str] = field(default_factory=list)  # of `replay` for the answer

    @property
    def needs_no_ssd(self) -> bool:
        """Whether the disks alone meet all requirements."""
        return all(each.met for each in self.alone)

    @property
    def likely(self) -> Tried | None:
        """The smallest whose figures meet all requirements, their intervals aside."""
        return smallest([each for each in self.tried if each.meets])

    @property
    def is_sure(self) -> bool:
        """Whether the answer meets all requirements at the worse ends of their intervals too."""
        return self.answer is not None and self.answer.surely

    def best(self, index: int) -> tuple[Checked, Tried] | None:
        """Return the best value of a requirement, and the smallest size that has it."""
        known = [(one.checked[index], one) for one in self.tried]
        known = [pair for pair in known if pair[0].value is not None]
        if not known:
            return None
        sign = 1 if self.require[index].wants_less else -1
        return min(known, key=lambda pair: (sign * (pair[0].value or 0.0), pair[1].size_bytes))

    def frame(self) -> DataFrame:
        """Return a pandas frame: a row per machine that was tried, the smallest first.

        Columns: `cache`, `cache_mode`, `setting`, `size_bytes`, `meets` (all requirements),
        `hit_ratio`, `mean_ns` and `p99_ns` of reads and `alone_ns` without the cache, since all
        machines are warm; `whole_ns` of all reads of the run, `warm_ns` until it is warm,
        `drive_writes_per_day`, and the value of each requirement by its text.  NaN where unknown.
        Needs pandas (`hybridsim[notebooks]`).
        """
        return frame_of(
            {
                "cache": each.kind, "cache_mode": each.mode, "setting": each.setting,
                "size_bytes": each.size_bytes, "meets": each.meets, "hit_ratio": each.hit,
                "mean_ns": each.mean_ns, "p99_ns": each.p99_ns, "alone_ns": each.alone_ns,
                "whole_ns": each.whole_ns, "warm_ns": each.warm_ns,
                "drive_writes_per_day": each.drive_writes_per_day,
                **{one.requirement.text: one.value for one in each.decisive},
            }
            for each in self.tried
        )  # fmt: skip

    @property
    def _words(self) -> str:
        if self.answer is None:
            return "no size meets the requirements"
        return f"{self.answer.name} of {human_size(self.answer.size_bytes)}"

    def __repr__(self) -> str:
        return f"<Sizing: {self._words}, {len(self.tried)} machines tried>"

    def _repr_html_(self) -> str:
        required = [("required", each.text) for each in self.require]
        return table_html("Sizing", [*required, ("smallest that meets them", self._words)])

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of the JSON."""
        best = [self.best(index) for index in range(len(self.require))]
        return headed(
            SCHEMA,
            inputs={"trace": self.trace, "scenario": self.scenario},
            require=[each.text for each in self.require],
            needs_no_ssd=self.needs_no_ssd,
            answer=self.answer,
            sure=self.is_sure,
            likely=self.likely,
            below=self.below,
            alone=self.alone,
            best=[one and {**one[0].to_dict(), "size_bytes": one[1].size_bytes} for one in best],
            tried=self.tried,
            miss_ratio_curve=self.curve.to_dict(POINTS),
            bought=self.bought,
            currency=self.pricing and self.pricing.price.currency,
            options=self.options,
            notes=self.notes,
        )


def size(
    trace: Trace,
    scenario: Scenario | None = None,
    require: Sequence[str] = (),
    report: Report | None = None,
    status: Status = lambda text: None,
) -> Sizing:
    """Find the smallest cache with which the machine of a scenario meets all of `require`.

    `status` is called with the name of each step, `report` with the progress of each pass over the
    trace.  Raises UsageError for an invalid requirement or a scenario without a cache, and the
    errors of `replay`.

    >>> found = size(Trace.read("gen:zipf,requests=300,span=16MiB,rate=100"),
    ...              Scenario.default().with_options(cache="page"), ["hit.warm>5%"])
    >>> found.frame()[["size_bytes", "hit_ratio", "meets"]]["meets"].any()
    np.True_
    """
    scenario = scenario or Scenario.default()
    wanted = parse_all(require)
    if not wanted:
        raise UsageError("specify a requirement: --require 'p99.warm<8ms'")
    if scenario.origin.option(SIZE) is not None:
        raise UsageError("this command searches the size of the cache: remove cache.size")
    every, notes = candidates(scenario)
    able = [each for each in every if each.installable] or every
    several = Several(trace, able[0].scenario, report, status=status)
    check_answerable(wanted, several.summary.reads, several.summary.writes)
    page_bytes = able[0].scenario.cache.page_bytes if len(able) == 1 else PAGE_BYTES
    status(f"the miss-ratio curve for pages of {human_size(page_bytes)}")
    curve = miss_ratio_curve(trace, "lru", None, page_bytes)
    runs = Runs(several, wanted, curve)
    runs.begin(able, notes)
    if not all(each.met for each in runs.alone):
        for each in runs.best():
            runs.narrow(each)
        runs.refine()
    answer, below, largest_why = runs.answer()
    tried = runs.tried()
    about = runs.results[0]
    notes += [*warned(about), *_doubts(tried, answer)]
    prices = pricing(scenario)
    chosen = runs.candidate(answer)
    site = chosen.scenario if chosen else scenario
    options = [] if chosen is None or answer is None else chosen.sized(answer.size_bytes).options
    return Sizing(
        dict(about.trace), _site(site, several.mode), wanted, runs.alone, curve, tried,
        answer, below, largest_why, notes,
        purchase(chosen, prices) if chosen else None, prices, options,
    )  # fmt: skip


class Runs:
    """The replays of a search over kinds, modes and sizes, all judged on the same requests."""

    def __init__(self, several: Several, require: list[Requirement], curve: Curve) -> None:
        """Create a search without replays."""
        self.results: list[Result] = []
        self.alone: list[Checked] = []  # the disks without a cache
        self._ran: list[tuple[Candidate, int]] = []
        self._rows: dict[int, list[Tried]] = {}  # by the request since which all are warm
        self._grids: dict[str, tuple[list[int], str]] = {}
        self._several, self._require, self._curve = several, require, curve

    def begin(self, able: Sequence[Candidate], notes: list[str]) -> None:
        """Replay each candidate at the largest size, and at sizes where the curve falls."""
        first: list[tuple[Candidate, int]] = []
        for each in able:
            try:
                grid = possible(each, sizes_of(self._curve, each.times))
            except ScenarioError as error:
                if len(able) == 1:
                    raise
                notes.append(f"{each.name} was left out: {error}")
                continue
            self._grids[each.label] = grid
            sizes = first_sizes(self._curve, grid[0])
            first += [(each, size) for size in (sizes if len(able) == 1 else sizes[-2:])]
        # The largest first: they decide whether recorded arrivals can be served.
        self._replay(sorted(first, key=lambda one: -one[1]))

    def _replay(self, machines: Sequence[tuple[Candidate, int]]) -> None:
        words = [f"{each.label} of {human_size(size)}" for each, size in machines]
        if len(words) > NAMED_MACHINES:
            words = [f"{len(words)} machines, the first {words[0]}"]
        self._several.status(f"replays of {', '.join(words)}")
        self.results += self._several.results([each.sized(size) for each, size in machines])
        self._ran += machines
        plain = self.results[0]
        seen = Seen.alone(plain)
        alike = from_request(plain.plain, self._first)
        own = [each.check(seen) for each in self._require]
        both = [each.check(seen._replace(phases={**seen.phases, "warm": alike}))
                for each in self._require]  # fmt: skip
        self.alone = [one if not one.met else two for one, two in zip(own, both)]

    @property
    def _first(self) -> int:
        """The request since which all machines are warm."""
        return latest_warm(self.results)

    def tried(self) -> list[Tried]:
        """Return the results by size, all from the same request on."""
        first = self._first
        rows = self._rows.setdefault(first, [])
        for (candidate, size), result in list(zip(self._ran, self.results))[len(rows) :]:
            rows.append(Tried.of(candidate, size, result, self._require, first))
        return sorted(rows, key=lambda one: (one.size_bytes, one.name))

    def best(self) -> list[Candidate]:
        """Return the candidates to search: those that meet the requirements with the smallest SSD.

        If none does, those that come nearest, as sizes between may be better.
        """
        tried = self.tried()
        met = [each for each in tried if each.surely] or [each for each in tried if each.meets]
        ordered = met or sorted(tried, key=lambda one: (len(one.failed), _far(one)))
        names = list(dict.fromkeys(each.name for each in ordered))[:SEARCHED]
        return [next(c for c, _ in self._ran if c.label == name) for name in names]

    def narrow(self, candidate: Candidate) -> None:
        """Replay sizes of a candidate until the smallest that surely meets them is known.

        If none does, until the smallest is known whose figures meet them.
        """
        for surely in (True, False):
            search = Search(self._grids[candidate.label][0])
            while True:
                for each in self._of(candidate):
                    search.record(each.size_bytes, each.surely if surely else each.meets)
                sizes = search.next()
                if not sizes:
                    break
                self._replay([(candidate, each) for each in sorted(sizes, reverse=True)])
            if search.answer is not None:
                return

    def refine(self) -> None:
        """Replay other settings of the answer, at the size below it, which failed.

        Without an answer: of the candidate that comes nearest, at its best size.  The sizes of a
        setting that meets the requirements there are searched.
        """
        answer, below, _ = self.answer()
        at = below
        if answer is None:  # what comes nearest
            at = min(self.tried(), key=lambda one: (len(one.failed), _far(one), one.size_bytes))
        base = self.candidate(at)
        if at is None or base is None:
            return  # the smallest possible size is the answer
        machines = []
        for each in variants(base):
            try:
                grid = possible(each, sizes_of(self._curve, each.times))
            except ScenarioError:
                continue
            if at.size_bytes in grid[0]:
                self._grids[each.label] = grid
                machines.append((each, at.size_bytes))
        if not machines:
            return
        self._replay(machines)
        met = {each.name for each in self.tried() if each.meets}
        for each, _ in machines:
            if each.label in met:
                self.narrow(each)

    def _of(self, candidate: Candidate) -> list[Tried]:
        return [each for each in self.tried() if each.name == candidate.label]

    def answer(self) -> tuple[Tried | None, Tried | None, str]:
        """Return the smallest that meets, the next smaller of its kind, and why none is larger.

        The smallest that surely meets the requirements; if none does, that whose figures do.
        """
        tried = self.tried()
        result = smallest([each for each in tried if each.surely]) or smallest(
            [each for each in tried if each.meets]
        )
        why = self._grids[(result or tried[-1]).name][1]
        if result is None:
            return None, None, why
        smaller = [each for each in tried
                   if each.name == result.name and each.size_bytes < result.size_bytes]  # fmt: skip
        return result, smaller[-1] if smaller else None, why

    def candidate(self, one: Tried | None) -> Candidate | None:
        """Return the candidate of a replay."""
        return next((c for c, _ in self._ran if one and c.label == one.name), None)


def smallest(tried: Sequence[Tried]) -> Tried | None:
    """Return the smallest; of equal sizes, one without write-back, and with default settings."""
    return min(
        tried, key=lambda one: (one.size_bytes, "back" in one.mode, bool(one.setting)),
        default=None,
    )  # fmt: skip


def from_request(outcome: Outcome, first: int) -> Phase:
    """Return the figures of a machine from a request on, or at least of the last time bin."""
    border = min(outcome.time_of(first), outcome.end_ns - outcome.collector.width_ns)
    return outcome.phase(max(border, 0), outcome.end_ns)


def _far(one: Tried) -> float:
    """Return the sum of the relative distances to the requirements that are not met."""
    return sum(
        abs((each.value if each.value is not None else 1e18) - each.requirement.bound)
        / max(each.requirement.bound, 1e-9)
        for each in one.failed
    )


class Search:
    """A search for the smallest size of a grid that meets the requirements."""

    def __init__(self, grid: Sequence[int]) -> None:
        """Start without a size that was tried."""
        self._grid = list(grid)
        self._met: dict[int, bool] = {}  # by index
        self._looked_between = False

    def record(self, size_bytes: int, meets: bool) -> None:
        """Record whether a size meets the requirements."""
        self._met[self._grid.index(size_bytes)] = meets

    @property
    def low_high(self) -> tuple[int, int | None]:
        """The places of the largest size that fails, -1 for none, and the smallest that meets."""
        high = min((index for index, met in self._met.items() if met), default=None)
        failed = [i for i, met in self._met.items() if not met and (high is None or i < high)]
        return max(failed, default=-1), high

    @property
    def answer(self) -> int | None:
        """The smallest size that meets all requirements; None if none does."""
        high = self.low_high[1]
        return None if high is None else self._grid[high]

    def next(self) -> list[int]:
        """Return the sizes to try next; empty if the search is complete."""
        low, high = self.low_high
        if high is not None:
            return self._between(low, high)
        if self._looked_between:
            return []
        self._looked_between = True  # a larger cache is not always a better one
        tried = sorted(self._met)
        return [self._grid[(a + b) // 2] for a, b in pairwise(tried) if b - a > 1]

    def _between(self, low: int, high: int) -> list[int]:
        room = high - low - 1
        count = min(room, AT_ONCE)
        return [self._grid[low + (room + 1) * (i + 1) // (count + 1)] for i in range(count)]


def sizes_of(curve: Curve, times: int = 1) -> list[int]:
    """Return sizes up to `times` the data that the trace touches, at least four per doubling."""
    pages, step, result = 1, 1, [1]
    while result[-1] < times * curve.distinct:
        if pages == 8 * step:
            step *= 2
        pages += step
        result.append(pages)
    return [each * curve.page_bytes for each in result]


def possible(candidate: Candidate, grid: Sequence[int]) -> tuple[list[int], str]:
    """Return the sizes of the grid that the cache supports, and why there are no larger ones.

    If the largest is below the minimum of a kind of cache, the grid is its next power of two that
    the kind supports.  Raises ScenarioError if there is none.
    """
    low, high = 0, len(grid) - 1
    why = "it is more than the trace touches"
    while low < high and candidate.refused(grid[low]):
        low += 1
    if refused := candidate.refused(grid[low]):
        larger = (1 << power for power in range(grid[-1].bit_length(), LARGEST_MINIMUM))
        minimum = next((each for each in larger if not candidate.refused(each)), None)
        if minimum is None:
            raise ScenarioError(refused)
        return [minimum], why
    while high > low and (refused := candidate.refused(grid[high])):
        why = refused
        high -= 1
    return list(grid[low : high + 1]), why


def first_sizes(curve: Curve, grid: Sequence[int]) -> list[int]:
    """Return the largest size, and those at which the curve has fallen by FALLEN."""
    needed = [curve.fallen(share) for share in FALLEN]
    fitting = {next((each for each in grid if each >= one), grid[-1]) for one in needed}
    return sorted({grid[-1], *fitting})


def _doubts(tried: Sequence[Tried], answer: Tried | None) -> list[str]:
    """Return notes on larger sizes that do not meet a requirement, each with the reason."""
    if answer is None:
        return []
    return [
        f"a larger cache is not always better: {each.name} of {human_size(each.size_bytes)} does "
        f"not meet {each.failed[0].requirement.text} ({each.failed[0].words}), as "
        f"{_why_worse(each, answer)}"
        for each in tried
        if each.name == answer.name and each.size_bytes > answer.size_bytes and not each.meets
    ]


def _why_worse(one: Tried, smaller: Tried) -> str:
    """Return why a larger cache fails where a smaller one does not."""
    if one.warm_ns is None and smaller.warm_ns is not None:
        return "it is not warm when the trace ends"
    if all(each.met for each in one.checked):
        return "it warms later, so it is judged by another part of the load"
    if one.hit is not None and smaller.hit is not None and 1 - one.hit >= APART * (1 - smaller.hit):
        return f"its hit ratio is {percent(one.hit)}, not {percent(smaller.hit)}"
    wear = (one.drive_writes_per_day or 0.0, smaller.drive_writes_per_day or 0.0)
    if wear[0] > wear[1]:
        return "it fills more, and fills take time of the SSD and the disks"
    return "its misses, writes and write-backs meet at other moments"


def _site(scenario: Scenario, mode: str) -> dict[str, Any]:
    return {
        "summary": f"{scenario.words[0]}; cache on {scenario.ssds}, {scenario.cache.words}",
        "mode": mode,
        "file": scenario.origin.name or None,
        "options": scenario.options,
        "toml": scenario.to_toml(),
    }
