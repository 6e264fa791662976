"""The report of a replay on a terminal: the first screen; with `details` all other figures."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from typing import TextIO

import numpy as np
from rich.console import Console, Group, RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text

from hybridsim.answers.metrics import Kind
from hybridsim.answers.outcome import Phase
from hybridsim.answers.requirements import Checked
from hybridsim.answers.result import Result
from hybridsim.answers.warmup import State
from hybridsim.foundation.histogram import Distribution
from hybridsim.foundation.printable import printable
from hybridsim.foundation.units import human_count, human_size
from hybridsim.foundation.wording import NONE, latency, percent, ranged, recorded, span
from hybridsim.show.curve import draw
from hybridsim.show.events import sentences
from hybridsim.show.findings import findings
from hybridsim.show.first_screen import first_screen
from hybridsim.show.labels import GLUE, LABELS, joined, mark, rows, unbroken
from hybridsim.show.page import MARGIN, in_ascii, is_ascii, table
from hybridsim.show.screen import NARROWEST, steer
from hybridsim.show.screen import width as width_of

COLOURS = {"yes": "bold green", "no": "bold red", "unsure": "bold yellow"}
MODES = {"open": "open loop", "closed": "closed loop", "think": "think time"}
WIDEST = 110
ROOM = 78  # minimum width of the table with all figures in one row
FIGURES = ("number", "hit", "mean", "p50", "p99", "p999", "max", "busy")
PLOT_HEIGHT = 6


def write(result: Result, stream: TextIO, details: bool = False) -> None:
    """Write the report with the width, colours and characters that the stream supports."""
    is_terminal = stream.isatty()
    colour = is_terminal and not os.environ.get("NO_COLOR")
    steer(render(result, width_of(stream), is_ascii(stream), colour, details), stream)


def render(
    result: Result,
    width: int = 80,
    ascii_only: bool = False,
    colour: bool = False,
    details: bool = False,
) -> str:
    """Return the report as text: the first screen; with `details` also all other figures."""
    width = max(min(width, WIDEST), NARROWEST)
    console = Console(
        file=io.StringIO(),
        width=width,
        force_terminal=colour,
        color_system="standard" if colour else None,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
    system = console._color_system
    parts = console.render(Group(*_sections(result, width, ascii_only, details)))
    # Only styles produce terminal codes: control characters in names and labels are escaped.
    whole = "".join(
        (part.style or Style()).render(printable(part.text, "\n" + GLUE), color_system=system)
        for part in parts
    ).replace(GLUE, " ")
    lines = "\n".join(line.rstrip() for line in whole.splitlines()) + "\n"
    return in_ascii(lines) if ascii_only else lines


def _sections(
    result: Result, width: int, ascii_only: bool, details: bool
) -> Iterator[RenderableType]:
    yield from _first_screen(result, width)
    if result.events:
        yield ""
        yield _lines(_events(result), width)
    if not details:
        return
    yield ""
    yield _lines(_trace(result) + _site(result), width)
    yield ""
    if result.verdict.reasons:
        yield _lines(_reasons(result), width)
    if result.required:
        yield _lines(required(result.required), width)
    yield ""
    if len(result.warm_up.times_ns) > 1 and rows(result):
        yield from _curve(result, width, ascii_only)
        yield ""
    yield _table(result) if width >= ROOM else _narrow(result, width)
    if rows(result):
        same = "the same disks without the cache; same requests as in the last row"
        yield Text(f"{LABELS['none']}: {same}", "dim")
    if result.phases["none"].saturated or any(phase.saturated for _, phase in rows(result)):
        yield Text(
            "Latencies of a saturated machine are not shown: hybridsim explain saturated", "dim"
        )
    yield ""
    yield _lines(findings(result) + model_error(result), width)
    yield ""
    yield _lines(list(_notes(result)), width)
    yield from _next(result, width)


def _lines(rows: list[tuple[str, str]], width: int) -> Table:
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(style="bold", no_wrap=True, min_width=12)
    grid.add_column(overflow="fold")
    for label, text in rows:
        # A part that is longer than a line may break between words.
        whole = re.sub(rf"[^ ]{{{width - MARGIN},}}", _loose, printable(text, GLUE))
        grid.add_row(label, whole)
    return grid


def _loose(match: re.Match[str]) -> str:
    return match[0].replace(GLUE, " ")


def required(checked: list[Checked]) -> list[tuple[str, str]]:
    """Return the requirements, each with the measured value."""
    texts = [
        f"{mark(each.met, each.is_sure)} {each.requirement.text}: {each.ranged}" for each in checked
    ]
    return [(LABELS["required"] if row == 0 else "", text) for row, text in enumerate(texts)]


def _events(result: Result) -> list[tuple[str, str]]:
    kind = str(result.scenario.get("cache_kind", "none"))
    return [(LABELS["event"], " ".join(sentences(each.to_dict(), kind))) for each in result.events]


def _trace(result: Result) -> list[tuple[str, str]]:
    trace = result.trace
    figures = result.cached.whole.figures
    both = figures.reads.count + figures.writes.count
    parts = [
        str(trace.get("name", "")),
        *recorded(figures.requests, trace.get("span_ns", result.cached.end_ns)),
        f"{percent(figures.reads.count / both if both else None)} reads",
    ]
    if trace.get("footprint_bytes"):
        parts.append(f"touches {human_size(trace['footprint_bytes'])}")
    rows = [(LABELS["trace"], joined(parts))]
    if result.warnings:
        number = len(result.warnings)
        rows.append(("", f"⚠ {number} warning{'s' * (number != 1)}: see `{LABELS['notes']}`"))
    return rows


def model_error(result: Result) -> list[tuple[str, str]]:
    """Return the intervals of the model's error, and one sentence of what they cover."""
    found = result.model_error
    if found is None:
        return []
    if not found.figures:
        return [(LABELS["interval"], f"none for the model's error: {found.why_not}")]
    words = {
        "iops": (LABELS["iops"], lambda value: f"{value:,.0f}"),
        "hit_ratio": (LABELS["hit_ratio"], percent),
        "steady_iops": (f"steady {LABELS['iops']}", lambda value: f"{value:,.0f}"),
        "steady_hit_ratio": (f"steady {LABELS['hit_ratio']}", percent),
        "promotions": ("promotions", human_count),
        "cache_misses": ("cache_misses", human_count),
    }
    shown = []
    for name, ends in found.figures.items():
        word, form = words[name]
        value, low, high = (form(each) for each in ends)
        shown.append(f"{word} {value} ({low} to {high})")
    return [(LABELS["interval"], joined(shown)), ("", found.covers or "")]


