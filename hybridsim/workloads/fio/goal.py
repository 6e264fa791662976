"""latency_target and max_latency: how long requests may take, and what is done about it."""

from __future__ import annotations

from dataclasses import dataclass

from hybridsim.workloads.fio import options
from hybridsim.workloads.fio.reader import Reader

MICROSECOND = 10**3
ALL = 10**6


@dataclass(frozen=True)
class Goal:
    """The latency that a job looks for the depth of, and that at which it ends; 0: none."""

    target_ns: int = 0
    window_ns: int = 0
    share: int = ALL  # of its requests that must meet it, in millionths
    keeps_on: bool = False  # looking, when the depth is found
    most_ns: tuple[int, int, int] = (0, 0, 0)  # read, write, trim: the job ends when one took more

    @property
    def percent(self) -> float:
        """The share in percent."""
        return self.share / 10**4


NO_GOAL = Goal()


def goal_of(reader: Reader) -> Goal:
    """Return what a job says of latencies."""
    goal = Goal(
        target_ns=reader.time("latency_target", MICROSECOND),
        window_ns=reader.time("latency_window", MICROSECOND),
        share=reader.read("latency_percentile", _share, ALL),
        keeps_on=reader.flag("latency_run"),
        most_ns=reader.three("max_latency", lambda text: options.time_ns(text, MICROSECOND), 0),
    )
    for name in ("latency_window", "latency_percentile", "latency_run"):
        if name in reader.given and not goal.target_ns:
            reader.refuse(name, f"{name} says nothing without a latency_target")
    return goal


def _share(text: str) -> int:
    percent = float(text.split(":")[0])
    if not 0 <= percent <= 100:
        raise ValueError(f"{text}: a percentage is from 0 to 100")
    return round(percent * ALL / 100)
