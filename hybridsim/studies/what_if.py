"""Add the miss-ratio curve of all cache sizes to the result of a replay, for its HTML report."""

from __future__ import annotations

from dataclasses import replace

from hybridsim.answers.result import Result
from hybridsim.studies.mrc import miss_ratio_curve
from hybridsim.traces.trace import Trace

POINTS = 200  # maximum number of points of the curve


def with_curve(result: Result, trace: Trace, page_bytes: int) -> Result:
    """Return the result with the miss-ratio curve of LRU.

    Reads the trace once more, in pages of `page_bytes`.
    """
    curve = miss_ratio_curve(trace, "lru", None, page_bytes)
    return replace(result, curve=curve.to_dict(POINTS))
