"""The report of `sweep`: the best setting, the Pareto front, effects of the keys, failures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hybridsim.answers.advice.alternatives import pricing
from hybridsim.answers.forecast import is_certain
from hybridsim.foundation.units import human_size
from hybridsim.foundation.wording import NONE, counted, in_table, latency, percent, ranged, span
from hybridsim.show.page import page, paragraph, paragraphs, table
from hybridsim.studies.sweep.figures import COST, FORECAST, GAINS, INTERVALS, WORK, WORK_NS
from hybridsim.studies.sweep.seeds import LEVEL, Estimate

if TYPE_CHECKING:
    from hybridsim.studies.sweep.answer import Effect, FleetRow, Setting, SweepResult
    from hybridsim.studies.sweep.figures import Objective

SHOWN = 10  # settings of a table
FAILED_SHOWN = 5
LISTED_MAX = 4  # settings of a sentence
CELL = 24  # maximum number of columns of a value
VOLUMES_SHOWN = 5  # at each end of the ranking


def text(sweep_result: SweepResult, ascii_only: bool = False) -> str:
    """Return the results as text."""
    return page(_lines(sweep_result), ascii_only)


def _lines(sweep_result: SweepResult) -> Iterator[str]:
    yield from paragraph("sweep", _of_what(sweep_result))
    yield from paragraph("replays", _replays(sweep_result))
    if sweep_result.settings and sweep_result.is_fleet:
        yield ""
        yield from _fleet(sweep_result)
    elif sweep_result.settings:
        yield from paragraph("best", best(sweep_result))
        for sentence in not_apart(sweep_result):
            yield from paragraph("not apart", sentence)
        for title, rows in tables(sweep_result):
            yield ""
            yield title
            yield from _table(sweep_result, rows)
        yield from _effects(sweep_result)
        if any(each.text == COST for each in sweep_result.plan.objectives):
            price = pricing(sweep_result.plan.scenario).price
            words = f"in {price.currency}, of disks and SSDs (prices of {price.date})"
            yield from paragraph("cost", words)
    yield from paragraphs("notes", sweep_result.notes)
    yield from _failures(sweep_result)


def _of_what(sweep_result: SweepResult) -> str:
    plan = sweep_result.plan
    numbers = {axis.key: axis.choices for axis in plan.axes}
    parts = [
        f"{key} ({len(each) if isinstance(each, tuple) else each})" for key, each in numbers.items()
    ] or ["nothing is varied"]
    traces = counted(len(plan.traces), "volume" if sweep_result.is_fleet else "trace")
    seeds = f"; {plan.seeds} random seeds" if plan.seeds > 1 else ""
    kind = {
        "grid": "every combination of",
        "random": "random samples of",
        "pareto": "a search for the Pareto front over",
    }
    how = f"{kind[plan.kind]} " if plan.axes else ""
    return f"{how}{', '.join(parts)}; {traces}{seeds}"


def _replays(sweep_result: SweepResult) -> str:
    parts = [f"{sweep_result.computed:,} computed in {span(sweep_result.seconds * 1e9)}"]
    if sweep_result.known:
        parts.append(f"{sweep_result.known:,} reused from an earlier run")
    if sweep_result.failed:
        parts.append(f"{len(sweep_result.failed):,} failed")
    if sweep_result.interrupted:
        number = f"{sweep_result.missing:,}" if sweep_result.missing else "more"
        parts.append(f"interrupted: {number} are missing; run the same command again to continue")
    return "; ".join(parts)


def best(sweep_result: SweepResult) -> str:
    """Return the best setting by the first objective, as a sentence."""
    first = sweep_result.ranked()[0]
    objectives = sweep_result.plan.objectives
    cells = zip(objectives, cells_of(objectives, first.to_dict()))
    figures = ", ".join(f"{objective.text} {cell}" for objective, cell in cells)
    return f"{_named(sweep_result, first) or 'the only setting'}: {figures}"


def _named(sweep_result: SweepResult, setting: Setting) -> str:
    where = setting.trace if len({each.trace for each in sweep_result.settings}) > 1 else ""
    values = " ".join(f"{key}={value}" for key, value in setting.values.items())
    return " ".join(filter(None, (where, values)))


def not_apart(sweep_result: SweepResult) -> Iterator[str]:
    """Yield which settings cannot be distinguished from the best, and from those on the front."""
    first, objectives = sweep_result.plan.objectives[0], sweep_result.plan.objectives
    if sweep_result.alike:
        words = listed([_named(sweep_result, each) for each in sweep_result.alike])
        yield f"By {first.text}, the best cannot be distinguished from {words}."
    near = sweep_result.near_front
    if len(objectives) > 1 and near:
        words = listed([_named(sweep_result, each) for each in near])
        yield f"Off the Pareto front, but not surely worse: {words}."


def listed(names: Sequence[str], most: int = LISTED_MAX, where: str = " (--json)") -> str:
    """Return the first names, how many more there are, and `where`."""
    more = len(names) - most
    return "; ".join(names[:most]) + (f"; and {more:,} more{where}" if more > 0 else "")


def tables(sweep_result: SweepResult) -> list[tuple[str, list[Setting]]]:
    """Return the tables to show, as title and settings."""
    front, every = sweep_result.front, sweep_result.ranked()
    if len(every) <= SHOWN:
        number = f"{'all ' * (len(every) > 1)}{counted(len(every), 'setting')}"
        return [(f"{number}, by {sweep_result.plan.objectives[0].text}, best first", every)]
    shown = [(f"the best settings by {sweep_result.plan.objectives[0].text}", every[: SHOWN // 2])]
    if len(sweep_result.plan.objectives) > 1 and front:
        words = ", ".join(each.text for each in sweep_result.plan.objectives)
        title = f"Pareto front of {words}: {len(front)} of {len(every)} settings"
        if len(front) > SHOWN:
            title += f"; {SHOWN} of them"
            front = [front[round(step * (len(front) - 1) / (SHOWN - 1))] for step in range(SHOWN)]
        shown.append((title, front))
    return shown


def _table(sweep_result: SweepResult, rows: Sequence[Setting]) -> list[str]:
    keys, objectives = sweep_result.keys, sweep_result.plan.objectives
    heads = [*_short(keys), *(each.text for each in objectives)]
    cells = [
        [*(_clipped(str(each.level(key))) for key in keys), *cells_of(objectives, each.to_dict())]
        for each in rows
    ]
    if not keys:
        heads, cells = ["machine", *heads], [["the scenario", *row] for row in cells]
    return table(heads, cells)


def cells_of(objectives: Sequence[Objective], setting: Mapping[str, Any]) -> list[str]:
    """Return each objective of a setting of the document as text."""
    return [
        NONE if (known := setting["objectives"][each.text]) is None
        else _worded(each, Estimate(**known), setting["intervals"].get(each.text))
        for each in objectives
    ]  # fmt: skip


def _worded(objective: Objective, estimate: Estimate, known: Mapping[str, Any] | None) -> str:
    """Return an objective with its interval: 2.60 ms (2.4 to 2.9); or its mean over seeds."""
    if known is None or estimate.n > 1:
        return estimate.worded(objective.worded)
    low, high = known["low"], known["high"]
    if objective.is_time:
        return ranged(estimate.mean, low, high)
    if objective.text in GAINS:
        return f"{objective.worded(estimate.mean)} ({low:.2f} to {high:.2f})"
    ends = (objective.worded(low), objective.worded(high))
    return f"{objective.worded(estimate.mean)} ({' to '.join(ends)})"


def _short(keys: Sequence[str]) -> list[str]:
    """Return the last word of each key; the whole key if several keys share that word."""
    last = [key.rpartition(".")[2] for key in keys]
    return [word if last.count(word) == 1 else key for key, word in zip(keys, last)]


def _clipped(text: str) -> str:
    return text if len(text) <= CELL else "…" + text[-CELL + 1 :]


def _effects(sweep_result: SweepResult) -> Iterator[str]:
    """Yield a table of the effect of each key on each objective, with its worst and best value."""
    effects = sweep_result.effects
    if not effects:
        return
    yield ""
    yield "what matters: the share of an objective's variance that a key explains alone"
    rows = [[each.key, each.objective.text, percent(each.share), *_ends(each)] for each in effects]
    yield from table(["key", "objective", "share", "worst", "", "best", ""], rows)
    intervals = [e for each in sweep_result.settings for e in each.estimates if e and e.n > 1]
    if intervals:
        yield f"±: {percent(LEVEL)} confidence interval over random seeds (Student's t)"


def _ends(one: Effect) -> list[str]:
    return [
        word
        for level in one.ends
        for word in (one.objective.worded(level.mean), _clipped(level.words))
    ]


def _failures(sweep_result: SweepResult) -> Iterator[str]:
    for number, each in enumerate(sweep_result.failed[:FAILED_SHOWN]):
        if not number:
            yield ""
        yield from paragraph("failed", f"{each.words}: {each.why}")
        if each.command:
            yield f"  {each.command}"
    more = len(sweep_result.failed) - FAILED_SHOWN
    if more > 0:
        yield from paragraph("", f"and {more:,} more: --json lists all of them")


# A fleet: totals by setting, the volumes with the largest and the smallest gains.


def _fleet(sweep_result: SweepResult) -> Iterator[str]:
    """Yield the totals by setting, the distribution of gains, and the volumes at both ends."""
    rows = sweep_result.fleet
    yield f"{counted(len(rows[0].settings), 'volume')}, each replayed separately"
    heads = ["", "yes", "no", "unsure", "SSD", "alone", "cached", "gain", "10%", "half", "90%"]
    yield from table(heads, [_fleet_cells(row) for row in rows])
    yield "alone, cached: mean latency of the second half of each volume's requests;"
    yield "gain: their ratio;"
    yield "10%, half, 90%: that share of the volumes has at most this gain"
    yield ""
    yield from _ranked(rows[0])


def _fleet_cells(row: FleetRow) -> list[str]:
    shares = row.quantiles
    name = " ".join(f"{key.rpartition('.')[2]}={value}" for key, value in row.values.items())
    return [
        name or "the scenario",
        *(str(number) for number in row.answers.values()),
        human_size(row.ssd_bytes).replace(" ", ""),
        latency(row.alone_ns).replace(" ", ""),
        latency(row.mean_ns).replace(" ", ""),
        _times(row.gain),
        *(_times(shares.get(each)) for each in (10, 50, 90)),
    ]


def _times(gain: float | None) -> str:
    return NONE if gain is None else f"{gain:.2f}"


def _ranked(row: FleetRow) -> Iterator[str]:
    known = [(each.gain, each) for each in row.settings if each.gain is not None]
    ranked = sorted(known, key=lambda pair: -pair[0])
    if len(ranked) > 2 * VOLUMES_SHOWN:
        ranked = ranked[:VOLUMES_SHOWN] + ranked[-VOLUMES_SHOWN:]
    cells = []
    for gain, each in ranked:
        figures = each.figures[0]
        answer, work = figures["answer"], figures[WORK]
        sure = is_certain(answer, *figures[INTERVALS].get(FORECAST, (None, None)))
        cells.append([
            each.points[0].trace.device or "", in_table(answer, sure), _times(gain),
            latency(figures[WORK_NS] / work if work else None), f"{figures['requests']:,}",
            human_size(figures["ssd_bytes"]),
        ])  # fmt: skip
    setting = f", with {_fleet_cells(row)[0]}" if row.values else ""
    yield f"the volumes with the largest and the smallest gains{setting}"
    yield from table(["volume", "answer", "gain", "mean", "requests", "SSD"], cells)
