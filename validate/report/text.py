"""The report as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hybridsim.foundation.wording import counted
from hybridsim.show import comparison
from hybridsim.show.page import in_ascii, paragraph, table
from validate.report.columns import HEADS, cells, legend
from validate.report.holding import Held
from validate.twin.calibrate import summary

NAME_MAX = 24


def text(runs: Sequence[Held], details: bool, ascii_only: bool = False) -> str:
    """Return the table of all runs, and with `details` a section for each run."""
    lines = [*_verdict(runs), "", *_table(runs), "", *paragraph("", legend(runs))]
    for run in runs if details or len(runs) == 1 else ():
        lines += ["", *_detail(run, ascii_only)]
    whole = "\n".join(line.rstrip() for line in lines).strip("\n") + "\n"
    return in_ascii(whole) if ascii_only else whole


def _verdict(runs: Sequence[Held]) -> list[str]:
    judged = sum(len(run.found.judged) for run in runs)
    failed = sum(len(run.found.failed) for run in runs)
    good = sum(run.is_met for run in runs)
    word = "AGREES" if not failed else "DIFFERS"
    share = f"{judged - failed} of {counted(judged, 'figure')} are within their bounds"
    lines = paragraph(word, f"{share}; all figures of {good} of {counted(len(runs), 'run')} are.")
    return lines + (paragraph("chance", of_chance(runs)) if any(run.chance for run in runs) else [])


def of_chance(runs: Sequence[Held]) -> str:
    """Return how many figures are beyond their bounds, and how many of two twins would be."""
    kinds: dict[str, list[Held]] = {}
    for run in runs:
        kinds.setdefault(str(run.record.cache.get("kind")), []).append(run)
    parts = []
    for kind, ones in kinds.items():
        expected = sum(sum(run.chance.values()) for run in ones)
        beyond = sum(len(run.found.failed) for run in ones)
        judged = sum(len(run.found.judged) for run in ones)
        parts.append(f"{kind} {beyond} of {judged} ({expected:.0f})")
    return (
        "figures beyond their bounds, and in parentheses how many are of two twins of a run that "
        f"begin at other moments: {', '.join(parts)}."
    )


def _table(runs: Sequence[Held]) -> list[str]:
    rows = [cells(run) for run in runs]
    for row in rows:
        row[0] = row[0] if len(row[0]) <= NAME_MAX else row[0][: NAME_MAX - 1] + "~"
    return table(HEADS, rows)


def _detail(run: Held, ascii_only: bool) -> Iterator[str]:
    twin = run.twin
    yield from paragraph("run", run.record.name)
    yield from paragraph("load", f"{twin.load}; the cache was {twin.lead_s:.2f} s old")
    if twin.calibration.checks:
        yield from paragraph("bare runs", summary(twin.calibration))
    for number, assumption in enumerate(twin.assumptions):
        yield from paragraph("" if number else "assumed", assumption)
    if run.repeats > 1:
        differences = {str(row.name): run.noise.get(row.name) for row in run.found.judged}
        words = ", ".join(f"{name} {share:.1%}" for name, share in differences.items() if share)
        yield from paragraph(
            "noise", f"{run.repeats} real runs of this experiment differ by: {words}"
        )
    for row in run.found.failed if run.chance else ():
        share = run.chance.get(row.name)
        if share is not None:
            words = f"{row.name}: {share:.0%} of the pairs of twins exceed its bound"
            yield from paragraph("chance", words)
    yield from comparison.text(run.found, ascii_only).splitlines()
