"""The hits of other cache sizes: the miss-ratio curve added to a replay."""

from __future__ import annotations

from dataclasses import replace

from hybridsim.answers.result import Result
from hybridsim.studies.mrc import miss_ratio_curve
from hybridsim.traces.trace import Trace

POINTS = 200  # of the curve in the result


def with_curve(result: Result, trace: Trace, page_bytes: int) -> Result:
    """Return a result with the miss-ratio curve of LRU; the trace is read once more."""
    curve = miss_ratio_curve(trace, "lru", None, page_bytes)
    return replace(result, curve=curve.to_dict(POINTS))
