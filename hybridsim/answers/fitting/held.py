"""What fio's percentiles show of a controller that holds completions back (DESIGN.md 2.10).

Such a controller raises one interrupt for all completions of a time.  With one request at a time
it hardly does so, with four nearly always: then the fastest of four take longer by that time.
"""

from __future__ import annotations

from dataclasses import replace

from hybridsim.answers.fitting.answer import Estimate
from hybridsim.answers.fitting.fio_results import Point
from hybridsim.foundation.units import human_time

FEWEST, MOST = 3, 8  # requests at a time of which nearly all are held, and which a drive can serve
FAST = 20.0  # percentile that no wait for a die reaches at these depths, far below the limit
FREE = 0.7  # a rate below this share of the highest is not the limit of the drive
LONGER = 0.5  # of the latency, at least
# Measured: an HP Smart Array P420, with six SSDs behind it (`benchmarks/RESULTS.md`).
LIKE = "an HP Smart Array P420"
FROM, WITHIN_NS = 5, 280_000.0
NEARLY = 0.9  # of the time: a latency that is so much longer than the fast ones is of a held one


def hold_ns(points: list[Point]) -> float:
    """Return for how long completions are held, from random reads of one size; 0: not at all."""
    reads = [one for one in points if one.direction == "read" and FAST in one.percentiles_ns]
    alone = min(
        (one for one in reads if one.depth == 1), key=lambda one: one.block_bytes, default=None
    )
    if alone is None:
        return 0.0
    same = [one for one in reads if one.block_bytes == alone.block_bytes]
    top = max(one.iops for one in same)
    some = [one for one in same if FEWEST <= one.depth <= MOST and one.iops < FREE * top]
    if not some:
        return 0.0
    shallow = min(some, key=lambda one: one.depth)
    fast_ns = alone.percentiles_ns[FAST]
    longer_ns = shallow.percentiles_ns[FAST] - fast_ns
    return longer_ns if longer_ns >= LONGER * fast_ns else 0.0


def delivered_at_once(points: list[Point], hold: float) -> list[Point]:
    """Return the points with the latencies of single requests as if none had been held."""
    return [_at_once(one, hold) if one.depth == 1 and hold else one for one in points]


def _at_once(point: Point, hold: float) -> Point:
    least_ns = point.percentiles_ns.get(FAST, 0.0) + NEARLY * hold
    shares = {
        share: value - hold if value >= least_ns else value
        for share, value in point.percentiles_ns.items()
    }
    return replace(point, percentiles_ns=shares)


def estimates(hold: float) -> list[Estimate]:
    """Return the keys of the host."""
    if not hold:
        return []
    how = "of several reads at a time the fastest fifth takes so much longer than of one"
    like = f"as {LIKE}"
    return [
        Estimate("host", "hold", hold, "ns", how=how),
        Estimate("host", "hold_from", FROM, determined=False, how=like),
        Estimate("host", "hold_within", WITHIN_NS, "ns", determined=False, how=like),
    ]


def notes(hold: float) -> list[str]:
    """Return a remark on what it costs."""
    if not hold:
        return []
    return [
        f"The controller holds completions back for {human_time(hold)} while many come, to raise "
        "fewer interrupts (interrupt coalescing; host.hold): at 4 requests at a time an SSD behind "
        "it serves fewer than at 2."
    ]
