"""The report of `bench`: the maximum of each I/O parameter, and random IOPS by queue depth."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hybridsim.foundation.units import human_count, human_rate, human_size
from hybridsim.foundation.wording import NONE, latency
from hybridsim.show.charts.answers import STATES
from hybridsim.show.page import page, paragraph, paragraphs, table, wrapped

if TYPE_CHECKING:
    from hybridsim.studies.bench import Bench, Point

SHORT = {
    "sequential write": "seq. write",
    "sequential read": "seq. read",
    "random write": "random write",
    "cold random read": "cold read",
    "hot random read": "hot read",
}
BRIEF = {"without": "none", "cold": "empty", "warm": "warm"}  # states of the cache
UNSTEADY = "*"
BY_DEPTH = {"hot random read": "hot", "cold random read": "cold", "random write": "write"}


def text(bench: Bench, ascii_only: bool = False) -> str:
    """Return the figures as text."""
    return page(_lines(bench), ascii_only)


def _lines(bench: Bench) -> Iterator[str]:
    setting = bench.setting
    yield from paragraph("machine", bench.machine)
    yield from paragraph(
        "load",
        f"random: {human_size(setting.block_bytes)}, sequential: "
        f"{human_size(setting.sequential_bytes)}; hot spot {human_size(setting.hot_bytes)}; "
        f"{setting.requests:,} requests per measurement",
    )
    yield ""
    states = [state for state in STATES if any(one.state == state for one in bench.points)]
    heads = ["maximum", *(STATES[state] for state in states)]
    rows = [[SHORT[name], *(_most(bench, state, name) for state in states)] for name in SHORT]
    yield from table(heads, rows)
    yield from wrapped("random: IOPS; @: the queue depth of the maximum, then p99 at that depth")
    yield ""
    depths = [str(depth) for depth in setting.depths]
    rows = []
    for name in BY_DEPTH:
        for state in states:
            points = [bench.at(state, name, depth) for depth in setting.depths]
            rows.append([f"{BY_DEPTH[name]}, {BRIEF[state]}", *map(_iops, points)])
        gains = [bench.gain(name, depth) for depth in setting.depths]
        if any(gains):
            rows.append([f"{BY_DEPTH[name]}, gain", *(f"{each:.2f}" if each else NONE
                                                      for each in gains)])  # fmt: skip
    yield from table(["IOPS at depth", *depths], rows)
    if "warm" in states:
        yield from wrapped(
            "gain: warm over none, of the same requests; the maxima above may be at other depths"
        )
    yield ""
    yield from _steadiness(bench)
    yield from paragraphs("notes", bench.notes)


def _most(bench: Bench, state: str, name: str) -> str:
    point = bench.best(state, name)
    if point is None:
        return NONE
    is_sequential = name.startswith("sequential")
    rate = human_rate(point.bytes_per_s) if is_sequential else human_count(point.iops)
    mark = "" if point.steady else UNSTEADY
    rate, p99 = (text.replace(" ", "") for text in (rate, latency(point.p99_ns)))
    return f"{rate}{mark} @{point.depth} {p99}"


def _iops(point: Point | None) -> str:
    if point is None:
        return NONE
    number = human_count(float(f"{point.iops:.3g}")).replace(" ", "")
    return number + ("" if point.steady else UNSTEADY)


def _steadiness(bench: Bench) -> Iterator[str]:
    unsteady = [one for one in bench.points if not one.steady]
    if not unsteady:
        sentence = "Every figure is: two measurements in a row agree."
    else:
        worst = max(unsteady, key=lambda one: abs(one.drift))
        sentence = (
            f"Figures with {UNSTEADY} are not ({len(unsteady)} of {len(bench.points)}): a second "
            f"measurement right after the first differs by up to {worst.drift:+.0%} "
            f"({worst.parameter}, {STATES[worst.state]}, depth {worst.depth})."
        )
    yield from paragraph("steady?", sentence)
    if any(one.state == "warm" and one.parameter == "hot random read" for one in unsteady):
        warning = "The cache still warms up while hot reads are measured: they may become faster."
        yield from paragraph("", warning)
