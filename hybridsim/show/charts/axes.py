"""Axes with the unit that fits their values."""

from __future__ import annotations

from collections.abc import Iterable

from hybridsim.show.charts import Axis, Value

SECOND = 10**9
TIMES = {"µs": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9, "h": 3600e9, "days": 86400e9}
SIZES = {"B": 1.0, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40}
RATES = {"B/s": 1.0, "kB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9}
FEWEST = 3.0  # minimum length of an axis in its unit; below it, a smaller unit is used
FEWEST_TIMES = 10.0  # minimum length of an axis of times in minutes


def maximum(values: Iterable[Value]) -> float:
    """Return the largest known value; 0 without one."""
    return float(max((each for each in values if each is not None), default=0.0))


def _unit(units: dict[str, float], end: float, fewest: float = FEWEST) -> tuple[str, float]:
    fitting = [name for name, per in units.items() if end >= fewest * per]
    name = fitting[-1] if fitting else next(iter(units))
    return name, units[name]


def times(end_ns: float, label: str = "time") -> Axis:
    """Return an axis of times from 0."""
    return Axis(label, *_unit(TIMES, end_ns, FEWEST_TIMES), low=0, high=end_ns)


def latencies(longest_ns: float, label: str = "latency", log: bool = False) -> Axis:
    """Return an axis of latencies; a logarithmic one is in milliseconds."""
    if log:
        return Axis(label, "ms", TIMES["ms"], log=True)
    return Axis(label, *_unit(TIMES, longest_ns), low=0)


def shares(label: str, high: float | None = 1.0) -> Axis:
    """Return an axis of shares in percent."""
    return Axis(label, "%", 0.01, low=0, high=high)


def sizes(largest_bytes: float, label: str = "cache size", log: bool = False) -> Axis:
    """Return an axis of bytes."""
    return Axis(label, *_unit(SIZES, largest_bytes), log=log, base=2, low=None if log else 0)


def rates(largest: float, label: str) -> Axis:
    """Return an axis of bytes per second."""
    return Axis(label, *_unit(RATES, largest), low=0)


def counts(label: str, log: bool = False, base: int = 10) -> Axis:
    """Return an axis of plain numbers."""
    return Axis(label, log=log, base=base, low=None if log else 0)
