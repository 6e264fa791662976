"""The report of a sweep over a fleet: totals by setting, the largest and smallest gains."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hybridsim.answers.forecast import is_certain
from hybridsim.foundation.units import human_size
from hybridsim.foundation.wording import NONE, counted, in_table, latency
from hybridsim.show.page import table
from hybridsim.studies.sweep.answer import FleetRow, gain_of
from hybridsim.studies.sweep.figures import FORECAST, INTERVALS, WORK, WORK_NS

if TYPE_CHECKING:
    from hybridsim.studies.sweep.answer import Setting, SweepResult

VOLUMES_SHOWN = 5  # at each end of the ranking


def lines(sweep_result: SweepResult) -> Iterator[str]:
    """Yield the totals by setting, the distribution of gains, and the volumes at both ends."""
    rows = sweep_result.fleet
    yield f"{counted(len(rows[0].settings), 'volume')}, each replayed separately"
    heads = ["", "yes", "no", "unsure", "SSD", "alone", "cached", "gain", "10%", "half", "90%"]
    yield from table(heads, [_cells(row) for row in rows])
    yield "alone, cached: mean latency of the second half of each volume's requests;"
    yield "gain: their ratio;"
    yield "10%, half, 90%: that share of the volumes has at most this gain"
    yield ""
    yield from _ends(rows[0])


def _cells(row: FleetRow) -> list[str]:
    shares = row.quantiles
    name = " ".join(f"{key.rpartition('.')[2]}={value}" for key, value in row.values.items())
    return [
        name or "the scenario",
        *(str(number) for number in row.answers.values()),
        human_size(row.ssd_bytes).replace(" ", ""),
        latency(row.alone_ns).replace(" ", ""),
        latency(row.mean_ns).replace(" ", ""),
        _times(row.gain),
        *(_times(shares.get(each)) for each in (10, 50, 90)),
    ]


def _mean_ns(one: Setting) -> float | None:
    figures = one.figures[0]
    return figures[WORK_NS] / figures[WORK] if figures[WORK] else None


def _times(gain: float | None) -> str:
    return NONE if gain is None else f"{gain:.2f}"


def _answer(one: Setting) -> str:
    figures = one.figures[0]
    low, high = figures[INTERVALS].get(FORECAST, (None, None))
    return in_table(figures["answer"], is_certain(figures["answer"], low, high))


def _ends(row: FleetRow) -> Iterator[str]:
    known = [(gain, each) for each in row.settings if (gain := gain_of(each)) is not None]
    ranked = sorted(known, key=lambda pair: -pair[0])
    if len(ranked) > 2 * VOLUMES_SHOWN:
        ranked = ranked[:VOLUMES_SHOWN] + ranked[-VOLUMES_SHOWN:]
    cells = [
        [each.points[0].trace.device or "", _answer(each), _times(gain),
         latency(_mean_ns(each)), f"{each.figures[0]['requests']:,}",
         human_size(each.figures[0]["ssd_bytes"])]
        for gain, each in ranked
    ]  # fmt: skip
    setting = f", with {_cells(row)[0]}" if row.values else ""
    yield f"the volumes with the largest and the smallest gains{setting}"
    yield from table(["volume", "answer", "gain", "mean", "requests", "SSD"], cells)
