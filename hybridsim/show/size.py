"""The report of `size`: the smallest sufficient SSD, the replayed sizes, the miss-ratio curve."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from hybridsim.answers.requirements import Checked
from hybridsim.foundation.printable import shell_line, shell_word
from hybridsim.foundation.units import human_size
from hybridsim.foundation.wording import latency, money, percent, ranged
from hybridsim.show.advice import drives
from hybridsim.show.curve import axis, miss_ratios
from hybridsim.show.page import (
    LIKELY,
    SCREEN,
    columns,
    mark,
    page,
    paragraph,
    paragraphs,
    table,
    trace_line,
)

if TYPE_CHECKING:
    from hybridsim.studies.size import Sizing, Tried

HEIGHT = 5


def text(sizing: Sizing, ascii_only: bool = False, details: bool = False) -> str:
    """Return the answer as text: one screen, or with `details` all of it."""
    head = [*_head(sizing), ""]
    if details:
        return page([*head, *_details(sizing, ascii_only)], ascii_only)
    table_of = _tried(sizing)
    room = SCREEN - len(head) - 1
    if len(table_of) > room:
        table_of = _near(sizing, table_of, room - 1)
    rest = "All replays, the curve and the notes: --details"
    return page([*head, *table_of, rest], ascii_only)


def _near(sizing: Sizing, rows: list[str], room: int) -> list[str]:
    """Return the head of the table and the rows around the answer, or the last ones."""
    rest = rows[1:]
    place = sizing.tried.index(sizing.answer) if sizing.answer else len(rest)
    first = max(min(place - room // 2, len(rest) - room + 1), 0)
    return [rows[0], *rest[first : first + room - 1]]


def _head(sizing: Sizing) -> Iterator[str]:
    yield from trace_line(sizing.trace)
    yield from _answer(sizing)
    yield from _purchase(sizing)
    for note in sizing.notes[:1]:
        yield from paragraph("notes", note)
    yield from paragraph(
        "assumed", f"{sizing.scenario['summary']} · mode {sizing.scenario['mode']}"
    )


def _purchase(sizing: Sizing) -> Iterator[str]:
    """Yield the cost of the answer, and the command that checks it."""
    if sizing.answer is None or sizing.needs_no_ssd or sizing.bought is None:
        return
    bought = sizing.bought
    mirrored = ", mirrored, since dirty data exist only on the SSD" if bought.mirrored else ""
    cost = ""
    if bought.cost is not None and sizing.pricing is not None:
        cost = f": {money(bought.cost, sizing.pricing.price.currency)}"
    number = drives(bought.to_dict())
    yield from paragraph("costs", f"{number} ({bought.drive}{mirrored}){cost}.")
    words = ["hybridsim replay", shell_line(sizing.trace["arguments"]), *sizing.options]
    words += [f"--require {shell_word(each.text)}" for each in sizing.require]
    yield from paragraph("check", " ".join(words))


def _details(sizing: Sizing, ascii_only: bool) -> Iterator[str]:
    yield from _required(sizing)
    yield ""
    yield from _tried(sizing)
    of_reads = (
        "hit, read (mean) and p99: the reads from the request on at which all sizes are warm; "
        "no SSD: the mean of the same reads without a cache; whole: the mean of all reads; "
    )
    yield from paragraph(
        "columns",
        f"{of_reads if sizing.trace['reads'] else ''}"
        f"{LIKELY}: the figures meet all requirements, but not all of their intervals.",
    )
    yield ""
    yield from _curve(sizing, ascii_only)
    yield from paragraphs("notes", sizing.notes)


def _answer(sizing: Sizing) -> Iterator[str]:
    number = len(sizing.require)
    all_of_them = f"all {number} requirements" if number > 1 else sizing.require[0].text
    if sizing.needs_no_ssd:
        yield from paragraph("ANSWER", f"No SSD is needed: the disks alone meet {all_of_them}.")
    elif sizing.answer is not None:
        size = human_size(sizing.answer.size_bytes)
        yield from paragraph(
            "ANSWER",
            f"{size} is the smallest SSD that meets {all_of_them}, with {sizing.answer.name}.",
        )
        figures = f"With it: {worst(sizing.answer.decisive)}."
        yield from paragraph("", " ".join([figures, *why_not_smaller(sizing)]))
    else:
        yield from paragraph("ANSWER", f"No size of SSD meets {all_of_them}.")
        for index in range(number):
            yield from _best(sizing, index)
        largest = human_size(sizing.tried[-1].size_bytes)
        yield from paragraph("", f"Nothing larger than {largest} was tried: {sizing.largest_why}.")


def worst(checked: Sequence[Checked]) -> str:
    """Return the figures of requirements with their intervals, in words."""
    return "; ".join(f"{each.requirement.measure} {each.ranged}" for each in checked)


def why_not_smaller(sizing: Sizing) -> Iterator[str]:
    """Yield sentences: how sure the answer is, and why no smaller size is."""
    answer, below, likely = sizing.answer, sizing.below, sizing.likely
    assert answer is not None
    if not sizing.is_sure:
        unsure = "; ".join(each.requirement.text for each in answer.unsure)
        yield f"No size is sure: part of the interval does not meet {unsure}."
    if below is None:
        yield "It is the smallest possible cache of this kind."
    else:
        failed = "; ".join(
            f"{each.requirement.text} ({each.ranged})" for each in below.failed or below.unsure
        )
        does = "does not" if below.failed else "is not sure to"
        yield f"The next smaller size, {human_size(below.size_bytes)}, {does}: {failed}."
    if sizing.is_sure and likely is not None and likely is not below and likely is not answer:
        size = human_size(likely.size_bytes)
        yield f"Its figures meet it from {size} on ({likely.name}), its interval does not."


def _best(sizing: Sizing, index: int) -> Iterator[str]:
    """Yield the best result for a requirement that the largest size does not meet."""
    required, result = sizing.require[index], sizing.best(index)
    if result is None:
        why = sizing.tried[-1].checked[index].why
        yield from paragraph("", f"{required.text}: not measurable with any size: {why}.")
        return
    checked, at = result
    if not checked.met:
        where = f"with {human_size(at.size_bytes)}"
        yield from paragraph("", f"{required.text}: the best is {checked.ranged}, {where}.")
    elif not all(one.checked[index].met for one in sizing.tried):
        sizes = [human_size(one.size_bytes) for one in sizing.tried if one.checked[index].met]
        yield from paragraph("", f"{required.text}: met with {', '.join(sizes)}.")


def _required(sizing: Sizing) -> list[str]:
    """Return a table of the requirements: without an SSD, at the size below, at the answer."""
    shown: list[tuple[str, list[Checked]]] = [("no SSD", sizing.alone)]
    at = sizing.answer or sizing.tried[-1]
    for one in (sizing.below, at):
        if one is not None and not sizing.needs_no_ssd:
            shown.append((human_size(one.size_bytes), one.decisive))
    rows = [
        [required.text, *(_cell(checked[index]) for _, checked in shown)]
        for index, required in enumerate(sizing.require)
    ]
    return table(["required", *(name for name, _ in shown)], rows)


def _cell(checked: Checked) -> str:
    value = checked.requirement.worded(checked.value) if checked.value is None else checked.ranged
    return f"{value} {mark(checked.met, checked.is_sure)}"


def _tried(sizing: Sizing) -> list[str]:
    """Return a table of all replayed sizes: of reads; without reads, of what is required."""
    if not sizing.trace["reads"]:
        heads = ["replayed", "SSD", *(each.text for each in sizing.require)]
        return table(heads, [
            [one.name, human_size(one.size_bytes), *map(_cell, one.decisive)]
            for one in sizing.tried
        ])  # fmt: skip
    heads = ["replayed", "SSD", "hit", "read", "no SSD", "p99", "whole", "meets"]
    return table(heads, [_row(sizing, one) for one in sizing.tried])


def _row(sizing: Sizing, one: Tried) -> list[str]:
    read = latency(one.mean_ns)
    if one.mean is not None:
        read = ranged(one.mean.value, one.mean.low, one.mean.high)
    return [
        one.name, human_size(one.size_bytes), percent(one.hit), read,
        latency(one.alone_ns), latency(one.p99_ns), latency(one.whole_ns),
        mark(one.meets, one.surely),
    ]  # fmt: skip


def _curve(sizing: Sizing, ascii_only: bool) -> Iterator[str]:
    """Yield the miss-ratio curve, with the answer marked."""
    curve = sizing.curve
    width = columns() - 8
    end = float(curve.pages[-1])
    knee = human_size(curve.knee_bytes)
    yield f"miss ratio of LRU by cache size (simulated without devices; knee at {knee})"
    yield from map(str.rstrip, miss_ratios(curve, width, HEIGHT, ascii_only, ""))
    mark, share = "", 0.0
    if sizing.answer is not None and not sizing.needs_no_ssd:
        mark = f"▲ {human_size(sizing.answer.size_bytes)}"
        share = sizing.answer.size_bytes / curve.page_bytes / end
    yield " " * 6 + axis(human_size(int(end) * curve.page_bytes), width, mark, share)
