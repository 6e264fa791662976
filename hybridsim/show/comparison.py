"""The report of `compare` as text: how far a simulated run is from a real one."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hybridsim.answers.comparison import DISTANCES, Aligned, Comparison, Row
from hybridsim.answers.measurements.measurement import (
    BANDWIDTH,
    HIT_RATIO,
    IOPS,
    RUNTIME,
    Measurement,
    Name,
)
from hybridsim.foundation.units import human_count, human_rate
from hybridsim.foundation.wording import NONE, latency, percent, span
from hybridsim.show.curve import draw
from hybridsim.show.page import WIDEST, columns, in_ascii, table

HEADS = ("", "real", "simulated", "error", "allowed", "")
MARKS = {True: "✓", False: "✗", None: ""}
HEIGHT, MARGIN, LABEL = 4, 7, 13
WHEN = ("t50", "t90")
TIMES = ("mean", "stddev", "min", "max", "t50", "t90", RUNTIME)
LISTED_MAX = 12  # names per line of the text; the JSON has all


def text(comparison: Comparison, ascii_only: bool = False) -> str:
    """Return the report; it fits a screen."""
    lines = [
        *_labelled("real", _files(comparison.real)),
        *_labelled("simulated", _files(comparison.simulated)),
        "", *_verdict(comparison), *_paired(comparison), "",
    ]  # fmt: skip
    drawn = _chosen(comparison)
    if drawn is not None:
        lines += [*_curves(drawn, ascii_only), ""]
    lines += [*_table(comparison), "", *_sure(comparison), *_left(comparison)]
    whole = "\n".join(line.rstrip() for line in lines).rstrip() + "\n"
    return in_ascii(whole) if ascii_only else whole


def _labelled(label: str, words: str) -> list[str]:
    return textwrap.wrap(
        words, columns(), initial_indent=label.ljust(LABEL), subsequent_indent=" " * LABEL
    ) or [label]  # fmt: skip


def _files(run: Measurement) -> str:
    version = f" · fio {run.version}" if run.version else ""
    names = [Path(each).name for each in run.sources]
    if len(names) == 1:
        return run.sources[0] + version
    listed = ", ".join(names[:LISTED_MAX]) + (" ..." if len(names) > LISTED_MAX else "")
    return f"{Path(run.sources[0]).parent}: {listed}{version}"


def _verdict(comparison: Comparison) -> list[str]:
    judged, failed = len(comparison.judged), comparison.failed
    if not failed:
        return _labelled("AGREES", f"All {judged} figures are within their tolerances.")
    worst = max(failed, key=_excess)
    detail = f"{worst.name}, {error_in_words(worst)} where {allowed_in_words(worst)} is allowed"
    if worst.error is None:
        detail = f"{worst.name}, which only one of the runs has"
    one = len(failed) == 1
    exceed = "exceeds its tolerance" if one else "exceed their tolerances"
    words = f"{len(failed)} of {judged} figures {exceed}"
    return _labelled("DIFFERS", f"{words}{': ' if one else '; the largest excess: '}{detail}.")


def _excess(row: Row) -> float:
    if row.error is None:
        return 1.0  # different, by an unknown distance
    return abs(row.error) / max(row.tolerance or 0.0, 1e-9)


def _chosen(comparison: Comparison) -> Aligned | None:
    """Return the curve to draw, with at least 5 bins: that of IOPS if there is one."""
    usable = [each for each in comparison.curves if len(each.real.times_ns) > 4]
    return min(usable, key=lambda each: "IOPS" not in each.name.measure, default=None)


def _curves(curve: Aligned, ascii_only: bool) -> Iterator[str]:
    both = {"real": curve.real.smooth, "simulated": curve.simulated.smooth}
    top = max(float(np.max(each)) for each in both.values()) or 1.0
    times_ns, width_ns = curve.real.times_ns, curve.real.bin_ns
    end = float(times_ns[-1] + width_ns)
    middles = (times_ns + width_ns / 2).astype(np.float64)
    yield f"{curve.name} over {span(end)}, both on the same scale"
    for label, values in both.items():
        plot = columns() - MARGIN - len("simulated") - 2
        lines = draw(middles, values, end, top, plot, HEIGHT, ascii_only)
        for number, line in enumerate(lines):
            beside = value_in_words(curve.name.measure, top) if number == 0 else ""
            beside = "0" if number == HEIGHT - 1 else beside
            name = f"  {label}" if number == HEIGHT - 1 else ""
            yield f"{beside:>{MARGIN - 1}} {line:{plot}}{name}"


def _table(comparison: Comparison) -> list[str]:
    # Those that are 0 in both are listed by _left.
    rows = [cells(row) for row in comparison.judged if not row.real == row.simulated == 0]
    width = max(len(str(row.name)) for row in comparison.judged) + 2
    if columns() == WIDEST:
        form = f"{{:{width}}}{{:>12}}{{:>12}}{{:>10}}{{:>10}} {{}}"
        return [form.format(*row).rstrip() for row in (HEADS, *rows)]
    return table(HEADS[:-1], [[*row[:-2], f"{row[-2]} {row[-1]}"] for row in rows])


def cells(row: Row) -> list[str]:
    """Return a row of the table of figures, under HEADS."""
    values = [value_in_words(row.name.measure, each) for each in (row.real, row.simulated)]
    allowed = "" if row.tolerance is None else allowed_in_words(row)
    return [str(row.name), *values, error_in_words(row), allowed, MARKS[row.is_met]]


GAINS = {"read": "reads wait", "write": "writes wait", "all": "all wait", "took": "all take"}


def gains_in_words(gains: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return paired gains as text: 'reads wait 1.62 (1.50 to 1.75) times less'."""
    return [
        f"{words} {each['value']:.2f} ({each['low']:.2f} to {each['high']:.2f}) times less"
        if each["value"] >= 1
        else f"{words} {1 / each['value']:.2f} ({1 / each['high']:.2f} to {1 / each['low']:.2f}) "
        "times as long"
        for name, words in GAINS.items()
        if (each := gains.get(name))
    ]


