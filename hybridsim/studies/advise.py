"""Recommend an SSD cache for an application: a search over caches, by what they will gain.

All kinds and modes of cache are replayed at one size, those that keep writes at one with room for
all written data; then the best two at other sizes, then the best machine with other settings.  The
forecast selects the recommended cache: what it gains as the load goes on after the capture, less a
part of how wrong that may be.  The answer also has the guide's five questions and the alternatives
that could be bought instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from hybridsim.answers.advice.alternatives import (
    GB,
    NAMES,
    Alternative,
    Pricing,
    alternatives,
    chosen,
    pricing,
)
from hybridsim.answers.advice.load import Activity, HotSpot, hot_spot
from hybridsim.answers.forecast import YES
from hybridsim.answers.judge import Both, Side, Stretch
from hybridsim.answers.outcome import SECOND, Outcome
from hybridsim.answers.result import Result
from hybridsim.foundation.documents import headed
from hybridsim.foundation.errors import ScenarioError
from hybridsim.foundation.in_notebooks import DataFrame, frame_of, table_html
from hybridsim.foundation.units import human_size
from hybridsim.foundation.wording import latency
from hybridsim.scenario import Scenario
from hybridsim.studies.candidates import (
    SIZE,
    Candidate,
    Row,
    alike,
    candidates,
    row,
    variants,
    warned,
)
from hybridsim.studies.mrc import Curve, miss_ratio_curve
from hybridsim.studies.replay import Several, Status
from hybridsim.studies.runs import Report
from hybridsim.studies.size import possible, sizes_of
from hybridsim.traces.summary import Summary
from hybridsim.traces.trace import Trace

SCHEMA = "hybridsim.advice/2"
TARGET = 0.9  # of what the curve falls by in all
REFINED = 2  # kinds and modes that are tried at other sizes
OF_VERDICT = ("headline", "reasons", "advice")  # in JSON
AS_GOOD = 0.98  # of the best value: the cheaper machine is taken
APART = 1.1  # times: means that differ by less are no reason


@dataclass(frozen=True)
class Compared:
    """The figures of one alternative for the second half of the requests, and its maximum IOPS."""

    name: str
    words: str
    cost: float | None
    mean_ns: float | None  # of reads, or of writes if there are no reads
    p99_ns: int | None
    all_ns: int  # duration of the whole work
    half_ns: int  # duration of its second half
    utilisation: float | None
    most_iops: float | None  # maximum in the second half, at the scenario's depth

    @classmethod
    def of(
        cls, one: Alternative, outcome: Outcome, summary: Summary, most_iops: float | None
    ) -> Compared:
        """Return the figures of the second half of a run: the same requests as the judge's."""
        judged = second_half(outcome)
        requests = judged.reads if summary.reads else judged.writes
        known = not outcome.saturated
        busy = judged.disk_ns
        took = outcome.members["slow"] * judged.took_ns
        return cls(
            one.name, one.words, one.cost,
            requests.mean_ns if known else None, requests.percentile(99) if known else None,
            outcome.last_done_ns, judged.took_ns,
            None if busy is None or not took else busy / took, most_iops,
        )  # fmt: skip


