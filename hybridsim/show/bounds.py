"""The report of `bounds`: what averages allow, and what to record to know more."""

from __future__ import annotations

from hybridsim.answers.bounds import Bounds, Case
from hybridsim.answers.forecast import NO
from hybridsim.foundation.printable import printable
from hybridsim.foundation.units import human_count, human_rate, human_size
from hybridsim.foundation.wording import lasting, latency, percent, times
from hybridsim.show.page import page, paragraph, table

HEADS = ("mean of all requests", "now", "best", "worst", "gain at most")


def text(bounds: Bounds, ascii_only: bool = False) -> str:
    """Return the report as text, at most 80 columns wide."""
    cases = [(case.mode, case) for case in bounds.cases]
    if bounds.intervals > 1:
        cases += [(f"{case.mode}, busiest interval", case) for case in bounds.busiest.cases]
    lines = [
        *paragraph("answer", _answer(bounds)),
        *paragraph("load", _load(bounds)),
        "",
        *table(HEADS, [_row(*each) for each in cases]),
        "",
        *paragraph("SSD writes", _writes(bounds)),
        *paragraph("why so wide", WHY),
        *paragraph("narrow it", _record(bounds)),
    ]
    return page(lines, ascii_only)


WHY = (
    "averages do not say what is read again. Best: every read hits and, in write-back, the SSD "
    "takes every write; worst: none. Copying to the SSD may slow the disks down beyond that."
)


def _answer(bounds: Bounds) -> str:
    most = max(case.gain_at_most for case in bounds.cases)
    if bounds.answer == NO:
        return f"no: even if everything hit, requests would be only {times(most)} faster."
    answer = f"can't say: between nothing and {times(most)} faster, by what the load reads again."
    if bounds.is_streaming:
        answer += (
            f" Reads of {human_size(bounds.mean_read_bytes or 0)} on average look like streams,"
            " which caches let pass: expect the worst case for them."
        )
    return answer


def _load(bounds: Bounds) -> str:
    rate = f"{human_count(bounds.requests_per_s)} requests a second"
    reads = "reads and writes not separated"
    if bounds.read_share is not None:
        reads = f"{percent(bounds.read_share)} reads"
    busy = "" if bounds.busy is None else f", busy {percent(bounds.busy)} of the time"
    number = f"{bounds.intervals} interval{'s' * (bounds.intervals != 1)}"
    source = printable(bounds.source)
    return f"{bounds.device} in {source}: {number}, {rate}, {reads}{busy}."


def _row(name: str, case: Case) -> tuple[str, ...]:
    means = (case.now_ns, case.best_ns, case.worst_ns)
    return (name, *map(latency, means), times(case.gain_at_most))


def _writes(bounds: Bounds) -> str:
    per_day, years = bounds.ssd_bytes_per_day_at_most, bounds.ssd_life_years_at_least
    day = f"at most {human_size(per_day)} a day ({human_rate(per_day / 86_400)})"
    text = f"{day}, if every request went to the SSD once; the {bounds.drive}"
    if years is None:
        return f"{text} has no rated endurance."
    life = lasting(years)
    longer = "" if life.startswith("more") else " or longer"
    return f"{text} would last {life}{longer}."


def _record(bounds: Bounds) -> str:
    device = bounds.device if bounds.device != "fio" else "sda"
    when = f" around {bounds.busiest.at}" if bounds.busiest.at else " while the load is typical"
    return (
        f"record ten minutes{when}: `hybridsim trace record /dev/{device} --for 10m`, then "
        "`hybridsim replay` it: gain with an interval, size, warm-up."
    )