def verdict_on_gains(gains: Mapping[str, Mapping[str, Any]]) -> str:
    """Return whether two machines differ, by the time of the work or all latencies."""
    one = gains.get("took") or gains.get("all")
    if one is None:
        return ""
    if one["low"] <= 1 <= one["high"]:
        return "The machines cannot be distinguished"
    return f"The {'second' if one['value'] > 1 else 'first'} machine is faster"


def sure_in_words(row: Row) -> str:
    """Return the interval of a simulated figure as text, and whether the real one is inside."""
    assert row.ends is not None
    values = (value_in_words(row.name.measure, each) for each in (row.simulated, *row.ends))
    figure, low, high = values
    return f"{row.name} {figure} ({low} to {high}), real {'inside' if row.is_inside else 'outside'}"


def _paired(comparison: Comparison) -> Iterator[str]:
    """Yield the gains of the second of two replays of the same requests."""
    gains = {name: each.to_dict() for name, each in comparison.gains.items()}
    if gains:
        found = f"of the same {comparison.paired:,} requests, {', '.join(gains_in_words(gains))}"
        yield from _labelled("paired", f"{verdict_on_gains(gains)}: {found}.")


def _sure(comparison: Comparison) -> Iterator[str]:
    """Yield the intervals of the simulated figures."""
    rows = [row for row in comparison.rows if row.ends is not None]
    if rows:
        figures = "; ".join(map(sure_in_words, rows))
        yield from _labelled("intervals", f"{figures}. {comparison.basis}.")


def _left(comparison: Comparison) -> Iterator[str]:
    still = [row.name for row in comparison.judged if row.real == row.simulated == 0]
    rows = [row for row in comparison.rows if row.is_met is None]
    unchecked = [(row.name, f"{row.name.measure} {error_in_words(row)}") for row in rows]
    for label, names in (
        ("0 in both", [(name, name.measure) for name in still]),
        ("not checked", unchecked),
        ("only real", comparison.only_real),
        ("only simul.", comparison.only_simulated),
    ):
        if names:
            yield from _labelled(label, _listed(names))
    for number, note in enumerate(comparison.notes):
        yield from _labelled("" if number else "notes", note)


def _listed(names: list[tuple[Name, str]]) -> str:
    """Group names by job and measure; return the first ones of each group."""
    groups: dict[str, list[str]] = {}
    for name, text in names:
        groups.setdefault(f"{name.job} {name.what}".strip(), []).append(text)
    parts = []
    for of, each in groups.items():
        more = f", {len(each) - LISTED_MAX} more" if len(each) > LISTED_MAX else ""
        parts.append(f"{of}: {', '.join(each[:LISTED_MAX])}{more}")
    return "; ".join(parts)


def value_in_words(measure: str, value: float | None) -> str:
    """Return a figure as text, in the unit of its measure."""
    if value is None:
        return NONE
    last = measure.rpartition(" ")[2]
    if last in WHEN:
        return latency(value)
    if measure.startswith(HIT_RATIO):
        return percent(value)
    if measure.startswith(BANDWIDTH):
        return human_rate(value)
    if measure.startswith(IOPS):
        return human_count(value)
    is_percentile = last[:1] == "p" and last[1:2].isdigit()
    return latency(value) if last in TIMES or is_percentile else human_count(value)


def _unit(row: Row) -> str:
    """Return the unit of an error: points of a hit ratio, percent, or none of a distance."""
    measure, last = row.name.measure, row.name.measure.rpartition(" ")[2]
    if measure.startswith(HIT_RATIO) and last[:1] != "t":
        return "" if measure.endswith("curve") else " pt"
    return "" if last in DISTANCES else "%"


def error_in_words(row: Row) -> str:
    """Return the error of the simulated figure as text: points, percent or a distance."""
    if row.error is None:
        return NONE
    unit = _unit(row)
    return f"{100 * row.error:+.1f}{unit}" if unit else f"{row.error:.3f}"


def allowed_in_words(row: Row) -> str:
    """Return the largest accepted error as text; the row must have a tolerance."""
    assert row.tolerance is not None
    limit, unit = max(row.tolerance, row.slack), _unit(row)
    if not unit:
        return f"{limit:g}"
    return f"±{100 * limit:.3g}%" if unit == "%" else f"±{100 * limit:.0f}{unit}"
