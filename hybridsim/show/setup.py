"""The commands that build a cache: what is lost and needed first, then one section after another.

Each line of a command begins with `# `, so that a shell which gets all of this as its input runs
nothing: it stops at the parenthesis of the first line, and no other line has a quote, a pipe or a
redirection outside of a command.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hybridsim.foundation.printable import printable
from hybridsim.foundation.units import human_rate, human_size
from hybridsim.foundation.wording import lasting, money, percent, span
from hybridsim.show.page import page, paragraph, paragraphs, wrapped
from hybridsim.studies.setup import DAY_NS

if TYPE_CHECKING:
    from hybridsim.studies.setup import Bought, Buying, Setup

PROMPT = "# "
SPECIAL = str.maketrans(dict.fromkeys("'\"`$<>|&\\", "_"))


def text(answer: Setup, ascii_only: bool = False) -> str:
    """Return it as text."""
    return page(_lines(answer), ascii_only)


def _lines(answer: Setup) -> Iterator[str]:
    plan = answer.plan
    system = plan.site.system.title
    yield from _paragraph("SETUP", f"(Nothing has been run.) {plan.words}; for {system}.")
    if answer.saved is not None:
        words = {"yes": "worth it", "no": "NOT worth it", "unsure": "undecided"}
        yield from _paragraph(
            "simulated",
            f"{answer.file}: for {answer.saved.trace} this cache is "
            f"{words.get(answer.saved.answer, 'undecided')}.",
        )
    yield from _paragraph("DESTROYS", f"all data on {', '.join(plan.destroyed)}.")
    yield from paragraphs("risks", map(_plain, plan.warnings))
    yield from _paragraph(
        "needs",
        f"{human_size(plan.ssd.size_bytes)} on each SSD ({plan.ssd.source}); "
        f"{human_size(plan.ram.size_bytes)} of RAM ({plan.ram.source}).",
    )
    yield from _paragraph("buy", _buy(answer))
    yield from _paragraph("flush", _flush(answer))
    yield from _paragraph("packages", " ".join(plan.packages))
    for section in plan.sections:
        yield from ("", f"{section.name.upper()}: {section.title}")
        for step in section.steps:
            if step.why:
                yield from wrapped(_plain(step.why), "  ")
            yield from (PROMPT + printable(line) for line in step.command.splitlines())
            if step.expect:
                yield from wrapped(_plain(f"Expected: {step.expect}"), "    ")
    yield ""
    yield from _paragraph("scripts", "--script install prints that section for a shell.")


def _paragraph(label: str, text: str) -> list[str]:
    return paragraph(label, _plain(text))


def _plain(text: object) -> str:
    """Return a name without what a shell would act upon."""
    return printable(text).translate(SPECIAL)


def _buy(answer: Setup) -> str:
    """Return which SSDs to buy, what they cost and how long they last."""
    one = answer.buying
    size = human_size(one.need_bytes)
    if one.fits is None:
        return f"No SSD of the list holds {size}."
    sentence = _drives(one.fits, one)
    if one.spare:
        sentence += f"; {percent(one.spare)} of each is left unpartitioned"
    if one.fits.years is None:
        return f"{sentence}."
    hours = span(round(one.duty * DAY_NS))
    sentence += f"; with {hours} of this load a day each lasts {lasting(one.fits.years)}."
    if one.lasts is not None and one.lasts.years is not None:
        years = lasting(one.lasts.years)
        sentence += f" Instead, for {years}: {_drives(one.lasts, one)}."
    return sentence


def _drives(bought: Bought, one: Buying) -> str:
    mirrored = ", mirrored" * bought.is_mirrored
    cost = f": {money(bought.cost, one.currency)}".replace("$", "USD ")
    return f"{bought.number} x {bought.name}{mirrored}{cost}"


def _flush(answer: Setup) -> str:
    """Return how long it takes to write the dirty data back."""
    if answer.plan.mode not in ("write-back", "write-only"):
        return "Nothing is dirty in this mode: the cache can be removed at once."
    dirty = answer.saved.dirty if answer.saved else None
    if dirty is None:
        return (
            "What is dirty must be written back before the cache is removed. How long that takes: "
            "hybridsim replay TRACE --json RESULT.json, then hybridsim setup RESULT.json."
        )
    sentence = f"{human_size(dirty.end_bytes)} were dirty at the end of the replay"
    if dirty.p99_bytes is not None:
        sentence += f", {human_size(dirty.p99_bytes)} at the p99"
    if dirty.flush_bytes_per_s and dirty.flush_ns is not None and dirty.flush_p99_ns is not None:
        sentence += (
            f": {span(dirty.flush_ns)}, or {span(dirty.flush_p99_ns)}, at "
            f"{human_rate(dirty.flush_bytes_per_s)}, the rate of the simulated disks without "
            "other load"
        )
    if answer.plan.kind == "dm-cache" and dirty.flush_bytes_per_s:
        all_ns = round(answer.plan.settings.size_bytes * 1e9 / dirty.flush_bytes_per_s)
        sentence += f". After a crash, with a full cache: {span(all_ns)}"
    return sentence + "."
