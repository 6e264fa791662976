"""The report as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hybridsim.foundation.wording import counted
from hybridsim.show import comparison
from hybridsim.show.page import in_ascii, paragraph, table
from validate.report.columns import HEADS, LEGEND, cells
from validate.report.holding import Held
from validate.twin.calibrate import summary

NAME_MAX = 24


def text(runs: Sequence[Held], details: bool, ascii_only: bool = False) -> str:
    """Return the table of all runs, and with `details` a section for each run."""
    lines = [*_verdict(runs), "", *_table(runs), "", *paragraph("", LEGEND)]
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
    return paragraph(word, f"{share}; all figures of {good} of {counted(len(runs), 'run')} are.")


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
    yield from comparison.text(run.found, ascii_only).splitlines()
