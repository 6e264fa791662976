"""The report of `why`: the learned policy's threshold over time, and its decisions on pages."""

from __future__ import annotations

from itertools import groupby

from hybridsim.foundation.units import format_size, human_count, human_size
from hybridsim.foundation.wording import percent, span
from hybridsim.show.page import page, paragraph, table
from hybridsim.studies.why import (
    EARLY,
    FILLED,
    HIT,
    RIVAL,
    SCAN,
    TOO_LITTLE,
    UNKNOWN,
    WORTHLESS,
    Decision,
    Moment,
    Page,
    Why,
)

FIRST_SHOWN, LAST_SHOWN = 8, 4  # decisions per page
WORDS = {
    HIT: "hit: served from the SSD",
    FILLED: "admitted",
    EARLY: "admitted: the cache is still filling",
    SCAN: "rejected: part of a long sequential run",
    WORTHLESS: "rejected: value does not pay its rent",
    TOO_LITTLE: "rejected: value below the fill price",
    UNKNOWN: "rejected: too few observations",
    RIVAL: "rejected: the victim is worth more",
}


def text(why: Why, ascii_only: bool = False) -> str:
    """Return the report as text, 80 columns wide."""
    lines = [*_threshold(why)]
    for each in why.asked:
        lines += ["", *_page(each, why.page_bytes)]
    return page(lines, ascii_only)


def _threshold(why: Why) -> list[str]:
    cache = human_size(why.pages * why.page_bytes)
    rule = (
        f"a cache of {cache} in pages of {human_size(why.page_bytes)}. A missed page is admitted "
        "if the disk reads that it will save, less the rent of its cache space, exceed the price "
        "of a fill. Rent, price and worth are in disk reads."
    )
    heads = ("after", "accesses", "hits", "admitted", "pages stay", "rent", "price")
    return [*paragraph("threshold", rule), "", *table(heads, map(_moment, why.moments))]


def _moment(one: Moment) -> tuple[str, ...]:
    return (
        span(one.time_ns),
        human_count(one.accesses),
        percent(one.hit_ratio),
        percent(one.let_in),
        human_count(one.pages_stay),
        f"{one.rent_reads:.2f}",
        f"{one.price_reads:.2f}",
    )


def _page(one: Page, page_bytes: int) -> list[str]:
    count, held = len(one.decisions), sum(each.because == HIT for each in one.decisions)
    accesses = "access" if count == 1 else "accesses"
    filled = sum(each.because in (FILLED, EARLY) for each in one.decisions)
    summary = (
        f"{human_size(page_bytes)} at {format_size(one.offset)}: {count:,} {accesses}, {held:,} "
        f"served from the SSD; admitted: {filled:,}, rejected: {count - held - filled:,}."
    )
    rows: list[tuple[str, ...]] = []
    for are_hits, group in groupby(one.decisions, lambda each: each.because == HIT):
        several = list(group)
        rows += [_hits(several)] if are_hits else map(_decision, several)
    if len(rows) > FIRST_SHOWN + LAST_SHOWN + 1:
        left = len(rows) - FIRST_SHOWN - LAST_SHOWN
        rows[FIRST_SHOWN:-LAST_SHOWN] = [("…", "", "", "", "", "", f"({left:,} rows more)")]
    width = max(len(row[-1]) for row in rows)
    heads = ("at", "access", "gap", "again", "worth", "price", "decision".ljust(width))
    return [
        *paragraph("page", summary),
        "",
        *table(heads, [(*row[:-1], row[-1].ljust(width)) for row in rows]),
        "gap: accesses to all pages since the last one to this page;",
        "again: chance of another access before its eviction",
    ]


def _hits(several: list[Decision]) -> tuple[str, ...]:
    first, last = several[0], several[-1]
    if first is last:
        return _decision(first)
    numbers = f"{first.number:,}\N{EN DASH}{last.number:,}"
    return (span(first.time_ns), numbers, "", "", "", "", f"{WORDS[HIT]}, {len(several):,} times")


def _decision(one: Decision) -> tuple[str, ...]:
    rest = "–" if one.rest is None else human_count(one.rest)
    what = f"{'write' if one.is_write else 'read'} {one.number}"
    if one.because == SCAN:
        return (span(one.time_ns), what, "–", "–", "–", f"{one.price_reads:.2f}", WORDS[SCAN])
    return (
        span(one.time_ns),
        what,
        rest,
        percent(one.chance) if one.seen else "?",
        f"{one.sure_reads:.2f}",
        f"{one.price_reads:.2f}",
        WORDS[one.because],
    )
