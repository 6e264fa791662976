"""The summary of an exploration as text: the caches at the scenario's own settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hybridsim.foundation.wording import NONE, counted, in_table, latency, percent, span
from hybridsim.show.page import page, paragraph, table, trace_line
from hybridsim.studies.explore.axes import CACHE, SIZE
from hybridsim.studies.explore.exploring import (
    CLOSE,
    GAIN,
    HIT,
    OVER,
    QUANTITIES,
    READ,
    READ_P99,
    Exploration,
)
from hybridsim.studies.explore.planning import all_places

WIDE = 0.5  # half of the band of the gain: no answer is sure then
HEADS = ("cache", "answer", "gain", "from SSD", "mean read", "p99 read")


def text(found: Exploration, ascii_only: bool = False) -> str:
    """Return the summary as text."""
    return page([*_head(found), "", *_table(found)], ascii_only)


def _head(found: Exploration) -> Iterator[str]:
    yield from trace_line(found.about)
    machines = all_places(found.axes)
    yield from paragraph(
        "replays",
        f"{counted(len(found.replays), 'replay')} stand for {counted(machines, 'machine')}: "
        f"{found.computed:,} computed in {found.seconds:,.0f} s, {found.known:,} stored before.",
    )
    if found.failed:
        _command, why = next(iter(found.failed.values()))
        yield from paragraph("failed", f"{len(found.failed):,}, such as: {why}")
    if found.ended:
        yield from paragraph("ended", ended(found.planned, found.ended, found.limit_s))
    if found.bands:
        yield from paragraph("band", bands(found.bands))
    yield from paragraph("sure", sure(found))
    for note in found.notes:
        yield from paragraph("note", note)
    yield from paragraph("assumed", f"{found.mode} mode")


def ended(planned: int, why: str, limit_s: float | None) -> str:
    """Return why there are fewer replays than planned, and how to go on."""
    words = "they were interrupted"
    if why == OVER and limit_s is not None:
        words = f"the time of {span(round(limit_s * 1e9))} was over"
    return (
        f"{counted(planned, 'replay')} were planned, but {words}. The same command again goes on "
        "from here and narrows the bands."
    )


def bands(halves: Mapping[str, float]) -> str:
    """Return how wide the bands are, in the median of all machines."""
    if not halves:
        return ""
    titles = {each.name: each.title for each in QUANTITIES}
    parts = [f"{titles[name]} \N{PLUS-MINUS SIGN}{percent(half)}" for name, half in halves.items()]
    words = f"Usual widths: {', '.join(parts)}."
    if halves.get(GAIN, 0.0) > WIDE:
        words += (
            " These are too wide for answers between replays: the same command with more --points "
            "or --time narrows them, as do fewer kinds (--cache) or loads (--load); where disks do "
            "not keep up, figures differ by powers of ten from machine to machine."
        )
    return words


def sure(found: Exploration) -> str:
    """Return how many of the replays that the surfaces did not hold they met."""
    if not found.checked:
        return "Not checked on replays that the interpolation did not have (--check N)."
    places = {each.place for each in found.checked}
    met = sum(each.holds for each in found.checked)
    return (
        f"{met:,} of {len(found.checked):,} figures of {counted(len(places), 'replay')} that the "
        f"interpolation did not have are within {percent(CLOSE)} or inside its band."
    )


def _table(found: Exploration) -> list[str]:
    names = [axis.name for axis in found.axes]
    cache, size = names.index(CACHE), names.index(SIZE)
    rows = []
    for number, choice in enumerate(found.axes[cache].choices):
        place = (*found.own[:cache], number, *found.own[cache + 1 :])
        answer, may_differ = found.answer(place)
        gain, hit, mean, tail = (
            found.estimate(name, place).value for name in (GAIN, HIT, READ, READ_P99)
        )
        words = in_table(answer, found.is_certain(place))
        rows.append([
            choice.name, words + " ?" * may_differ, NONE if gain is None else f"{gain:.2f}",
            percent(hit), latency(mean), latency(tail),
        ])  # fmt: skip
    own = found.axes[size].choices[found.own[size]].name
    lines = table((f"{own} of", *HEADS[1:]), rows)
    return [*lines, "? another answer is within the error of the interpolation"]
