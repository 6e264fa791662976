"""What a sweep found, on one screen: the best, the Pareto front, what matters, what failed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from hybridsim.foundation.wording import NONE, counted, percent, span
from hybridsim.show import fleet
from hybridsim.show.page import page, paragraph, table
from hybridsim.studies.sweep.confidence import LEVEL

if TYPE_CHECKING:
    from hybridsim.studies.sweep.answer import Effect, Setting, SweepResult

SHOWN = 10  # settings of a table
FAILED_SHOWN = 5
CELL = 24  # columns of a value at most


def text(found: SweepResult, ascii_only: bool = False) -> str:
    """Return what was found as text."""
    return page(_lines(found), ascii_only)


def _lines(found: SweepResult) -> Iterator[str]:
    yield from paragraph("sweep", _of_what(found))
    yield from paragraph("replays", _replays(found))
    if found.settings and found.is_fleet:
        yield ""
        yield from fleet.lines(found)
    elif found.settings:
        yield from paragraph("best", best(found))
        for title, rows in tables(found):
            yield ""
            yield title
            yield from _table(found, rows)
        yield from _effects(found)
    for number, note in enumerate([*found.notes, *found.doubts]):
        yield from paragraph("" if number else "notes", note)
    yield from _failures(found)


def _of_what(found: SweepResult) -> str:
    plan = found.plan
    parts = [f"{axis.key} ({_number(axis)})" for axis in plan.axes] or ["nothing is varied"]
    traces = counted(len(plan.traces), "volume" if found.is_fleet else "trace")
    seeds = f"; {plan.seeds} random seeds" if plan.seeds > 1 else ""
    kind = {"grid": "every combination of", "random": "at random:", "pareto": "towards the front:"}
    how = f"{kind[plan.kind]} " if plan.axes else ""
    return f"{how}{', '.join(parts)}; {traces}{seeds}"


def _number(axis: Any) -> str:
    return str(len(axis.choices)) if isinstance(axis.choices, tuple) else str(axis.choices)


def _replays(found: SweepResult) -> str:
    parts = [f"{found.computed:,} computed in {span(found.seconds * 1e9)}"]
    if found.known:
        parts.append(f"{found.known:,} known from before")
    if found.failed:
        parts.append(f"{len(found.failed):,} failed")
    if found.interrupted:
        left = f"{found.missing:,} are missing" if found.missing else "more remains"
        parts.append(f"interrupted: {left}; the same command goes on")
    return "; ".join(parts)


def best(found: SweepResult) -> str:
    """Return the best setting by the first objective, as a sentence."""
    first = found.ranked()[0]
    figures = ", ".join(
        f"{objective.text} {cell}"
        for objective, cell in zip(found.plan.objectives, _cells(found, first))
    )
    where = first.trace if len({each.trace for each in found.settings}) > 1 else ""
    values = " ".join(f"{key}={value}" for key, value in first.values.items())
    return f"{' '.join(filter(None, (where, values))) or 'the only one'}: {figures}"


def tables(found: SweepResult) -> list[tuple[str, list[Setting]]]:
    """Return the settings worth a row, with titles."""
    front, every = found.front, found.ranked()
    if len(every) <= SHOWN:
        return [
            (f"all {len(every)} settings, the best {found.plan.objectives[0].text} first", every)
        ]
    shown = [(f"the best by {found.plan.objectives[0].text}", every[: SHOWN // 2])]
    if len(found.plan.objectives) > 1 and front:
        words = ", ".join(each.text for each in found.plan.objectives)
        title = f"Pareto front of {words}: {len(front)} of {len(every)} settings"
        some = front if len(front) <= SHOWN else [front[index] for index in _spread(len(front))]
        shown.append((title + (f"; {SHOWN} of them" if len(front) > SHOWN else ""), some))
    return shown


def _spread(number: int) -> list[int]:
    return [round(step * (number - 1) / (SHOWN - 1)) for step in range(SHOWN)]


def _table(found: SweepResult, rows: Sequence[Setting]) -> list[str]:
    keys = found.keys
    heads = [*_short(keys), *(each.text for each in found.plan.objectives)]
    cells = [
        [*(_clipped(str(setting.level(key))) for key in keys), *_cells(found, setting)]
        for setting in rows
    ]
    if not keys:
        heads, cells = ["machine", *heads], [["the scenario", *row] for row in cells]
    return table(heads, cells)


def _cells(found: SweepResult, setting: Setting) -> list[str]:
    return [
        NONE if each is None else each.worded(objective.worded)
        for objective, each in zip(found.plan.objectives, setting.estimates)
    ]


def _short(keys: Sequence[str]) -> list[str]:
    """Return the last word of each key, where no other key has it."""
    last = [key.rpartition(".")[2] for key in keys]
    return [word if last.count(word) == 1 else key for key, word in zip(keys, last)]


def _clipped(text: str) -> str:
    return text if len(text) <= CELL else "…" + text[-CELL + 1 :]


def _effects(found: SweepResult) -> Iterator[str]:
    """What moves which objective: the share that is its key's, from the worst mean to the best."""
    effects = found.effects
    if not effects:
        return
    yield ""
    yield "what matters: the share of all differences that a key explains by itself"
    rows = [[each.key, each.objective.text, percent(each.share), *_ends(each)] for each in effects]
    yield from table(["key", "of", "share", "worst", "", "best", ""], rows)
    intervals = [e for each in found.settings for e in each.estimates if e and e.n > 1]
    if intervals:
        yield f"± {percent(LEVEL)} interval over seeds (Student's t)"


def _ends(one: Effect) -> list[str]:
    return [
        word
        for level in (one.worst, one.best)
        for word in (one.objective.worded(level.mean), _clipped(level.words))
    ]


def _failures(found: SweepResult) -> Iterator[str]:
    for number, each in enumerate(found.failed[:FAILED_SHOWN]):
        if not number:
            yield ""
        yield from paragraph("failed", f"{each.words}: {each.why}")
        if each.command:
            yield f"  {each.command}"
    more = len(found.failed) - FAILED_SHOWN
    if more > 0:
        yield from paragraph("", f"and {more:,} more: --json lists all of them")
