"""The smallest SSD with which a machine meets what is required of it.

The miss-ratio curve of LRU, which takes seconds, says at which sizes something changes.  Whether a
size meets the requirements is found out by replays at full detail: at sizes spread over the curve
first, then between the largest that fails and the smallest that meets, until these two are
neighbours on the grid of sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from hybridsim.answers.requirements import Checked, Requirement, Seen, check_answerable, parse_all
from hybridsim.answers.result import Result
from hybridsim.foundation.errors import ScenarioError, UsageError
from hybridsim.foundation.units import format_size, human_size
from hybridsim.foundation.version import __version__
from hybridsim.scenario import Scenario
from hybridsim.studies.mrc import Curve, miss_ratio_curve
from hybridsim.studies.replay import Report
from hybridsim.studies.side_by_side import Several
from hybridsim.traces.trace import Trace

SCHEMA = "hybridsim.size/1"
AT_ONCE = 3  # sizes that are replayed in one pass between two known ones
FALLEN = (0.5, 0.8, 0.95)  # of the curve's whole fall: where the first sizes lie
POINTS = 200  # of the curve in JSON
Say = Callable[[str], None]


@dataclass(frozen=True)
class Tried:
    """What a replay at full detail found at one size, in the warm phase."""

    size_bytes: int
    hit: float | None
    mean_ns: float | None  # of reads; None also in an endless queue
    alone_ns: float | None  # of the same reads without the cache
    p99_ns: int | None
    drive_writes_per_day: float | None
    warm_ns: int | None  # None: not steady at the end
    checked: list[Checked]

    @classmethod
    def of(cls, size_bytes: int, result: Result, require: Sequence[Requirement]) -> Tried:
        """Keep of a result what is told of it."""
        warm, seen = result.phases["warm"], Seen.cached(result)
        reads, alone = warm.figures.reads, result.phases["none"]
        known = not warm.saturated
        return cls(
            size_bytes,
            warm.figures.hit_ratio,
            reads.mean_ns if known else None,
            None if alone.saturated else alone.figures.reads.mean_ns,
            reads.percentile(99) if known else None,
            seen.dwpd,
            seen.warm_ns,
            [each.check(seen) for each in require],
        )

    @property
    def meets(self) -> bool:
        """Whether it has all that is required."""
        return all(each.met for each in self.checked)

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {**vars(self), "checked": [each.to_dict() for each in self.checked]}


@dataclass(frozen=True)
class Sizing:
    """The answer, and all that it rests on."""

    trace: dict[str, Any]
    scenario: dict[str, Any]
    require: list[Requirement]
    alone: list[Checked]  # the disks without a cache
    curve: Curve
    tried: list[Tried]  # by size
    answer: Tried | None
    below: Tried | None  # the next smaller size of the grid, which fails
    largest_why: str  # why no larger size was tried
    notes: list[str] = field(default_factory=list)

    @property
    def needs_no_ssd(self) -> bool:
        """Whether the disks alone meet everything."""
        return all(each.met for each in self.alone)

    def best(self, index: int) -> tuple[Checked, Tried] | None:
        """Return the best value of a requirement, and the smallest size that has it."""
        known = [(one.checked[index], one) for one in self.tried]
        known = [pair for pair in known if pair[0].value is not None]
        if not known:
            return None
        sign = 1 if self.require[index].wants_less else -1
        return min(known, key=lambda pair: (sign * (pair[0].value or 0.0), pair[1].size_bytes))

    def to_dict(self) -> dict[str, Any]:
        """Return all of it for JSON."""
        best = [self.best(index) for index in range(len(self.require))]
        return {
            "schema": SCHEMA,
            "tool": {"version": __version__},
            "inputs": {"trace": self.trace, "scenario": self.scenario},
            "require": [each.text for each in self.require],
            "needs_no_ssd": self.needs_no_ssd,
            "answer": self.answer and self.answer.to_dict(),
            "below": self.below and self.below.to_dict(),
            "alone": [each.to_dict() for each in self.alone],
            "best": [one and {**one[0].to_dict(), "size_bytes": one[1].size_bytes} for one in best],
            "tried": [each.to_dict() for each in self.tried],
            "miss_ratio_curve": self.curve.to_dict(POINTS),
            "notes": self.notes,
        }


def size(
    trace: Trace,
    scenario: Scenario | None = None,
    require: Sequence[str] = (),
    report: Report | None = None,
    say: Say = lambda text: None,
) -> Sizing:
    """Find the smallest cache with which the machine of a scenario meets all of `require`.

    `say` hears what is done, `report` how far each pass over the trace is.  Raises UsageError for a
    wrong requirement or a scenario that says no cache, and what `replay` raises.
    """
    scenario = scenario or Scenario.default()
    wanted = parse_all(require)
    if not wanted:
        raise UsageError("say what must be reached: --require 'p99.warm<8ms'")
    scenario, assumed = with_some_cache(scenario)
    several = Several(trace, scenario, report)
    check_answerable(wanted, several.summary.reads, several.summary.writes)
    page_bytes = scenario.cache.page_bytes
    say(f"the miss-ratio curve of pages of {human_size(page_bytes)}")
    curve = miss_ratio_curve(trace, "lru", None, page_bytes)
    # Kinds that keep their space in buckets or blocks need more of it than they hold.
    times = 1 if scenario.cache.kind == "page" else 2
    grid, largest_why = possible(scenario, sizes_of(curve, times))
    search = Search(grid, first_sizes(curve, grid))
    tried: list[Tried] = []
    alone: list[Checked] = []
    about: dict[str, Any] = {}
    notes: list[str] = []
    while chosen := search.next():
        say(f"replays with {', '.join(map(human_size, chosen))}")
        # The largest comes first: it decides whether recorded arrivals can be replayed.
        largest_first = sorted(chosen, reverse=True)
        results = several.results([sized(scenario, each) for each in largest_first])
        for each, result in zip(largest_first, results):
            tried.append(Tried.of(each, result, wanted))
            search.told(each, tried[-1].meets)
        if not alone:
            alone = [each.check(Seen.alone(results[0])) for each in wanted]
            about = {"trace": dict(results[0].trace), "scenario": dict(results[0].scenario)}
            notes = [f"{each.text} ({each.fix})" if each.fix else each.text
                     for each in results[0].warnings]  # fmt: skip
        if all(each.met for each in alone):
            break
    by_size = {each.size_bytes: each for each in tried}
    answer, below = search.answer, search.below
    notes = [*assumed, *notes, *_doubts(by_size, answer)]
    return Sizing(
        about["trace"], _site(scenario, several.mode), wanted, alone, curve,
        [by_size[each] for each in sorted(by_size)],
        None if answer is None else by_size[answer], None if below is None else by_size[below],
        largest_why, notes,
    )  # fmt: skip


class Search:
    """Which sizes of a grid to try next, and what those that were tried say."""

    def __init__(self, grid: Sequence[int], first: Sequence[int]) -> None:
        """Begin with some sizes of the grid."""
        self._grid = list(grid)
        self._first = list(first)
        self._met: dict[int, bool] = {}  # by index
        self._looked_between = False

    def told(self, size_bytes: int, meets: bool) -> None:
        """Hear what was found at a size."""
        self._met[self._grid.index(size_bytes)] = meets

    @property
    def _low_high(self) -> tuple[int, int | None]:
        high = min((index for index, met in self._met.items() if met), default=None)
        failed = [i for i, met in self._met.items() if not met and (high is None or i < high)]
        return max(failed, default=-1), high

    @property
    def answer(self) -> int | None:
        """The smallest size that meets all; None if none did."""
        high = self._low_high[1]
        return None if high is None else self._grid[high]

    @property
    def below(self) -> int | None:
        """The largest size below the answer, which fails; None if there is none."""
        low, high = self._low_high
        return None if high is None or low < 0 else self._grid[low]

    def next(self) -> list[int]:
        """Return the sizes to try next; none when the answer is known."""
        if not self._met:
            return self._first
        low, high = self._low_high
        if high is not None:
            return self._between(low, high)
        if self._looked_between:
            return []
        self._looked_between = True  # a larger cache is not always a better one
        tried = sorted(self._met)
        return [size for a, b in pairwise(tried) for size in self._middle(a, b)]

    def _between(self, low: int, high: int) -> list[int]:
        room = high - low - 1
        count = min(room, AT_ONCE)
        return [self._grid[low + (room + 1) * (i + 1) // (count + 1)] for i in range(count)]

    def _middle(self, low: int, high: int) -> list[int]:
        return [self._grid[(low + high) // 2]] if high - low > 1 else []


def sizes_of(curve: Curve, times: int = 1) -> list[int]:
    """Return sizes up to all that the trace touches, or some times that: four to a doubling."""
    pages, step, found = 1, 1, [1]
    while found[-1] < times * curve.distinct:
        if pages == 8 * step:
            step *= 2
        pages += step
        found.append(pages)
    return [each * curve.page_bytes for each in found]


def possible(scenario: Scenario, grid: Sequence[int]) -> tuple[list[int], str]:
    """Return the sizes that the scenario's cache can have, and why there are no larger ones."""
    low, high = 0, len(grid) - 1
    why = "it is more than the trace touches"
    while low < high and _refused(scenario, grid[low]):
        low += 1
    while high > low and (refused := _refused(scenario, grid[high])):
        why = refused
        high -= 1
    refused = _refused(scenario, grid[low])
    if refused:
        raise ScenarioError(refused)
    return list(grid[low : high + 1]), why


