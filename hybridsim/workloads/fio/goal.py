"""latency_target and max_latency: the latency limits of a job."""

from __future__ import annotations

from dataclasses import dataclass

from hybridsim.workloads.fio import options
from hybridsim.workloads.fio.reader import Reader

MICROSECOND = 10**3
ALL = 10**6


@dataclass(frozen=True)
class Goal:
    """Latency target of a search for the depth, and latency limits of a job; 0: none."""

    target_ns: int = 0
    window_ns: int = 0
    share: int = ALL  # share of the requests that must meet the target, in millionths
    keeps_on: bool = False  # latency_run: keep searching after the depth is determined
    limit_ns: tuple[int, int, int] = (0, 0, 0)  # read, write, trim: the job ends above this

    @property
    def percent(self) -> float:
        """The share of requests that must meet the target, in percent."""
        return self.share / 10**4


NO_GOAL = Goal()


def goal_of(reader: Reader) -> Goal:
    """Return the latency options of a job."""
    goal = Goal(
        target_ns=reader.time("latency_target", MICROSECOND),
        window_ns=reader.time("latency_window", MICROSECOND),
        share=reader.read("latency_percentile", _share, ALL),
        keeps_on=reader.flag("latency_run"),
        limit_ns=reader.three("max_latency", lambda text: options.time_ns(text, MICROSECOND), 0),
    )
    for name in ("latency_window", "latency_percentile", "latency_run"):
        if name in reader.specified and not goal.target_ns:
            reader.refuse(name, f"{name} has no effect without latency_target")
    return goal


def _share(text: str) -> int:
    percent = float(text.split(":")[0])
    if not 0 <= percent <= 100:
        raise ValueError(f"{text}: a percentage must be 0 to 100")
    return round(percent * ALL / 100)
