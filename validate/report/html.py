"""The report as one HTML file: the table, and the curves and figures of each run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from hybridsim.answers.measurements.measurement import HIT_RATIO, IOPS, Samples
from hybridsim.show.charts import Axis, Chart, Line
from hybridsim.show.charts.answers import overlays
from hybridsim.show.html import page as html_page
from hybridsim.show.html.blocks import Block, Code, Prose, Row, Section, Table
from hybridsim.show.html.sections.comparison import agreement
from validate.report.as_json import document
from validate.report.columns import HEADS, cells, legend
from validate.report.holding import Held
from validate.report.text import of_chance
from validate.twin.calibrate import summary

TITLE = "Does the simulation follow the kernel?"
COUNTERS = ("promotions", "demotions", "cache_hits", "cache_misses")
SIDES = ("real", "simulated")


def page(runs: Sequence[Held]) -> str:
    """Return the HTML file."""
    sections = [_overview(runs), *(_section(number, run) for number, run in enumerate(runs))]
    return html_page(TITLE, sections, document(runs))


def _overview(runs: Sequence[Held]) -> Section:
    strong = [number for number, run in enumerate(runs) if not run.is_met]
    good = len(runs) - len(strong)
    verdict = f"In {good} of {len(runs)} runs all figures are within their bounds."
    blocks: list[Block] = [
        Prose([verdict], "no" if strong else "yes"),
        *([Prose([f"By chance: {of_chance(runs)}"])] if any(run.chance for run in runs) else ()),
        Table("All runs", HEADS, [cells(run) for run in runs], strong),
        Prose([legend(runs)]),
    ]
    return Section("runs", "All runs", blocks)


def _section(number: int, run: Held) -> Section:
    """Return the section of one run: verdict, curves, figures, and the twin's scenario."""
    values = run.found.to_dict()
    curves = [each for each in overlays(values) if _is_shown(each)]
    charts = [*curves, *_counters(run)]
    verdict, *rest = agreement(values).blocks
    twin = run.twin
    words = [
        f"{twin.load}; the cache was {twin.lead_s:.2f} s old when it began.",
        *twin.assumptions,
    ]
    if twin.calibration.checks:
        words.append(f"Bare runs: {summary(twin.calibration)}.")
    blocks: list[Block | None] = [
        verdict,
        Row([_of_run(chart, number) for chart in charts]),
        *rest,
        Prose(words),
        Code("The twin as a scenario", twin.scenario, is_folded=True),
    ]
    return Section(f"run-{number}", run.record.name, blocks)


def _is_shown(chart: Chart) -> bool:
    return chart.title.endswith((HIT_RATIO, IOPS))


def _counters(run: Held) -> Iterator[Chart]:
    """Yield charts of the cache's counters."""
    for name in COUNTERS:
        both = [side.counters.get(name) for side in (run.found.real, run.found.simulated)]
        samples = [each for each in both if each is not None]
        if len(samples) < len(SIDES) or not any(each.value.any() for each in samples):
            continue
        lines = [_line(name, side, each) for side, each in zip(SIDES, samples)]
        end = max(float(each.time_ns[-1]) for each in samples)
        yield Chart(name, f"cache {name}", Axis.times(end), Axis.counts(name), lines)


def _line(name: str, side: str, samples: Samples) -> Line:
    x, y = samples.time_ns.tolist(), samples.value.tolist()
    return Line(f"{name}-{side}", side, x, y, role=side)


def _of_run(chart: Chart, number: int) -> Chart:
    """Return a chart with element names that are unique among all runs."""
    lines = [replace(line, gid=f"run-{number}-{line.gid}") for line in chart.lines]
    return replace(chart, gid=f"run-{number}-{chart.gid}", lines=lines, sync=f"run-{number}")