@dataclass(frozen=True)
class Advice:
    """The answer, and the figures that it is based on."""

    trace: dict[str, Any]
    scenario: dict[str, Any]
    mode: str  # of all replays except those of the maximum IOPS
    activity: Activity
    hot: HotSpot
    curve: Curve
    rows: list[Row]  # the recommended cache first, then by gain
    compared: list[Compared]
    data_bytes: int
    pricing: Pricing
    is_per_cost: bool  # the scenario has prices: the gain per cost decides
    depth: int  # queue depth of the maximum IOPS
    notes: list[str] = field(default_factory=list)

    @property
    def pick(self) -> Row:
        """The cache that the search chose."""
        return self.rows[0]

    @property
    def answer(self) -> str:
        """yes, no or unsure; no only if no installable cache is worth it."""
        return self.pick.answer

    def of(self, name: str) -> Compared | None:
        """Return an alternative by its name, or None."""
        return next((one for one in self.compared if one.name == name), None)

    def waiting(self, one: Compared | None) -> float | None:
        """Return the share of the time in which the application would wait for storage.

        Its own time is assumed to stay the same as in the capture.  None unless the mode is think.
        """
        busy = self.activity.busy_share
        if one is None or busy is None or self.mode != "think":
            return None
        return max(0.0, 1 - (1 - busy) * self.activity.span_ns / max(one.all_ns, 1))

    def frame(self) -> DataFrame:
        """Return a pandas frame: a row per machine that was replayed, the recommended one first.

        Columns: `cache`, `cache_mode`, `setting` (that differs from the defaults), `size_bytes`,
        `answer`, `gain` of the second half of the requests and its forecast `low` to `high`,
        `hit_ratio` and `warm_gain`, `p99_ns` and `p99_ns_alone` of the second half,
        `drive_writes_per_day`, `drives` to buy, their `cost` and why it is not recommended
        (`loses`).  NaN where unknown.  Needs pandas (`hybridsim[notebooks]`).
        """
        return frame_of(
            {
                "cache": each.candidate.kind,
                "cache_mode": each.candidate.mode,
                "setting": each.candidate.setting,
                "size_bytes": each.size_bytes,
                "answer": each.answer,
                "gain": each.judgement.gain,
                "low": each.judgement.low,
                "high": each.judgement.high,
                "hit_ratio": each.hit,
                "warm_gain": each.of(each.warm),
                "p99_ns": each.judgement.judged.cached.both.percentile(99),
                "p99_ns_alone": each.judgement.judged.plain.both.percentile(99),
                "drive_writes_per_day": each.result.wear and each.result.wear.drive_writes_per_day,
                "drives": each.bought.drives,
                "cost": each.bought.cost,
                "loses": each.loses,
            }
            for each in self.rows
        )

    def purchases(self) -> DataFrame:
        """Return a pandas frame: a row per alternative for the money, such as more disks.

        Columns: `name`, `words`, `cost`; `mean_ns` and `p99_ns` of the second half of the requests,
        `all_ns` and `half_ns` that they take, `utilisation` of the disks, `most_iops`.
        """
        return frame_of(map(asdict, self.compared), [each.name for each in fields(Compared)])

    def __repr__(self) -> str:
        size = human_size(self.pick.size_bytes)
        tried = f"{len(self.rows)} machines tried"
        return f"<Advice: {self.answer}, {self.pick.candidate.label} of {size}, {tried}>"

    def _repr_html_(self) -> str:
        rows = [("recommended", f"{self.pick.candidate.label}, {human_size(self.pick.size_bytes)}")]
        rows += [("verdict", self.pick.result.verdict.headline)]
        return table_html(f"Advice: {self.answer}", rows)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of the JSON."""
        result, data_gb = self.pick.result, self.data_bytes / GB
        return headed(
            SCHEMA,
            inputs={"trace": self.trace, "scenario": self.scenario},
            mode=self.mode,
            goal=self.pick.judgement.goal,
            answer=self.answer,
            verdict={name: getattr(result.verdict, name) for name in OF_VERDICT},
            disks_keep_up=not result.phases["none"].saturated,
            recommended=self.pick,
            rows=self.rows,
            activity=self.activity,
            hot_spot=self.hot,
            knee_bytes=self.curve.knee_bytes,
            data_bytes=self.data_bytes,
            compared=[
                {
                    **vars(one),
                    "cost_per_gb": one.cost and one.cost / data_gb,
                    "waiting": self.waiting(one),
                }
                for one in self.compared
            ],
            price=self.pricing.to_dict(),
            gain_per_cost_decides=self.is_per_cost,
            depth=self.depth,
            notes=self.notes,
        )


def advise(
    trace: Trace,
    scenario: Scenario | None = None,
    compare: Sequence[str] = NAMES,
    data_bytes: int | None = None,
    report: Report | None = None,
    status: Status = lambda text: None,
    goal: str = "time",
) -> Advice:
    """Recommend a cache on a scenario's disks for the application that a trace was captured from.

    Keys of the cache that the scenario specifies (kind, mode, settings, `--set cache.size`) narrow
    the search.  `compare` are names of alternatives that are replayed too; each holds `data_bytes`,
    by default the capacity of the scenario's array.  `goal` is one of answers.goals.GOALS.  Raises
    the errors of `replay`, and UsageError for a scenario without a cache or an unknown alternative.

    >>> found = advise(Trace.read("gen:zipf,requests=300,span=16MiB,rate=100"), compare=[],
    ...                scenario=Scenario.default().with_options(cache="page", cache_size="2MiB"))
    >>> sorted(found.frame()["cache_mode"])
    ['write-back', 'write-through']
    """
    scenario = scenario or Scenario.default()
    names = chosen(compare)
    every, notes = candidates(scenario)
    prices = pricing(scenario)
    several = Several(trace, every[0].scenario, report, goal, status)
    summary = several.summary
    status("the application's own time, its processes and its hot spot")
    activity = Activity(summary.span_ns)
    for chunk in trace.from_first():
        activity.add(chunk)
    page_bytes = Scenario.default().cache.page_bytes
    hot = hot_spot(trace, summary.requests, summary.reads, page_bytes)
    status("the miss-ratio curve")
    curve = miss_ratio_curve(trace, "lru", None, page_bytes)
    rows, left_out = searched(several, every, curve, prices)
    is_per_cost = scenario.price is not None
    pick = picked(rows, is_per_cost)
    others = sorted(
        (each for each in rows if each is not pick),
        key=lambda each: (not each.candidate.installable, -(each.judgement.gain or 0.0)),
    )
    rows = alike([pick, *(replace(each, loses=why_not(each, pick, is_per_cost))
                          for each in others)])  # fmt: skip
    site = pick.candidate.scenario
    data_bytes = data_bytes or scenario.backing.held_bytes
    options = alternatives(
        site, names, data_bytes, pick.size_bytes, prices.price, summary.max_end_bytes
    )
    compared = _compared(several, options, pick.result)
    about = pick.result
    return Advice(
        dict(about.trace), dict(about.scenario), several.mode, activity, hot, curve, rows,
        compared, data_bytes, prices, is_per_cost, scenario.replay.depth,
        [*notes, *left_out, *warned(about)],
    )  # fmt: skip


def searched(
    several: Several, every: Sequence[Candidate], curve: Curve, prices: Pricing
) -> tuple[list[Row], list[str]]:
    """Replay all candidates at one size and the best at others; return notes on those left out."""
    wanted, summary = sizes_to_try(curve), several.summary
    fixed = every[0].scenario.origin.option(SIZE) is not None
    coarse, notes = [], []
    for each in every:
        try:
            held = wanted[0]
            if each.keeps_writes:
                written = summary.writes, summary.bytes_written, summary.footprint_bytes
                held = max(held, each.room_for_writes(*written))
            cache = each.scenario.cache
            if fixed:
                size = cache.pages(summary.footprint_bytes) * cache.page_bytes
            else:
                size = fitting(each, held, curve)
            coarse.append((each, size))
        except ScenarioError as error:
            notes.append(f"{each.name} was left out: {error}")
            refused = error
    if not coarse:
        raise refused
    rows = _rows(several, coarse, prices, f"{len(coarse)} kinds of cache, and without one")
    if not fixed:
        best = sorted((r for r in rows if may_be_chosen(r, rows)), key=lambda each: -each.sure)
        more: list[tuple[Candidate, int]] = []
        for one in best[:REFINED]:
            sizes = {fitting(one.candidate, other, curve) for other in wanted}
            more += [(one.candidate, size) for size in sorted(sizes - {one.size_bytes})]
        words = ", ".join(f"{each.name} of {human_size(size)}" for each, size in more)
        rows += _rows(several, more, prices, words)
    top = picked(rows, False)
    others = [
        (each, top.size_bytes)
        for each in variants(top.candidate)
        if not each.refused(top.size_bytes)
    ]
    words = ", ".join(each.label for each, _ in others)
    return rows + _rows(several, others, prices, words), notes


def _rows(
    several: Several, machines: Sequence[tuple[Candidate, int]], prices: Pricing, words: str
) -> list[Row]:
    if machines:
        several.status(f"replays of {words}")
    results = several.results([each.sized(size) for each, size in machines])
    return [row(each, size, result, prices) for (each, size), result in zip(machines, results)]


def sizes_to_try(curve: Curve) -> list[int]:
    """Return the bytes of cached data to try: TARGET of the fall, the knee, and all pages."""
    last = int(curve.pages[-1]) * curve.page_bytes
    return list(dict.fromkeys((curve.fallen(TARGET), curve.knee_bytes, last)))


def fitting(candidate: Candidate, held_bytes: int, curve: Curve) -> int:
    """Return the smallest possible size that holds `held_bytes`, or the largest possible size."""
    grid = possible(candidate, sizes_of(curve, candidate.times))[0]
    needed = candidate.times * held_bytes
    return next((each for each in grid if each >= needed), grid[-1])


def may_be_chosen(one: Row, rows: Sequence[Row]) -> bool:
    """Return whether the cache of a row is installable, or none of the rows is."""
    return one.candidate.installable or not any(each.candidate.installable for each in rows)


def picked(rows: Sequence[Row], is_per_cost: bool) -> Row:
    """Return the row with the largest cautious forecast, of those with the answer yes if any.

    A kind that must be built from source, for each kernel, counts only where it gains more than
    EFFORT times as much.  With prices in the scenario, it is the gain per cost of disks and SSDs.
    Of rows within AS_GOOD
    of the best, the cheapest is chosen, then the smallest, then one whose SSD never holds the only
    copy, then one with default settings.
    """
    able = [each for each in rows if may_be_chosen(each, rows)]
    keeping_up = [each for each in able if each.keeps_up] or able
    keeping_up = [each for each in keeping_up if each.answer == YES] or keeping_up
    values = [value_of(each, is_per_cost) for each in keeping_up]
    best = max(values)
    good = [each for each, value in zip(keeping_up, values) if value >= AS_GOOD * best]
    return min(
        good,
        key=lambda each: (
            each.bought.cost or 0.0, each.size_bytes, each.candidate.keeps_writes,
            bool(each.candidate.setting), -each.sure,
        ),
    )  # fmt: skip


def value_of(one: Row, is_per_cost: bool) -> float:
    """Return the value by which rows are compared: the cautious gain, or it per cost."""
    total, sure = one.bought.total_cost, one.sure / one.candidate.effort
    return sure / total if is_per_cost and total else sure


def why_not(one: Row, pick: Row, is_per_cost: bool) -> str:
    """Return the main reason why a row is not recommended."""
    if not one.candidate.installable and pick.candidate.installable:
        return "not available as a product"
    if not one.keeps_up and pick.keeps_up:
        return "its disks cannot keep up"
    ours, theirs = value_of(pick, is_per_cost), value_of(one, is_per_cost)
    if theirs < ours <= theirs * one.candidate.effort:
        return "built from source, for less than a tenth more"
    if theirs >= AS_GOOD * ours:
        return _no_dearer(one, pick)
    if is_per_cost and one.sure > pick.sure:
        return "less gain per cost"
    if (one.judgement.gain or 0.0) > (pick.judgement.gain or 0.0):
        return "less sure"
    if _falls(one) > APART * _falls(pick):
        return "less is forecast"
    mine, its = pick.judgement.judged.cached, one.judgement.judged.cached
    reads = _more(its.reads.total_ns, mine.reads.total_ns)
    writes = _more(its.writes.total_ns, mine.writes.total_ns)
    extra = (
        its.writes.total_ns - mine.writes.total_ns, its.reads.total_ns - mine.reads.total_ns
    )  # fmt: skip
    if writes >= APART and extra[0] >= extra[1]:
        return f"writes {latency(its.writes.mean_ns)}, not {latency(mine.writes.mean_ns)}"
    if reads >= APART:
        return f"reads {latency(its.reads.mean_ns)}, not {latency(mine.reads.mean_ns)}"
    return "gains less" if one.judgement.forecast is None else "less is forecast"


def _falls(one: Row) -> float:
    """Return how many times larger the gain of the capture is than the forecast."""
    gain, expected = one.judgement.gain, one.judgement.expected
    return gain / expected if gain and expected else 1.0


def _no_dearer(one: Row, pick: Row) -> str:
    """Return why a row with the same gain as the chosen one is not chosen."""
    if (one.bought.cost or 0.0) > (pick.bought.cost or 0.0):
        return "costs more for the same gain"
    if one.size_bytes > pick.size_bytes:
        return "larger, for the same gain"
    if one.candidate.keeps_writes and not pick.candidate.keeps_writes:
        return "SSD has the only copy"
    if one.candidate.setting and not pick.candidate.setting:
        return "the same with default settings"
    return "the same gain within 2%"


def _more(here: int, there: int) -> float:
    return here / there if there else float("inf") if here else 1.0


def _compared(several: Several, options: Sequence[Alternative], pick: Result) -> list[Compared]:
    """Replay the alternatives in the mode of all replays, and in closed loop for the maximum IOPS.

    The disks alone and the recommended machine are not run again if the search has their results.
    """
    outcomes: dict[str, Outcome] = {}
    for one in options:
        if one.name == "disks" and one.scenario.backing == several.task.scenario.backing:
            outcomes[one.name] = pick.plain
        elif one.name == "hybrid" and one.scenario.to_toml() == pick.scenario["toml"]:
            outcomes[one.name] = pick.cached

    def ran(some: Sequence[Alternative], mode: str, words: str) -> list[Outcome]:
        several.status(f"{words} {', '.join(one.name for one in some)}")
        return several.outcomes([(one.scenario, one.has_cache) for one in some], mode)

    if missing := [one for one in options if one.name not in outcomes]:
        found = ran(missing, several.mode, "replays of")
        outcomes |= {one.name: each for one, each in zip(missing, found)}
    most: list[float | None] = [None]
    if len(options) > 1:
        most = [_iops(each) for each in ran(options, "closed", "the most IOPS of")]
    return [
        Compared.of(one, outcomes[one.name], several.summary, iops)
        for one, iops in zip(options, most)
    ]


def second_half(outcome: Outcome) -> Stretch:
    """Return the figures of the second half of the requests, the same ones as the judge's."""
    side = Side(outcome.collector.ledger, outcome.counters)
    both = Both(side, side)
    return both.pair(both.half, both.groups).plain


def _iops(outcome: Outcome) -> float | None:
    """Return the requests of the second half completed per second; None if it took no time."""
    judged = second_half(outcome)
    return judged.both.count * SECOND / judged.took_ns if judged.took_ns > 0 else None
