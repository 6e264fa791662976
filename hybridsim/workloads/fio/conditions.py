"""rate_min, rate_iops_min and steadystate: conditions on a job's rates that end it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hybridsim.workloads.fio import options
from hybridsim.workloads.fio.reader import Reader

SECOND, MILLISECOND = 10**9, 10**6


@dataclass(frozen=True)
class Floor:
    """Minimum rates of reads, writes and trims; 0: none."""

    bytes_per_s: tuple[int, int, int] = (0, 0, 0)
    requests_per_s: tuple[int, int, int] = (0, 0, 0)
    cycle_ns: int = SECOND

    @property
    def is_set(self) -> bool:
        """Whether any rate has a minimum."""
        return any(self.bytes_per_s) or any(self.requests_per_s)


@dataclass(frozen=True)
class Steady:
    """A criterion of a steady state: the job ends when it is met."""

    of: str = ""  # iops or bw
    is_slope: bool = False  # else the largest deviation from the mean
    limit: float = 0.0
    is_percent: bool = False
    seconds: int = 0  # that are considered; 0: no criterion
    ramp_ns: int = 0


NO_FLOOR, NOT_STEADY = Floor(), Steady()


def floor_of(reader: Reader) -> Floor:
    """Return rate_min, rate_iops_min and rate_cycle."""
    return Floor(
        reader.three("rate_min", options.size, 0),
        reader.three("rate_iops_min", options.whole, 0),
        reader.time("rate_cycle", MILLISECOND) or SECOND,
    )


def steady_of(reader: Reader) -> Steady:
    """Return steadystate, its duration and its ramp time."""

    def parse(text: str) -> Steady:
        name, _, limit = text.partition(":")
        of, _, slope = name.partition("_")
        if of not in ("iops", "bw") or slope not in ("", "slope") or not limit:
            names = "iops:, bw:, iops_slope: or bw_slope: and a limit, for example iops:5%"
            raise ValueError(f"{text}: expected {names}")
        is_percent = limit.endswith("%")
        value = options.decimal(limit[:-1]) if is_percent else float(options.size(limit))
        return Steady(of, bool(slope), value, is_percent)

    steady = reader.read("steadystate", parse, NOT_STEADY)
    seconds = reader.time("steadystate_duration", SECOND) // SECOND
    if not steady.of or not seconds:
        return NOT_STEADY
    ramp_ns = reader.time("steadystate_ramp_time", SECOND)
    return Steady(steady.of, steady.is_slope, steady.limit, steady.is_percent, seconds, ramp_ns)


def criterion(steady: Steady, values: Sequence[float]) -> float:
    """Return the slope per second of values of one second each, or their largest deviation."""
    y = np.asarray(values, np.float64)
    mean = float(y.mean())
    if steady.is_slope:
        x = np.arange(len(y)) - (len(y) - 1) / 2
        result = float((x * (y - mean)).sum() / (x * x).sum()) if len(y) > 1 else 0.0
    else:
        result = float(np.abs(y - mean).max())
    if steady.is_percent:
        return 100 * result / mean if mean else float("inf")
    return result