def _notes(result: Result) -> Iterator[tuple[str, str]]:
    """Yield the warnings."""
    label = LABELS["notes"]
    for one in result.warnings:
        fix = f" ({one.fix})" if one.fix else ""
        yield label, f"⚠ {one.text}{fix}"
        label = ""


def _site(result: Result) -> list[tuple[str, str]]:
    mode = str(result.scenario.get("mode", "open"))
    run = f"{MODES.get(mode, mode)} · engine {result.engine} · seed {result.seed}"
    summary = result.scenario.get("summary")
    return [(LABELS["site"], str(summary)), ("", run)] if summary else [(LABELS["site"], run)]


def _first_screen(result: Result, width: int) -> Iterator[Text]:
    style = COLOURS[result.verdict.answer]
    for row, line in enumerate(first_screen(result, width)):
        shown = Text(line, no_wrap=True, overflow="ignore")
        label = re.match(r"[A-Za-z]+", line)
        if label:
            shown.stylize(style if row == 0 else "bold", 0, label.end())
        yield shown


def _reasons(result: Result) -> list[tuple[str, str]]:
    return [
        ("" if row else LABELS["reasons"], unbroken(reason))
        for row, reason in enumerate(result.verdict.reasons)
    ]


def _curve(result: Result, width: int, ascii_only: bool) -> Iterator[RenderableType]:
    warm_up = result.warm_up
    end = result.cached.end_ns
    is_ratio = warm_up.measure == "hit ratio"
    top = 1.0 if is_ratio else float(np.max(warm_up.smooth)) or 1.0
    labels = ["100%", "50%", "0%"] if is_ratio else [human_count(top), human_count(top / 2), "0"]
    margin = max(len(label) for label in labels) + 1
    plot = min(width, WIDEST) - margin - 1
    middles = warm_up.times_ns.astype(np.float64) + warm_up.bin_ns / 2
    lines = draw(middles, warm_up.smooth, end, top, plot, PLOT_HEIGHT, ascii_only)
    beside = {0: labels[0], PLOT_HEIGHT // 2: labels[1], PLOT_HEIGHT - 1: labels[2]}
    yield Text(LABELS["hit_ratio"] if is_ratio else LABELS["iops"], "bold")
    for row, line in enumerate(lines):
        yield Text.assemble(f"{beside.get(row, ''):>{margin - 1}} ", (line, "cyan"))
    yield Text(" " * margin + _axis(result, plot), "dim")
    yield _lines([(LABELS["warm_up"], _warm_up(result))], width)


def _axis(result: Result, plot: int) -> str:
    """Return the time axis: its ends, and the time at which the cache is warm."""
    end = result.cached.end_ns
    last = span(end)
    line = "0".ljust(plot - len(last)) + last
    if result.warm_up.state != State.STEADY:
        return line
    mark = f"▲ {LABELS['warm']}"
    place = round(result.warm_up.warm_ns / end * plot)
    place = min(max(place, 2), plot - len(last) - len(mark) - 1)
    return line[:place] + mark + line[place + len(mark) :]


def _warm_up(result: Result) -> str:
    warm_up = result.warm_up
    if warm_up.state == State.STEADY:
        parts = [f"{share}% {_after(time)}" for share, time in warm_up.reached_ns.items()]
        known = result.warm_interval
        if known is not None and warm_up.warm_ns:
            parts[1] = f"90% after {ranged(known.value, known.low, known.high)}"
        level = warm_up.level or 0.0
        steady = percent(level) if warm_up.measure == "hit ratio" else f"{human_count(level)} IOPS"
        parts.append(f"steady at {steady}")
    elif warm_up.state == State.FLAT:
        parts = [f"none: {warm_up.why}"]
    else:
        parts = [f"not steady yet: {warm_up.why}"]
    full = _full_ns(result)
    if full is not None:
        parts.append(f"SSD full {_after(full)}")
    parts.append(f"bins of {span(warm_up.bin_ns)}")
    return joined(parts)


def _after(time_ns: int) -> str:
    return f"after {span(time_ns)}" if time_ns else "at once"


def _full_ns(result: Result) -> int | None:
    """Return the first time at which the cache was 99% full; None if never, or unknown."""
    capacity = result.scenario.get("cache_pages")
    present = result.cached.series().occupancy_pages
    if not capacity or not present or present[0] is None:
        return None
    full = np.flatnonzero(np.array(present) >= 0.99 * capacity)
    return (int(full[0]) + 1) * result.cached.collector.width_ns if len(full) else None


def _table(result: Result) -> Table:
    grid = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold", expand=True)
    grid.add_column(LABELS["reads"], no_wrap=True, min_width=14, ratio=2)
    for name in FIGURES:
        grid.add_column(LABELS[name], justify="right", no_wrap=True, ratio=1)
    shown = [(LABELS["none"], result.phases["none"]), *rows(result)]
    for label, phase in shown:
        is_plain = phase is result.phases["none"]
        hit = NONE if is_plain else percent(phase.figures.hit_ratio)
        grid.add_row(label, *_cells(phase, phase.figures.reads, hit), style=_style(label))
    if result.cached.whole.figures.latency[Kind.WRITE].count:
        grid.add_row(Text(LABELS["writes"], "bold"))
        for label, phase in shown:
            grid.add_row(label, *_cells(phase, phase.figures.writes, ""), style=_style(label))
    return grid


def _narrow(result: Result, width: int) -> Text:
    """Return the table for a narrow screen: one row per figure, one column per phase."""
    shown = [(LABELS["none"], result.phases["none"]), *rows(result)]
    names = [LABELS[name] for name in FIGURES]
    lines: list[str] = []
    for what in ("reads", "writes"):
        if what == "writes" and not result.cached.whole.figures.latency[Kind.WRITE].count:
            break
        columns = [[LABELS[what], *names]]
        for label, phase in shown:
            figures = phase.figures
            hit = NONE if phase is result.phases["none"] else percent(figures.hit_ratio)
            is_reads = what == "reads"
            some = figures.reads if is_reads else figures.writes
            columns.append([label, *_cells(phase, some, hit if is_reads else "")])
        kept = [row for row in zip(*columns) if any(row[1:])]
        lines += table(kept[0], kept[1:], room=width)
    return Text("\n".join(lines))


def _style(label: str) -> str:
    return "" if label in (LABELS["warm"], LABELS["cached"], LABELS["last_fifth"]) else "dim"


def _cells(phase: Phase, requests: Distribution, hit: str) -> list[str]:
    figures = [requests.mean_ns, *(requests.percentile(p) for p in (50, 99, 99.9))]
    maximum = requests.max_ns if requests.count else None
    shown = [NONE] * 5 if phase.saturated else [latency(one) for one in [*figures, maximum]]
    busy = percent(phase.utilisation) if hit else ""
    return [human_count(requests.count), hit, *shown, busy]


def _next(result: Result, width: int) -> Iterator[RenderableType]:
    """Yield the next steps; each command is on one unwrapped line, to be copied."""
    label = LABELS["next"]
    for advice in result.verdict.advice:
        yield _lines([(label, advice.text)], width)
        label = ""
        if advice.command:
            yield Text(" " * 15 + advice.command, no_wrap=True, overflow="ignore")
    yield _lines([(label, "Meaning of a term: hybridsim explain WORD")], width)


__all__ = ["LABELS", "render", "write"]
