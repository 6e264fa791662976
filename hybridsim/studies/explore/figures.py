"""What an exploration keeps of a replay: the figures of a sweep, and its curves."""

from __future__ import annotations

from typing import Any

import numpy as np

from hybridsim.answers.metrics import READS, Kind
from hybridsim.answers.outcome import Outcome, wear
from hybridsim.answers.result import Result
from hybridsim.studies.sweep.figures import figures
from hybridsim.studies.sweep.point import Point, replayed

DETAIL = "replay explore/1"  # a replay with these figures; part of the key of a stored one
PARTS = 20  # of the requests, for the curve of the hit ratio
WEAR, YEARS = "dwpd.whole", "years.whole"  # over the whole trace, as of `advise`
HIT_PART = "hit.part."  # and the number of the part, from 0


def explored(point: Point, shared_folder: str | None = None) -> dict[str, Any]:
    """Replay a point; return the figures of a sweep, saturation, and the warm-up curve.

    In `shared_folder` the processes share the results of the disks alone.
    """
    return replayed(point, _curves, shared_folder, has_intervals=False)


def figures_of(result: Result) -> dict[str, Any]:
    """Return what an exploration keeps of a result."""
    return figures(result, has_intervals=False) | _curves(result)


def _curves(result: Result) -> dict[str, Any]:
    whole, about = result.phases["whole"], result.scenario
    worn = wear(whole, about.get("endurance_bytes"), about.get("capacity_bytes"))
    return {
        "saturated": result.phases["whole"].saturated,
        "alone.saturated": result.phases["none_whole"].saturated,
        WEAR: None if worn is None else worn.drive_writes_per_day,
        YEARS: None if worn is None else worn.years,
        **{f"{HIT_PART}{n}": each for n, each in enumerate(hits_by_part(result.cached))},
    }


def hits_by_part(outcome: Outcome) -> list[float | None]:
    """Return the hit ratio of the reads in each of PARTS equal parts of the requests.

    None for a part without reads.  Counts are of time bins, interpolated within a bin.
    """
    bins, used = outcome.collector.bins, outcome.collector.used
    issued = np.concatenate([[0], np.cumsum(bins.count[:used].sum(axis=1))])
    reads = np.concatenate([[0], np.cumsum(bins.count[:used, list(READS)].sum(axis=1))])
    hits = np.concatenate([[0], np.cumsum(bins.count[:used, Kind.HIT])])
    edges = np.linspace(0, issued[-1], PARTS + 1)
    of_reads = np.diff(np.interp(edges, issued, reads))
    of_hits = np.diff(np.interp(edges, issued, hits))
    return [float(h / r) if r > 0 else None for h, r in zip(of_hits, of_reads)]
