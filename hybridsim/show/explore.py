"""An exploration as text, the caches at the scenario's own settings, and as a page of sliders."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from hybridsim.foundation.wording import NONE, PROBABLE, counted, in_table, latency, percent, span
from hybridsim.show.page import page, paragraph, table, trace_line
from hybridsim.studies.explore.axes import AT_CACHE, AT_SIZE, moved
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
MODES = {
    "open": "Requests arrive when they did, at any load faster or slower by its factor.",
    "think": "Each request waits for those that it waited for when it was captured (mode think), "
    "so a faster load only has shorter pauses between them.",
    "closed": "A fixed number of requests is outstanding (mode closed).",
}
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
    yield from paragraph("assumed", f"{found.site.replay.mode} mode")


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
        return (
            "Not checked on replays that the interpolation did not have: --check N, and --time if "
            "it ran out."
        )
    places = {each.place for each in found.checked}
    met = sum(each.holds for each in found.checked)
    return (
        f"{met:,} of {len(found.checked):,} figures of {counted(len(places), 'replay')} that the "
        f"interpolation did not have are within {percent(CLOSE)} or inside its band."
    )


def _table(found: Exploration) -> list[str]:
    rows = []
    for number, choice in enumerate(found.axes[AT_CACHE].choices):
        place = moved(found.own, {AT_CACHE: number})
        answer, may_differ = found.answer(place)
        gain, hit, mean, tail = (
            found.estimate(name, place).value for name in (GAIN, HIT, READ, READ_P99)
        )
        words = in_table(answer, found.is_certain(place))
        rows.append([
            choice.name, words + " ?" * may_differ, NONE if gain is None else f"{gain:.2f}",
            percent(hit), latency(mean), latency(tail),
        ])  # fmt: skip
    own = found.axes[AT_SIZE].choices[found.own[AT_SIZE]].name
    lines = table((f"{own} of", *HEADS[1:]), rows)
    return [*lines, "? another answer is within the error of the interpolation"]


# The page: answers that follow at once, in one file.


def explorer(document: Mapping[str, Any], subtitle: str) -> str:
    """Return the page of a `hybridsim explore --json` document."""
    from hybridsim.show.html import asset, island, rendered, report_style  # which imports Jinja

    return rendered(
        "explorer.html",
        f"{report_style()}\n{asset('explorer.css')}",
        f"\n{asset('explorer.js')}",
        title="What if?",
        subtitle=f"{subtitle} · {_known(document)}",
        result=island(document),
        sure=_sure(document),
        checked=_checked(document),
        notes=document["notes"],
        probable=PROBABLE,
    )


def _known(document: Mapping[str, Any]) -> str:
    """Return on what the page stands: the number of replays, and the usual band of the gain."""
    known = counted(len(document["replays"]), "replay")
    half = document["bands"].get("gain")
    return known if half is None else f"{known}, gain \N{PLUS-MINUS SIGN}{percent(half)}"


def _sure(document: Mapping[str, Any]) -> list[str]:
    machines = math.prod(len(axis["choices"]) for axis in document["axes"])
    replays = len(document["replays"])
    run = document["replays_run"]
    words = [ended(run["planned"], run["ended"], run["limit_s"])] if run["ended"] else []
    words += [
        f"{counted(replays, 'replay')} stand for {counted(machines, 'machine')}. Where a machine "
        "was replayed, the page shows the figures of that replay; elsewhere it interpolates. The "
        "band is as wide as the errors that were found when each replay was left out: it should "
        f"hold some 95 of 100 figures. {bands(document['bands'])}".strip(),
        f"{MODES[document['inputs']['mode']]} Times and hit ratios are of the "
        "whole trace, from an empty cache on; the verdict is the judge's forecast, as in "
        "hybridsim replay. Prices change the costs, and so which machine is the cheapest.",
    ]
    if failed := document["failed"]:
        words.append(f"{counted(len(failed), 'machine')} could not be replayed: {failed[0]['why']}")
    return words


def _checked(document: Mapping[str, Any]) -> list[list[str]]:
    titles = {each["name"]: each["title"] for each in document["quantities"]}
    rows = [
        [
            titles[each["name"]],
            f"{each['number']:,}",
            f"{each['hold']:,}",
            f"{each['close']:,}",
            "\N{EN DASH}" if each["median_off"] is None else percent(each["median_off"]),
        ]
        for each in document["checked"]
    ]
    heads = ["figure", "replays", "right or in the band", "within 3%", "median error"]
    return [heads, *rows] if rows else []