def _refused(scenario: Scenario, size_bytes: int) -> str:
    try:
        sized(scenario, size_bytes)
    except ScenarioError as error:
        return str(error).removeprefix("--cache-size: ")
    return ""


def with_some_cache(scenario: Scenario) -> tuple[Scenario, list[str]]:
    """Return a scenario with a cache in front of its disks, and what was assumed for that.

    A system of the catalog may have none; raises UsageError where it was said that there is none.
    """
    if scenario.cache.kind != "none":
        return scenario, []
    origin, kind = scenario.origin, ("cache", "kind")
    if origin.specifies(kind) or origin.option(kind):
        raise UsageError(
            "the scenario says that there is no cache: --cache page, or another kind under [cache]"
        )
    scenario = scenario.with_options(cache="page")
    cache = scenario.cache
    return scenario, [
        f"this system has no cache: one of pages is put in front of it ({cache.words}, on "
        f"{cache.drive.name}); --cache takes another kind"
    ]


def sized(scenario: Scenario, size_bytes: int) -> Scenario:
    """Return the scenario with a cache of another size."""
    return scenario.with_options(cache_size=format_size(size_bytes))


def first_sizes(curve: Curve, grid: Sequence[int]) -> list[int]:
    """Return the largest size, and those at which the curve has fallen by shares of its fall."""
    top, bottom = curve.miss_ratio[0], curve.miss_ratio[-1]
    wanted = {grid[-1]}
    for share in FALLEN:
        fallen = int((curve.miss_ratio <= top - share * (top - bottom)).argmax())
        needed = int(curve.pages[fallen]) * curve.page_bytes
        wanted.add(next((each for each in grid if each >= needed), grid[-1]))
    return sorted(wanted)


def _doubts(tried: dict[int, Tried], answer: int | None) -> list[str]:
    """Say where a larger size does worse."""
    if answer is None:
        return []
    worse = [human_size(each) for each in sorted(tried) if each > answer and not tried[each].meets]
    if not worse:
        return []
    return [f"more is not always better here: {', '.join(worse)} would not do"]


def _site(scenario: Scenario, mode: str) -> dict[str, Any]:
    backing, cache = scenario.backing, scenario.cache
    drives = cache.drive.name if cache.members == 1 else f"{cache.members} x {cache.drive.name}"
    return {
        "summary": f"{backing.members} x {backing.drive.name}, {backing.kind}; "
        f"cache on {drives}, {cache.words}",
        "mode": mode,
        "file": scenario.origin.name or None,
        "options": scenario.options,
        "toml": scenario.to_toml(),
    }
