"""The report of `check`: each figure beside its promise, and the likely causes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hybridsim.answers.check.judging import about, words_of
from hybridsim.foundation.wording import counted
from hybridsim.show.page import page, paragraph, paragraphs, table

if TYPE_CHECKING:
    from hybridsim.answers.check.judging import Figure
    from hybridsim.studies.check import Check

LEGEND = (
    "An interval covers the error of the model on machines and loads like those of the real runs; "
    "not another load, other drives than the simulated ones, or a fault."
)


def text(answer: Check, ascii_only: bool = False) -> str:
    """Return it as text."""
    return page(_lines(answer), ascii_only)


def _lines(answer: Check) -> Iterator[str]:
    result = answer.judged
    figures = result.figures
    yield from paragraph("CHECK", _headline(answer))
    yield from paragraph("counted", f"{about(answer.seen)}; compared {result.start}.")
    yield from paragraph(
        "promise",
        f"{answer.kind}, {answer.mode}: {answer.promise_file}, for {answer.promise.trace}.",
    )
    has_again = any(each.simulated is not None for each in figures)
    yield ""
    heads = ["figure", "promised", "interval", *["on capture"] * has_again, "measured", ""]
    yield from table(heads, [_row(each, has_again) for each in figures])
    yield ""
    yield from paragraphs("why", result.reasons)
    if not result.reasons and result.answer == "broken":
        yield from paragraph(
            "why", "No difference of load or settings was seen. With --capture, the captured load "
            "is simulated too, which separates the load from machine and model."
        )  # fmt: skip
    if answer.differences is not None and not answer.differences:
        yield from paragraph("settings", "As simulated.")
    bases: dict[str, list[str]] = {}
    for each in figures:
        bases.setdefault(each.basis, []).append(each.name)
    sentences = (f"{', '.join(names)}: {basis}." for basis, names in bases.items())
    yield from paragraphs("intervals", sentences)
    if any(each.within is not None for each in figures):
        yield from paragraph("", LEGEND)


def _headline(answer: Check) -> str:
    result = answer.judged
    rated = [each for each in result.figures if each.within is not None]
    worse = [each.name for each in rated if each.is_worse]
    better = [each.name for each in rated if each.within is False and not each.is_worse]
    if result.answer == "unsure":
        return "Can't say: no figure was counted for which there is an interval."
    number = counted(len(rated), "judged figure")
    if worse:
        return f"Not kept: of {number}, beyond the interval: {', '.join(worse)}."
    also = f"; better than promised: {', '.join(better)}" if better else ""
    return f"Kept: {number}, none worse than its interval{also}."


def _row(figure: Figure, has_again: bool) -> list[str]:
    unit = figure.unit
    interval = ""
    if figure.low is not None and figure.high is not None:
        interval = f"{words_of(figure.low, unit)} to {words_of(figure.high, unit)}"
    return [
        figure.name,
        words_of(figure.promised, unit),
        interval,
        *[words_of(figure.simulated, unit)] * has_again,
        words_of(figure.measured, unit),
        figure.verdict,
    ]
